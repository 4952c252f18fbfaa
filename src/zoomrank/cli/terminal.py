"""Output to a terminal: progress on one line, the progress bar of a sweep, and charts in plain characters.

Progress is written to standard error, and only if that is a terminal.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence

import numpy as np

from zoomrank.lab.sweep import FinishedRun
from zoomrank.types import Array

_PAUSE = 0.1  # seconds


class ProgressLine:
    """A line of standard error that is overwritten: how much is done."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._seen = sys.stderr.isatty()
        self._last = 0.0
        self._width = 0

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *error: object) -> None:
        if self._width:
            self._write("")

    def tell(self, done: int, total: int) -> None:
        """Show how much is done, unless it was shown a moment ago."""
        if self._seen and time.monotonic() - self._last >= _PAUSE:
            self._last = time.monotonic()
            self._write(f"{self._what}: {done:,} of {total:,} ({100 * done // max(total, 1)} %)")

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r{text.ljust(self._width)}{'' if text else chr(13)}")
        sys.stderr.flush()
        self._width = len(text)


class SweepProgress:
    """A bar on a terminal's standard error: runs done, visits per second, time left, what ended last."""

    def __init__(self) -> None:
        from rich.console import Console  # here: most commands do without
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._progress = Progress(
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("runs · {task.fields[rate]} visits/s · {task.fields[left]} left · {task.fields[last]}"),
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
        )
        self._start, self._visits = time.monotonic(), 0

    def __enter__(self) -> SweepProgress:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def begin(self, runs: int, done: int, workers: int) -> None:
        """Show the number of runs."""
        self._task = self._progress.add_task(
            "", total=runs, completed=done, rate="…", left="…", last=f"{workers} workers, compiling on first use"
        )

    def ended(self, finished: FinishedRun, seconds_left: float) -> None:
        """Show a finished run."""
        setting = finished.rows.setting
        self._visits += setting.visits
        rate = self._visits / (time.monotonic() - self._start)
        self._progress.update(
            self._task, advance=1, rate=f"{rate:,.0f}", left=duration(seconds_left), last=f"{setting.id}"
        )


def duration(seconds: float) -> str:
    """Format a duration for people.

    >>> duration(75), duration(3700)
    ('1:15', '1:01:40')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def aligned(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a table in plain characters.

    >>> print(aligned(("ranker", "rate"), [("random", "0.5")]))
    ranker  rate
    random  0.5
    """
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (heads, *rows))
    return "\n".join(line.rstrip() for line in lines)


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
