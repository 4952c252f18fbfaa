"""Report of `zoomrank inspect`: a page with pictures and an explanation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, ScalarFormatter

from zoomrank.lab.figure_style import BLUE, RED, STYLE, WIDTH, save
from zoomrank.lab.inspection import CLICKS, Inspection, Level, MetricVerdict
from zoomrank.lab.report_pages import table, write_page

LARGE = 20  # a covering dimension beyond which there is no structure


def write_inspection(look: Inspection, name: str, folder: Path) -> Path:
    """Draw and write everything; return the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    _draw(look, folder / "figures")
    return write_page(folder, f"zoomrank: {name}", _sections(look, name))


def _sections(look: Inspection, name: str) -> Iterable[str]:
    yield f"# {name}"
    yield (
        f"{look.documents:,} documents below {look.nodes - look.documents:,} inner nodes; the deepest document is "
        f"{look.depth} steps from the root, the average one {look.mean_depth:.1f}. {_dimension(look.dimension)}"
    )
    yield "![What the tree looks like](figures/figure-inspection.png)"
    if look.verdict is not None:
        yield f"## What the {look.verdict.source} say"
        yield _meaning(look.verdict)
        if look.verdict.levels:
            yield _agreements(look.verdict)
    yield "## Level by level"
    yield _levels(look.levels)


def _levels(levels: Sequence[Level]) -> str:
    heads = (
        "depth",
        "nodes",
        "documents that end here",
        "children, on average",
        "children, at most",
        "width, on average",
    )
    return table(
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
            for level in levels
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


def _meaning(verdict: MetricVerdict) -> str:
    said = [f"{verdict.words}\n\n"]
    clicks = verdict.source == CLICKS
    if verdict.power is not None and clicks:
        said.append(
            f"Over {_counted(verdict.topics, 'query', 'queries')}, a document that is clicked has neighbours with a "
            f"higher click rate than one that is skipped with probability {verdict.power:.2f} (AUC; 0.5 is chance). "
        )
    elif verdict.power is not None:
        said.append(
            f"Over {_counted(verdict.topics, 'topic', 'topics')}, a pair of documents that please the same visitor is "
            f"closer than one that does not with probability {verdict.power:.2f} (AUC; 0.5 is chance). "
        )
    else:
        said.append(f"These {verdict.source} are too few to tell whether close documents are similar. ")
    if verdict.scale is not None:
        whose = "click rate" if clicks else "relevance, also to those who skip the most popular documents,"
        said.append(
            f"With widths times {verdict.scale:.3g}, 95 % of pairs would differ in {whose} by no more "
            "than their distance. "
        )
    if clicks:
        said.append(
            "Documents that few have looked at are taken together with those around them. What luck explains is taken "
            "out of differences, and only what is two standard errors beyond the distance is called too much."
        )
    return "".join(said).strip()


def _counted(number: int, one: str, several: str) -> str:
    return f"1 {one}" if number == 1 else f"{number:,} {several}"


def _agreements(verdict: MetricVerdict) -> str:
    clicks = verdict.source == CLICKS
    heads = (
        "pairs that part at depth",
        "pairs",
        "distance",
        "difference in click rate" if clicks else "difference in relevance",
        "differ too much",
        "at worst by a factor",
        *(() if clicks else ("liked by the same",)),
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
                *(() if level.shared is None else (f"{level.shared:.0%}",)),
            )
            for level in verdict.levels
        ),
    )


def _draw(look: Inspection, folder: Path) -> None:
    verdict = look.verdict if look.verdict is not None and look.verdict.levels else None
    with mpl.rc_context(STYLE):
        drawing = Drawing(figsize=(WIDTH, 2.3 if verdict is None else 4.4), layout="constrained")
        grid = drawing.subplots(1 if verdict is None else 2, 3, squeeze=False)
        depth = [level.depth for level in look.levels]
        inner = [level for level in look.levels if level.branching]
        grid[0, 0].bar(depth, [level.documents for level in look.levels], color=BLUE)
        grid[0, 0].set(xlabel="depth", title="documents")
        grid[0, 1].plot([level.depth for level in inner], [level.branching for level in inner], "o-", color=BLUE)
        grid[0, 1].plot([level.depth for level in inner], [level.widest_branching for level in inner], "v:", color=BLUE)
        grid[0, 1].set(xlabel="depth", yscale="log", ylim=(1, None), title="children: mean and most")
        grid[0, 2].plot([level.depth for level in inner], [level.width for level in inner], "o-", color=BLUE)
        grid[0, 2].set(xlabel="depth", ylim=(0, None), title="width")
        if verdict is not None:
            _draw_verdict(grid[1], verdict)
        for axes in grid.flat:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        children = grid[0, 1].yaxis
        children.set_major_locator(LogLocator(subs=(1, 2, 5)))
        children.set_major_formatter(ScalarFormatter())
        children.set_minor_formatter(NullFormatter())
        save(drawing, folder, "inspection")


def _draw_verdict(row: Sequence[Axes], verdict: MetricVerdict) -> None:
    at = [level.depth for level in verdict.levels]
    clicks = verdict.source == CLICKS
    row[0].plot(at, [level.width for level in verdict.levels], "o-", color=BLUE, label="distance")
    row[0].plot(at, [level.difference for level in verdict.levels], "o-", color=RED, label="difference")
    row[0].set(ylim=(0, None), title=f"distance and {'click rate' if clicks else 'relevance'}")
    row[0].legend()
    row[1].bar(at, [100 * level.violations for level in verdict.levels], color=RED)
    row[1].set(ylim=(0, 100), title="% of pairs that differ too much")
    if clicks:
        row[2].bar(at, [level.pairs for level in verdict.levels], color=BLUE)
        row[2].set(title="pairs seen often enough")
    else:
        row[2].bar(at, [100 * (level.shared or 0.0) for level in verdict.levels], color=BLUE)
        row[2].set(ylim=(0, 100), title="% of pairs liked by the same")
    for axes in row:
        axes.set_xlabel("depth at which pairs part")
