"""Sweep: carry out all runs that have no rows yet, and store each as it ends.

A runner carries runs out: in this process, in worker processes, or with Ray, on a cluster or locally. It takes settings
and yields `FinishedRun`s in the order in which they end. Rows depend on the setting alone, not on the runner or its
number of workers. If a worker dies, only its own run is lost and tried again; after `TRIES` deaths of the same run the
runner gives up.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import socket
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing.connection import wait as wait_for
from typing import TYPE_CHECKING, Any, Protocol

from zoomrank.errors import ParameterError, RunnerError
from zoomrank.lab.recipes import Setting
from zoomrank.lab.registry import with_absolute_paths
from zoomrank.lab.report_pages import cores
from zoomrank.lab.run import RunRows, run, this_version
from zoomrank.types import whole_number

if TYPE_CHECKING:
    from zoomrank.lab.results_folder import ResultsFolder  # needs pyarrow, which runs do without

TRIES = 3  # for one run whose worker dies
_CONNECT_SECONDS = 15
_ANSWER_SECONDS = 40


@dataclass(frozen=True)
class FinishedRun:
    """A finished run."""

    rows: RunRows
    seconds: float
    version: str  # version of zoomrank that carried it out


def timed_run(setting: Setting) -> FinishedRun:
    """Carry out a run and measure its time."""
    start = time.perf_counter()
    rows = run(setting)
    return FinishedRun(rows, time.perf_counter() - start, this_version())


class Runner(ABC):
    """A place to carry out runs."""

    @property
    @abstractmethod
    def workers(self) -> int:
        """Number of runs carried out at a time.

        Returns
        -------
        int
            At least one.
        """

    @abstractmethod
    def finish(self, settings: Sequence[Setting]) -> Iterator[FinishedRun]:
        """Carry out runs, beginning with the first.

        Parameters
        ----------
        settings
            The runs.

        Yields
        ------
        FinishedRun
            Each run with its rows, in the order in which they end.
        """

    def close(self) -> None:  # noqa: B027  (most have nothing to close)
        """Release what was started for the runs."""


class Local(Runner):
    """Worker processes on this machine.

    Parameters
    ----------
    workers
        Number of processes; by default one per core. A single worker runs in this process.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._workers = cores() if workers is None else whole_number(workers, "workers")
        if self._workers < 1:
            raise ParameterError(f"{self._workers} workers cannot run anything; ask for at least one.")

    @property
    def workers(self) -> int:
        """Number of processes."""
        return self._workers

    def finish(self, settings: Sequence[Setting]) -> Iterator[FinishedRun]:
        """Carry out the runs; closing the iterator stops the workers."""
        yield from map(timed_run, settings) if self._workers == 1 else self._finish_beside(settings)

    def _finish_beside(self, settings: Sequence[Setting]) -> Iterator[FinishedRun]:
        todo = deque(settings)
        deaths: Counter[str] = Counter()
        free = [_Worker() for _ in range(min(self._workers, len(settings)))]
        busy: dict[Future[FinishedRun], tuple[_Worker, Setting]] = {}
        try:
            while todo or busy:
                while todo and free:
                    worker, setting = free.pop(), todo.popleft()
                    busy[worker.begin(setting)] = worker, setting
                done, _ = wait(busy, return_when=FIRST_COMPLETED)
                for future in done:
                    worker, setting = busy.pop(future)
                    died = isinstance(future.exception(), BrokenProcessPool)
                    free.append(_Worker() if died else worker)  # first: one neither free nor busy would be lost
                    if died:
                        worker.end()
                        deaths[setting.id] += 1
                        if deaths[setting.id] == TRIES:
                            raise _too_many_deaths(setting)
                        todo.appendleft(setting)
                    else:
                        yield future.result()
        finally:
            for worker in (*free, *(worker for worker, _ in busy.values())):
                worker.end()


