"""Drawing of the figures, as wide as a page: a colour is a ranker, and dashes mean a variant of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import FuncFormatter, PercentFormatter

from zoomrank.lab.curves import Band, Results, estimate
from zoomrank.lab.figure_style import BLACK, BLUE, GREEN, GREY, OLIVE, ORANGE, PINK, RED, SKY, STYLE, WIDTH, WINE, save
from zoomrank.lab.paper.figures import EXPERIMENTS, Figure, Panel
from zoomrank.lab.paper.theory import WORST_CASE, Facts, guarantee
from zoomrank.lab.registry import GREEDY
from zoomrank.lab.report_pages import label

_COLOUR = {
    "RankUCB1": PINK,
    "RankEXP3": WINE,
    "RankGridUCB1": ORANGE,
    "RankGridEXP3": GREEN,
    "RankZoom": SKY,
    "RankCorrZoom": RED,
    "RankContextZoom": BLUE,
    "RankExploreCommit": OLIVE,
    "RankRandom": GREY,
    GREEDY: BLACK,
}
_VARIANT = (BLACK, BLUE, SKY, RED, ORANGE)
_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


def draw(figure: Figure, results: Results, folder: Path, known: Mapping[str, Facts] | None = None) -> list[Path]:
    """Draw a figure as PNG and as SVG; return their paths."""
    kinds: dict[str, Callable[..., Drawing]] = {"learning": _learning, "size": _size, "variants": _variants}
    with mpl.rc_context(STYLE):
        return save(kinds[figure.kind](figure, results, known or {}), folder, figure.name)


def _learning(figure: Figure, results: Results, known: Mapping[str, Facts]) -> Drawing:
    """Draw learning curves. Left: satisfied visitors by window. Right: exact satisfaction of the rankings shown."""
    panels = [panel for panel in figure.panels if results.curves(panel.experiment)]
    drawing = Drawing(figsize=(WIDTH, 2.5 * len(panels) + 0.2), layout="constrained")
    axes = drawing.subplots(len(panels), 2, sharey="row", squeeze=False)
    handles: dict[str, Any] = {}
    for (left, right), panel in zip(axes, panels, strict=True):
        for curve in _best_last(panel, results):
            rows = results.curve(panel.experiment, curve)
            handles[curve] = _plot(left, curve, rows.windows())
            _plot(right, curve, rows.expectation())
        if panel.experiment in known:
            handles.update(_theory(left, known[panel.experiment], panel, results))
        _dress(left, EXPERIMENTS[panel.experiment].title, "visits")
        _dress(right, "", "visits, on a logarithmic scale")
        right.set_xscale("log")
        left.xaxis.set_major_formatter(FuncFormatter(_thousands))
        left.set_ylabel("visitors satisfied, by window")
        right.set_ylabel("exact, of what was shown")
    order = {name: handles[name] for name in reversed(_best_last(panels[0], results))} | handles
    drawing.legend(list(order.values()), [label(name) for name in order], loc="outside right upper")
    return drawing


def _best_last(panel: Panel, results: Results) -> list[str]:
    """Sort curves so that better ones are drawn over the others."""
    curves = [curve for curve in panel.curves if results.has(panel.experiment, curve)]
    return sorted(curves, key=lambda curve: float(results.curve(panel.experiment, curve).rate(0.8).mean()))


def _plot(axes: Axes, curve: str, band: Band) -> Any:
    colour, line = _look(curve)
    thin = curve == GREEDY
    (handle,) = axes.plot(band.visits, band.mean, color=colour, linestyle=line, linewidth=0.9 if thin else 1.3)
    axes.fill_between(band.visits, band.low, band.high, color=colour, alpha=0.12, linewidth=0)
    return handle


def _look(curve: str) -> tuple[str, Any]:
    colour = _COLOUR[max((name for name in _COLOUR if curve.startswith(name)), key=len)]
    if curve == GREEDY:
        return colour, (0, (1, 1.5))
    if curve.endswith("--"):
        return colour, "--"
    return colour, "-." if "-0.2" in curve else "-"


def _theory(axes: Axes, facts: Facts, panel: Panel, results: Results) -> dict[str, Any]:
    """Draw the worst case of the greedy algorithm, and the guarantee of RankGridEXP3 where it is above 0."""
    slots = EXPERIMENTS[panel.experiment].slots
    visits = results.curve(panel.experiment, results.curves(panel.experiment)[0]).length
    handles = {"(1 − 1/e) OPT": axes.axhline(WORST_CASE * facts.optimum, color="0.35", linewidth=0.7, linestyle=":")}
    at = np.linspace(visits / 200, visits, 200)
    sure = guarantee(facts.optimum, slots, facts.covering_dimension, at)
    if sure[-1] > 0:
        at, sure = at[sure > 0], sure[sure > 0]
        handles["guarantee of\nRankGridEXP3,\non average so far"] = axes.plot(
            at, sure, color="0.35", linewidth=0.7, linestyle="--"
        )[0]
    return handles


def _dress(axes: Axes, title: str, along: str) -> None:
    axes.set_title(title, loc="left")
    axes.set_xlabel(along)
    axes.set_ylim(bottom=0.0)
    axes.margins(x=0.01)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def _thousands(value: float, _: Any) -> str:
    if value >= 1_000_000:
        return f"{value / 1_000_000:g}M"
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"


def _size(figure: Figure, results: Results, known: Mapping[str, Facts]) -> Drawing:  # noqa: ARG001
    """Draw clicks over the run, as a share of greedy's, against the number of documents."""
    drawing = Drawing(figsize=(WIDTH * 0.75, 2.9), layout="constrained")
    axes = drawing.subplots()
    handles: dict[str, Any] = {}
    last: dict[str, float] = {}
    every = [int(panel.experiment.partition("-")[2]) for panel in figure.panels]
    for curve in figure.panels[0].curves:
        there = [panel.experiment for panel in figure.panels if results.comparable(panel.experiment, curve, GREEDY)]
        if not there:
            continue
        documents = np.array([int(experiment.partition("-")[2]) for experiment in there])
        pairs = (results.together(experiment, curve, GREEDY) for experiment in there)
        shares = [estimate(mine.rate() / greedy.rate()) for mine, greedy in pairs]
        colour, line = _look(curve)
        mean = np.array([share.mean for share in shares])
        (handles[curve],) = axes.plot(documents, mean, color=colour, linestyle=line, marker="o", markersize=3)
        last[curve] = shares[-1].mean
        low, high = ([getattr(share, side) for share in shares] for side in ("low", "high"))
        if np.isfinite(low).all():
            axes.fill_between(documents, low, high, color=colour, alpha=0.12, linewidth=0)
    _dress(axes, "clicks over the run, as a share of greedy's", "documents")
    axes.set_xscale("log")
    axes.set_xticks(every, [f"{count:,}" for count in every], minor=False)
    axes.minorticks_off()
    order = sorted(handles, key=lambda curve: -last[curve])
    drawing.legend([handles[curve] for curve in order], [label(c) for c in order], loc="outside right upper")
    return drawing


