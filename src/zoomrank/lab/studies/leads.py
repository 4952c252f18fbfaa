"""Leads of ZoomRank over the best of the others, family by family, and summed up.

A comparison is a family and a mark (a number of visits). ZoomRank is ahead if the interval of its lead is above 0,
behind if it is below, and level otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zoomrank.lab.competitors import COMPETITORS, OURS
from zoomrank.lab.curves import Estimate, Results
from zoomrank.lab.measures import MARKS, lead_over_best
from zoomrank.lab.reports.page_text import table
from zoomrank.lab.studies.families import Family, by_kind

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
    """Return all comparisons, family by family."""
    others = [curve for curve in COMPETITORS if curve != OURS]
    return [
        Lead(family, mark, *lead_over_best(results, f"efficiency-{family.name}", OURS, others, mark))
        for family in families
        for mark in MARKS
    ]


def leads_table(found: Sequence[Lead]) -> str:
    """Return a table with a row per comparison."""
    rows = [
        (one.family.title if one.mark == MARKS[0] else "", f"{one.mark:,}", one.rival, str(one.lead), one.verdict)
        for one in found
    ]
    return table(("family", "by visit", "best of the others", f"lead of {OURS}", ""), rows)


def summary(found: Sequence[Lead]) -> str:
    """Count comparisons won, lost, and lost by much, with the mean lead: for all, smooth and life-like families."""
    families = list(dict.fromkeys(one.family for one in found))
    kinds = by_kind(families)
    groups = {kind: [one for one in found if one.family in some] for kind, some in kinds.items()}
    heads = (
        "families",
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
        f"{_named([family.title for family in kinds['life-like']])}\n\n"
        + table(heads, [(name, *_counted(group)) for name, group in groups.items() if group])
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


def _named(lifelike: Sequence[str]) -> str:
    return f"Life-like are: {'; '.join(lifelike)}." if lifelike else "None of the families is life-like."