class _Worker:
    """A worker process of its own, so that its death affects no other run."""

    def __init__(self) -> None:
        # Spawned, not forked: threads of libraries do not survive a fork.
        spawn = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(1, mp_context=spawn, initializer=_end_with_parent)

    def begin(self, setting: Setting) -> Future[FinishedRun]:
        return self._pool.submit(timed_run, setting)

    def end(self) -> None:
        processes = list((self._pool._processes or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()


def _too_many_deaths(setting: Setting) -> RunnerError:
    return RunnerError(
        f"The worker of the run {setting.id} died {TRIES} times; there may be too little memory. "
        "Runs that were finished are kept: ask for fewer workers and go on with --resume."
    )


def _end_with_parent() -> None:
    """End a worker whose parent was killed, which would otherwise wait for work forever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()


def _watch(sentinel: int) -> None:
    wait_for([sentinel])
    os._exit(1)


class Ray(Runner):
    """An existing Ray cluster with zoomrank on its nodes; or a local Ray, which is started here and ends with this
    process.

    Parameters
    ----------
    address
        The address of the cluster, such as `head:6379`, or `auto`; without one, Ray is started locally.
    workers
        Number of runs at a time of a local Ray; by default one per core.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        self._ray = _imported()
        self._ours = not self._ray.is_initialized()  # otherwise the process already used Ray, and keeps it
        if address is not None:
            _connect(self._ray, address)
        elif self._ours:
            _begin(self._ray, Local(workers).workers)

    @property
    def workers(self) -> int:
        """Number of cores of the cluster."""
        return max(int(self._ray.cluster_resources().get("CPU", 1)), 1)

    def finish(self, settings: Sequence[Setting]) -> Iterator[FinishedRun]:
        """Carry out the runs; Ray retries a run whose worker died."""
        ray = self._ray
        task = ray.remote(num_cpus=1, max_retries=TRIES - 1)(timed_run)
        todo = iter(settings)
        running: list[Any] = []
        try:
            while True:
                for setting in todo:
                    running.append(task.remote(setting))
                    if len(running) >= 2 * self.workers:
                        break
                if not running:
                    return
                done, running = ray.wait(running, num_returns=1)
                for reference in done:
                    yield self._result(reference)
        finally:
            for reference in running if ray.is_initialized() else ():  # a cancellation would start Ray
                ray.cancel(reference)

    def _result(self, reference: Any) -> FinishedRun:
        try:
            finished: FinishedRun = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except self._ray.exceptions.RayError as error:
            raise RunnerError(f"The cluster gave up on a run: {error}. Runs that were finished are kept.") from error
        if finished.version != this_version():
            raise RunnerError(
                f"The cluster has zoomrank {finished.version}, this is {this_version()}: install the same."
            )
        return finished

    def close(self) -> None:
        """Disconnect from the cluster, which keeps running; a local Ray ends."""
        if self._ours:
            self._ray.shutdown()


def make_runner(name: str, workers: int | None = None, address: str | None = None) -> Runner:
    """Return the runner that `--engine` names."""
    if name == "local":
        if address is not None:
            raise RunnerError("--address is only for --engine ray; leave it out with --engine local.")
        return Local(workers)
    if name == "ray":
        if address is not None and workers is not None:
            raise RunnerError("--workers is only for this machine; leave it out with a cluster.")
        return Ray(address, workers)
    raise RunnerError(f"Unknown engine {name!r}; choose local or ray.")


def _imported() -> Any:
    try:
        import ray
    except ImportError:
        raise RunnerError("Ray is not installed: pip install 'zoomrank[ray]'.") from None
    return ray


def _connect(ray: Any, address: str) -> None:
    _check_address(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, ignore_reinit_error=True)
    except Exception as error:  # Ray raises many types; all of them mean that the address is of no use
        raise RunnerError(f"No Ray cluster answers at {address!r}: {_first_line(str(error))}.") from error


def _begin(ray: Any, workers: int) -> None:
    """Start Ray on this machine, without its dashboard."""
    try:
        ray.init(
            address="local",  # ignores RAY_ADDRESS: a cluster must be named explicitly
            num_cpus=workers,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except Exception as error:  # Ray raises many types; all of them mean that it did not start
        raise RunnerError(f"Ray does not start on this machine: {_first_line(str(error))}.") from error


def _check_address(address: str) -> None:
    """Check the address in a separate process: Ray tries for minutes, and may end the process instead of raising."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    why = ""
    try:
        if host and port.isdigit():  # otherwise "auto", or another form that Ray parses
            socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS).close()
        ask = [sys.executable, "-c", f"import ray; ray.init(address={address!r}, log_to_driver=False)"]
        asked = subprocess.run(  # noqa: S603
            ask, capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=False
        )
        if asked.returncode != 0:
            why = _first_line(asked.stderr.strip().rpartition("\n")[2])
    except (OSError, OverflowError) as error:
        why = str(error)
    except subprocess.TimeoutExpired:
        why = f"no response within {_ANSWER_SECONDS} seconds"
    if why:
        raise RunnerError(
            f"No Ray cluster answers at {address!r}: {why}. Check that it is running and that the address is right."
        )


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].rstrip(".")


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
        The request, as `sweep_request` returns it.
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
    from zoomrank.lab.results_folder import ResultsFolder

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
