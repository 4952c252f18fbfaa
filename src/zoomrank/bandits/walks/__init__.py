"""Compiled walks by which the larger bandits choose and count."""
