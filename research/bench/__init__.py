"""Benchmarks: the measurements behind docs/benchmarks.md, by subject. `python -m research bench` runs them."""
