"""Report on efficiency: clicks collected by each ranker in each family, and where ZoomRank wins and loses."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure as Drawing

from zoomrank.errors import ResultsError
from zoomrank.lab.catalogue import GREEDY
from zoomrank.lab.competitors import COMPETITORS, OURS, PUBLISHED
from zoomrank.lab.curves import Results
from zoomrank.lab.measures import (
    MARKS,
    SUSTAINED,
    VISITS,
    bootstrap,
    collected,
    collected_so_far,
    ratio_of_medians,
    settling_visit,
)
from zoomrank.lab.reports.drawing import BLUE, GREEN, GREY, INDIGO, OLIVE, ORANGE, PINK, RED, SKY, STYLE, WINE, save
from zoomrank.lab.reports.page_text import table
from zoomrank.lab.studies.blind_search import chance_to_miss
from zoomrank.lab.studies.families import SLOTS, Family, by_kind
from zoomrank.lab.studies.leads import leads, leads_table, summary
from zoomrank.lab.studies.questions import ABLATED_INSTANCES, ABLATIONS
from zoomrank.numbers import Array

_COLOURS = (RED, BLUE, SKY, GREEN, ORANGE, PINK, WINE, OLIVE, INDIGO, GREY)
_ENOUGH = 0.9  # of greedy, for the worst instance


def efficiency_sections(folder: Path, command: str, results: Results, families: Sequence[Family]) -> Iterable[str]:
    """Return the paragraphs of the report, whose picture goes to the folder."""
    there = [family for family in families if results.comparable(_name(family), *COMPETITORS, GREEDY)]
    if not there:
        raise ResultsError(f"{folder} has no family in which all competitors have run: nothing to report yet.")
    _draw(there, results, folder / "figures")
    yield "# How many impressions rankers need"
    yield (
        f"Made by `{command}`. Clicks are simulated, and counted as shares of what the greedy "
        "optimum, with full information, collects in as many visits. All rankers of an instance meet the same "
        "visitors. Intervals are 95 %, by resampling instances. Parameters are the same in all families and were "
        "chosen on other instances by `zoomrank study tuning`. Rankings have "
        f"{SLOTS} slots unless a family says otherwise.{_twice(there)}"
    )
    yield "![Clicks as a share of greedy's, by family](figures/figure-efficiency.png)"
    yield f"## Clicks collected by {', '.join(f'{mark:,}' for mark in MARKS)} visits"
    yield _shares(results, there)
    yield "## ZoomRank against the best of the others, in pairs"
    found = leads(results, there)
    yield leads_table(found)
    yield summary(found)
    yield f"## Visits until the ranking shown is worth {SUSTAINED:.0%} of greedy for good"
    yield _settling(results, there)
    yield "## The worst instance, and what can be found at all"
    yield _worst(results, [family for family in there if family.perfect])
    yield "## With and without its ingredients"
    yield _ablations(results, there)


def _twice(families: Sequence[Family]) -> str:
    """Say which families have more instances than others."""
    needles = [family.title for family in families if family.needles]
    if not needles:
        return ""
    return f" Families whose instances differ so much that they take twice as many: {'; '.join(needles)}."


def _name(family: Family) -> str:
    return f"efficiency-{family.name}"


def _shares(results: Results, families: Sequence[Family]) -> str:
    rows = []
    for family in families:
        for curve in COMPETITORS:
            mine, greedy = results.together(_name(family), curve, GREEDY)
            shares = [str(bootstrap(collected(mine, greedy, mark))) for mark in MARKS]
            worst = float((mine.rate(0.8) / greedy.expected[:, 0]).min())
            rows.append((family.title if curve == OURS else "", curve, *shares, f"{worst:.2f}"))
    return table(("family", "ranker", *(f"by {mark:,}" for mark in MARKS), "worst instance, last fifth"), rows)


def _settling(results: Results, families: Sequence[Family]) -> str:
    rows = []
    for family in families:
        others = (PUBLISHED, f"{PUBLISHED}-tuned")
        mine, greedy, *theirs = results.together(_name(family), OURS, GREEDY, *others)
        own = settling_visit(mine, greedy)
        cells = [_visits(own)]
        for other in theirs:
            since = settling_visit(other, greedy)
            both = np.isfinite(np.median(own)) and np.isfinite(np.median(since))
            cells += [_visits(since), str(ratio_of_medians(own, since)) if both else "–"]
        rows.append((family.title, *cells))
    heads = ("family", OURS, PUBLISHED, "ratio", f"{PUBLISHED}-tuned", "ratio")
    return "Medians, and how many instances never got there.\n\n" + table(heads, rows)


def _worst(results: Results, families: Sequence[Family]) -> str:
    """Compare the worst instance with what a blind search could have found by then."""
    visits = round(0.8 * VISITS)
    rows = []
    for family in families:
        mine, greedy = results.together(_name(family), OURS, GREEDY)
        share = mine.rate(0.8 * VISITS / mine.length, VISITS / mine.length) / greedy.expected[:, 0]
        missed = [chance_to_miss(setting, visits, _ENOUGH) for setting in mine.settings]
        rows.append(
            (
                family.title,
                f"{share.min():.2f}",
                f"{int((share >= _ENOUGH).sum())} of {len(share)}",
                f"{np.mean(missed):.2f}",
                f"{1 - np.prod(1 - np.array(missed)):.2f}",
            )
        )
    heads = ("family", "worst", f"at {_ENOUGH} or more", "a needed peak unseen", "in some instance")
    return (
        f"Visits {visits:,} to {VISITS:,} of ZoomRank, on families with a perfect metric. A ranker cannot know of a "
        "peak "
        f"before a visitor has clicked near it. The last columns: how likely it is that in {visits:,} visits with "
        "nothing but random documents no visitor clicks near some peak without which greedy is not worth "
        f"{_ENOUGH}; in an instance, and in at least one of them.\n\n" + table(heads, rows)
    )


def _visits(since: Array) -> str:
    never = int(np.isinf(since).sum())
    middle = float(np.median(since))
    shown = f"{middle:,.0f}" if np.isfinite(middle) else "–"
    return f"{shown} ({never} of {len(since)} never)"


def _ablations(results: Results, families: Sequence[Family]) -> str:
    there = [name for name in ABLATIONS if all(results.comparable(_name(f), name, GREEDY) for f in families)]
    kinds = by_kind(families)
    rows = [(curve, *(_means(results, some, curve, there) for some in kinds.values())) for curve in (OURS, *there)]
    return (
        f"Means over families by {', '.join(f'{mark:,}' for mark in MARKS)} visits, of the first {ABLATED_INSTANCES} "
        "instances. Without one ingredient (`no-…`), and without all of these: bare is nothing but counting along "
        "paths, the bound, records, and witnesses.\n\n" + table(("ranker", *kinds), rows)
    )


def _means(results: Results, families: Sequence[Family], curve: str, there: Sequence[str]) -> str:
    """Return shares of greedy's clicks by each mark, on the instances that ablated variants have run on, too."""
    cells = []
    for mark in MARKS:
        pairs = (results.together(_name(family), curve, GREEDY, *there[:1]) for family in families)
        shares = [float(collected(mine, greedy, mark).mean()) for mine, greedy, *_ in pairs]
        cells.append(f"{np.mean(shares):.3f}" if shares else "–")
    return " / ".join(cells)


