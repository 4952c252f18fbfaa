"""Report of a year, as text and as a picture."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import PercentFormatter

from research.year.shop import Plan
from research.year.whole_year import YearResult
from zoomrank.lab.figure_style import BLACK, BLUE, GREY, ORANGE, STYLE, WIDTH, save

WITHIN = 0.02  # the accepted cost of a year, as a share of the undisturbed learners' satisfaction


def report(outcome: YearResult, plan: Plan) -> str:
    """Return the verdict, and the numbers behind it."""
    return "\n".join([*_verdict(outcome), "", *_events_section(outcome, plan)])


def _verdict(outcome: YearResult) -> list[str]:
    rows = [
        ("knows everything (greedy)", outcome.greedy),
        ("undisturbed, as many visits", outcome.undisturbed),
        ("after the year", outcome.year),
        ("at random", outcome.random),
    ]
    lines = [f"{'satisfied on the last day':<30}{'visitors':>9}{'of undisturbed':>16}"]
    lines += [f"{name:<30}{share:>9.1%}{share / outcome.undisturbed:>16.1%}" for name, share in rows]
    error = outcome.error / outcome.undisturbed
    said = within(outcome.share, error)
    return [
        *lines,
        f"The year is {said} {WITHIN:.0%} of a service that met none of it: {outcome.share - 1:+.1%}, with a standard "
        f"error of {error:.1%}",
        "by how much queries differ in that.",
    ]


def within(share: float, error: float) -> str:
    """Say whether a year cost no more than accepted, given its standard error.

    >>> within(0.99, 0.004), within(0.99, 0.02), within(0.9, 0.02)
    ('surely within', 'perhaps within', 'not within')
    """
    if share - 2 * error >= 1 - WITHIN:
        return "surely within"
    return "not within" if share + 2 * error < 1 - WITHIN else "perhaps within"


def _events_section(outcome: YearResult, plan: Plan) -> list[str]:
    counts, timings = outcome.counts, outcome.lived.timings
    queries = len(outcome.lived.end)
    lines = [
        f"visits: {counts['visits']:,} of {queries} queries, {counts['with candidates']:,} with candidates",
        f"feedback: {counts['learned']:,} learned, {counts['expired']:,} too late, "
        f"{counts['answers during an outage']:,} during an outage",
    ]
    if timings.changes:
        each = 1000 * float(np.mean(timings.moves)) / queries
        lines.append(
            f"changes: {counts['changes']:,} in {outcome.editions:,} versions, {np.mean(timings.changes):.2f} s each; "
            f"then a learner is remapped in {each:.1f} ms"
        )
    if timings.voids:
        lines.append(f"voided: {outcome.lived.voided:,} impressions, in {sum(timings.voids):.1f} s")
    if timings.restore:
        lines.append(f"moved from {' to '.join(outcome.stores)} in {timings.restore:.1f} s")
    checked = ", ".join(f"{what}: {count:,}" for what, count in outcome.verdict.checked.items())
    found = outcome.verdict.findings
    lines += [
        f"store: {outcome.size / 2**20:,.1f} MB after {plan.days} days",
        f"verify: checked {checked}; " + (f"FOUND {len(found):,}" if found else "everything agrees"),
        *(f"- {finding}" for finding in found),
    ]
    return lines


def draw(outcome: YearResult, plan: Plan, folder: Path) -> Path:
    """Draw the weeks of a year; return the path of the picture."""
    with mpl.rc_context(STYLE):
        drawing = Drawing(figsize=(WIDTH, 3.2))
        axes = drawing.subplots()
        ends = np.minimum(7 * np.arange(1, len(outcome.lived.weeks) + 1), plan.days)
        axes.plot(ends, outcome.lived.best, color=BLACK, linestyle="--", label="knows everything")
        axes.plot(ends, outcome.control.weeks, color=GREY, label="undisturbed, on the last day's catalogue")
        axes.plot(ends, outcome.lived.weeks, color=BLUE, label="the year")
        _mark(axes, plan)
        axes.set(xlabel="day", ylabel="satisfied visitors", xlim=(0, plan.days), ylim=(0, None))
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
        return save(drawing, folder, "year")[0]


def _mark(axes: Axes, plan: Plan) -> None:
    """Mark the events of the year."""
    marks = {**plan.marks, **{plan.began(day): day for day in range(plan.days) if plan.turns(day)}}
    for name, day in marks.items():
        colour = ORANGE if name in plan.marks else GREY
        axes.axvline(day, color=colour, linewidth=0.8, linestyle=":")
        axes.annotate(
            name,
            (day, 0.02),
            xycoords=("data", "axes fraction"),
            rotation=90,
            fontsize=6.5,
            color=colour,
            ha="right",
            va="bottom",
        )
