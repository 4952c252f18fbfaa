"""Rankers on judged documents, with simulated clicks from real labels."""

KIND = "evaluation"  # what the manifest of its results says
