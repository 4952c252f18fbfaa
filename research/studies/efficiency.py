"""Report on efficiency: clicks collected by each ranker in each family, and where ZoomRank wins and loses.

A comparison is a family and a mark (a number of visits). ZoomRank is ahead if the interval of its lead over the best of
the others is above 0, behind if it is below, and level otherwise.

No ranker can know of a peak before a visitor has clicked near it. So the worst instance of a study is compared with the
probability that visitors who were shown random documents only would never have clicked near some peak that matters.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure as Drawing

from research.studies.families import SHORT_VISITS, SLOTS, Family, by_kind
from research.studies.measures import SUSTAINED, bootstrap, lead_over_best, ratio_of_medians, settling_visit
from research.studies.questions import ABLATED_INSTANCES, ABLATIONS, RIVALS, SCALABLE, SLOW
from zoomrank.errors import ResultsError
from zoomrank.lab import registry
from zoomrank.lab.curves import VISITS, Estimate, Results, collected, collected_so_far
from zoomrank.lab.evaluation import COMPETITORS, OURS, PUBLISHED
from zoomrank.lab.figure_style import BLUE, GREEN, GREY, INDIGO, OLIVE, ORANGE, PINK, RED, SKY, STYLE, WINE, save
from zoomrank.lab.recipes import Setting
from zoomrank.lab.registry import GREEDY
from zoomrank.lab.report_pages import table
from zoomrank.lab.run import MARKS
from zoomrank.spaces import DocumentId, DocumentTree
from zoomrank.types import Array
from zoomrank.users import UserDistribution

EARLY = 1_000  # the last of the early marks
_MATTERS = 0.02  # of greedy's clicks: an interval wholly below minus this is a loss that matters
_AHEAD, _LEVEL, _BEHIND = "ahead", "level", "**behind**"


@dataclass(frozen=True)
class Lead:
    """Lead of ZoomRank over the best of the others in one comparison."""

    family: Family
    mark: int
    rival: str
    lead: Estimate

    @property
    def verdict(self) -> str:
        """Verdict of the interval: ahead, behind or level."""
        return _AHEAD if self.lead.low > 0 else _BEHIND if self.lead.high < 0 else _LEVEL


def leads(results: Results, families: Sequence[Family]) -> list[Lead]:
    """Return all comparisons, family by family: against the best of all others that have run there."""
    found = []
    for family in families:
        for mark in _marks(results, family):
            others = [curve for curve in _rankers(results, family, mark) if curve != OURS]
            found.append(Lead(family, mark, *lead_over_best(results, _name(family), OURS, others, mark)))
    return found


def _rankers(results: Results, family: Family, visits: int = 0) -> list[str]:
    """Return the competitors and rivals that have run in a family, for at least so many visits."""
    there = [curve for curve in (*COMPETITORS, *RIVALS) if results.has(_name(family), curve)]
    return [curve for curve in there if results.curve(_name(family), curve).length >= visits]


def _marks(results: Results, family: Family) -> list[int]:
    """Return the marks that the runs of a family have reached."""
    return [mark for mark in MARKS if mark <= results.curve(_name(family), GREEDY).length]


def leads_overview(found: Sequence[Lead]) -> str:
    """Return a table of leads, with a row per family and a column per mark."""
    cells: dict[str, dict[int, str]] = {}
    for one in found:
        verdict = "" if one.verdict == _LEVEL else f" {one.verdict}"
        cells.setdefault(one.family.title, {})[one.mark] = f"{round(one.lead.mean, 3) + 0.0:+.3f}{verdict}"
    rows = [(title, *(row.get(mark, "–") for mark in MARKS)) for title, row in cells.items()]
    return table(("family", *_heads()), rows)


def leads_table(found: Sequence[Lead]) -> str:
    """Return a table with a row per comparison."""
    rows = [
        (one.family.title if one.mark == MARKS[0] else "", f"{one.mark:,}", one.rival, str(one.lead), one.verdict)
        for one in found
    ]
    return table(("family", "by visit", "best of the others", f"lead of {OURS}", ""), rows)


def summary(found: Sequence[Lead]) -> str:
    """Count comparisons won, lost, and lost by much, with the mean lead: by kind of family, and for early and later
    marks.
    """
    families = list(dict.fromkeys(one.family for one in found))
    kinds = by_kind(families)
    marks = {
        "all": MARKS,
        f"up to {EARLY:,}": [mark for mark in MARKS if mark <= EARLY],
        "later": [mark for mark in MARKS if mark > EARLY],
    }
    groups = {
        (kind, when): [one for one in found if one.family in some and one.mark in those]
        for kind, some in kinds.items()
        for when, those in marks.items()
    }
    heads = (
        "families",
        "marks",
        "comparisons",
        *(verdict.strip("*") for verdict in (_AHEAD, _LEVEL, _BEHIND)),
        f"wholly below -{_MATTERS}",
        "mean lead",
        "mean lead above 0",
    )
    return (
        f"A comparison is a family and a number of visits. {OURS} is ahead if the interval is above 0, behind if it is "
        f"below, and level otherwise; the next column counts intervals that are wholly below -{_MATTERS}. The mean is "
        "over comparisons, and the last column counts those whose own mean is above 0. "
        f"{_named('life-like', kinds)} {_named('early', kinds)}\n\n"
        + table(heads, [(*name, *_counted(group)) for name, group in groups.items() if group])
    )


def _counted(group: Sequence[Lead]) -> tuple[str, ...]:
    verdicts = [one.verdict for one in group]
    means = np.array([one.lead.mean for one in group])
    mean = round(float(means.mean()), 3) + 0.0  # avoids -0
    return (
        str(len(group)),
        *(str(verdicts.count(verdict)) for verdict in (_AHEAD, _LEVEL, _BEHIND)),
        str(sum(one.lead.high < -_MATTERS for one in group)),
        f"{mean:.3f}",
        str(int((means > 0).sum())),
    )


def _named(kind: str, kinds: Mapping[str, Sequence[Family]]) -> str:
    titles = [family.title for family in kinds[kind]]
    return f"{kind.capitalize()} are: {'; '.join(titles)}." if titles else f"None of the families is {kind}."


def blind_chances(tree: DocumentTree, users: UserDistribution, best: Sequence[DocumentId], visits: int) -> list[float]:
    """Return the probability, per best document, that visitors who are shown random documents never click on or near
    it.
    """
    mean, shape = users.mean(), tree.shape
    usual = float(np.median(mean))
    chances = []
    for document in best:
        place = tree.documents.position(document)
        node = int(shape.leaf[place])
        raised, inner = max(0.0, float(mean[place]) - usual), 1
        while node != 0:
            node = int(shape.parent[node])
            size = int(shape.end_document[node]) - int(shape.first_document[node])
            raised += (size - inner) * max(0.0, float(mean[place]) - float(tree.width[node]) - usual)
            inner = size
        chances.append(float(np.exp(-len(best) * visits * raised / len(tree))))
    return chances


def chance_to_miss(setting: Setting, visits: int, enough: float) -> float:
    """Return the probability that a blind search misses a document without which greedy falls below `enough`."""
    tree, users = registry.world(setting)
    best = users.greedy(setting.slots)
    chances = blind_chances(tree, users, best.documents, visits)
    needed = [
        chance
        for document, chance in zip(best.documents, chances, strict=True)
        if users.satisfaction([other for other in best.documents if other != document]) < enough * best.satisfaction
    ]
    return float(1 - np.prod([1 - chance for chance in needed]))


_COLOURS = (RED, BLUE, SKY, GREEN, ORANGE, PINK, WINE, OLIVE, INDIGO, GREY)
_ENOUGH = 0.9  # of greedy, for the worst instance


def _look(curve: str) -> dict[str, Any]:
    """Return the colour and the line of a curve: ours is drawn over the others, rivals of this study are dashed."""
    if curve in RIVALS:
        return {"color": _COLOURS[1:][list(RIVALS).index(curve)], "linewidth": 1.0, "linestyle": "--"}
    look = {"linewidth": 1.6, "zorder": 3} if curve == OURS else {"linewidth": 1.0}
    return {"color": _COLOURS[list(COMPETITORS).index(curve)], **look}


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
        "chosen on other instances by `python -m research study tuning`. Rankings have "
        f"{SLOTS} slots unless a family says otherwise.{_twice(there)}{_lengths(there)}"
    )
    yield "![Clicks as a share of greedy's, by family](figures/figure-efficiency.png)"
    yield f"## Clicks collected by {', '.join(f'{mark:,}' for mark in MARKS)} visits"
    yield _shares(results, there)
    yield "## ZoomRank against the best of the others, in pairs"
    found = leads(results, there)
    yield summary(found)
    yield "Leads over the best of the others, by visits; those that are not level say so."
    yield leads_overview(found)
    yield "The same with the best of the others and intervals:"
    yield leads_table(found)
    yield f"## Visits until the ranking shown is worth {SUSTAINED:.0%} of greedy for good"
    yield _settling(results, there)
    yield "## The worst instance, and what can be found at all"
    yield _worst(results, [family for family in there if family.perfect])
    yield "## With and without its ingredients"
    yield _ablations(results, there)


def _twice(families: Sequence[Family]) -> str:
    """Say which families have more instances than others."""
    many = [family.title for family in families if family.twice]
    if not many:
        return ""
    return (
        f" Families whose instances, or first visits, differ so much that they take twice as many: {'; '.join(many)}."
    )


def _lengths(families: Sequence[Family]) -> str:
    """Say which families are short, and which rivals run there alone."""
    if not any(family.short for family in families):
        return ""
    alone = [name for name in RIVALS if name not in SCALABLE]
    told = f" Short candidate lists run {SHORT_VISITS:,} visits at most."
    if alone:
        told += f" Rivals that do not scale run on short lists only: {', '.join(alone)}."
        told += f" Vowpal Wabbit runs {max(SLOW.values()):,} visits, and only where it is installed."
    return told


def _name(family: Family) -> str:
    return f"efficiency-{family.name}"


def _heads() -> list[str]:
    return [f"by {mark:,}" for mark in MARKS]


def _shares(results: Results, families: Sequence[Family]) -> str:
    rows = []
    for family in families:
        there = _marks(results, family)
        for curve in _rankers(results, family):
            mine, greedy = results.together(_name(family), curve, GREEDY)
            shares = {mark: _brief(bootstrap(collected(mine, greedy, mark))) for mark in there if mark <= mine.length}
            worst = float((mine.rate(0.8) / greedy.expected[:, 0]).min())
            cells = (shares.get(mark, "–") for mark in MARKS)
            rows.append((family.title if curve == OURS else "", curve, *cells, f"{worst:.2f}"))
    return "± is half of the interval.\n\n" + table(("family", "ranker", *_heads(), "worst instance, last fifth"), rows)


def _brief(share: Estimate) -> str:
    return f"{share.mean:.3f}" if share.instances < 2 else f"{share.mean:.3f} ±{(share.high - share.low) / 2:.3f}"


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
    rows = []
    for kind, some in by_kind(families).items():
        ours = _means(results, some, OURS, there) if some else {}
        rows += [(kind, OURS, *(f"{ours[mark]:.3f}" if mark in ours else "–" for mark in MARKS))] if some else []
        for curve in there if some else ():
            theirs = _means(results, some, curve, there)
            cells = (f"{theirs[mark] - ours[mark] + 0.0:+.3f}" if mark in ours else "–" for mark in MARKS)
            rows.append(("", curve, *cells))
    return (
        f"Means over families, of the first {ABLATED_INSTANCES} instances (twice as many where a family takes twice as "
        "many): the shares of ZoomRank, and below them the differences to it, without one ingredient (`no-…`), and "
        "without all of these: bare is nothing but counting along paths, the bound, records, and witnesses.\n\n"
        + table(("families", "ranker", *_heads()), rows)
    )


def _means(results: Results, families: Sequence[Family], curve: str, there: Sequence[str]) -> dict[int, float]:
    """Return shares of greedy's clicks by each mark, over families that have reached it, on the instances that ablated
    variants have run on, too.
    """
    shares: dict[int, list[float]] = {}
    for family in families:
        mine, greedy, *_ = results.together(_name(family), curve, GREEDY, *there[:1])
        for mark in _marks(results, family):
            shares.setdefault(mark, []).append(float(collected(mine, greedy, mark).mean()))
    return {mark: float(np.mean(some)) for mark, some in shares.items()}


def _draw(families: Sequence[Family], results: Results, folder: Path) -> None:
    columns = 4
    lines = -(-len(families) // columns)
    with mpl.rc_context(STYLE):
        drawing = Drawing(figsize=(8.0, 1.65 * lines + 0.7), layout="constrained")
        grid = drawing.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
        handles = {}
        for axes, family in zip(grid.flat, families, strict=False):
            for curve in _rankers(results, family):
                mine, greedy = results.together(_name(family), curve, GREEDY)
                (handles[curve],) = axes.plot(mine.visits, collected_so_far(mine, greedy), **_look(curve))
            axes.set_title(textwrap.fill(family.title, 30), loc="left", fontsize=7)
            axes.set_xscale("log")
            axes.set_xlim(left=MARKS[0] / 2)
            axes.set_ylim(0, 1.05)
        for axes in list(grid.flat)[len(families) :]:
            axes.set_visible(False)
        drawing.supxlabel("visits", fontsize=8)
        drawing.supylabel("clicks so far, as a share of greedy's", fontsize=8)
        drawing.legend(list(handles.values()), list(handles), loc="outside upper center", ncols=5)
        save(drawing, folder, "efficiency")
