"""Progress of a sweep, as a bar on a terminal; silent otherwise."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from zoomrank.lab.runners import FinishedRun


class SweepProgress:
    """A bar on a terminal's standard error: runs done, visits per second, time left, what ended last."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("runs · {task.fields[rate]} visits/s · {task.fields[left]} left · {task.fields[last]}"),
            console=console,
            disable=not sys.stderr.isatty(),
        )
        self._start, self._visits = time.monotonic(), 0

    def __enter__(self) -> SweepProgress:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
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
