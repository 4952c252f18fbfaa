"""Models of visitors, one a module."""
