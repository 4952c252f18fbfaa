"""Draw the pictures that no report draws: `python tools/pictures.py` writes them to docs/figures."""

import random
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

import zoomrank as zr
from zoomrank.lab.figure_style import STYLE

DOCS = Path(__file__).parent.parent / "docs"
FOLDER = DOCS / "figures"
VISITS = (300, 3_000, 30_000)


def draw_front() -> None:
    """Draw every document that the first visitors of the tutorial looked at, and their clicks."""
    known = _variables("tutorial.md", 4)  # up to its visitors
    tree, collection = known["collection"].tree, known["collection"]
    looked: list[tuple[int, int]] = []
    clicked: list[tuple[int, int]] = []
    ranker = zr.ZoomRank(tree, slots=3, seed=2)
    ranker.learn(ranker.rank(), None)
    chance, tastes = random.Random(2), [known[taste] for taste in ("pasta", "soup", "cake")]
    for visit in range(1, 201):
        likes = chance.choices(tastes, weights=[5, 3, 2])[0]
        ranking = ranker.rank()
        click = next((slot for slot, document in enumerate(ranking.documents) if document in likes), None)
        ranker.learn(ranking, click)
        for slot, document in enumerate(ranking.documents[: None if click is None else click + 1]):
            (clicked if slot == click else looked).append((visit, tree.documents.position(document)))
    with mpl.rc_context(STYLE):
        drawing = Figure(figsize=(8.4, 4.8), layout="constrained")
        left, axes = drawing.subplots(1, 2, width_ratios=(1, 3.4))
        _draw_tree(left, tree)
        axes.scatter(*zip(*looked, strict=True), s=9, color="#C8C8C8", label="looked at")
        axes.scatter(*zip(*clicked, strict=True), s=13, color="#D55E00", label="clicked")
        axes.set(xlabel="visit", xlim=(0, 201), ylim=(len(tree) - 0.5, -0.5))
        axes.set_yticks(range(len(tree)), [document.title for document in collection])
        axes.tick_params("y", length=0)
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
        drawing.savefig(FOLDER / "front.png", dpi=160)


def _variables(page: str, blocks: int) -> dict[str, Any]:
    """Run the first blocks of code of a page; return their variables."""
    code = re.findall(r"```python(?: title=\"learn.py\")?\n(.*?)```", (DOCS / page).read_text(), flags=re.DOTALL)
    known: dict[str, Any] = {}
    exec("".join(code[:blocks]), known)  # noqa: S102
    return known


def _draw_tree(axes: Any, tree: zr.DocumentTree) -> None:
    """Draw categories, and lines to their children."""
    shape = tree.shape
    middle = (shape.first_document + shape.end_document - 1) / 2
    depth = np.zeros(tree.nodes)
    for node in range(1, tree.nodes):
        up = shape.parent[node]
        depth[node] = depth[up] + 1
        if tree.children(node):
            line = [depth[up], depth[up], depth[node]], [middle[up], middle[node], middle[node]]
            axes.plot(*line, color="#555555", linewidth=0.8)
            name = tree.name(node).rpartition(" > ")[2]
            axes.text(depth[node] + 0.05, middle[node], name, va="center", backgroundcolor="white")
    axes.set(ylim=(len(tree) - 0.5, -0.5))
    axes.axis("off")


def draw_bounds() -> None:
    """Draw how fast a subtree without clicks is given up."""
    visits = np.arange(1, 1_001)
    with mpl.rc_context(STYLE):
        drawing = Figure(figsize=(4.6, 2.6), layout="constrained")
        axes = drawing.subplots()
        for constant, colour in ((1.0, "#0072B2"), (0.25, "#56B4E9")):
            radius = np.minimum(1.0, 2 * np.sqrt(constant / (1 + visits)))
            axes.plot(visits, radius, color=colour, label=f"confidence radius, C = {constant:g}")
        axes.plot(visits, 0.5 / (visits + 0.5), color="#D55E00", label="ZoomRank, c = ¼")
        axes.set(xscale="log", yscale="log", xlabel="visits without a click", ylabel="what may still be hoped for")
        axes.legend()
        drawing.savefig(FOLDER / "zoomrank-bounds.png", dpi=150)


def draw_zoom() -> None:
    """Draw the subtrees that ZoomRank has told apart, and their click rates."""
    tree = zr.DocumentTree.exponential(depth=15)
    users = zr.users.two_peaks(tree, seed=1)
    ranker = zr.ZoomRank(tree, slots=5, seed=1)
    with mpl.rc_context(STYLE):
        drawing = Figure(figsize=(7.6, 5.2), layout="constrained")
        grid = drawing.subplots(len(VISITS) + 1, 1, sharex=True, height_ratios=(0.5, 1, 1, 1))
        grid[0].plot(users.mean(), color="#D55E00", linewidth=0.8)
        grid[0].set_title("how relevant each of 32,768 documents is", loc="left")
        done = 0
        for axes, visits in zip(grid[1:], VISITS, strict=True):
            trace = zr.simulate(ranker, users, visits - done, seed=visits)
            done = visits
            entries, drawn = _icicle(ranker, axes)
            axes.set(ylim=(tree.depth + 1, 0), ylabel="depth")
            worth = users.satisfaction(trace.shown[-1]) / users.greedy(5).satisfaction
            axes.set_title(
                f"after {visits:,} visits: {entries:,} subtrees told apart, the ranking shown is worth {worth:.0%} of "
                "the best",
                loc="left",
            )
        drawing.colorbar(drawn, ax=grid[1:], label="clicks a visit, estimated", shrink=0.7)
        grid[-1].set_xlabel("documents, left to right")
        drawing.savefig(FOLDER / "zoomrank-zoom.png", dpi=150)


