"""Rankers on judged documents, with simulated clicks from real labels."""
