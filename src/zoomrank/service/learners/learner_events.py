"""`LearnerEvents` and `LearnerCache`: the log of the learners, and the learners in memory, in front of the store.

Events of a learner are stored, counted and reported to neighbours together, or not at all. A learner is restored on
demand from its newest snapshot and the events since. When memory runs short, the learners that were idle longest are
stored as snapshots and evicted.

A learner is in memory, or being loaded, or in the store alone, and while it is being loaded no other task loads or
creates it. So there are never two of the same, one of which would lose what the other learns.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from dataclasses import asdict
from itertools import islice
from typing import Any, NamedTuple

from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.errors import StorageError
from zoomrank.service.learners.limits import FeedbackDeadline, QueryQuota
from zoomrank.service.learners.query_learner import QueryLearner
from zoomrank.service.storage.events import MOVED, Batch, Event, Outcome, StoredLearner, arm_of, arm_visit
from zoomrank.service.storage.ownership import count_in, partition_in, partition_of, with_partition
from zoomrank.service.storage.store import EngineContext
from zoomrank.service.write_queue import WriteQueue

SNAPSHOT_EVERY = 4096  # events of a learner: bounds how much of the log is read to restore it
_MEASURE_EVERY = 64  # events after which a learner's size is measured again
_EVICT_AT_ONCE = 32
_FETCH_AT_ONCE = 256

_log = logging.getLogger(__name__)

Key = tuple[int, str]  # a collection and a query


class NewLearner(NamedTuple):
    """A learner that is created if there is none."""

    about: str | None = None  # where it belongs among the queries
    caller: bytes = b""
    admitted: bool = False  # not subject to the query quota


class LearnerCache:
    """A cache in front of the store."""

    def __init__(
        self,
        context: EngineContext,
        write_queue: WriteQueue,
        collections: Mapping[int, ServedCollection],
        budget: int,
        feedback_deadline: FeedbackDeadline,
    ) -> None:
        self.budget = budget  # bytes of learners in memory
        self.size = 0  # of them
        self.queries: dict[int, int] = {}  # of each collection, in memory or not
        self._store, self._now = context.store, context.now
        self._ownership = context.ownership  # learners of other partitions are never here
        self._write_queue = write_queue
        self._collections = collections
        self._feedback_deadline = feedback_deadline
        self._query_quota = QueryQuota(context.steady)
        self._here: OrderedDict[Key, QueryLearner] = OrderedDict()
        self._keys: dict[int, Key] = {}  # of learners in memory
        self._sizes: dict[int, int] = {}
        self._coming: dict[Key, asyncio.Task[bool]] = {}
        self._wanted: dict[Key, NewLearner] = {}  # of those, which are created if there is none
        # Learners not in memory with impressions that may wait for feedback, and since when.
        self._away: dict[Key, float] = {}
        self._last = 0

    def start(self) -> None:
        """Read from the store how many queries there are, and of which learners an impression may wait."""
        self.queries = self._store.read.count_queries()
        self.take(self._store.read.last("learners"), self._store.read.unfinished(self._ownership.partitions))

    def __len__(self) -> int:
        return len(self._here)

    def __iter__(self) -> Iterator[tuple[Key, QueryLearner]]:
        return iter(list(self._here.items()))

    def get(self, key: Key) -> QueryLearner | None:
        """Return the learner of a query, if it is in memory."""
        return self._here.get(key)

    async def key_of(self, number: int) -> Key | None:
        """Return the collection and the query of a learner."""
        return self._keys.get(number) or await asyncio.to_thread(self._store.read.query_of, number)

    async def find(self, served: ServedCollection, query: str, wanted: NewLearner | None = None) -> QueryLearner | None:
        """Return the learner of a query; a new one, if that is wanted and there is none.

        It is in memory when this returns, and stays there until the caller awaits something.
        """
        key = (served.id, query)
        partition = partition_of(served.home.id, query)
        while True:
            served.check_exists()
            self._ownership.check(partition)
            learner = self._here.get(key)
            if learner is not None:
                self._here.move_to_end(key)
                return learner
            if wanted is not None and (key not in self._wanted or self._wanted[key].about is None):
                self._wanted[key] = wanted
            if key not in self._coming:
                self._begin(key, self._bring(served, query))
            if not await asyncio.shield(self._coming[key]) and wanted is None:
                return None  # a wanted one may have been removed meanwhile, and is created after that

    def _begin(self, key: Key, work: Coroutine[Any, Any, bool]) -> asyncio.Task[bool]:
        """Begin work that returns whether a learner is in memory then; no other task touches the learner meanwhile."""

        async def and_end() -> bool:
            try:
                return await work
            finally:
                self._wanted.pop(key, None)
                del self._coming[key]  # in the same turn of the loop in which it is in memory

        self._coming[key] = asyncio.create_task(and_end())
        return self._coming[key]

    async def alone(self, key: Key, work: Callable[[], Coroutine[Any, Any, bool]]) -> None:
        """Run work on a learner that is evicted, and whose log is durable; requests for the learner wait meanwhile.

        The work returns whether the learner is in memory at the end (`keep`).
        """
        while key in self._coming:
            await asyncio.wait({self._coming[key]})
        self._ownership.check(self._partition(key))

        async def when_durable() -> bool:
            await self._write_queue.wait_durable()
            return await work()

        if key in self._here:
            self._drop(self._here[key], waits_since=0.0)
        await asyncio.shield(self._begin(key, when_durable()))

    async def _bring(self, served: ServedCollection, query: str) -> bool:
        """Restore a learner, or create a wanted one; return whether there is one."""
        key = (served.id, query)
        learner = await asyncio.to_thread(self._restored, served, query)
        if learner is None and key in self._wanted:
            learner = self._made(served, query, self._wanted[key])
        if learner is not None:
            self.keep(key, learner)
        return learner is not None

    def _restored(self, served: ServedCollection, query: str) -> QueryLearner | None:
        found = self._store.read.find(served.id, query)
        if found is None:
            return None
        learner = QueryLearner.restored(found.learner, served.versions, served.settings, found.version, found.content)
        learner.replay(event for _, event in self._store.read.events(found.learner, found.event, found.first))
        return learner

    def _made(self, served: ServedCollection, query: str, wanted: NewLearner) -> QueryLearner:
        caller = None if wanted.admitted else wanted.caller
        self._query_quota.admit(served, self.queries.get(served.id, 0), caller)
        self._last += 1
        number = with_partition(self._last, partition_of(served.home.id, query))
        if served.neighbours is not None:
            served.neighbours.join(number, query, wanted.about)
        version = served.version.number
        self._write_queue.batch.learners.append(
            StoredLearner(number, served.id, query, self._now(), wanted.about, version)
        )
        self.queries[served.id] = self.queries.get(served.id, 0) + 1
        return QueryLearner(number, served.versions, served.settings)

    def keep(self, key: Key, learner: QueryLearner) -> None:
        """Put a learner into memory."""
        self._here[key] = learner
        self._keys[learner.number] = key
        self._away.pop(key, None)
        self._measure(learner)

    def _measure(self, learner: QueryLearner) -> None:
        size = learner.size
        self.size += size - self._sizes.get(learner.number, 0)
        self._sizes[learner.number] = size

    def _drop(self, learner: QueryLearner, waits_since: float | None) -> None:
        key = self._keys.pop(learner.number)
        del self._here[key]
        self.size -= self._sizes.pop(learner.number)
        if waits_since is not None:
            self._away[key] = waits_since

    def noted(self, learner: QueryLearner) -> None:
        """Count an event of a learner: measure it, or store a snapshot, if that is due."""
        if learner.noted % _MEASURE_EVERY == 0:
            self._measure(learner)
        if learner.noted - learner.written >= SNAPSHOT_EVERY:
            self.write(learner)

    def write(self, learner: QueryLearner) -> None:
        """Store a snapshot of a learner, if the last one lacks events."""
        if learner.written >= learner.noted:
            return
        first = next(iter(learner.waiting), learner.ranker.made)
        counts = json.dumps(asdict(learner.counts))
        self._write_queue.add_snapshot(
            learner.number, learner.version.number, first, len(learner.waiting), counts, learner.snapshot()
        )
        self._list(learner)
        learner.written, learner.written_in = learner.noted, learner.version.number

    def _list(self, learner: QueryLearner) -> None:
        learner.listed = learner.counts.listed
        self._write_queue.batch.listed[learner.number] = learner.listed

    def list_all(self) -> None:
        """Store the counts by which lists of queries are sorted, for the queries in memory."""
        for learner in self._here.values():
            if learner.listed != learner.counts.listed:
                self._list(learner)

    def refused(self, batch: Batch) -> None:
        """Evict the learners of a failed batch: they are restored when they are needed."""
        for collection, count in batch.queries.items():
            self.queries[collection] = self.queries.get(collection, 0) - count
            served = self._collections.get(collection)
            if served is not None and served.neighbours is not None:
                served.neighbours.forget({made.id for made in batch.learners if made.collection == collection})
        for learner in self._numbered(made.id for made in batch.learners):
            self._drop(learner, waits_since=None)
        noted = {event.learner for _, event in batch.events} | {row.learner for row in batch.snapshots}
        for learner in self._numbered(noted):
            self._drop(learner, waits_since=0.0)
        for learner in self._numbered(batch.listed):
            learner.listed = None

    def _numbered(self, numbers: Iterable[int]) -> list[QueryLearner]:
        """Return those of some learners that are in memory."""
        return [self._here[self._keys[number]] for number in numbers if number in self._keys]

    def recount(self) -> None:
        """Read counts from the store while nothing is being written: a write that seemed to fail may have succeeded."""
        self.queries = self._store.read.count_queries()
        for collection, count in self._write_queue.batch.queries.items():
            self.queries[collection] = self.queries.get(collection, 0) + count
        self.take(0, self._store.read.unfinished(self._ownership.partitions))

    def _partition(self, key: Key) -> int:
        return partition_of(self._collections[key[0]].home.id, key[1])

    # Partitions are taken and released.

    def take(self, last: int, away: Mapping[Key, float]) -> None:
        """Continue after the last id that was issued, and with learners whose impressions may wait for feedback."""
        self._last = max(self._last, count_in(last))
        self._away |= {
            key: since for key, since in away.items() if key not in self._here and key[0] in self._collections
        }

    async def release_partitions(self, partitions: Collection[int], write: bool = True) -> None:
        """Evict all learners of released partitions, with snapshots unless another replica owns them by now."""
        gone = set(partitions)
        while coming := [task for key, task in self._coming.items() if self._partition(key) in gone]:
            await asyncio.wait(coming)
        leaving = [learner for _, learner in self if partition_in(learner.number) in gone]
        for start in range(0, len(leaving), _EVICT_AT_ONCE):
            some = [one for one in leaving[start : start + _EVICT_AT_ONCE] if one.number in self._keys]
            if write:
                for learner in some:
                    self.write(learner)
                await self._write_queue.wait_durable()
            for learner in some:
                if learner.number in self._keys:
                    self._drop(learner, waits_since=None)
        self._away = {
            key: since
            for key, since in self._away.items()
            if key[0] in self._collections and self._partition(key) not in gone
        }

    async def fetch_overdue(self) -> None:
        """Restore some learners with impressions past the feedback deadline; they are the first to be evicted."""
        began = self._feedback_deadline.began
        self._away = {key: since for key, since in self._away.items() if key[0] in self._collections}
        overdue = (
            key
            for key, since in self._away.items()
            if since < began(self._collections[key[0]].settings.feedback_within)
        )
        for key in list(islice(overdue, _FETCH_AT_ONCE)):
            try:
                if await self.find(self._collections[key[0]], key[1]) is not None:
                    self._here.move_to_end(key, last=False)
                    continue
            except StorageError:
                raise
            except Exception:  # noqa: BLE001  (a damaged snapshot: its requests fail, others go on)
                _log.exception("The learner of %r in collection %d cannot be restored.", key[1], key[0])
            self._away.pop(key, None)

    def removed(self, key: Key, number: int) -> None:
        """Forget a learner that is neither in memory nor in the store any more."""
        served = self._collections[key[0]]
        self._away.pop(key, None)
        self.queries[served.id] = self.queries.get(served.id, 0) - 1
        if served.neighbours is not None:
            served.neighbours.forget({number})

    async def release(self, collection: int) -> None:
        """Evict all learners of a collection that is being removed, once none is being loaded."""
        while coming := [task for key, task in self._coming.items() if key[0] == collection]:
            await asyncio.wait(coming)
        for learner in [learner for key, learner in self._here.items() if key[0] == collection]:
            self._drop(learner, waits_since=None)
        for key in [key for key in self._away if key[0] == collection]:
            del self._away[key]
        self.queries.pop(collection, None)

    async def make_room(self) -> None:
        """Store snapshots of the learners that were idle longest, and evict those that stay idle meanwhile."""
        candidates = list(self._here.values())[:-1]  # each once; the busiest stays
        for start in range(0, len(candidates), _EVICT_AT_ONCE):
            if self.size <= self.budget:
                break
            oldest = [one for one in candidates[start : start + _EVICT_AT_ONCE] if one.number in self._keys]
            for learner in oldest:
                self.write(learner)
            known = [learner.noted for learner in oldest]
            await self._write_queue.wait_durable()
            for learner, noted in zip(oldest, known, strict=True):
                is_idle = learner.noted == noted and learner.number in self._keys
                if is_idle and self.size > self.budget:
                    since = next(iter(learner.waiting.values()))[0] if learner.waiting else None
                    self._drop(learner, since)

    async def write_all(self) -> None:
        """Store snapshots of all learners."""
        for _, learner in self:
            self.write(learner)
            if len(self._write_queue.batch.snapshots) >= _EVICT_AT_ONCE:
                await self._write_queue.wait_durable()


class LearnerEvents:
    """The learners, their log, and outcome counts."""

    def __init__(
        self,
        context: EngineContext,
        collections: Mapping[int, ServedCollection],
        budget: int,
        feedback_deadline: FeedbackDeadline,
    ) -> None:
        self._store, self._ownership = context.store, context.ownership
        self.write_queue = WriteQueue(self._store, self._refused)
        self.learners = LearnerCache(context, self.write_queue, collections, budget, feedback_deadline)
        self.outcomes: dict[int, Counter[Outcome]] = defaultdict(Counter)  # of the impressions of each collection
        self.counted: dict[int, set[bytes]] = defaultdict(set)  # the visitors of each experiment that goes on
        self._renewals = self._store.database.renewals

    def start(self) -> None:
        """Read the counts from the store, and begin to write."""
        self._renewals = self._store.database.renewals
        self.outcomes = self._store.read.outcomes()
        self.write_queue.start()
        self.learners.start()

    def append(self, served: ServedCollection, learner: QueryLearner, event: Event) -> None:
        """Append an event of a learner, with its counts and reports."""
        self.write(served, event)
        self.write_queue.batch.arm_visits.update(learner.arm_visits)
        learner.arm_visits.clear()
        if served.neighbours is not None and served.neighbours.is_due(learner.number, learner.answers):
            self.tell(served, learner)
        self.learners.noted(learner)

    def write(self, served: ServedCollection, event: Event) -> None:
        """Append an event and its count, nothing else."""
        self.write_queue.append(served.id, event)
        if event.outcome != MOVED:
            self.outcomes[served.id][event.outcome] += 1

    def move_to_newest(self, served: ServedCollection, learner: QueryLearner, time: float) -> None:
        """Move a learner to the newest version of its catalogue."""
        if learner.version is not served.version:
            self.append(served, learner, learner.move(served.version, round(time, 3)))

    def discount(self, served: ServedCollection, event: Event, shown: Event) -> None:
        """Subtract an event of a voided impression from the counts."""
        self.write_queue.batch.count(served.id, event, -1)
        self.outcomes[served.id][event.outcome] -= 1
        visit = arm_visit(arm_of(shown.shown or b""), shown.time, event.outcome)
        if visit is not None:
            self.write_queue.batch.arm_visits[visit] -= 1

    async def drop(self, collection: int) -> None:
        """Delete all that was learned in a collection, or in an arm of an experiment, that is no longer served."""
        await self.release(collection)
        await asyncio.to_thread(self._store.hide_collection, collection)
        await self._ownership.wait_for_replicas()  # until then they may still read it
        await asyncio.to_thread(self._store.drop_collection, collection)

    async def release(self, collection: int) -> None:
        """Clear a collection from memory and from the write queue."""
        await self.learners.release(collection)
        await self.write_queue.wait_durable()
        self.outcomes.pop(collection, None)

    async def look_again(self) -> None:
        """Reload counts that other replicas have changed in the shared store."""
        before = self._sums()
        outcomes = await asyncio.to_thread(self._store.read.outcomes)
        queries = await asyncio.to_thread(self._store.read.count_queries)
        for collection, counts in self._sums().items():  # the store may or may not have counts that arrived meanwhile
            outcomes[collection].update(counts - before.get(collection, Counter()))
        self.outcomes, self.learners.queries = outcomes, queries

    def _sums(self) -> dict[int, Counter[Outcome]]:
        return {collection: Counter(counts) for collection, counts in self.outcomes.items()}

    def tell(self, served: ServedCollection, learner: QueryLearner) -> None:
        """Report to neighbours what a learner has seen."""
        if served.neighbours is not None:
            report = served.neighbours.report(learner.number, learner.ranker.state, learner.answers, learner.version)
            self.write_queue.batch.reports[report.learner] = report

    def _refused(self, batch: Batch) -> None:
        """Roll back what could not be written."""
        for collection, counts in batch.outcomes.items():
            self.outcomes[collection].subtract(counts)
        self.learners.refused(batch)
        for experiment, visitor in batch.visitors:
            self.counted[experiment].discard(visitor)

    def recount(self) -> None:
        """Reload the counts after a lost connection, when it is unknown whether the last write succeeded."""
        if self._renewals != self._store.database.renewals and self.write_queue.is_idle:
            self._renewals = self._store.database.renewals
            self.outcomes = self._store.read.outcomes()
            for collection, counts in self.write_queue.batch.outcomes.items():
                self.outcomes[collection].update(counts)
            for experiment in self.counted:
                self.counted[experiment] = set(self._store.read.visitors(experiment))
            for experiment, visitor in self.write_queue.batch.visitors:
                self.counted[experiment].add(visitor)
            self.learners.recount()
