"""`zoomrank year`: a simulated year of a shop, which compares its learners with undisturbed ones."""
