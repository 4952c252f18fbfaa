"""`python -m research year`: a simulated year of a shop, which compares its learners with undisturbed ones."""
