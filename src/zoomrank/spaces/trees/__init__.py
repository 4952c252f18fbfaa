"""Trees whose leaves are documents: their shape, their distances, and where they come from."""
