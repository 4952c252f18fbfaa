"""Research on zoomrank: studies of its learners, a simulated year of a shop, and benchmarks.

It imports the package and is never imported by it; it is not in the wheel. `python -m research --help` lists its
commands.
"""
