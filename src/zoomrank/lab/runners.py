"""Where runs are carried out: in this process, in worker processes beside it, or with Ray, on a cluster or here.

A runner takes settings and yields `Finished` runs in whatever order they end. Rows depend on the setting alone, so it
does not matter which runner is asked, or how many workers it has. A worker that dies costs only its own run, which is
tried again; `TRIES` deaths of the same run are too many.
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
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.connection import wait as wait_for
from typing import Any

from zoomrank.errors import ParameterError, RunnerError
from zoomrank.lab.code_version import this_version
from zoomrank.lab.one_run import RunRows, run
from zoomrank.lab.recipes import Setting
from zoomrank.lab.reports.machine import cores
from zoomrank.numbers import whole_number

TRIES = 3  # for one run whose worker dies
_CONNECT_SECONDS = 15
_ANSWER_SECONDS = 40


@dataclass(frozen=True)
class Finished:
    """A run that is done."""

    rows: RunRows
    seconds: float
    version: str  # of the zoomrank that did it


def timed(setting: Setting) -> Finished:
    """Carry out a run, with a clock beside it."""
    start = time.perf_counter()
    rows = run(setting)
    return Finished(rows, time.perf_counter() - start, this_version())


class Runner(ABC):
    """A place to carry out runs."""

    @property
    @abstractmethod
    def workers(self) -> int:
        """How many runs are carried out at a time.

        Returns
        -------
        int
            At least one.
        """

    @abstractmethod
    def finish(self, settings: Sequence[Setting]) -> Iterator[Finished]:
        """Carry out runs, beginning with the first.

        Parameters
        ----------
        settings
            The runs.

        Yields
        ------
        Finished
            Each run with its rows, in whatever order they end.
        """

    def close(self) -> None:  # noqa: B027  (most have nothing to do)
        """Let go of what was begun for the runs.

        Examples
        --------
        >>> Local(workers=1).close()
        """


class Local(Runner):
    """Worker processes on this machine.

    Parameters
    ----------
    workers
        How many; one per core unless said otherwise. With one there is no process but this.

    Examples
    --------
    >>> from zoomrank.lab import Curve, Experiment, recipe
    >>> world = {"tree": recipe("exponential", depth=4), "users": recipe("two-peaks")}
    >>> curves = (Curve("random", recipe("RankRandom")),)
    >>> experiment = Experiment("small", "A small world", **world, slots=2, visits=200, curves=curves)
    >>> [finished.rows.setting.id for finished in Local(workers=1).finish(experiment.settings(instances=2))]
    ['small/random/0', 'small/random/1']
    """

    def __init__(self, workers: int | None = None) -> None:
        self._workers = cores() if workers is None else whole_number(workers, "workers")
        if self._workers < 1:
            raise ParameterError(f"{self._workers} workers get nothing done; ask for at least one.")

    @property
    def workers(self) -> int:
        """How many processes."""
        return self._workers

    def finish(self, settings: Sequence[Setting]) -> Iterator[Finished]:
        """Carry them out; whoever stops listening stops the workers."""
        yield from map(timed, settings) if self._workers == 1 else self._finish_beside(settings)

    def _finish_beside(self, settings: Sequence[Setting]) -> Iterator[Finished]:
        todo = deque(settings)
        deaths: Counter[str] = Counter()
        free = [_Worker() for _ in range(min(self._workers, len(settings)))]
        busy: dict[Future[Finished], tuple[_Worker, Setting]] = {}
        try:
            while todo or busy:
                while todo and free:
                    worker, setting = free.pop(), todo.popleft()
                    busy[worker.begin(setting)] = worker, setting
                done, _ = wait(busy, return_when=FIRST_COMPLETED)
                for future in done:
                    worker, setting = busy.pop(future)
                    died = isinstance(future.exception(), BrokenProcessPool)
                    free.append(_Worker() if died else worker)  # first of all: whoever is neither free nor busy is lost
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
    """One process of its own, so that its death is nobody else's."""

    def __init__(self) -> None:
        # Spawned, not forked: threads of libraries do not survive a fork.
        spawn = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(1, mp_context=spawn, initializer=_end_with_parent)

    def begin(self, setting: Setting) -> Future[Finished]:
        return self._pool.submit(timed, setting)

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
    """A worker whose parent was killed must not wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()


def _watch(sentinel: int) -> None:
    wait_for([sentinel])
    os._exit(1)


class Ray(Runner):
    """A Ray cluster that exists, with zoomrank on its nodes; or Ray on this machine, which is started and ends with us.

    Parameters
    ----------
    address
        Where the cluster is, such as `head:6379`, or `auto`; without one, Ray is started here.
    workers
        Of Ray that is started here: how many runs at a time; one per core unless said otherwise.

    Examples
    --------
    >>> cluster = Ray("head:6379")  # doctest: +SKIP
    >>> for finished in cluster.finish(settings):  # doctest: +SKIP
    ...     print(finished.rows.setting.id)
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        self._ray = _imported()
        self._ours = not self._ray.is_initialized()  # else somebody in this process uses it, and goes on
        if address is not None:
            _connect(self._ray, address)
        elif self._ours:
            _begin(self._ray, Local(workers).workers)

    @property
    def workers(self) -> int:
        """One per core of the cluster."""
        return max(int(self._ray.cluster_resources().get("CPU", 1)), 1)

    def finish(self, settings: Sequence[Setting]) -> Iterator[Finished]:
        """Carry them out; Ray itself tries a run again whose worker died."""
        ray = self._ray
        task = ray.remote(num_cpus=1, max_retries=TRIES - 1)(timed)
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
            for reference in running if ray.is_initialized() else ():  # else Ray would start itself to be told
                ray.cancel(reference)

    def _result(self, reference: Any) -> Finished:
        try:
            finished: Finished = self._ray.get(reference)
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
        """Leave the cluster, which goes on without us; what was started here ends.

        Examples
        --------
        >>> Ray("head:6379").close()  # doctest: +SKIP
        """
        if self._ours:
            self._ray.shutdown()


