"""Rankers by their names: ours, those of the paper, and others to compare with."""
