"""Models of visitors, one in each module."""