def _variants(figure: Figure, results: Results, known: Mapping[str, Facts]) -> Drawing:  # noqa: ARG001
    """Draw one plot per ranker, with one line per variant."""
    panel = figure.panels[0]
    rankers = dict.fromkeys(curve.partition("-")[0] for curve in panel.curves if curve != GREEDY)
    drawing = Drawing(figsize=(WIDTH, 2.7), layout="constrained")
    all_axes = drawing.subplots(1, len(rankers), sharey=True, squeeze=False)[0]
    handles: dict[str, Any] = {}
    for axes, ranker in zip(all_axes, rankers, strict=True):
        variants = [curve for curve in panel.curves if curve.partition("-")[0] == ranker]
        for at, curve in enumerate(variants):
            if results.has(panel.experiment, curve):
                band = results.curve(panel.experiment, curve).windows()
                colour, line = _VARIANT[at % len(_VARIANT)], _LINES[at % len(_LINES)]
                (handle,) = axes.plot(band.visits, band.mean, color=colour, linestyle=line)
                axes.fill_between(band.visits, band.low, band.high, color=colour, alpha=0.12, linewidth=0)
                handles[curve.partition("-")[2].replace("-", " ") or "as it is"] = handle
        if results.has(panel.experiment, GREEDY):
            handles["greedy optimum"] = _plot(axes, GREEDY, results.curve(panel.experiment, GREEDY).windows())
        _dress(axes, f"{ranker}: visitors satisfied", "visits")
        axes.xaxis.set_major_formatter(FuncFormatter(_thousands))
    drawing.legend(list(handles.values()), list(handles), loc="outside right upper")
    return drawing
