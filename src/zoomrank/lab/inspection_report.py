"""The report of `zoomrank inspect`: a page with pictures, and what they mean in plain words."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from zoomrank.lab.figures import STYLE, save
from zoomrank.lab.inspection import Inspection, Verdict
from zoomrank.lab.report import page, table

LARGE = 20  # a covering dimension that only says that there is no structure
_BLUE, _RED = "#0072B2", "#D55E00"


def write_inspection(look: Inspection, name: str, folder: Path) -> Path:
    """Draw and write everything; returns where the page is."""
    folder.mkdir(parents=True, exist_ok=True)
    _draw(look, folder / "figures")
    text = "\n\n".join(_sections(look, name)) + "\n"
    (folder / "report.md").write_text(text, encoding="utf-8")
    written = folder / "report.html"
    written.write_text(page(text, folder, f"zoomrank: {name}"), encoding="utf-8")
    return written


def _sections(look: Inspection, name: str) -> Iterable[str]:
    yield f"# {name}"
    yield (
        f"{look.documents:,} documents below {look.nodes - look.documents:,} inner nodes; the deepest document is "
        f"{look.depth} steps from the root, the average one {look.mean_depth:.1f}. {_dimension(look.dimension)}"
    )
    yield "![What the tree looks like](figures/figure-inspection.png)"
    if look.verdict is not None:
        yield "## What the labels say"
        yield _meaning(look.verdict)
        yield _agreements(look.verdict)
    yield "## Level by level"
    heads = (
        "depth",
        "nodes",
        "documents that end here",
        "children, on average",
        "children, at most",
        "width, on average",
    )
    yield table(
        heads,
        (
            (
                str(level.depth),
                f"{level.nodes:,}",
                f"{level.documents:,}",
                f"{level.branching:.1f}",
                f"{level.widest_branching:,}",
                f"{level.width:.3f}",
            )
            for level in look.levels
        ),
    )


def _dimension(dimension: float) -> str:
    if dimension > LARGE:
        return (
            f"The covering dimension is beyond {LARGE}: most documents are about as far from each other as the whole "
            "collection is wide, so that distances say little on a large scale."
        )
    return (
        f"Covering dimension {dimension:.2f}: to cover the collection with balls half as wide takes up to "
        f"{2**dimension:.1f} times as many."
    )


def _meaning(verdict: Verdict) -> str:
    return (
        f"{verdict.words}\n\nOver {verdict.topics} topics, a pair of documents that please the same visitor is closer "
        f"than one that does not with probability {verdict.power:.2f} (AUC; 0.5 is chance). With widths times "
        f"{verdict.scale:.3g}, 95 % of close pairs would differ in relevance by no more than their distance."
    )


def _agreements(verdict: Verdict) -> str:
    heads = (
        "pairs that part at depth",
        "pairs",
        "distance",
        "difference in relevance",
        "differ too much",
        "at worst by a factor",
        "liked by the same",
    )
    return table(
        heads,
        (
            (
                str(level.depth),
                f"{level.pairs:,}",
                f"{level.width:.3f}",
                f"{level.difference:.3f}",
                f"{level.violations:.0%}",
                f"{level.worst:.1f}",
                f"{level.shared:.0%}",
            )
            for level in verdict.levels
        ),
    )


def _draw(look: Inspection, folder: Path) -> None:
    verdict = look.verdict
    with mpl.rc_context(STYLE):
        drawing = Drawing(figsize=(7.2, 2.3 if verdict is None else 4.4), layout="constrained")
        grid = drawing.subplots(1 if verdict is None else 2, 3, squeeze=False)
        depth = [level.depth for level in look.levels]
        inner = [level for level in look.levels if level.branching]
        grid[0, 0].bar(depth, [level.documents for level in look.levels], color=_BLUE)
        grid[0, 0].set(xlabel="depth", title="documents")
        grid[0, 1].plot([level.depth for level in inner], [level.branching for level in inner], "o-", color=_BLUE)
        grid[0, 1].plot(
            [level.depth for level in inner], [level.widest_branching for level in inner], "v:", color=_BLUE
        )
        grid[0, 1].set(xlabel="depth", yscale="log", title="children: mean and most")
        grid[0, 2].plot([level.depth for level in inner], [level.width for level in inner], "o-", color=_BLUE)
        grid[0, 2].set(xlabel="depth", ylim=(0, None), title="width")
        if verdict is not None:
            at = [level.depth for level in verdict.levels]
            grid[1, 0].plot(at, [level.width for level in verdict.levels], "o-", color=_BLUE, label="distance")
            grid[1, 0].plot(at, [level.difference for level in verdict.levels], "o-", color=_RED, label="difference")
            grid[1, 0].set(xlabel="depth at which pairs part", ylim=(0, None), title="distance and relevance")
            grid[1, 0].legend()
            grid[1, 1].bar(at, [100 * level.violations for level in verdict.levels], color=_RED)
            grid[1, 1].set(xlabel="depth at which pairs part", title="% of pairs that differ too much")
            grid[1, 2].bar(at, [100 * level.shared for level in verdict.levels], color=_BLUE)
            grid[1, 2].set(xlabel="depth at which pairs part", title="% of pairs liked by the same")
            for axes in grid[1, 1:]:
                axes.set_ylim(0, 100)
        for axes in grid.flat:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        for axis in (grid[0, 1].yaxis.set_major_formatter, grid[0, 1].yaxis.set_minor_formatter):
            axis(ScalarFormatter())
        save(drawing, folder, "inspection")