def _draw(families: Sequence[Family], results: Results, folder: Path) -> None:
    columns = 4
    lines = -(-len(families) // columns)
    with mpl.rc_context(STYLE):
        drawing = Drawing(figsize=(8.0, 1.65 * lines + 0.7), layout="constrained")
        grid = drawing.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
        handles = {}
        for axes, family in zip(grid.flat, families, strict=False):
            for colour, curve in zip(_COLOURS, COMPETITORS, strict=True):
                mine, greedy = results.together(_name(family), curve, GREEDY)
                look = (
                    {"linewidth": 1.6, "zorder": 3} if curve == OURS else {"linewidth": 1.0}
                )  # ours is drawn over the others
                (handles[curve],) = axes.plot(mine.visits, collected_so_far(mine, greedy), color=colour, **look)
            axes.set_title(textwrap.fill(family.title, 30), loc="left", fontsize=7)
            axes.set_xscale("log")
            axes.set_xlim(left=100)
            axes.set_ylim(0, 1.05)
        for axes in list(grid.flat)[len(families) :]:
            axes.set_visible(False)
        drawing.supxlabel("visits", fontsize=8)
        drawing.supylabel("clicks so far, as a share of greedy's", fontsize=8)
        drawing.legend(list(handles.values()), list(handles), loc="outside upper center", ncols=5)
        save(drawing, folder, "efficiency")
