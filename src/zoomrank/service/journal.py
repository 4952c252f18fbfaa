"""`Journal`: many events in one durable write. Whoever appends waits until the write that holds the event is done.

Events are appended in the order in which learners noted them, by the one thread that owns the learners; another thread
writes whatever has gathered, and begins the next write when that is done. The busier the service, the more events share
one write. If a write fails, nothing that was appended since the last good one counts: all of it is refused, and the
owner is told to forget the learners that had noted it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from zoomrank.service.errors import StorageError
from zoomrank.service.store import Batch, Store

Refused = Callable[[Batch], None]


class Journal:
    """A queue, and the thread that empties it."""

    def __init__(self, store: Store, refused: Refused) -> None:
        self._store = store
        self._refused = refused
        self._loop = asyncio.get_running_loop()
        self._batch = Batch()
        self._waiting: list[asyncio.Future[None]] = []
        self._writing: Batch | None = None
        self._work = threading.Semaphore(0)
        self._handed: tuple[Batch, list[asyncio.Future[None]]] | None = None
        self._closing = False
        self.batches = self.failures = 0
        self._thread = threading.Thread(target=self._write_on, name="zoomrank-journal", daemon=True)
        self._thread.start()

    @property
    def batch(self) -> Batch:
        """What will be written next; add to it, then call `written`."""
        return self._batch

    def written(self) -> asyncio.Future[None]:
        """Done when all that is in the batch now is durable."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(future)
        self._hand_over()
        return future

    def _hand_over(self) -> None:
        if self._writing is None and self._waiting:
            self._writing, waiting = self._batch, self._waiting
            self._batch, self._waiting = Batch(), []
            self._handed = (self._writing, waiting)
            self._work.release()

    def _write_on(self) -> None:
        while True:
            self._work.acquire()
            if self._handed is None:
                return
            batch, waiting = self._handed
            failure: StorageError | None = None
            try:
                self._store.write(batch)
            except StorageError as error:
                failure = error
            except Exception as error:  # noqa: BLE001  (whatever it is, nobody may wait for ever)
                failure = StorageError(f"Nothing was written down: {error!r}.")
            try:
                self._loop.call_soon_threadsafe(self._finish, batch, waiting, failure)
            except RuntimeError:  # the loop was closed: nobody waits any more
                return

    def _finish(self, batch: Batch, waiting: list[asyncio.Future[None]], failure: StorageError | None) -> None:
        self._writing = None
        self.batches += 1
        if failure is not None:
            self.failures += 1
            late, more = self._batch, self._waiting  # they build on what was lost
            self._batch, self._waiting = Batch(), []
            waiting = waiting + more
            self._refused(batch)
            self._refused(late)
        for future in waiting:
            if not future.done():
                if failure is None:
                    future.set_result(None)
                else:
                    future.set_exception(failure)
        self._hand_over()

    async def close(self) -> None:
        """Write what is left, and stop."""
        try:
            if self._batch:
                await self.written()
        finally:
            while self._writing is not None:
                await asyncio.sleep(0.001)
            self._handed = None
            self._work.release()
            self._thread.join()
