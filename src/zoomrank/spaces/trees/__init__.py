"""Trees whose leaves are documents: their shape, their distances, and their sources."""
