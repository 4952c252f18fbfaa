"""The report of the efficiency study: how many impressions everybody needed, where ZoomRank wins and where it loses."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure as Drawing

from zoomrank.errors import ResultsError
from zoomrank.lab.catalogue import GREEDY
from zoomrank.lab.figures import STYLE, save
from zoomrank.lab.report import made_with, page, table
from zoomrank.lab.results import Results
from zoomrank.lab.store import Store
from zoomrank.lab.study import (
    ABLATIONS,
    COMPETITORS,
    FAMILIES,
    MARKS,
    SUSTAINED,
    Family,
    best_competitor,
    bootstrap,
    collected,
    ratio_of_medians,
    settled,
)
from zoomrank.spaces.topology import Array

_COLOURS = ("#D55E00", "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#CC79A7", "#888888")


def write_study_report(store: Store) -> Path:
    """Draw and write everything; returns where the page is."""
    results = Results(store.rows())
    families = [family for family in FAMILIES if results.comparable(_name(family), *COMPETITORS, GREEDY)]
    if not families:
        raise ResultsError(f"{store.folder} has no family in which all competitors have run: nothing to report yet.")
    _draw(families, results, store.folder / "figures")
    text = "\n\n".join(_sections(store, results, families)) + "\n"
    (store.folder / "report.md").write_text(text)
    written = store.folder / "report.html"
    written.write_text(page(text, store.folder, "zoomrank: how many impressions learners need"))
    return written


def _name(family: Family) -> str:
    return f"efficiency-{family.name}"


def _sections(store: Store, results: Results, families: list[Family]) -> Iterable[str]:
    manifest = store.manifest
    yield "# How many impressions learners need"
    yield (
        f"Made by `zoomrank study efficiency --instances {manifest['instances']} --seed {manifest['seed']}`. Clicks "
        "are simulated, and counted as shares of what the greedy optimum, with full information, collects in as many "
        "visits. Intervals are 95 %, by resampling instances. Parameters are the same in all families and were chosen "
        "on other instances."
    )
    yield "![Clicks as a share of greedy's, by family](figures/figure-efficiency.png)"
    yield f"## Clicks collected by {', '.join(f'{mark:,}' for mark in MARKS)} visits"
    yield _shares(results, families)
    yield "## ZoomRank against the best of the others, in pairs"
    yield _leads(results, families)
    yield f"## Visits until the ranking shown is worth {SUSTAINED:.0%} of greedy for good"
    yield _settling(results, families)
    yield "## Without one ingredient"
    yield _ablations(results, families)
    yield "## Made with"
    yield made_with(store)


def _shares(results: Results, families: list[Family]) -> str:
    rows = []
    for family in families:
        for curve in COMPETITORS:
            mine, greedy = results.together(_name(family), curve, GREEDY)
            shares = [str(bootstrap(collected(mine, greedy, mark))) for mark in MARKS]
            worst = float((mine.rate(0.8) / greedy.expected[:, 0]).min())
            rows.append((family.title if curve == "ZoomRank" else "", curve, *shares, f"{worst:.2f}"))
    return table(("family", "ranker", *(f"by {mark:,}" for mark in MARKS), "worst instance, last fifth"), rows)


def _leads(results: Results, families: list[Family]) -> str:
    rows = []
    for family in families:
        for mark in MARKS:
            name, lead = best_competitor(results, family, mark)
            verdict = "ahead" if lead.low > 0 else "**behind**" if lead.high < 0 else "level"
            rows.append((family.title if mark == MARKS[0] else "", f"{mark:,}", name, str(lead), verdict))
    return table(("family", "by visit", "best of the others", "lead of ZoomRank", ""), rows)


def _settling(results: Results, families: list[Family]) -> str:
    rows = []
    for family in families:
        others = ("RankCorrZoom", "RankCorrZoom-tuned")
        mine, greedy, *theirs = results.together(_name(family), "ZoomRank", GREEDY, *others)
        own = settled(mine, greedy)
        cells = [_visits(own)]
        for other in theirs:
            since = settled(other, greedy)
            both = np.isfinite(np.median(own)) and np.isfinite(np.median(since))
            cells += [_visits(since), str(ratio_of_medians(own, since)) if both else "–"]
        rows.append((family.title, *cells))
    heads = ("family", "ZoomRank", "RankCorrZoom", "ratio", "RankCorrZoom-tuned", "ratio")
    return "Medians, and how many instances never got there.\n\n" + table(heads, rows)


def _visits(since: Array) -> str:
    never = int(np.isinf(since).sum())
    middle = float(np.median(since))
    shown = f"{middle:,.0f}" if np.isfinite(middle) else "–"
    return f"{shown} ({never} of {len(since)} never)"


def _ablations(results: Results, families: list[Family]) -> str:
    there = [name for name in ABLATIONS if all(results.comparable(_name(f), name, GREEDY) for f in families)]
    rows = []
    for curve in ("ZoomRank", *there):
        cells = []
        for mark in MARKS:
            means = []
            for family in families:
                mine, greedy = results.together(_name(family), curve, GREEDY)
                means.append(float(collected(mine, greedy, mark).mean()))
            cells.append(f"{np.mean(means):.3f}")
        rows.append((curve, *cells))
    return "Means over families.\n\n" + table(("ranker", *(f"by {mark:,}" for mark in MARKS)), rows)


def _draw(families: list[Family], results: Results, folder: Path) -> None:
    columns = 4
    lines = -(-len(families) // columns)
    with mpl.rc_context(STYLE):
        drawing = Drawing(figsize=(9.5, 1.9 * lines + 0.3), layout="constrained")
        grid = drawing.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
        handles = {}
        for axes, family in zip(grid.flat, families, strict=False):
            for colour, curve in zip(_COLOURS, COMPETITORS, strict=True):
                mine, greedy = results.together(_name(family), curve, GREEDY)
                at = mine.round
                share = (mine.satisfied / at / greedy.expected[:, :1]).mean(axis=0)
                (handles[curve],) = axes.plot(at, share, color=colour, linewidth=1.6 if curve == "ZoomRank" else 1.0)
            axes.set_title(textwrap.fill(family.title, 30), loc="left", fontsize=7)
            axes.set_xscale("log")
            axes.set_xlim(left=100)
            axes.set_ylim(0, 1.05)
        for axes in list(grid.flat)[len(families) :]:
            axes.set_visible(False)
        drawing.supxlabel("visits", fontsize=8)
        drawing.supylabel("clicks so far, as a share of greedy's", fontsize=8)
        drawing.legend(list(handles.values()), list(handles), loc="outside right upper")
        save(drawing, folder, "efficiency")
