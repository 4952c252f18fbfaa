"""Where runs are carried out: in this process, in worker processes beside it, or on a Ray cluster.

An engine takes settings and yields `Finished` runs in whatever order they end. Rows depend on the setting alone, so it
does not matter which engine is asked, or how many workers it has. A worker that dies costs only its own run, which is
tried again.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.connection import wait as wait_for
from typing import Any

from zoomrank.errors import EngineError, ParameterError, whole_number
from zoomrank.lab.run import Rows, run
from zoomrank.lab.settings import Setting

TRIES = 3  # for one run whose worker dies
_CONNECT_SECONDS = 15


@dataclass(frozen=True)
class Finished:
    """A run that is done."""

    rows: Rows
    seconds: float


def timed(setting: Setting) -> Finished:
    """Carry out a run, with a clock beside it."""
    start = time.perf_counter()
    rows = run(setting)
    return Finished(rows, time.perf_counter() - start)


class Engine(ABC):
    """A place to carry out runs."""

    @property
    @abstractmethod
    def workers(self) -> int:
        """How many runs are carried out at a time."""

    @abstractmethod
    def finish(self, settings: Sequence[Setting]) -> Iterator[Finished]:
        """Carry out all of them, beginning with the first."""


class Local(Engine):
    """Worker processes on this machine, one per core unless said otherwise; with one worker, no process but this."""

    def __init__(self, workers: int | None = None) -> None:
        self._workers = _cores() if workers is None else whole_number(workers, "workers")
        if self._workers < 1:
            raise ParameterError(f"{self._workers} workers get nothing done; ask for at least one.")

    @property
    def workers(self) -> int:
        """How many processes."""
        return self._workers

    def finish(self, settings: Sequence[Setting]) -> Iterator[Finished]:
        """Carry them out; whoever stops listening stops the workers."""
        if self._workers == 1:
            yield from map(timed, settings)
            return
        left = list(settings)
        deaths: Counter[str] = Counter()
        while left:
            done: list[Setting] = []
            try:
                for finished in self._one_pool(left):
                    done.append(finished.rows.setting)
                    yield finished
            except BrokenProcessPool:
                left = _after_a_death(left, done, deaths, self._workers)
            else:
                return

    def _one_pool(self, settings: Sequence[Setting]) -> Iterator[Finished]:
        """Hand out runs in order, no more of them than there are workers, and yield them as they end."""
        # Spawned, not forked: threads of libraries do not survive a fork.
        pool = ProcessPoolExecutor(
            self._workers, mp_context=multiprocessing.get_context("spawn"), initializer=_end_with_parent
        )
        try:
            todo = iter(settings)
            running: set[Future[Finished]] = set()
            while True:
                for setting in todo:
                    running.add(pool.submit(timed, setting))
                    if len(running) > self._workers:  # one more, so that nobody waits for work
                        break
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list((pool._processes or {}).values()):
                process.terminate()


def _after_a_death(
    left: Sequence[Setting], done: Sequence[Setting], deaths: Counter[str], workers: int
) -> list[Setting]:
    """What is still to be done. A pool does not say whose worker died, so all that could have been under way count."""
    finished = {setting.id for setting in done}
    remaining = [setting for setting in left if setting.id not in finished]
    for setting in remaining[: workers + 1]:
        deaths[setting.id] += 1
        if deaths[setting.id] >= TRIES:
            raise EngineError(
                f"Workers died {TRIES} times around the run {setting.id}; there may be too little memory. "
                "Runs that were finished are kept: ask for fewer workers and go on with --resume."
            )
    return remaining


def _end_with_parent() -> None:
    """A worker whose parent was killed must not wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()


def _watch(sentinel: int) -> None:
    wait_for([sentinel])
    os._exit(1)


class Ray(Engine):
    """An existing Ray cluster; zoomrank must be installed on its nodes."""

    def __init__(self, address: str) -> None:
        self._ray = _connected(address)

    @property
    def workers(self) -> int:
        """One per core of the cluster."""
        return max(int(self._ray.cluster_resources().get("CPU", 1)), 1)

    def finish(self, settings: Sequence[Setting]) -> Iterator[Finished]:
        """Carry them out; Ray itself tries a run again whose worker died."""
        ray = self._ray
        task = ray.remote(num_cpus=1, max_retries=TRIES)(timed)
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
            for reference in running:
                ray.cancel(reference)

    def _result(self, reference: Any) -> Finished:
        try:
            finished: Finished = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except self._ray.exceptions.RayError as error:
            raise EngineError(f"The cluster gave up on a run: {error}. Runs that were finished are kept.") from error
        return finished

    def close(self) -> None:
        """Leave the cluster, which goes on without us."""
        self._ray.shutdown()


def engine(name: str, workers: int | None = None, address: str | None = None) -> Engine:
    """The engine of this name."""
    if name == "local":
        if address is not None:
            raise EngineError("An address is for --engine ray; the local engine has none.")
        return Local(workers)
    if name == "ray":
        if address is None:
            raise EngineError("--engine ray needs the --address of a cluster, such as head:6379, or auto.")
        return Ray(address)
    raise EngineError(f"There is no engine {name!r}; there are local and ray.")


def _connected(address: str) -> Any:
    try:
        import ray
    except ImportError:
        raise EngineError("Ray is not installed: pip install 'zoomrank[ray]'.") from None
    _refuse_nobody(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, ignore_reinit_error=True)
    except Exception as error:  # whatever Ray raises, and it raises many things, the address is of no use
        raise EngineError(f"No Ray cluster answers at {address!r}: {_first_line(error)}.") from error
    return ray


def _refuse_nobody(address: str) -> None:
    """Ray itself would try for a minute, and then end the process rather than raise."""
    import socket

    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return  # "auto", "local", or something Ray knows to read
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise EngineError(
            f"No Ray cluster answers at {address!r}: {error}. Is it running, and is the address right?"
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
