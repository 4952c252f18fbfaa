"""`LearnerEvents`: events of learners are stored, counted and reported to neighbours together, or not at all."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping

from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.learners.learner_cache import LearnerCache
from zoomrank.service.learners.limits import FeedbackDeadline, QueryQuota
from zoomrank.service.learners.query_learner import QueryLearner
from zoomrank.service.storage.events import MOVED, Event, Outcome, arm_of
from zoomrank.service.storage.ownership import Ownership
from zoomrank.service.storage.rows import Batch, arm_visit
from zoomrank.service.storage.store import Store
from zoomrank.service.write_queue import WriteQueue


class LearnerEvents:
    """The learners, their log, and outcome counts."""

    def __init__(
        self,
        store: Store,
        collections: Mapping[int, ServedCollection],
        budget: int,
        now: Callable[[], float],
        patience: FeedbackDeadline,
        newcomers: QueryQuota,
        ownership: Ownership,
    ) -> None:
        self.journal = WriteQueue(store, self._refused)
        self.learners = LearnerCache(store, self.journal, collections, budget, now, patience, newcomers, ownership)
        self.outcomes: dict[int, Counter[Outcome]] = defaultdict(Counter)  # of the impressions of each collection
        self.counted: dict[int, set[bytes]] = defaultdict(set)  # the visitors of each experiment that goes on
        self._ownership = ownership
        self._store = store
        self._renewals = store.database.renewals

    def start(self) -> None:
        """Read the counts from the store, and begin to write."""
        self._renewals = self._store.database.renewals
        self.outcomes = self._store.read.outcomes()
        self.journal.start()
        self.learners.start()

    def append(self, served: ServedCollection, learner: QueryLearner, event: Event) -> None:
        """Append an event of a learner, with its counts and reports."""
        self.write(served, event)
        for visit in learner.arm_visits:
            self.journal.count_in_arm(visit)
        learner.arm_visits.clear()
        if served.neighbours is not None and served.neighbours.is_due(learner.number, learner.answers):
            self.tell(served, learner)
        self.learners.noted(learner)

    def write(self, served: ServedCollection, event: Event) -> None:
        """Append an event and its count, nothing else."""
        self.journal.append(served.id, event)
        if event.outcome != MOVED:
            self.outcomes[served.id][event.outcome] += 1

    def move_to_newest(self, served: ServedCollection, learner: QueryLearner, time: float) -> None:
        """Move a learner to the newest version of its catalogue."""
        if learner.edition is not served.edition:
            self.append(served, learner, learner.move(served.edition, round(time, 3)))

    def discount(self, served: ServedCollection, event: Event, shown: Event) -> None:
        """Subtract an event of a voided impression from the counts."""
        self.journal.discount(served.id, event)
        self.outcomes[served.id][event.outcome] -= 1
        visit = arm_visit(arm_of(shown.shown or b""), shown.time, event.outcome)
        if visit is not None:
            self.journal.count_in_arm(visit, -1)

    async def drop(self, collection: int) -> None:
        """Delete all that was learned in a collection, or in an arm of an experiment, that is no longer served."""
        await self.release(collection)
        await asyncio.to_thread(self._store.hide_collection, collection)
        await self._ownership.wait_for_replicas()  # until then they may still read it
        await asyncio.to_thread(self._store.drop_collection, collection)

    async def release(self, collection: int) -> None:
        """Clear a collection from memory and from the write queue."""
        await self.learners.release(collection)
        await self.journal.written()
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
            report = served.neighbours.report(learner.number, learner.ranker.state, learner.answers, learner.edition)
            self.journal.add_report(report)

    def _refused(self, batch: Batch) -> None:
        """Roll back what could not be written."""
        for collection, counts in batch.outcomes.items():
            self.outcomes[collection].subtract(counts)
        self.learners.refused(batch)
        for experiment, visitor in batch.visitors:
            self.counted[experiment].discard(visitor)

    def recount(self) -> None:
        """Reload the counts after a lost connection, when it is unknown whether the last write succeeded."""
        if self._renewals != self._store.database.renewals and self.journal.is_idle:
            self._renewals = self._store.database.renewals
            self.outcomes = self._store.read.outcomes()
            for collection, counts in self.journal.unwritten.outcomes.items():
                self.outcomes[collection].update(counts)
            for experiment in self.counted:
                self.counted[experiment] = set(self._store.read.visitors(experiment))
            for experiment, visitor in self.journal.unwritten.visitors:
                self.counted[experiment].add(visitor)
            self.learners.recount()
