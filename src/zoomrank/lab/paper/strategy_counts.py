"""Table of the numbers of strategies of zooming rankers, slot by slot."""

from __future__ import annotations

from collections.abc import Sequence

from zoomrank.lab.curves import Results
from zoomrank.lab.reports.page_text import label, table
from zoomrank.numbers import Array

INTRODUCTION = (
    "The active subtrees of each slot when a run ends, and of RankContextZoom the active pairs with contexts that have "
    "come up; means over instances. *Visits a strategy* are the visits that reached the slot, divided by them."
)
_HEADS = ("experiment", "ranker", "strategies, slot by slot", "in all", "visits a strategy, slot by slot")


def strategy_table(results: Results, experiments: Sequence[str]) -> str | None:
    """Return a row per ranker that has strategies, in these experiments; None if none has rows."""
    rows = [
        _row(experiment, curve, active, results.curve(experiment, curve).examined())
        for experiment in experiments
        for curve in results.curves(experiment)
        if (active := results.curve(experiment, curve).active) is not None
    ]
    return table(_HEADS, rows) if rows else None


def _row(experiment: str, curve: str, active: Array, examined: Array) -> tuple[str, ...]:
    by_slot = active.mean(axis=0)
    visits = (examined / active).mean(axis=0)
    return (
        experiment,
        label(curve),
        " ".join(f"{count:,.0f}" for count in by_slot),
        f"{by_slot.sum():,.0f}",
        " ".join(f"{each:,.1f}" for each in visits),
    )
