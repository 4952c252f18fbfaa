"""`Engine`: the service without HTTP. One thread owns all learners; every response waits until it is durable."""

from __future__ import annotations

import asyncio
import contextlib
import time as clock
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from zoomrank.errors import ZoomrankError
from zoomrank.queries.loans import GrantedLoan
from zoomrank.rankers.ranking import RankingArrays
from zoomrank.service.catalogue.registry import CollectionRegistry
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.catalogue.served_version import ServedVersion
from zoomrank.service.catalogue.settings import Settings
from zoomrank.service.catalogue_updates import CatalogueUpdates
from zoomrank.service.click_import import LogImporter
from zoomrank.service.errors import ExpiredError, NotFoundError, StorageError, UnprocessableError, VoidedError
from zoomrank.service.experiments import Assignment, ExperimentRegistry
from zoomrank.service.feedback import ImpressionFeedback, acts_of_notes, acts_of_outcome, notes_after_end
from zoomrank.service.idempotency import IdempotencyKeys, request_digest
from zoomrank.service.learners.housekeeping import Housekeeper
from zoomrank.service.learners.learner_events import LearnerEvents, NewLearner
from zoomrank.service.learners.limits import FeedbackDeadline
from zoomrank.service.learners.query_learner import QueryLearner
from zoomrank.service.learners.void import ImpressionFilter, VoidService
from zoomrank.service.rank_options import DEFAULTS, Caller, RankOptions, ResolvedOptions
from zoomrank.service.storage.events import (
    TIMED_OUT,
    UNSEEN,
    VOIDED,
    WAITING,
    Event,
    EventTags,
    ImpressionSigner,
    Outcome,
    is_note,
    known_propensities,
    unpack,
)
from zoomrank.service.storage.ownership import Ownership, OwnsEverything, partition_in, partition_of
from zoomrank.service.storage.store import EngineContext, Store
from zoomrank.spaces import DocumentId
from zoomrank.types import Array

NO_LEARNER = 0  # the number of a learner that no query has, and so no neighbours


class _NothingToShow(Exception):  # noqa: N818  (nothing is wrong)
    """No document may be shown, and the options allow that."""