def _icicle(ranker: zr.Ranked, axes: mpl.axes.Axes) -> tuple[int, PolyCollection]:
    state, shape = ranker.state, ranker.tree.shape
    used = int(state.filled[0])
    nodes = state.node[:used].astype(np.int64)
    depth = np.zeros(used)
    for entry in range(1, used):
        depth[entry] = depth[state.up[entry]] + 1
    left, right = shape.first_document[nodes], shape.end_document[nodes]
    boxes = np.stack(
        [np.stack([x, y], axis=1) for x, y in ((left, depth), (right, depth), (right, depth + 1), (left, depth + 1))],
        axis=1,
    )
    seen = state.total[:used] > 0
    mean = state.gains[:used] / np.maximum(state.total[:used], 1)
    drawn = PolyCollection(boxes[seen], array=mean[seen], cmap="inferno", edgecolors="none")
    drawn.set_clim(0, 0.5)
    axes.add_collection(drawn)
    axes.set_xlim(0, len(ranker.tree))
    axes.set_facecolor("#DDDDDD")
    return used, drawn


def draw_walk() -> None:
    """Draw what the top slot of the worked example knows about every subtree, and its walk."""
    known = _variables("explanation/how-zoomrank-decides.md", 1)
    tree, ranker = known["tree"], known["ranker"]
    state, shape = ranker.state, tree.shape
    chosen = tree.documents.position(ranker.rank().documents[0])
    with mpl.rc_context(STYLE):
        drawing = Figure(figsize=(7.2, 4.0), layout="constrained")
        axes = drawing.subplots()
        for entry in range(int(state.filled[0])):
            node, up = int(state.node[entry]), int(shape.parent[state.node[entry]])
            first, end = shape.first_document[[node, up]].astype(int), shape.end_document[[node, up]].astype(int)
            (row, row_above), depth = (first + end - 1) / 2, tree.name(node).count(" > ") + (node > 0)
            on_walk = first[0] <= chosen < end[0]
            colour, rank = ("#D55E00", 2) if on_walk else ("#555555", 1)
            if node:
                line = [depth - 0.6, depth - 0.25, depth - 0.25, depth], [row_above, row_above, row, row]
                axes.plot(*line, color=colour, linewidth=1.8 if on_walk else 0.8, zorder=rank)
            name = tree.name(node).rpartition(" > ")[2] if node else "all books"
            says = (
                f"{name}: {state.gains[entry]} of {state.total[entry]}\n"
                f"record {max(state.record[entry, 0], 0):.2f}, bound {state.bound[entry, 0]:.2f}"
            )
            box = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": colour}
            axes.text(depth, row, says, va="center", fontsize=7.5, bbox=box, zorder=3)
        axes.set(xlim=(-0.05, 2.6), ylim=(len(tree) - 0.4, -0.6))
        axes.axis("off")
        drawing.savefig(FOLDER / "decides-walk.png", dpi=130)


def draw_second_slot() -> None:
    """Draw what each document of the worked example is expected to earn at the top, and below the one shown there."""
    known = _variables("explanation/how-zoomrank-decides.md", 1)
    tree, ranker = known["tree"], known["ranker"]
    top, second = ranker.explain(ranker.rank())
    books = [book for book in tree.documents if book != top.document]
    state, leaves = ranker.state, [tree.leaf(book) for book in books]
    record = {int(node): value for node, value in zip(state.node, state.record[:, 0], strict=True)}
    alone = [max(record[leaf], 0) for leaf in leaves]
    below = [ranker.explain(ranker.rank(eligible=[top.document, book]))[1].estimate for book in books]
    with mpl.rc_context(STYLE):
        drawing = Figure(figsize=(6.4, 2.9), layout="constrained")
        axes = drawing.subplots()
        rows = range(len(books))
        axes.hlines(rows, below, alone, color="#C8C8C8", linewidth=2)
        axes.scatter(alone, rows, s=70, color="#C8C8C8", label="at the top", zorder=3)
        axes.scatter(below, rows, s=26, color="#D55E00", label=f"below {top.document}", zorder=4)
        place = books.index(second.document)
        axes.scatter([second.index], [place], s=70, marker="|", color="#0072B2", label="bound of the book shown")
        axes.set_yticks(rows, [tree.name(leaf).replace(" > ", ": ") for leaf in leaves])
        axes.set(
            xlabel="expected clicks per visitor who looks at it", xlim=(-0.02, 0.72), ylim=(len(books) - 0.5, -0.5)
        )
        axes.legend(loc="center right")
        drawing.savefig(FOLDER / "decides-second-slot.png", dpi=130)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    draw_front()
    draw_bounds()
    draw_zoom()
    draw_walk()
    draw_second_slot()
