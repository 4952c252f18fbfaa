"""`WriteQueue`: write queue with group commit. A caller that appends an event waits until the write with it is durable.

The one thread that owns the learners appends events in the order in which they happen. Events of all requests in one
turn of the event loop share a write, so batches grow with the load. A small batch after a large one waits a moment for
more events, since a small write takes about as long. If a write fails, everything appended since the last successful
one is rejected, and the owner is told to drop the learners that had applied it.

On a quick disk the event loop waits for the write: handing it to another thread and back would take longer, since
Python runs one thread at a time. Where writes are slow (a slow disk, a remote server), another thread does them while
the loop continues.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable

from zoomrank.service.errors import FencedError, StoppingError, StorageError
from zoomrank.service.logs import RateLimitedLogger
from zoomrank.service.storage.events import Batch, Event, Snapshot
from zoomrank.service.storage.ownership import count_in, partition_in, with_partition
from zoomrank.service.storage.store import Store

_QUICK = 0.003  # seconds
_TRY_AGAIN = 100  # writes after which a slow store is tried on the loop again
_LARGE_BATCH = 16  # events of a write
_MOMENT = 0.001  # seconds

_log = logging.getLogger(__name__)

OnFailure = Callable[[Batch], None]


class WriteQueue:
    """A write queue and its thread."""

    def __init__(self, store: Store, refused: OnFailure) -> None:
        self._store = store
        self._refused = refused
        self._count = 0  # of the last event in the log
        self.batch = Batch()  # the next one that is written
        self._waiting: list[asyncio.Future[None]] = []
        self._writing: Batch | None = None
        self._since = 0.0  # when that write began
        self._work = threading.Semaphore(0)
        self._handed: tuple[Batch, list[asyncio.Future[None]], asyncio.AbstractEventLoop] | None = None
        self._seconds = 0.0  # recent duration of writes on the loop
        self._wrote = 0  # events in the last write
        self._held_back = False
        self._closed = False
        self.batches = self.failures = 0
        self._rate_limited = RateLimitedLogger(_log)
        self._thread = threading.Thread(target=self._write_on, name="zoomrank-write-queue", daemon=True)

    def start(self) -> None:
        """Begin to write, after the last event in the log."""
        self.continue_after(self._store.read.last_place())
        self._thread.start()

    @property
    def is_idle(self) -> bool:
        """True if no write is running, so the store has everything outside the batch."""
        return self._writing is None

    @property
    def seconds_writing(self) -> float:
        """Duration of the running write so far; events in it, and after it, have waited about as long."""
        return 0.0 if self._writing is None else time.monotonic() - self._since

    # Adding to the batch: its rows may also be added to directly. Call `wait_durable` or `flush` afterwards.

    def append(self, collection: int, event: Event) -> None:
        """Append an event to the log, and to its collection's counts."""
        self._count += 1
        self.batch.events.append((self._place(event.learner), event))
        self.batch.count(collection, event)

    def _place(self, learner: int) -> int:
        """Return the place in the log of the last event, in the partition of a learner."""
        return with_partition(self._count, partition_in(learner))

    def continue_after(self, place: int) -> None:
        """Continue after a place that another owner has used."""
        self._count = max(self._count, count_in(place))

    def add_snapshot(self, learner: int, version: int, first: int, waiting: int, counts: str, content: bytes) -> None:
        """Add a snapshot of a learner after all appended events; later ones refer to impressions from `first` on."""
        self.batch.snapshots.append(Snapshot(learner, version, self._place(learner), first, waiting, counts, content))

    # Waiting and writing.

    async def flush(self) -> None:
        """Wait until everything is durable."""
        if self.batch:
            await self.wait_durable()

    def wait_durable(self) -> asyncio.Future[None]:
        """Return a future that is done when the current batch is durable."""
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
            self._writing, waiting, self._since = self.batch, self._waiting, time.monotonic()
            self.batch, self._waiting = Batch(), []
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
        """Return whether to wait a moment, once, for a small batch to grow."""
        few = _LARGE_BATCH <= self._wrote > 2 * len(self.batch.events)
        self._held_back = few and not self._held_back
        if self._held_back:
            asyncio.get_running_loop().call_later(_MOMENT, self._hand_over)
        else:
            self._wrote = len(self.batch.events)
        return self._held_back

    def _is_quick(self) -> bool:
        """Return whether the next write is likely to be quicker than handing it to the thread."""
        quick = self._seconds < _QUICK or self.batches % _TRY_AGAIN == 0
        return quick and self._store.database.nearby and not self._store.database.is_busy

    def _write(self, batch: Batch) -> StorageError | None:
        """Write a batch; return the error if it fails."""
        try:
            self._store.write(batch)
        except StorageError as error:
            return error
        except Exception as error:  # noqa: BLE001  (whatever it is, no caller may wait for ever)
            return StorageError(f"Nothing was written: {error!r}.")
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
            except RuntimeError:  # the loop was closed: no caller waits any more
                return

    def _finish(self, batch: Batch, waiting: list[asyncio.Future[None]], failure: StorageError | None) -> None:
        self._writing = None
        self.batches += 1
        if failure is not None:
            self.failures += 1
            self._rate_limited.say(failure)
            late, more = self.batch, self._waiting  # they build on lost events
            self.batch, self._waiting = Batch(), []
            waiting = waiting + more
            try:
                self._refused(batch)
                self._refused(late)
            finally:  # whatever happens, no caller may wait for ever
                _tell(waiting, failure)
        else:
            _tell(waiting, None)
        self._hand_over()

    async def discard(self) -> None:
        """Drop the batch that is not being written yet, and reject its waiting callers."""
        late, waiting = self.batch, self._waiting
        self.batch, self._waiting = Batch(), []
        self._refused(late)
        _tell(waiting, FencedError())
        while self._writing is not None:
            await asyncio.sleep(0.001)

    async def close(self) -> None:
        """Write the rest, and stop."""
        try:
            await self.flush()
        finally:
            await self.abandon()

    async def abandon(self) -> None:
        """Stop after the running write and drop the rest, as a crash would."""
        self._closed = True
        self.batch, waiting, self._waiting = Batch(), self._waiting, []
        _tell(waiting, StoppingError())
        while self._writing is not None:
            await asyncio.sleep(0.001)
        self._handed = None
        self._work.release()
        self._thread.join()


def _tell(waiting: Iterable[asyncio.Future[None]], failure: StorageError | None) -> None:
    """Resume the waiting callers."""
    for future in waiting:
        if not future.done():
            if failure is None:
                future.set_result(None)
            else:
                future.set_exception(failure)
