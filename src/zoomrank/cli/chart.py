"""Charts for a terminal, in plain characters."""

from collections.abc import Mapping, Sequence

import numpy as np

from zoomrank.numbers import Array

_BLOCKS = " ▁▂▃▄▅▆▇█"
_MARKS = "●○▲△■□"


def sparkline(values: Array, columns: int = 64, full: float = 0.5) -> str:
    """Draw the largest value of each of a few groups of neighbours, as blocks."""
    groups = np.array_split(values, min(columns, len(values)))
    heights = [max(group.max(), 0.0) / full * (len(_BLOCKS) - 1) for group in groups]
    return "".join(_BLOCKS[min(round(height), len(_BLOCKS) - 1)] for height in heights)


def chart(
    curves: Mapping[str, Sequence[float] | Array],
    visits: int,
    *,
    top: float | None = None,
    rows: int = 12,
    columns: int = 60,
) -> str:
    """Draw curves over equal windows of visits, each with its own mark; `top` adds a line."""
    height = max(top or 0.0, *(max(values) for values in curves.values()), 1e-9)
    canvas = np.full((rows, columns + 1), " ")
    if top is not None:
        canvas[_row(top, height, rows), ::2] = "─"
    for mark, values in zip(_MARKS, curves.values(), strict=False):
        for at, value in enumerate(values):
            column = round((at + 0.5) / len(values) * columns)
            canvas[_row(value, height, rows), column] = mark
    lines = []
    for number, row in enumerate(canvas):
        shown = f"{height * (rows - 1 - number) / (rows - 1):5.2f} ┤" if number in (0, rows - 1) else "      │"
        lines.append(shown + "".join(row))
    lines.append("      └" + "─" * columns + "┘")
    lines.append(f"       0{visits:>{columns},}")
    legend = "   ".join(f"{mark} {name}" for mark, name in zip(_MARKS, curves, strict=False))
    return "\n".join([*lines, f"       {legend}" + ("   ─ greedy optimum" if top is not None else "")])


def _row(value: float, height: float, rows: int) -> int:
    return rows - 1 - round(min(max(value / height, 0.0), 1.0) * (rows - 1))
