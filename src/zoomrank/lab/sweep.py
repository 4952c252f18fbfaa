"""Sweep: carry out all runs that have no rows yet, and store each as it ends."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from zoomrank.lab.kept_worlds import with_absolute_paths
from zoomrank.lab.recipes import Setting
from zoomrank.lab.results_folder import ResultsFolder
from zoomrank.lab.runners import FinishedRun, Runner


class SweepObserver(Protocol):
    """Observer of a sweep's progress."""

    def begin(self, runs: int, done: int, workers: int) -> None:
        """Receive the number of runs, how many of them are done already, and the number of workers."""

    def ended(self, finished: FinishedRun, seconds_left: float) -> None:
        """Receive a finished run and the estimated time left."""


def run_sweep(
    settings: Sequence[Setting],
    path: str | os.PathLike[str],
    about: dict[str, Any],
    runner: Runner,
    *,
    resume: bool = False,
    watcher: SweepObserver | None = None,
) -> ResultsFolder:
    """Create or continue a folder, and carry out the runs missing there.

    Parameters
    ----------
    settings
        All runs.
    path
        The folder of their rows.
    about
        The request, as `about_sweep` returns it.
    runner
        The runner that carries them out.
    resume
        Whether the folder may have results already.
    watcher
        The observer that is told of each finished run.

    Returns
    -------
    ResultsFolder
        The folder, with rows of all settings.
    """
    folder = ResultsFolder.begin(path, about, resume=resume)
    sweep(settings, folder, runner, watcher)
    return folder


def sweep(
    settings: Sequence[Setting], folder: ResultsFolder, runner: Runner, watcher: SweepObserver | None = None
) -> None:
    """Carry out the missing runs. Can be called again after an interruption."""
    missing = folder.missing(settings)
    time_left = TimeLeft(missing, runner.workers)
    if watcher:
        watcher.begin(len(settings), len(settings) - len(missing), runner.workers)
    wanted = {setting.id: setting for setting in missing}
    for finished in runner.finish([with_absolute_paths(setting, folder.path) for setting in missing]):
        # Stored under the original setting: rows do not depend on where the folder is.
        folder.add(replace(finished.rows, setting=wanted[finished.rows.setting.id]), finished.seconds)
        left = time_left.after(finished)
        if watcher:
            watcher.ended(finished, left)


class TimeLeft:
    """Estimate of the remaining time: each curve takes as long as its own runs did, others as the average visit."""

    def __init__(self, settings: Sequence[Setting], workers: int) -> None:
        self._left = {setting.id: setting for setting in settings}
        self._workers = workers
        self._seen: dict[tuple[str, str], list[float]] = defaultdict(list)
        self._seconds, self._visits = 0.0, 0

    def after(self, finished: FinishedRun) -> float:
        """Return the seconds that are left after this run."""
        setting = finished.rows.setting
        del self._left[setting.id]
        self._seen[setting.experiment, setting.curve].append(finished.seconds)
        self._seconds += finished.seconds
        self._visits += setting.visits
        return sum(self._guess(setting) for setting in self._left.values()) / self._workers

    def _guess(self, setting: Setting) -> float:
        seen = self._seen.get((setting.experiment, setting.curve))
        return min(seen) if seen else setting.visits * self._seconds / self._visits  # min: the first run also compiled
