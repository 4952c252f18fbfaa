"""Report on warm starts: visits that a log saves, clicks that an order gains or costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from zoomrank.errors import ResultsError
from zoomrank.lab.catalogue import GREEDY
from zoomrank.lab.curves import CurveRows, Results
from zoomrank.lab.measures import SUSTAINED, bootstrap, collected, ratio_of_medians
from zoomrank.lab.reports.page_text import table
from zoomrank.lab.studies.families import Family
from zoomrank.lab.studies.known_before import IMPRESSIONS, OLD_RANKERS, ORDERS, worlds
from zoomrank.numbers import Array

_RUNNING = 5  # checkpoints


def reached(mine: CurveRows, level: Array) -> Array:
    """Return the checkpoint from which several rankings in a row reach a level, per instance; infinite if there is
    none.
    """
    good = mine.expected >= level[:, None] - 1e-12
    since = np.full(len(good), np.inf)
    for instance, row in enumerate(good):
        runs = np.flatnonzero(np.convolve(row, np.ones(_RUNNING), "valid") > _RUNNING - 0.5)
        if len(runs):
            since[instance] = mine.visits[runs[0]]
    return since


def known_before_sections(folder: Path, command: str, results: Results, families: Sequence[Family]) -> Iterable[str]:  # noqa: ARG001
    """Return the page, section by section."""
    there = [family for family in worlds() if results.comparable(f"log-{family.name}", "alone", *OLD_RANKERS, GREEDY)]
    if not there:
        raise ResultsError(f"{folder} has no family in which all learners have run: nothing to report yet.")
    yield "# What is known before the first visitor comes"
    yield f"Made by `{command}`. All learners meet the same visitors; intervals are 95 %, by resampling instances."
    yield f"## The log of {IMPRESSIONS:,} impressions of another ranker"
    yield (
        f"Visits until {_RUNNING} looks in a row show rankings that are worth {SUSTAINED:.0%} of what the learner "
        "without a log shows in the last tenth of its visits: the median, and in brackets the part of the visits that "
        "the learner without a log needs. Below, clicks by 1,000 visits as a share of greedy's."
    )
    yield table(("world", "alone", *(f"log of {old}" for old in OLD_RANKERS)), map(_visits_row, *_both(results, there)))
    yield table(("world", "alone", *(f"log of {old}" for old in OLD_RANKERS)), map(_clicks_row, *_both(results, there)))
    yield "## A prior order"
    yield (
        "Clicks of the first 1,000 visits, as a share of those of the learner that has no order. A good order is that "
        "of popularity, estimated badly; the others are wrong."
    )
    yield table(("world", *ORDERS, "instances"), (_order_row(results, family) for family in there))


def _both(results: Results, there: Sequence[Family]) -> tuple[list[Results], Sequence[Family]]:
    return [results] * len(there), there


def _visits_row(results: Results, family: Family) -> tuple[str, ...]:
    alone, *others = results.together(f"log-{family.name}", "alone", *OLD_RANKERS)
    last = alone.visits > 0.9 * alone.visits[-1]
    level = SUSTAINED * alone.expected[:, last].mean(axis=1)
    without = reached(alone, level)
    cells = []
    for one in others:
        mine = reached(one, level)
        part = ratio_of_medians(mine, without)
        parts = [_told(number, ".2f") for number in (part.mean, part.low, part.high)]
        cells.append(f"{_told(float(np.median(mine)))} ({parts[0]} [{parts[1]}, {parts[2]}])")
    return family.title, _told(float(np.median(without))), *cells


def _told(number: float, how: str = ",.0f") -> str:
    """Format a number; infinite means never reached."""
    return format(number, how) if number < 1e6 else "∞"


def _clicks_row(results: Results, family: Family) -> tuple[str, ...]:
    *learners, greedy = results.together(f"log-{family.name}", "alone", *OLD_RANKERS, GREEDY)
    return family.title, *(f"{collected(one, greedy, 1_000).mean():.3f}" for one in learners)


def _order_row(results: Results, family: Family) -> tuple[str, ...]:
    alone, *others = results.together(f"order-{family.name}", "alone", *ORDERS)
    without = alone.rate(0.0, 1.0)
    cells = []
    for one in others:
        part = bootstrap((one.rate(0.0, 1.0) - without) / without.mean())
        cells.append(f"{1 + part.mean:.2f} [{1 + part.low:.2f}, {1 + part.high:.2f}]")
    return family.title, *cells, str(len(without))
