"""`Housekeeper`: background work of every second: overdue impressions end, unused data is dropped.

It first checks that the store is reachable, since no click can be reported without it: no impression times out before
that is known (see `limits`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping

from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.errors import StorageError
from zoomrank.service.learners.learner_events import Key, LearnerEvents
from zoomrank.service.learners.limits import FeedbackDeadline
from zoomrank.service.learners.retention import Retention
from zoomrank.service.learners.void import VoidService
from zoomrank.service.storage.events import TIMED_OUT, UNSEEN
from zoomrank.service.storage.ownership import partition_of
from zoomrank.service.storage.store import EngineContext

SWEEP_EVERY = 1.0  # seconds
PROBE_EVERY = 10.0  # seconds, if nothing else is written
REMOVE_EVERY = 60.0
_ASLEEP = 30.0  # seconds; far longer than two steps here are apart unless the process was stopped
_CLOSE_AT_ONCE = 256  # impressions
_MOVE_AT_ONCE, _MOVE_IN_ALL = 4, 64  # learners; each takes some milliseconds
_REMOVE_AT_ONCE = 256  # queries

_log = logging.getLogger(__name__)


class Housekeeper:
    """Background task."""

    def __init__(
        self,
        context: EngineContext,
        learner_events: LearnerEvents,
        void_service: VoidService,
        collections: Mapping[int, ServedCollection],
        feedback_deadline: FeedbackDeadline,
    ) -> None:
        self._store, self._ownership, self._now, self._steady = context
        self._learner_events = learner_events
        self._collections = collections
        self._feedback_deadline = feedback_deadline
        self._void_service = void_service
        self._retention = Retention(context, collections, void_service.busy)
        self._writes = 0  # successful writes at the last probe
        self._probed = self._removed = self._steady()
        self._awake = time.monotonic()  # not `now`, which may be a test's clock

    def start(self) -> None:
        """Begin to count time: nothing is due for what happened before."""
        self._probed = self._removed = self._steady()
        self._awake = time.monotonic()

    async def run(self) -> None:
        """Sweep for ever."""
        while True:
            await asyncio.sleep(SWEEP_EVERY)
            try:
                with contextlib.suppress(StorageError):  # retried next time
                    await self.housekeep()
                await asyncio.to_thread(self._store.database.tidy)
            except Exception:  # noqa: BLE001  (the next time must come whatever happens)
                _log.exception("Housekeeping failed.")

    def _detect_sleep(self) -> None:
        """Restart the feedback deadlines if the process or the machine was stopped."""
        now = time.monotonic()
        if now - self._awake > _ASLEEP:
            self._feedback_deadline.renew()
        self._awake = now

    async def housekeep(self) -> None:
        """Close overdue impressions, and free memory and space."""
        self._detect_sleep()
        await self._probe_store()
        self._learner_events.recount()
        await self._learner_events.learners.fetch_overdue()
        await self._close_all_overdue()
        await self._move_some()
        self._learner_events.learners.list_all()
        await self._learner_events.write_queue.flush()
        await self._learner_events.learners.make_room()
        await self._remove_asked_once()
        await self._retention.turn()

    async def _probe_store(self) -> None:
        """Probe the store; if it was unreachable, restart the feedback deadlines."""
        writes = self._learner_events.write_queue.batches - self._learner_events.write_queue.failures
        idle = self._steady() - self._probed >= PROBE_EVERY and writes == self._writes
        if self._store.database.away or idle:
            away = self._store.database.away
            await asyncio.to_thread(self._store.probe)
            if away:
                self._feedback_deadline.renew()
        if idle or writes != self._writes:
            self._writes, self._probed = writes, self._steady()

    async def _close_all_overdue(self) -> None:
        closed = 0
        for key, _ in self._learner_events.learners:
            while count := self._close_overdue(key):
                closed += count
                if closed >= _CLOSE_AT_ONCE:  # let requests run in between
                    await self._learner_events.write_queue.wait_durable()
                    closed = 0

    def _close_overdue(self, key: Key) -> int:
        """Close some impressions of a learner that are past their deadline; return how many."""
        self._detect_sleep()
        learner = self._learner_events.learners.get(key)
        if learner is None or self._store.database.away:
            return 0
        now, served = self._now(), self._collections[key[0]]
        left = served.settings.no_feedback == "abandoned"
        overdue = learner.overdue(self._feedback_deadline.began(served.settings.feedback_within), now)[:_CLOSE_AT_ONCE]
        for number in overdue:
            outcome = TIMED_OUT if left or learner.was_seen(number) else UNSEEN
            self._learner_events.append(served, learner, learner.close(number, outcome, now))
        return len(overdue)

    async def _move_some(self) -> None:
        """Move some learners in memory to the newest catalogue version and store them there, so that older versions can
        be dropped.
        """
        moved = 0
        for key, learner in self._learner_events.learners:
            served = self._collections.get(key[0])
            if served is None or self._learner_events.learners.get(key) is not learner:
                continue
            if learner.written_in == served.version.number:
                continue
            self._learner_events.move_to_newest(served, learner, self._now())
            self._learner_events.learners.write(learner)
            moved += 1
            if moved == _MOVE_IN_ALL:
                break
            if moved % _MOVE_AT_ONCE == 0:  # let requests run in between
                await self._learner_events.write_queue.wait_durable()

    async def _remove_asked_once(self) -> None:
        """Remove some queries that were asked only once, long ago."""
        if self._steady() - self._removed < REMOVE_EVERY:
            return
        self._removed = self._steady()
        for served in list(self._collections.values()):
            settings = served.settings
            before = self._now() - max(settings.asked_again_within, settings.feedback_within)
            once = await asyncio.to_thread(self._store.read.asked_once, served.id, before, _REMOVE_AT_ONCE)
            for query in once:
                if partition_of(served.home.id, query) in self._ownership:  # otherwise its owner removes it
                    await self._void_service.remove(served, query, most=1)  # it may be asked again just now
