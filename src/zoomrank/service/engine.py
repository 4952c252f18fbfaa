"""`Engine`: the service without HTTP. One thread owns all learners; nothing is said before it is durable."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time as clock
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from zoomrank.errors import ZoomrankError
from zoomrank.queries.lending import Granted
from zoomrank.service.collection_registry import CollectionRegistry
from zoomrank.service.impression_names import Signer
from zoomrank.service.learner_cache import Key, LearnerCache
from zoomrank.service.neighbours import About
from zoomrank.service.query_learner import QueryLearner
from zoomrank.service.refusals import ContradictionError, ExpiredError, NotFoundError, StorageError, UnusableError
from zoomrank.service.served_collection import ServedCollection
from zoomrank.service.settings import Settings
from zoomrank.service.storage.batch import Batch
from zoomrank.service.storage.events import Event, unpack
from zoomrank.service.storage.journal import Journal
from zoomrank.service.storage.outcomes import ABANDONED, TIMED_OUT, UNSEEN, WAITING, Outcome
from zoomrank.service.storage.store import Store
from zoomrank.spaces import DocumentId, DocumentTree

SWEEP_EVERY = 1.0  # seconds
_CLOSE_AT_ONCE = 256  # impressions

_log = logging.getLogger(__name__)


class Engine:
    """Collections, learners and their log."""

    def __init__(self, store: Store, folder: Path, budget: int = 2**30, now: Callable[[], float] = clock.time) -> None:
        self.store = store
        self.now = now
        self.collections = CollectionRegistry(store, folder, now)
        self.outcomes = store.outcomes()  # how often what became of the impressions of each collection
        self.ready = False
        self._budget = budget  # bytes of learners in memory
        self._renewals = store.renewals
        self._signer = Signer(store.about("secret"))

    async def start(self) -> None:
        """Read what there is. Learners come back when they are asked for."""
        QueryLearner.rehearse(Settings().bandit(DocumentTree.exponential(depth=3)), Settings())
        self.collections.start()
        self.journal = Journal(self.store, self._refused)
        self.learners = LearnerCache(self.store, self.journal, self.collections.by_id, self._budget, self.now)
        self._sweeper = asyncio.create_task(self._sweep_on())
        self.ready = True

    async def stop(self) -> None:
        """Write every learner down, so that the next start is quick."""
        self.ready = False
        self._sweeper.cancel()
        self.collections.stop()
        with contextlib.suppress(asyncio.CancelledError):
            await self._sweeper
        try:
            with contextlib.suppress(StorageError):  # the log has everything anyway
                await self.learners.write_all()
            with contextlib.suppress(StorageError):
                await self.journal.close()
        finally:
            self.store.close()

    # Ranking and learning.

    async def rank(
        self,
        served: ServedCollection,
        query: str,
        slots: int | None = None,
        eligible: Sequence[DocumentId] | None = None,
        excluded: Sequence[DocumentId] | None = None,
        about: About | None = None,
    ) -> tuple[str, list[dict[str, Any]]]:
        """Choose what a visitor sees; returns the impression's name and the documents.

        The query is what `ServedCollection.query` made of it; `about` says where it belongs when it is new.
        """
        wanted = served.settings.slots if slots is None else slots
        if wanted > served.settings.slots:
            raise UnusableError(f"{wanted} slots are more than this collection has ({served.settings.slots}).")
        allowed = served.eligible(eligible, excluded, wanted)
        learner = await self.learners.find(served, query, create=True, about=served.about(about))
        assert learner is not None  # noqa: S101
        time = round(self.now(), 3)
        try:
            event, ranking = learner.show(time, wanted, allowed, self.next_loan(served, learner))
        except ZoomrankError as error:
            raise UnusableError(str(error)) from error
        self._append(served, learner, event)
        await self.journal.written()
        return self._signer.name(learner.number, event.number, time), served.describe(ranking.shown[0])

    def next_loan(self, served: ServedCollection, learner: QueryLearner) -> Granted | None:
        """What a learner is lent before it ranks next, if it is to meet its neighbours; asking changes nothing."""
        if served.neighbours is None or learner.answers < learner.meets:
            return None
        return served.neighbours.grant(learner.number)

    async def feedback(self, name: str, clicked: DocumentId | None) -> str:
        """Learn what became of an impression; says whether that was "learned" or "repeated"."""
        impression = self._signer.read(name)
        key = await self.learners.key_of(impression.learner)
        served = self.collections.by_id.get(key[0]) if key is not None else None
        learner = await self.learners.find(served, key[1]) if served is not None and key is not None else None
        if served is None or learner is None or impression.number >= learner.ranker.made:
            raise NotFoundError("This impression is not known here: it was never written down.")
        now = self.now()
        if now > impression.time + served.settings.feedback_within:
            raise ExpiredError(
                f"This impression has expired: feedback is taken for {served.settings.feedback_within:g} seconds."
            )
        before = learner.outcome_of(impression.number)
        if before != WAITING:
            return await self._repeated(served, learner, impression.number, before, clicked)
        ranking = learner.shown_at(impression.number)
        outcome = _outcome(served, ranking.shown[0].tolist(), clicked)
        self._append(served, learner, learner.close(impression.number, outcome, now, ranking))
        await self.journal.written()
        return "learned"

    async def _repeated(
        self, served: ServedCollection, learner: QueryLearner, number: int, before: Outcome, clicked: DocumentId | None
    ) -> str:
        """Feedback on what has had some: the same may come again, another may not."""
        if before in (TIMED_OUT, UNSEEN):
            raise ExpiredError("This impression has expired.")
        await self.journal.written()  # the first may still be on its way to the disk, and may not get there
        shown = await asyncio.to_thread(self.store.shown, learner.number, number)
        if shown is None:
            raise NotFoundError("This impression is not known here: it was never written down.")
        if _outcome(served, unpack(shown).shown[0].tolist(), clicked) != before:
            raise ContradictionError("This impression has had its feedback already, and that said otherwise.")
        return "repeated"

    async def known(self, served: ServedCollection, query: str) -> QueryLearner:
        """The learner of a query that somebody has asked."""
        learner = await self.learners.find(served, query)
        if learner is None:
            raise NotFoundError(f"Nobody has asked “{query}” in “{served.name}” yet.")
        return learner

    def _append(self, served: ServedCollection, learner: QueryLearner, event: Event) -> None:
        """Have an event written down that its learner has noted."""
        self.journal.append(served.id, event)
        self.outcomes[served.id][event.outcome] += 1
        self._report(served, learner)
        self.learners.noted(learner)

    def _report(self, served: ServedCollection, learner: QueryLearner) -> None:
        """Let a learner tell its neighbours what it has seen, if that is much more than when it told them last."""
        neighbours, answers = served.neighbours, learner.answers
        if neighbours is not None and neighbours.is_due(learner.number, answers):
            self.journal.add_report(neighbours.report(learner.number, learner.ranker.state, answers))

    def _refused(self, batch: Batch) -> None:
        """Forget what could not be written down."""
        for collection, counts in batch.outcomes.items():
            self.outcomes[collection].subtract(counts)
        self.learners.refused(batch)

    # In the background.

    async def _sweep_on(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_EVERY)
            try:
                with contextlib.suppress(StorageError):  # refused: it will be tried again
                    await self.sweep()
                await asyncio.to_thread(self.store.tidy)
            except Exception:  # noqa: BLE001  (whatever it is, others wait for the next sweep)
                _log.exception("A sweep was broken off.")

    async def sweep(self) -> None:
        """Close impressions whose time is over, and make room."""
        self._count_again()
        await self.learners.fetch_overdue()
        closed = 0
        for key, _ in self.learners:
            while count := self._close_overdue(key):
                closed += count
                if closed >= _CLOSE_AT_ONCE:  # others have their turn in between
                    await self.journal.written()
                    closed = 0
        self.learners.list_all()
        await self.journal.flush()
        await self.learners.make_room()

    def _close_overdue(self, key: Key) -> int:
        """Close some impressions of a learner that had no feedback in time; says how many."""
        learner = self.learners.get(key)
        if learner is None:
            return 0
        now, served = self.now(), self.collections.by_id[key[0]]
        outcome = TIMED_OUT if served.settings.no_feedback == "abandoned" else UNSEEN
        overdue = learner.overdue(now - served.settings.feedback_within, now)[:_CLOSE_AT_ONCE]
        for number in overdue:
            self._append(served, learner, learner.close(number, outcome, now))
        return len(overdue)

    def _count_again(self) -> None:
        """After the store lost its connection nobody knows what came true of what it wrote last: look it up."""
        if self._renewals != self.store.renewals and self.journal.is_idle:
            self._renewals = self.store.renewals
            self.outcomes = self.store.outcomes()
            for collection, counts in self.journal.unwritten.outcomes.items():
                self.outcomes[collection].update(counts)
            self.learners.count_again()


def _outcome(served: ServedCollection, shown: list[int], clicked: DocumentId | None) -> Outcome:
    """What feedback says became of a ranking: the slot of the clicked document, or that there was no click."""
    if clicked is None:
        return ABANDONED
    try:
        return [served.document(position)["id"] for position in shown].index(clicked)
    except ValueError:
        raise UnusableError(f"Document {clicked!r} was not shown in this impression.") from None
