"""`ReplicaSync`: what one replica reads of the work of others, and what it does to take or give up partitions.

The coordinator makes collections, versions of them and experiments; all other replicas read those from the store. No
replica takes a partition before it has read them.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Collection
from typing import NamedTuple

from zoomrank.cluster.ownership import OwnsByLeases
from zoomrank.service.catalogue.registry import homes_first
from zoomrank.service.catalogue_updates import serve_revision
from zoomrank.service.engine import Engine
from zoomrank.service.errors import StorageError
from zoomrank.service.storage.events import Event, StoredExperiment
from zoomrank.service.storage.ownership import COORDINATOR, partition_in
from zoomrank.service.storage.store_reader import StoredCollection

_REPORTS_EVERY = 15.0  # seconds between two looks at reports of similar queries of other replicas


class _Kept(NamedTuple):
    """Collections and experiments in the store."""

    collections: list[StoredCollection]
    versions: dict[int, int]  # the number of the newest, of each
    experiments: list[StoredExperiment]


class _Taken(NamedTuple):
    """State of newly taken partitions in the store."""

    event: int  # the last in the log
    learner: int  # the last number
    waiting: dict[tuple[int, str], float]  # learners of which an impression may wait
    recent: list[Event]


class ReplicaSync:
    """Keeps the engine of one replica in step with the store."""

    def __init__(self, engine: Engine, ownership: OwnsByLeases) -> None:
        self._engine = engine
        self._store = engine.store
        self._ownership = ownership
        self._one_at_a_time = asyncio.Lock()
        self._known: _Kept | None = None
        self._tidying: asyncio.Task[None] | None = None
        self._read_reports_at = time.monotonic()
        self._counted, self._took = 0.0, 0.0  # when counts were last read, and how long that took

    # Changes of collections and experiments.

    async def catch_up(self) -> None:
        """Apply changes made by other replicas."""
        async with self._one_at_a_time:
            made_here = COORDINATOR in self._ownership.partitions  # then this replica has made all changes
            kept = None if made_here else await asyncio.to_thread(self._read)
            if kept is None or kept == self._known:
                return
            await self._forget(kept)
            await self._add(kept)
            await self._update(kept)
            self._engine.collections.promote_all(kept.collections)
            self._engine.experiments.reload(kept.experiments)
            self._known = kept

    def _read(self) -> _Kept:
        read = self._store.read
        return _Kept(read.collections(), read.newest_versions(), read.experiments())

    async def _forget(self, kept: _Kept) -> None:
        collections = self._engine.collections
        there = {stored.id for stored in kept.collections}
        gone = [served for served in collections.by_id.values() if served.id not in there]
        for served in gone:
            served.removed = True
        for served in gone:
            await self._engine.learner_events.release(served.id)
            if served.home is served:
                collections.forget(served.id)
            else:
                collections.forget_arm(served)

    async def _add(self, kept: _Kept) -> None:
        collections = self._engine.collections
        for stored in homes_first(kept.collections):
            if stored.id not in collections.by_id:
                collections.register(await asyncio.to_thread(collections.restore_collection, stored))

    async def _update(self, kept: _Kept) -> None:
        for served in list(self._engine.collections.by_id.values()):
            newest = kept.versions.get(served.id, 0)
            if served.home is served and newest > served.version.revision:
                revision = await asyncio.to_thread(served.versions.newer)
                if revision is not None:
                    await serve_revision(served, revision)

    # Partitions.

    async def take(self, partitions: Collection[int]) -> None:
        """Own partitions that this replica has just got leases on."""
        engine = self._engine
        await self.catch_up()
        found = await asyncio.to_thread(self._read_partitions, partitions)
        engine.write_queue.continue_after(found.event)
        engine.learners.take(found.learner, found.waiting)
        engine.idempotency_keys.take(found.recent)
        engine.feedback_deadline.renew()  # feedback could not be reported meanwhile
        if COORDINATOR in partitions:
            await asyncio.to_thread(self._store.drop_unfinished_files)
            engine.collections.continue_after(await asyncio.to_thread(self._store.read.last, "collections"))
            engine.experiments.continue_after(await asyncio.to_thread(self._store.read.last, "experiments"))
        self._ownership.add(partitions)
        if COORDINATOR in partitions:  # no request has to wait for that
            self._tidying = asyncio.create_task(self._tidy())

    def _read_partitions(self, partitions: Collection[int]) -> _Taken:
        read = self._store.read
        return _Taken(
            read.last_place(),
            read.last("learners"),
            read.unfinished(partitions),
            self._engine.idempotency_keys.recent(partitions),
        )

    async def _tidy(self) -> None:
        """Finish removals that another coordinator began."""
        with contextlib.suppress(StorageError):  # the next coordinator goes on
            await self._ownership.wait_for_replicas()
            await asyncio.to_thread(self._store.drop_left_over)
            await self._engine.experiments.tidy()

    async def release_partitions(self, partitions: Collection[int], write: bool = True) -> None:
        """Own some partitions no more; everything about them is durable then, or (without `write`) they belong to other
        replicas by now.
        """
        engine = self._engine
        self._ownership.remove(partitions)
        if not write:
            await engine.write_queue.discard()  # or it might be taken for a write of their next owner
        await engine.learners.release_partitions(partitions, write)
        if write:
            await engine.write_queue.wait_durable()

    # Counts and reports of other replicas.

    async def refresh_counts(self) -> None:
        """Read the sums of what all replicas have counted; no more often than that is cheap."""
        began = time.monotonic()
        if began - self._counted < max(0.2, 20 * self._took):
            return
        self._counted = began
        await self._engine.learner_events.look_again()
        self._took = time.monotonic() - began

    async def read_reports(self) -> None:
        """Read the reports of similar queries of other replicas, from time to time."""
        if time.monotonic() - self._read_reports_at < _REPORTS_EVERY:
            return
        for served in list(self._engine.collections.by_id.values()):
            if served.neighbours is not None:
                known = served.neighbours.told
                learners, reports = await asyncio.to_thread(self._store.read.news, served.id, known)
                others = (one for one in reports if partition_in(one.learner) not in self._ownership)
                served.neighbours.hear(learners, others)
        self._read_reports_at = time.monotonic()

    def follow_log(self, last: int) -> None:
        """Continue after the last place in the log of all replicas, so that places nearly follow time."""
        self._engine.write_queue.continue_after(last)