def runner_named(name: str, workers: int | None = None, address: str | None = None) -> Runner:
    """The runner that `--engine` names."""
    if name == "local":
        if address is not None:
            raise RunnerError("An address is for --engine ray; --engine local has none.")
        return Local(workers)
    if name == "ray":
        if address is not None and workers is not None:
            raise RunnerError("The number of workers is for this machine; a cluster has its own.")
        return Ray(address, workers)
    raise RunnerError(f"There is no engine {name!r}; there are local and ray.")


def _imported() -> Any:
    try:
        import ray
    except ImportError:
        raise RunnerError("Ray is not installed: pip install 'zoomrank[ray]'.") from None
    return ray


def _connect(ray: Any, address: str) -> None:
    """Join a cluster."""
    _refuse_nobody(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, ignore_reinit_error=True)
    except Exception as error:  # whatever Ray raises, and it raises many things, the address is of no use
        raise RunnerError(f"No Ray cluster answers at {address!r}: {_first_line(str(error))}.") from error


def _begin(ray: Any, workers: int) -> None:
    """Start Ray on this machine, without the page that it would serve."""
    try:
        ray.init(
            address="local",  # whatever RAY_ADDRESS says: who means a cluster names it
            num_cpus=workers,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except Exception as error:  # whatever Ray raises, and it raises many things, there is none here
        raise RunnerError(f"Ray does not start on this machine: {_first_line(str(error))}.") from error


def _refuse_nobody(address: str) -> None:
    """Ask first, from a process of its own: Ray tries for minutes, and may end the process rather than raise."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    why = ""
    try:
        if host and port.isdigit():  # else it is "auto", or something Ray knows to read
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
        why = f"nothing that speaks Ray within {_ANSWER_SECONDS} seconds"
    if why:
        raise RunnerError(f"No Ray cluster answers at {address!r}: {why}. Is it running, and is the address right?")


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].rstrip(".")