class Engine:
    """Collections, learners and their log."""

    def __init__(
        self,
        store: Store,
        folder: Path,
        budget: int = 2**30,
        now: Callable[[], float] = clock.time,
        steady: Callable[[], float] | None = None,
        ownership: Ownership | None = None,
    ) -> None:
        steady = steady or now  # a clock that cannot be set
        self.store = store
        self.ownership = ownership = ownership or OwnsEverything()
        self.now = now
        self.ready = False
        self.signer = ImpressionSigner(store.read.about("secret"))
        self.feedback_deadline = FeedbackDeadline(now, steady)
        context = EngineContext(store, ownership, now, steady)
        self.collections = CollectionRegistry(context, folder)
        by_id, deadline = self.collections.by_id, self.feedback_deadline
        self.learner_events = events = LearnerEvents(context, by_id, budget, deadline)
        self.write_queue, self.learners = events.write_queue, events.learners
        self.idempotency_keys = IdempotencyKeys(context)
        self.importer = LogImporter(store, events)
        self.void_service = VoidService(context, events)
        self.experiments = ExperimentRegistry(context, self.collections, events)
        self.updates = CatalogueUpdates(context, self.collections, self.experiments, events)
        self.housekeeper = Housekeeper(context, events, self.void_service, by_id, deadline)
        self._housekeeping: asyncio.Task[None] | None = None
        self._one_at_a_time: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # later answers to each

    async def start(self, housekeeping: bool = True) -> None:
        """Read the store. Learners are read when they are needed. Without `housekeeping` the caller has to call
        `housekeep` from time to time.
        """
        self.collections.start()
        self.feedback_deadline.renew()
        self.learner_events.start()
        self.idempotency_keys.start()
        self.experiments.start()
        if self.ownership.is_coordinator:
            await self.experiments.tidy()
        self.housekeeper.start()
        if housekeeping:
            self._housekeeping = asyncio.create_task(self.housekeeper.run())
        self.ready = True

    async def stop(self) -> None:
        """Write every learner down, so that the next start is quick."""
        self.ready = False
        self._stop_housekeeping()
        self.collections.stop()
        await self.importer.stop()
        if self._housekeeping is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._housekeeping
        try:
            with contextlib.suppress(StorageError):  # the log has everything anyway
                await self.learners.write_all()
            with contextlib.suppress(StorageError):
                await self.write_queue.close()
        finally:
            self.store.close()

    async def abandon(self) -> None:
        """End as a crash does: nothing more is written. For tests of crashes."""
        self.ready = False
        self._stop_housekeeping()
        self.collections.stop()
        await self.write_queue.abandon()
        self.store.close()

    def _stop_housekeeping(self) -> None:
        if self._housekeeping is not None:
            self._housekeeping.cancel()

    # Ranking and learning.

    async def rank(
        self,
        served: ServedCollection,
        query: str,
        options: RankOptions = DEFAULTS,
        caller: Caller = Caller(),  # noqa: B008  (a tuple)
    ) -> tuple[str, list[dict[str, Any]]]:
        """Choose a ranking for a visitor; returns the name of the impression and the documents.

        The query is as `ServedCollection.query` returns it. If no document may be shown and the options allow that,
        there is no impression, and its name is empty. A caller that repeats a request under the same idempotency key
        gets the same impression again.
        """
        most = served.settings.slots
        if options.slots is not None and options.slots > most:
            raise UnprocessableError(f"{options.slots} slots are more than this collection has ({most}).")
        described: list[dict[str, Any]] | None = None
        request = None
        if caller.idempotency_key is not None:
            request = request_digest(served.id, caller, options.fingerprint(query))

        async def show() -> Event:
            nonlocal described
            self.ownership.check(partition_of(served.home.id, query))  # before the visitor counts
            met = await self.experiments.assign(served, options.visitor, options.order is not None)
            event, described = await self._show(met, query, options, request, caller)
            return event

        try:
            found = await (show() if request is None else self.idempotency_keys.once(request, show))
        except _NothingToShow:
            return "", []
        name = self.signer.name(found.learner, found.number, found.time)
        if described is None:
            described = served.version.describe_numbered(await self._shown(found.learner, found.number))
        return name, described

    async def _show(
        self, met: Assignment, query: str, options: RankOptions, request: bytes | None, caller: Caller
    ) -> tuple[Event, list[dict[str, Any]]]:
        """Make an impression; returns its event, which is durable, and the documents."""
        served = met.served
        new = NewLearner(served.about(options.about), caller.digest or b"")
        if met.mark is not None and not served.bandit.counts_visits:
            options = options.without_order()  # only learners of other arms can begin with it
        version = served.version
        resolved = _resolved(options, version, served.settings)  # before a learner is made in vain
        learner = await self.learners.find(served, query, new)
        assert learner is not None  # noqa: S101
        if version is not served.version:  # documents were changed meanwhile
            version = served.version
            resolved = _resolved(options, version, served.settings)
        if self.experiments.has_counted(met):
            met = Assignment(served)
        time = round(self.now(), 3)
        self.learner_events.move_to_newest(served, learner, time)
        loan = self.next_loan(served, learner)
        tags = EventTags(request, caller.digest, met.mark)
        try:
            event, ranking = learner.show(
                time, resolved.slots, resolved.allowed, loan, tags, resolved.order, resolved.is_exact
            )
        except ZoomrankError as error:
            raise UnprocessableError(str(error)) from error
        self.learner_events.append(served, learner, event)
        self.experiments.count(met)
        await self.write_queue.wait_durable()
        return event, version.describe(ranking.shown[0])

    def next_loan(self, served: ServedCollection, learner: QueryLearner) -> GrantedLoan | None:
        """Return the reports that a learner borrows before its next ranking, if it exchanges any; changes nothing."""
        if served.neighbours is None or learner.answers < learner.meets or learner.number == NO_LEARNER:
            return None
        return served.neighbours.grant(learner.number)

    async def feedback(self, name: str, clicked: DocumentId | None) -> str:
        """Learn that a document of an impression was clicked, or that none was: the simplest feedback."""
        return await self.record_feedback(name, ImpressionFeedback.of_click(clicked))

    async def record_feedback(self, name: str, answer: ImpressionFeedback) -> str:
        """Learn the feedback on an impression; returns "learned", or "noted" until more is known, or
        "repeated".
        """
        served, learner, number = await self._impression(name)
        before = learner.outcome_of(number)
        if before != WAITING:
            return await self._record_later(name, answer, before)
        ranking = learner.shown_at(number)
        acts = answer.acts(served.version.ids(ranking.shown[0]))
        events = learner.answer(number, acts, answer.left, self.now(), ranking)
        for event in events:
            self.learner_events.append(served, learner, event)
        await self.write_queue.wait_durable()
        if not events:
            return "repeated"
        return "noted" if is_note(events[-1].outcome) else "learned"

    async def seen(self, name: str) -> str:
        """Note that an impression was on the visitor's screen; returns "noted" or "repeated"."""
        served, learner, number = await self._impression(name)
        outcome = learner.outcome_of(number)
        _check_open(outcome)
        if outcome != WAITING or number in learner.seen:  # feedback implies that it was seen
            await self.write_queue.wait_durable()
            return "repeated"
        self.learner_events.append(served, learner, learner.confirm(number, self.now()))
        await self.write_queue.wait_durable()
        return "noted"

    async def _impression(self, name: str) -> tuple[ServedCollection, QueryLearner, int]:
        """Return the collection, learner and number of an impression that still takes feedback."""
        impression = self.signer.read(name)
        key = await self.learners.key_of(impression.learner)
        served = self.collections.by_id.get(key[0]) if key is not None else None
        learner = await self.learners.find(served, key[1]) if served is not None and key is not None else None
        if served is None or served.removed or learner is None or impression.number >= learner.ranker.made:
            raise NotFoundError("This impression is not known here: it was never written down.")
        within = served.settings.feedback_within
        if impression.time < self.feedback_deadline.began(within) and not self.store.database.away:
            raise ExpiredError(f"This impression has expired: feedback is taken for {within:g} seconds.")
        return served, learner, impression.number

    async def _record_later(self, name: str, answer: ImpressionFeedback, before: Outcome) -> str:
        """Take feedback on an impression that has had some: it may be repeated, or add what teaches nothing more."""
        _check_open(before)
        async with self._one_at_a_time.setdefault(name, asyncio.Lock()):
            # The first may still be on its way to the disk, and may not get there.
            await self.write_queue.wait_durable()
            impression = self.signer.read(name)
            lines = await asyncio.to_thread(self.store.read.impression, impression.learner, impression.number)
            served, learner, number = await self._impression(name)
            outcome = learner.outcome_of(number)
            if outcome == before:  # else it is void by now, or its end got lost
                shown, by = served.version.ids(_ranking_in(lines).shown[0]), served.settings.satisfied_by
                known = acts_of_notes([line.outcome for line in lines if is_note(line.outcome)])
                known = known.and_(acts_of_outcome(before, by))
                notes = notes_after_end(known, answer.acts(shown), answer.left, before, len(shown), by)
                for note in notes:
                    self.learner_events.append(served, learner, learner.remember(number, note, self.now()))
                await self.write_queue.wait_durable()
                return "noted" if notes else "repeated"
        return await self.record_feedback(name, answer)

    async def propensities(self, name: str) -> list[float | None]:
        """Return the probability of each document of an impression in its slot, given those above; None if unknown."""
        _, learner, number = await self._impression(name)
        if number in learner.waiting:
            return known_propensities(learner.shown_at(number))
        return known_propensities(
            _ranking_in(await asyncio.to_thread(self.store.read.impression, learner.number, number))
        )

    async def _shown(self, learner: int, number: int) -> Array:
        """Return the numbers of the documents of an impression in the log."""
        lines = await asyncio.to_thread(self.store.read.impression, learner, number)
        if not lines and await asyncio.to_thread(self.store.read.has_base, learner):  # it was long ago
            raise ExpiredError("This impression has expired.")
        numbers: Array = _ranking_in(lines).shown[0]
        return numbers

    async def void(self, served: ServedCollection, span: ImpressionFilter, dry_run: bool = False) -> tuple[int, int]:
        """Void impressions, as if they had never been; returns how many, and of how many queries."""
        impressions, queries = 0, set()
        for one in self.collections.resolve_name(served):
            found = await self.void_service.find(one, span)
            for learner, numbers in found.items():
                if partition_in(learner) not in self.ownership:  # its owner does that
                    continue
                key = await self.learners.key_of(learner)
                queries.add(learner if key is None else key[1])
                impressions += len(numbers)
                if not dry_run:
                    await self.void_service.void(one, learner, numbers)
        return impressions, len(queries)

    async def remove_query(self, served: ServedCollection, query: str) -> None:
        """Remove a query with its learners."""
        removed = [await self.void_service.remove(one, query) for one in self.collections.resolve_name(served)]
        if not any(removed):
            raise NotFoundError(f"Nobody has asked “{query}” in “{served.name}” yet.")

    async def known(self, served: ServedCollection, query: str) -> QueryLearner:
        """Return the learner of a query that was asked before."""
        learner = await self.learners.find(served, query)
        if learner is None:
            raise NotFoundError(f"Nobody has asked “{query}” in “{served.name}” yet.")
        return learner

    @property
    def outcomes(self) -> dict[int, Counter[Outcome]]:
        """Outcome counts per collection."""
        return self.learner_events.outcomes

    def outcomes_of(self, served: ServedCollection) -> Counter[Outcome]:
        """Return the outcome counts of a collection, in all arms of its experiments."""
        return sum((self.outcomes[one.id] for one in self.collections.resolve_name(served)), Counter())

    async def housekeep(self) -> None:
        """Do now what is done every second."""
        await self.housekeeper.housekeep()


def _resolved(options: RankOptions, version: ServedVersion, settings: Settings) -> ResolvedOptions:
    resolved = options.resolve(version, settings)
    if not resolved.slots:
        raise _NothingToShow
    return resolved


def _check_open(outcome: Outcome) -> None:
    """Refuse feedback on an impression that has expired or was voided."""
    if outcome == VOIDED:
        raise VoidedError("This impression was made void: it counts no more.")
    if outcome in (TIMED_OUT, UNSEEN):
        raise ExpiredError("This impression has expired.")


def _ranking_in(lines: Sequence[Event]) -> RankingArrays:
    """Return the ranking that was shown, by log lines of an impression."""
    shown = next((line.shown for line in lines if line.outcome == WAITING), None)
    if shown is None:
        raise NotFoundError("This impression is not known here: it was never written down.")
    return unpack(shown)
