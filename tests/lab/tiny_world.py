"""A tiny world with a few curves, and rows of it that nobody ran."""

import dataclasses

import numpy as np

from zoomrank.lab.curves import Results
from zoomrank.lab.recipes import Curve, Experiment, recipe
from zoomrank.lab.registry import GREEDY
from zoomrank.lab.run import RunRows, checkpoints

SMALL = Experiment(
    name="tiny",
    title="a tiny world",
    tree=recipe("exponential", depth=5),
    users=recipe("two-peaks"),
    slots=2,
    visits=500,
    curves=(
        Curve("RankCorrZoom", recipe("RankCorrZoom")),
        Curve("RankEXP3", recipe("RankEXP3", horizon="{visits}")),
        Curve("late", recipe("RankZoom"), delay=20),
        Curve("shuffled", recipe("RankZoom"), belief=recipe("shuffled", share=0.5)),
        Curve(GREEDY, recipe(GREEDY)),
    ),
)


def made_up_rows(curve: str, instance: int, rates: tuple[float, float], visits: int = 1_000) -> RunRows:
    """Made-up rows: one rate in the first 90 % of the run, another in the rest."""
    setting = dataclasses.replace(SMALL.settings(["late"], instances=1)[0], curve=curve, instance=instance)
    at = np.array(checkpoints(visits))
    early, late = np.minimum(at, 0.9 * visits), np.maximum(at - 0.9 * visits, 0)
    satisfied = np.round(early * rates[0] + late * rates[1]).astype(np.int64)
    return RunRows(setting, at, np.stack([satisfied, np.zeros_like(satisfied)], axis=1), np.full(len(at), rates[1]))


def made_up_results(**curves: list[tuple[float, float]]) -> Results:
    """Made-up rows of some curves: rates per instance."""
    return Results(
        made_up_rows(name, at, rates) for name, all_rates in curves.items() for at, rates in enumerate(all_rates)
    )
