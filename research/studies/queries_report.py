"""Report on similar queries: what they gain and lose by learning from each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure as Drawing

from research.studies.measures import SUSTAINED, bootstrap
from research.studies.queries import EDGES, LEARNED, LEARNERS, RELATIONS, TrafficKind, results_so_far
from research.studies.questions import SIBLINGS
from zoomrank.lab.curves import CurveRows, Results, collected
from zoomrank.lab.figure_style import BLUE, GREEN, GREY, ORANGE, RED, STYLE, WIDTH, save
from zoomrank.lab.registry import GREEDY
from zoomrank.lab.report_pages import table
from zoomrank.types import Array

MARKS = (100, 1_000, 10_000)
CURVES = ("alone", *(f"lent-{n}" for n in SIBLINGS), "copied", "one-for-all", "oracle")
_TITLES = {
    "copied": "a copy of one sibling",
    "one-for-all": "one learner for all",
    "oracle": "one learner for those who are alike",
    **{f"lent-{n}": f"lent by {n}" for n in SIBLINGS},
}
_COLOURS = {"alone": GREY, "lent-1": ORANGE, "lent-5": GREEN, "lent-20": BLUE, "lent-100": RED}


def query_sections(folder: Path, command: str, results: Results, manifest: Mapping[str, Any]) -> Iterable[str]:
    """Return all paragraphs of the report."""
    yield "# What similar queries are worth to each other"
    yield f"Made by `{command}`."
    if not manifest.get("traffic"):
        yield from _sibling_sections(folder, results)
    crowds = results_so_far(manifest, folder)
    if crowds:
        yield from _traffic_sections(folder, crowds)


def _sibling_sections(folder: Path, results: Results) -> Iterable[str]:
    there = [name for name in RELATIONS if results.comparable(f"queries-{name}", *CURVES, GREEDY)]
    yield (
        f"A query with three peaks among 4,096 documents is asked for the first time; siblings "
        f"of it have learned for {LEARNED} visits each, alone. Those that lend are told apart by how many there are; "
        "copies, one learner for all and one for those who are alike had 20. Shares of what greedy collects, with "
        "95 % intervals."
    )
    yield _picture(folder, results, there)
    yield "## The first ranking, and clicks by some visit"
    yield table(("world", "learner", "first ranking", *(f"by {mark:,}" for mark in MARKS)), _shares(results, there))
    yield f"## Visits until the ranking shown is worth {SUSTAINED:.0%} of greedy"
    yield (
        "The mean over instances of the ranking shown, from a visit on for good. Rankers that try things out show "
        "worse rankings now and then, so the mean of a few looks is taken."
    )
    yield table(("world", *(_title(curve) for curve in CURVES)), _settling(results, there))
    yield "## What is lost where nothing can be gained"
    yield "Clicks of a query lent to by 20 siblings, as a share of those of the same query alone; in pairs."
    yield table(("world", *(f"by {mark:,}" for mark in MARKS), "instances"), _losses(results, there))


def _title(curve: str) -> str:
    return _TITLES.get(curve, curve)


def _together(results: Results, relation: str, *curves: str) -> list[CurveRows]:
    return list(results.together(f"queries-{relation}", *curves))


def _shares(results: Results, there: Sequence[str]) -> Iterable[tuple[str, ...]]:
    for name in there:
        rows = dict(zip((*CURVES, GREEDY), _together(results, name, *CURVES, GREEDY), strict=True))
        first = dict(zip((*CURVES, GREEDY), _together(results, f"{name}-first", *CURVES, GREEDY), strict=True))
        for curve in CURVES:
            at_once = bootstrap(first[curve].expected[:, 0] / first[GREEDY].expected[:, 0])
            shares = [str(bootstrap(collected(rows[curve], rows[GREEDY], mark))) for mark in MARKS]
            yield (RELATIONS[name].title if curve == "alone" else "", _title(curve), str(at_once), *shares)


def _settling(results: Results, there: Sequence[str]) -> Iterable[tuple[str, ...]]:
    for name in there:
        *rows, greedy = _together(results, name, *CURVES, GREEDY)
        yield (RELATIONS[name].title, *(_visits(_since(one, greedy)) for one in rows))


def _since(mine: CurveRows, greedy: CurveRows) -> float:
    """Return the visit from which on the mean ranking is good enough; infinite if there is none."""
    band = mine.expectation()
    good = band.mean >= SUSTAINED * float(greedy.expected[:, 0].mean())
    failures = np.flatnonzero(~good)
    first = 0 if len(failures) == 0 else int(failures[-1]) + 1
    return float(band.visits[first]) if first < len(good) else np.inf


def _visits(since: float) -> str:
    return f"{since:,.0f}" if np.isfinite(since) else "more than 10,000"


def _losses(results: Results, there: Sequence[str]) -> Iterable[tuple[str, ...]]:
    for name in there:
        if RELATIONS[name].negative:
            mine, alone = _together(results, name, "lent-20", "alone")
            cells = []
            for mark in MARKS:
                end = min(mark / mine.length, 1.0)
                one, other = mine.rate(0.0, end), alone.rate(0.0, end)
                part = bootstrap((one - other) / other.mean())
                cells.append(f"{1 + part.mean:.3f} [{1 + part.low:.3f}, {1 + part.high:.3f}]")
            yield (RELATIONS[name].title, *cells, str(len(mine.settings)))


def _picture(folder: Path, results: Results, there: Sequence[str]) -> str:
    with mpl.rc_context(STYLE):
        drawing = Drawing(figsize=(WIDTH, 4.6), layout="constrained")
        axes = drawing.subplots(2, 3, sharex=True, sharey=True).ravel()
        for axis, name in zip(axes, there, strict=False):
            *rows, greedy = _together(results, name, *_COLOURS, GREEDY)
            for curve, one in zip(_COLOURS, rows, strict=True):
                band = one.expectation()
                scale = float(greedy.expected[:, 0].mean())
                axis.plot(band.visits, band.mean / scale, color=_COLOURS[curve], label=_title(curve))
                axis.fill_between(
                    band.visits, band.low / scale, band.high / scale, color=_COLOURS[curve], alpha=0.15, linewidth=0
                )
            axis.set(xscale="log", ylim=(0, 1.03), title=name)
        axes[len(there)].axis("off")
        axes[len(there)].legend(*axes[0].get_legend_handles_labels(), loc="center")
        drawing.supxlabel("visits of the query", fontsize=8)
        drawing.supylabel("ranking shown, share of greedy", fontsize=8)
        save(drawing, folder / "figures", "queries")
    return "![The ranking shown, by visits of the query](figures/figure-queries.png)"


def _traffic_sections(folder: Path, crowds: Sequence[tuple[TrafficKind, Sequence[dict[str, Any]]]]) -> Iterable[str]:
    yield "## Traffic"
    visits = int(sum(crowds[0][1][0]["visits"]))
    queries = int(sum(crowds[0][1][0]["queries"]))
    yield (
        f"{queries:,} queries in groups, asked {visits:,} times in all as Zipf's law has it (files of one's own may "
        "have fewer queries), all of them learning at the same time from nothing. Shares of what greedy collects, "
        f"means of {len(crowds[0][1])} instances; in brackets the lowest and the highest."
    )
    yield table(
        ("world", *LEARNERS, "lent / alone"),
        ((kind.title, *(_spread(_share(done, learner)) for learner in LEARNERS), _gain(done)) for kind, done in crowds),
    )
    yield _traffic_picture(folder, crowds)
    yield "By how often a query is asked in all:"
    heads = ("world", *(f"{low:,} to {high - 1:,}" for low, high in pairwise(EDGES)))
    rows = []
    for kind, done in crowds:
        alone, lent = (_by_bin(done, learner) for learner in ("alone", "lent"))
        pairs = [f"{one:.2f} → {other:.2f}" if one == one else "–" for one, other in zip(alone, lent, strict=True)]
        rows.append((kind.title, *pairs))
    yield table((*heads, f"{EDGES[-1]:,} or more"), rows)


def _share(done: Sequence[dict[str, Any]], learner: str) -> Array:
    return np.array([sum(one["clicks"][learner]) / sum(one["greedy"]) for one in done])


def _spread(shares: Array) -> str:
    return f"{shares.mean():.3f} [{shares.min():.3f}, {shares.max():.3f}]"


def _gain(done: Sequence[dict[str, Any]]) -> str:
    return _spread(_share(done, "lent") / _share(done, "alone"))


def _by_bin(done: Sequence[dict[str, Any]], learner: str) -> Array:
    clicks = np.sum([one["clicks"][learner] for one in done], axis=0)
    greedy = np.sum([one["greedy"] for one in done], axis=0)
    return np.asarray(np.where(greedy > 0, clicks / np.maximum(greedy, 1e-9), np.nan))


def _traffic_picture(folder: Path, crowds: Sequence[tuple[TrafficKind, Sequence[dict[str, Any]]]]) -> str:
    with mpl.rc_context(STYLE):
        drawing = Drawing(figsize=(WIDTH, 2.2 * -(-len(crowds) // 3)), layout="constrained")
        axes = np.atleast_1d(drawing.subplots(-(-len(crowds) // 3), 3, sharex=True, sharey=True)).ravel()
        colours = dict(zip(LEARNERS, (GREY, BLUE, GREEN, ORANGE, RED), strict=True))
        for axis, (kind, done) in zip(axes, crowds, strict=False):
            for learner in LEARNERS:
                axis.plot(
                    EDGES, _by_bin(done, learner), marker="o", markersize=3, color=colours[learner], label=learner
                )
            axis.set(xscale="log", ylim=(0, 1.03), title=kind.name)
        for axis in axes[len(crowds) :]:
            axis.axis("off")
        drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=5)
        drawing.supxlabel("asked so often, or more", fontsize=8)
        drawing.supylabel("clicks, share of greedy", fontsize=8)
        save(drawing, folder / "figures", "traffic")
    return "![Clicks by how often a query is asked](figures/figure-traffic.png)"
