"""The report of the efficiency study: how many impressions everybody needed, where ZoomRank wins and where it loses."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure as Drawing

from zoomrank.errors import ResultsError
from zoomrank.lab import catalogue
from zoomrank.lab.catalogue import GREEDY
from zoomrank.lab.paper.figures import STYLE, save
from zoomrank.lab.paper.paper_report import made_with, page, table
from zoomrank.lab.recipes import Setting
from zoomrank.lab.results import Results
from zoomrank.lab.results_folder import Store
from zoomrank.lab.studies.study import (
    ABLATED_INSTANCES,
    ABLATIONS,
    CANDIDATES,
    COMPETITORS,
    CONVERGENCE,
    FAMILIES,
    MARKS,
    ROUNDS,
    STUDIES,
    SUSTAINED,
    Family,
    best_competitor,
    blind_chances,
    bootstrap,
    collected,
    ratio_of_medians,
    settled,
)
from zoomrank.numbers import Array

_COLOURS = (
    "#D55E00",
    "#0072B2",
    "#56B4E9",
    "#009E73",
    "#E69F00",
    "#CC79A7",
    "#882255",
    "#999933",
    "#332288",
    "#888888",
)
ENOUGH = 0.9  # of greedy, for the worst instance


def write_study_report(store: Store, families: Sequence[Family] = FAMILIES) -> Path:
    """Draw and write everything; returns where the page is."""
    results = Results(store.rows())
    (study,) = store.manifest["figures"]
    sections = {"efficiency": _efficiency, "tuning": _tuning, "convergence": _convergence}[study]
    text = "\n\n".join((*sections(store, results, families), "## Made with", made_with(store))) + "\n"
    (store.folder / "report.md").write_text(text)
    written = store.folder / "report.html"
    written.write_text(page(text, store.folder, f"zoomrank: {STUDIES[study].title}"))
    return written


def _name(family: Family) -> str:
    return f"efficiency-{family.name}"


def _command(store: Store) -> str:
    manifest = store.manifest
    return f"zoomrank study {manifest['figures'][0]} --instances {manifest['instances']} --seed {manifest['seed']}"


def _efficiency(store: Store, results: Results, families: Sequence[Family]) -> Iterable[str]:
    there = [family for family in families if results.comparable(_name(family), *COMPETITORS, GREEDY)]
    if not there:
        raise ResultsError(f"{store.folder} has no family in which all competitors have run: nothing to report yet.")
    _draw(there, results, store.folder / "figures")
    taxonomy = "" if there[-1] in FAMILIES else " --taxonomy FILE"
    yield "# How many impressions learners need"
    yield (
        f"Made by `{_command(store)}{taxonomy}`. Clicks are simulated, and counted as shares of what the greedy "
        "optimum, with full information, collects in as many visits. All rankers of an instance meet the same "
        "visitors. Intervals are 95 %, by resampling instances. Parameters are the same in all families and were "
        "chosen on other instances by `zoomrank study tuning`."
    )
    yield "![Clicks as a share of greedy's, by family](figures/figure-efficiency.png)"
    yield f"## Clicks collected by {', '.join(f'{mark:,}' for mark in MARKS)} visits"
    yield _shares(results, there)
    yield "## ZoomRank against the best of the others, in pairs"
    yield _leads(results, there)
    yield f"## Visits until the ranking shown is worth {SUSTAINED:.0%} of greedy for good"
    yield _settling(results, there)
    yield "## The worst instance, and what can be found at all"
    yield _worst(results, [family for family in there if family.perfect])
    yield "## With and without its ingredients"
    yield _ablations(results, there)


def _tuning(store: Store, results: Results, families: Sequence[Family]) -> Iterable[str]:
    there = [family for family in families if results.comparable(f"tuning-{family.name}", *CANDIDATES, GREEDY)]
    if not there:
        raise ResultsError(f"{store.folder} has no family in which all candidates have run: nothing to report yet.")
    chosen = [str(ranker) for ranker in COMPETITORS.values()]
    rows = []
    for name in CANDIDATES:
        shares = []
        for family in there:
            mine, greedy = results.together(f"tuning-{family.name}", name, GREEDY)
            shares.append([float(collected(mine, greedy, mark).mean()) for mark in MARKS])
        cells = [f"{share:.3f}" for share in np.mean(shares, axis=0)]
        rows.append((name, *cells, f"{np.mean(shares):.3f}", "used" if name in chosen else ""))
    yield "# Which parameters are best over all families"
    yield (
        f"Made by `{_command(store)}`: the shares of greedy's clicks that each candidate collects, means over "
        f"{len(there)} families. The instances are not those of the comparison. A ranker is used with the parameters "
        "whose mean over all three marks is highest; ZoomRank with its defaults, which were chosen before."
    )
    yield table(("candidate", *(f"by {mark:,}" for mark in MARKS), "mean", ""), rows)


def _convergence(store: Store, results: Results, families: Sequence[Family]) -> Iterable[str]:  # noqa: ARG001
    rows = []
    for one in CONVERGENCE:
        if results.comparable(one.name, "ZoomRank", GREEDY):
            mine, greedy = results.together(one.name, "ZoomRank", GREEDY)
            shares = (
                mine.rate(start, end) / greedy.expected[:, 0] for start, end in ((0, 0.01), (0.01, 0.1), (0.9, 1))
            )
            shown = mine.expected[:, -1] / greedy.expected[:, 0]
            rows.append((one.title, *(f"{share.mean():.4f}" for share in shares), f"{shown.min():.4f}"))
    if not rows:
        raise ResultsError(f"{store.folder} has no rows of this study: nothing to report yet.")
    yield "# Whether ZoomRank gets to greedy in the long run"
    yield f"Made by `{_command(store)}`. Shares of greedy's satisfied visitors."
    yield table(("experiment", "first 1 %", "to 10 %", "last tenth", "last ranking, worst instance"), rows)


def _shares(results: Results, families: Sequence[Family]) -> str:
    rows = []
    for family in families:
        for curve in COMPETITORS:
            mine, greedy = results.together(_name(family), curve, GREEDY)
            shares = [str(bootstrap(collected(mine, greedy, mark))) for mark in MARKS]
            worst = float((mine.rate(0.8) / greedy.expected[:, 0]).min())
            rows.append((family.title if curve == "ZoomRank" else "", curve, *shares, f"{worst:.2f}"))
    return table(("family", "ranker", *(f"by {mark:,}" for mark in MARKS), "worst instance, last fifth"), rows)


def _leads(results: Results, families: Sequence[Family]) -> str:
    rows = []
    for family in families:
        for mark in MARKS:
            name, lead = best_competitor(results, family, mark)
            verdict = "ahead" if lead.low > 0 else "**behind**" if lead.high < 0 else "level"
            rows.append((family.title if mark == MARKS[0] else "", f"{mark:,}", name, str(lead), verdict))
    return table(("family", "by visit", "best of the others", "lead of ZoomRank", ""), rows)


def _settling(results: Results, families: Sequence[Family]) -> str:
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


def _worst(results: Results, families: Sequence[Family]) -> str:
    """The worst instance beside what a search without any idea could have found by then."""
    visits = round(0.8 * ROUNDS)
    rows = []
    for family in families:
        mine, greedy = results.together(_name(family), "ZoomRank", GREEDY)
        share = mine.rate(0.8 * ROUNDS / mine.rounds, ROUNDS / mine.rounds) / greedy.expected[:, 0]
        missed = [_missed(setting, visits) for setting in mine.settings]
        rows.append(
            (
                family.title,
                f"{share.min():.2f}",
                f"{int((share >= ENOUGH).sum())} of {len(share)}",
                f"{np.mean(missed):.2f}",
                f"{1 - np.prod(1 - np.array(missed)):.2f}",
            )
        )
    heads = ("family", "worst", f"at {ENOUGH} or more", "a needed peak unseen", "in some instance")
    return (
        f"Visits {visits:,} to {ROUNDS:,} of ZoomRank, on families with a perfect metric. Nobody can know of a peak "
        f"before somebody has clicked near it. The last columns: how likely it is that in {visits:,} visits with "
        "nothing but random documents nobody clicks for the sake of some peak without which greedy is not worth "
        f"{ENOUGH}; in an instance, and in at least one of them.\n\n" + table(heads, rows)
    )


def _missed(setting: Setting, visits: int) -> float:
    """How likely it is that a blind search misses a document that is needed for most of greedy's satisfaction."""
    tree, users = catalogue.world(setting)
    best = users.greedy(setting.slots)
    chances = blind_chances(tree, users, best.documents, visits)
    needed = [
        chance
        for document, chance in zip(best.documents, chances, strict=True)
        if users.satisfaction([other for other in best.documents if other != document]) < ENOUGH * best.satisfaction
    ]
    return float(1 - np.prod([1 - chance for chance in needed]))


def _visits(since: Array) -> str:
    never = int(np.isinf(since).sum())
    middle = float(np.median(since))
    shown = f"{middle:,.0f}" if np.isfinite(middle) else "–"
    return f"{shown} ({never} of {len(since)} never)"


def _ablations(results: Results, families: Sequence[Family]) -> str:
    there = [name for name in ABLATIONS if all(results.comparable(_name(f), name, GREEDY) for f in families)]
    rows = []
    for curve in ("ZoomRank", *there):
        cells = []
        for mark in MARKS:
            means = []
            for family in families:
                mine, greedy, _ = results.together(_name(family), curve, GREEDY, *there[:1] or (curve,))
                means.append(float(collected(mine, greedy, mark).mean()))
            cells.append(f"{np.mean(means):.3f}")
        rows.append((curve, *cells))
    return (
        f"Means over families, of the first {ABLATED_INSTANCES} instances. Without one ingredient (`no-…`), and with "
        "one alone (`only-…`): bare is nothing but counting along paths, the bound, and witnesses.\n\n"
        + table(("ranker", *(f"by {mark:,}" for mark in MARKS)), rows)
    )


def _draw(families: Sequence[Family], results: Results, folder: Path) -> None:
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
