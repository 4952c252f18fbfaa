"""`Journal`: many events in one durable write. Whoever appends waits until the write that holds the event is done.

Events are appended in the order in which learners noted them, by the one thread that owns the learners. What all
requests of one turn of its loop append shares one write: the busier the service, the more. Stragglers, who come when
many have just been, wait a moment for others, since a write of few takes about as long. If a write fails, nothing
that was appended since the last good one counts: all of it is refused, and the owner is told to forget the learners
that had noted it.

A disk that is quick is waited for: to hand a write to another thread and back takes longer than the write, since only
one thread of Python runs at a time. Where writes take long (a slow disk, a server elsewhere), another thread waits for
them, and the loop goes on.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable

from zoomrank.service.logs import Seldom
from zoomrank.service.refusals import FencedError, StoppingError, StorageError
from zoomrank.service.storage.batch import ArmVisit, Batch, Listed, Snapshot, StoredLearner, StoredReport
from zoomrank.service.storage.events import Event
from zoomrank.service.storage.partitions import count_in, partition_in, with_partition
from zoomrank.service.storage.store import Store

_QUICK = 0.003  # seconds
_TRY_AGAIN = 100  # writes after which it is tried again whether they are quick
_MANY = 16  # events of a write
_MOMENT = 0.001  # seconds

_log = logging.getLogger(__name__)

Refused = Callable[[Batch], None]


class Journal:
    """A queue, and the thread that empties it."""

    def __init__(self, store: Store, refused: Refused) -> None:
        self._store = store
        self._refused = refused
        self._count = 0  # of the last event in the log
        self._batch = Batch()
        self._waiting: list[asyncio.Future[None]] = []
        self._writing: Batch | None = None
        self._work = threading.Semaphore(0)
        self._handed: tuple[Batch, list[asyncio.Future[None]], asyncio.AbstractEventLoop] | None = None
        self._seconds = 0.0  # that a write took of late that was waited for
        self._wrote = 0  # events, last time
        self._held_back = False
        self._closed = False
        self.batches = self.failures = 0
        self._seldom = Seldom(_log)
        self._thread = threading.Thread(target=self._write_on, name="zoomrank-journal", daemon=True)

    def start(self) -> None:
        """Begin to write, after the last event in the log."""
        self.go_on_after(self._store.read.last_place())
        self._thread.start()

    @property
    def unwritten(self) -> Batch:
        """What will be written next: to look at, not to change."""
        return self._batch

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being written, so that the store has all that is not in the batch."""
        return self._writing is None

    # What is to be written. Then call `written`, or `flush`.

    def append(self, collection: int, event: Event) -> None:
        """Add an event to the log, and to what became of its collection's impressions."""
        self._count += 1
        self._batch.events.append((self._place(event.learner), event))
        self._batch.count(collection, event)

    def _place(self, learner: int) -> int:
        """The place in the log of what was appended last, if it is a learner's."""
        return with_partition(self._count, partition_in(learner))

    def go_on_after(self, place: int) -> None:
        """Give only places behind one that somebody else has given."""
        self._count = max(self._count, count_in(place))

    def discount(self, collection: int, event: Event) -> None:
        """Count an event that is in the log no more: what it was about is void."""
        self._batch.count(collection, event, -1)

    def add_learner(self, learner: StoredLearner) -> None:
        """Keep a new learner."""
        self._batch.learners.append(learner)

    def add_snapshot(self, learner: int, edition: int, first: int, waiting: int, counts: str, content: bytes) -> None:
        """Keep a learner as it is after all events that were appended; later ones are about impressions from one on."""
        self._batch.snapshots.append(Snapshot(learner, edition, self._place(learner), first, waiting, counts, content))

    def add_report(self, report: StoredReport) -> None:
        """Keep what a learner tells its neighbours, instead of what it told before."""
        self._batch.reports[report.learner] = report

    def count_in_arm(self, visit: ArmVisit, times: int = 1) -> None:
        """Count something that became of a visitor of an experiment, or (-1) count it no more."""
        self._batch.arm_visits[visit] += times

    def add_visitor(self, experiment: int, visitor: bytes) -> None:
        """Remember that somebody counts in an experiment."""
        self._batch.visitors.append((experiment, visitor))

    def list_query(self, learner: int, listed: Listed) -> None:
        """Say how often a query was asked, and with what success, for the order of lists."""
        self._batch.listed[learner] = listed

    def say(self, name: str, value: str) -> None:
        """Keep a fact about the store, together with the events that it goes with."""
        self._batch.said[name] = value

    # When it is.

    async def flush(self) -> None:
        """Wait until everything is durable, if something is not."""
        if self._batch:
            await self.written()

    def written(self) -> asyncio.Future[None]:
        """Done when all that is in the batch now is durable."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        if self._closed:
            future.set_exception(StoppingError())
            return future
        self._waiting.append(future)
        if len(self._waiting) == 1:
            loop.call_soon(self._hand_over)
        return future

    def _hand_over(self) -> None:
        if self._writing is None and self._waiting and not self._hold_back():
            self._writing, waiting = self._batch, self._waiting
            self._batch, self._waiting = Batch(), []
            if self._is_quick():
                began = time.perf_counter()
                failure = self._write(self._writing)
                weight = 0.1 if self._seconds < _QUICK else 0.5
                self._seconds += weight * (time.perf_counter() - began - self._seconds)
                self._finish(self._writing, waiting, failure)
            else:
                self._handed = (self._writing, waiting, asyncio.get_running_loop())
                self._work.release()

    def _hold_back(self) -> bool:
        """Whether few wait, who may get company in a moment; they wait once."""
        few = _MANY <= self._wrote > 2 * len(self._batch.events)
        self._held_back = few and not self._held_back
        if self._held_back:
            asyncio.get_running_loop().call_later(_MOMENT, self._hand_over)
        else:
            self._wrote = len(self._batch.events)
        return self._held_back

    def _is_quick(self) -> bool:
        """Whether the next write is likely to be done before another thread would have begun it."""
        quick = self._seconds < _QUICK or self.batches % _TRY_AGAIN == 0
        return quick and self._store.database.nearby and not self._store.database.is_busy

    def _write(self, batch: Batch) -> StorageError | None:
        """Write a batch; says what went wrong."""
        try:
            self._store.write(batch)
        except StorageError as error:
            return error
        except Exception as error:  # noqa: BLE001  (whatever it is, nobody may wait for ever)
            return StorageError(f"Nothing was written down: {error!r}.")
        return None

    def _write_on(self) -> None:
        while True:
            self._work.acquire()
            if self._handed is None:
                return
            batch, waiting, loop = self._handed
            failure = self._write(batch)
            try:
                loop.call_soon_threadsafe(self._finish, batch, waiting, failure)
            except RuntimeError:  # the loop was closed: nobody waits any more
                return

    def _finish(self, batch: Batch, waiting: list[asyncio.Future[None]], failure: StorageError | None) -> None:
        self._writing = None
        self.batches += 1
        if failure is not None:
            self.failures += 1
            self._seldom.say(failure)
            late, more = self._batch, self._waiting  # they build on what was lost
            self._batch, self._waiting = Batch(), []
            waiting = waiting + more
            try:
                self._refused(batch)
                self._refused(late)
            finally:  # whatever happens, nobody may wait for ever
                _tell(waiting, failure)
        else:
            _tell(waiting, None)
        self._hand_over()

    async def discard(self) -> None:
        """Write nothing of what is not being written yet; whoever waits for it is told."""
        late, waiting = self._batch, self._waiting
        self._batch, self._waiting = Batch(), []
        self._refused(late)
        _tell(waiting, FencedError())
        while self._writing is not None:
            await asyncio.sleep(0.001)

    async def close(self) -> None:
        """Write what is left, and stop."""
        try:
            await self.flush()
        finally:
            await self.abandon()

    async def abandon(self) -> None:
        """Stop, and write nothing more than what is being written: as a crash would have it."""
        self._closed = True
        self._batch, waiting, self._waiting = Batch(), self._waiting, []
        _tell(waiting, StoppingError())
        while self._writing is not None:
            await asyncio.sleep(0.001)
        self._handed = None
        self._work.release()
        self._thread.join()


def _tell(waiting: Iterable[asyncio.Future[None]], failure: StorageError | None) -> None:
    """Have those go on who wait."""
    for future in waiting:
        if not future.done():
            if failure is None:
                future.set_result(None)
            else:
                future.set_exception(failure)
