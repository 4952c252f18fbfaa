"""Rankers on judged documents, with simulated clicks from real labels."""

KIND = "evaluation"  # in the manifest of its results
