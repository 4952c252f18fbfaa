"""Experiments: rankers meet users here, and nowhere below.

Running needs nothing but the library; `engines`, `store` and `report` need the extra `zoomrank[lab]` where they write.
"""

from zoomrank.lab.recipes import Curve, Experiment, Recipe, Setting, recipe
from zoomrank.lab.results import Estimate, Results, estimate
from zoomrank.lab.run import Rows, run
from zoomrank.lab.runners import Local, Ray
from zoomrank.lab.simulator import Ranker, Trace, simulate

__all__ = [
    "Curve",
    "Estimate",
    "Experiment",
    "Local",
    "Ranker",
    "Ray",
    "Recipe",
    "Results",
    "Rows",
    "Setting",
    "Trace",
    "estimate",
    "recipe",
    "run",
    "simulate",
]
