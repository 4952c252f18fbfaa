"""Commands of `python -m research`, one a module."""
