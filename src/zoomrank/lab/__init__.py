"""Experiments with simulated visitors: the only package where rankers and simulated users come together.

This folder has the core: settings, runs, the runners that carry them out, folders of results, measures, and the parts
that reports share. Three applications use it and not each other: `paper`, `evaluation` and `inspection`; the studies
in `research` are a fourth. Running needs nothing but the library; folders of results and reports need the extra
`zoomrank[lab]`.
"""

from zoomrank.lab.curves import Estimate, Results, estimate
from zoomrank.lab.recipes import Curve, Experiment, Recipe, Setting, recipe
from zoomrank.lab.run import RunRows, run
from zoomrank.lab.simulator import Ranker, Trace, simulate
from zoomrank.lab.sweep import Local, Ray

__all__ = [
    "Curve",
    "Estimate",
    "Experiment",
    "Local",
    "Ranker",
    "Ray",
    "Recipe",
    "Results",
    "RunRows",
    "Setting",
    "Trace",
    "estimate",
    "recipe",
    "run",
    "simulate",
]
