"""Carry out all runs of a sweep that have no rows yet, and keep each as it ends."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from zoomrank.lab.kept_worlds import located
from zoomrank.lab.recipes import Setting
from zoomrank.lab.results_folder import ResultsFolder
from zoomrank.lab.runners import Finished, Runner


class Watcher(Protocol):
    """Whoever wants to see a sweep go on."""

    def begin(self, runs: int, done: int, workers: int) -> None:
        """There are so many runs, some of them done before."""

    def ended(self, finished: Finished, seconds_left: float) -> None:
        """One more run is done."""


def swept(
    settings: Sequence[Setting],
    path: str | os.PathLike[str],
    about: dict[str, Any],
    runner: Runner,
    *,
    resume: bool = False,
    watcher: Watcher | None = None,
) -> ResultsFolder:
    """Begin a folder, or go on in it, and carry out what is missing there.

    Parameters
    ----------
    settings
        All runs that are wanted.
    path
        Where their rows are kept.
    about
        What was asked for, as `about_sweep` writes it.
    runner
        Who carries them out.
    resume
        Whether the folder may have results already.
    watcher
        Who is told of each run that ends.

    Returns
    -------
    ResultsFolder
        With rows of all settings.
    """
    folder = ResultsFolder.begin(path, about, resume=resume)
    sweep(settings, folder, runner, watcher)
    return folder


def sweep(settings: Sequence[Setting], folder: ResultsFolder, runner: Runner, watcher: Watcher | None = None) -> None:
    """Carry out what is missing. Interrupted, it can be called again."""
    missing = folder.missing(settings)
    time_left = TimeLeft(missing, runner.workers)
    if watcher:
        watcher.begin(len(settings), len(settings) - len(missing), runner.workers)
    wanted = {setting.id: setting for setting in missing}
    for finished in runner.finish([located(setting, folder.path) for setting in missing]):
        # Kept under the setting that was asked for: rows do not depend on where the folder is.
        folder.add(replace(finished.rows, setting=wanted[finished.rows.setting.id]), finished.seconds)
        left = time_left.after(finished)
        if watcher:
            watcher.ended(finished, left)


class TimeLeft:
    """How long the rest takes: each curve as long as its own runs did, others as the average visit."""

    def __init__(self, settings: Sequence[Setting], workers: int) -> None:
        self._left = {setting.id: setting for setting in settings}
        self._workers = workers
        self._seen: dict[tuple[str, str], list[float]] = defaultdict(list)
        self._seconds, self._visits = 0.0, 0

    def after(self, finished: Finished) -> float:
        """Seconds that are left after this run."""
        setting = finished.rows.setting
        del self._left[setting.id]
        self._seen[setting.experiment, setting.curve].append(finished.seconds)
        self._seconds += finished.seconds
        self._visits += setting.visits
        return sum(self._guess(setting) for setting in self._left.values()) / self._workers

    def _guess(self, setting: Setting) -> float:
        seen = self._seen.get((setting.experiment, setting.curve))
        return min(seen) if seen else setting.visits * self._seconds / self._visits  # the first of them compiled, too
