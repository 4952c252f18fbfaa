"""`Engine`: the service without HTTP. One thread owns all learners; every answer is durable before it is given."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time as clock
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from zoomrank.documents import Collection, load_collection
from zoomrank.errors import ZoomrankError
from zoomrank.service.impression_names import Signer
from zoomrank.service.learner_cache import Key, Learners
from zoomrank.service.query_learner import Learner
from zoomrank.service.refusals import (
    ContradictionError,
    ExistsError,
    ExpiredError,
    StorageError,
    UnknownError,
    UnusableError,
)
from zoomrank.service.served_collection import Served, read_content, write_content
from zoomrank.service.settings import Settings
from zoomrank.service.storage import store as stored_as
from zoomrank.service.storage.events import ABANDONED, TIMED_OUT, UNSEEN, WAITING, Event, is_satisfied, unpack
from zoomrank.service.storage.journal import Journal
from zoomrank.service.storage.store import Batch, Store, StoredCollection
from zoomrank.spaces import DocumentId, DocumentTree

SWEEP_EVERY = 1.0  # seconds
_CLOSE_AT_ONCE = 256  # impressions

_log = logging.getLogger(__name__)


class Engine:
    """Collections, learners and their log."""

    def __init__(self, store: Store, folder: Path, budget: int = 2**30, now: Callable[[], float] = clock.time) -> None:
        self.store = store
        self.folder = folder / "collections"
        self.now = now
        self.served: dict[str, Served] = {}
        self.totals = store.totals()
        self.ready = False
        self._budget = budget  # bytes of learners in memory
        self._by_id: dict[int, Served] = {}
        self._coming: set[str] = set()  # names of collections that are being made
        self._makers = ThreadPoolExecutor(2, "zoomrank-maker")  # others need not wait for them
        self._renewals = store.renewals
        self._signer = Signer(store.about("secret"))

    async def start(self) -> None:
        """Read what there is. Learners come back when they are asked for."""
        Learner.rehearse(Settings().bandit(DocumentTree.exponential(depth=3)), Settings())
        self._last_collection = self.store.last("collections")
        for stored in self.store.collections():
            path = self.folder / f"{stored.digest}.zoomrank"
            if not path.exists():
                path = write_content(self.folder, stored.digest, self.store.content(stored.id))
            self.served[stored.name] = self._by_id[stored.id] = served = Served(stored, load_collection(path))
            Learner.rehearse(served.bandit, served.settings)
        self.journal = Journal(self.store, self._refused)
        self.learners = Learners(self.store, self.journal, self._by_id, self._budget, self.now)
        self._sweeper = asyncio.create_task(self._sweep_on())
        self.ready = True

    async def stop(self) -> None:
        """Write every learner down, so that the next start is quick."""
        self.ready = False
        self._sweeper.cancel()
        self._makers.shutdown(wait=False, cancel_futures=True)
        with contextlib.suppress(asyncio.CancelledError):
            await self._sweeper
        try:
            with contextlib.suppress(StorageError):  # the log has everything anyway
                await self.learners.write_all()
            with contextlib.suppress(StorageError):
                await self.journal.close()
        finally:
            self.store.close()

    # Collections.

    async def add_collection(self, name: str, make: Callable[[], Collection | bytes], settings: Settings) -> Served:
        """Keep a collection and serve it."""
        if name in self.served or name in self._coming:
            raise _exists(name)
        self._coming.add(name)
        self._last_collection += 1
        coming = asyncio.create_task(self._add(self._last_collection, name, make, settings))
        return await asyncio.shield(coming)  # once begun it is ended, whether or not somebody still waits

    async def _add(self, number: int, name: str, make: Callable[[], Collection | bytes], settings: Settings) -> Served:
        try:
            loop = asyncio.get_running_loop()
            served = await loop.run_in_executor(self._makers, self._make_and_keep, number, name, make, settings)
        finally:
            self._coming.discard(name)
        self.served[name] = self._by_id[served.id] = served  # nobody may use it before it is durable
        if served.stored.settings != settings:
            raise _exists(name)
        return served

    def _make_and_keep(
        self, number: int, name: str, make: Callable[[], Collection | bytes], settings: Settings
    ) -> Served:
        served, content = self._make(number, name, make, settings)
        try:
            self.store.add_collection(served.stored, content)
        except StorageError:  # which may have come true all the same, now or when this was tried before
            found = next((one for one in self.store.collections() if one.name == name), None)
            if found is None:
                raise
            if found.digest != served.stored.digest:
                raise _exists(name) from None
            return Served(found, served.collection)
        return served

    def _make(
        self, number: int, name: str, make: Callable[[], Collection | bytes], settings: Settings
    ) -> tuple[Served, bytes]:
        try:
            made = make()
            if isinstance(made, Collection):
                self.folder.mkdir(parents=True, exist_ok=True)
                path = self.folder / f"new-{number}.part"  # nobody else has this number
                made.save(path)
                made = path.read_bytes()
                path.unlink()
            digest, collection = read_content(self.folder, made)
            served = Served(StoredCollection(number, name, self.now(), settings, digest), collection)
            Learner.rehearse(served.bandit, settings)
        except ZoomrankError as error:
            raise UnusableError(str(error)) from error
        except OSError as error:
            raise StorageError(f"The collection was not kept: {error}.") from error
        return served, made

    def find(self, name: str) -> Served:
        """The collection of a name."""
        try:
            return self.served[name]
        except KeyError:
            raise UnknownError(f"There is no collection “{name}”: see GET /v1/collections.") from None

    # Ranking and learning.

    async def rank(
        self,
        served: Served,
        query: str,
        slots: int | None = None,
        eligible: Sequence[DocumentId] | None = None,
        excluded: Sequence[DocumentId] | None = None,
    ) -> tuple[str, list[dict[str, Any]]]:
        """Choose what a visitor sees; returns the impression's name and the documents."""
        wanted = served.settings.slots if slots is None else slots
        if wanted > served.settings.slots:
            raise UnusableError(f"{wanted} slots are more than this collection has ({served.settings.slots}).")
        allowed = served.eligible(eligible, excluded)
        learner = await self.learners.find(served, query, create=True)
        assert learner is not None  # noqa: S101
        time = round(self.now(), 3)
        try:
            event, ranking = learner.show(time, wanted, allowed)
        except ZoomrankError as error:
            raise UnusableError(str(error)) from error
        self._append(served, learner, event)
        await self.journal.written()
        return self._signer.name(learner.number, event.number, time), served.describe(ranking.shown[0])

    async def feedback(self, name: str, clicked: DocumentId | None) -> str:
        """Learn what became of an impression; says whether that was "learned" or "repeated"."""
        impression = self._signer.read(name)
        key = await self.learners.key_of(impression.learner)
        served = self._by_id.get(key[0]) if key is not None else None
        learner = await self.learners.find(served, key[1]) if served is not None and key is not None else None
        if served is None or learner is None or impression.number >= learner.ranker.made:
            raise UnknownError("This impression is not known here: it was never written down.")
        now = self.now()
        if now > impression.time + served.settings.answer_within:
            raise ExpiredError(
                f"This impression has expired: answers are taken for {served.settings.answer_within:g} seconds."
            )
        before = learner.answer_to(impression.number)
        if before != WAITING:
            return await self._repeated(served, learner, impression.number, before, clicked)
        ranking = learner.shown_at(impression.number)
        answer = _slot_of(served, ranking.shown[0].tolist(), clicked)
        self._append(served, learner, learner.answer(impression.number, answer, now, ranking))
        await self.journal.written()
        return "learned"

    async def _repeated(
        self, served: Served, learner: Learner, number: int, before: int, clicked: DocumentId | None
    ) -> str:
        """An answer to what was answered: the same may come again, another may not."""
        if before in (TIMED_OUT, UNSEEN):
            raise ExpiredError("This impression has expired.")
        await self.journal.written()  # the first answer may still be on its way to the disk, and may not get there
        shown = await asyncio.to_thread(self.store.shown, learner.number, number)
        if shown is None:
            raise UnknownError("This impression is not known here: it was never written down.")
        if _slot_of(served, unpack(shown).shown[0].tolist(), clicked) != before:
            raise ContradictionError("This impression has been answered already, and otherwise.")
        return "repeated"

    async def known(self, served: Served, query: str) -> Learner:
        """The learner of a query that somebody has asked."""
        learner = await self.learners.find(served, query)
        if learner is None:
            raise UnknownError(f"Nobody has asked “{query}” in “{served.name}” yet.")
        return learner

    def _append(self, served: Served, learner: Learner, event: Event) -> None:
        """Have an event written down that its learner has noted."""
        self.journal.append(event)
        step = int(event.time) // stored_as.STEP
        for what in _what_happened(event):
            self.journal.batch.activity[served.id, step, what] += 1
            self.totals[served.id, what] = self.totals.get((served.id, what), 0) + 1
        self.learners.noted(learner)

    def _refused(self, batch: Batch) -> None:
        """Forget what could not be written down."""
        for (collection, _, what), count in batch.activity.items():
            self.totals[collection, what] -= count
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
        """Close impressions that nobody answered in time, and make room."""
        self._count_again()
        await self.learners.fetch_overdue()
        closed = 0
        for key, _ in self.learners:
            while count := self._close_overdue(key):
                closed += count
                if closed >= _CLOSE_AT_ONCE:  # others are answered in between
                    await self.journal.written()
                    closed = 0
        self.learners.list_all()
        if self.journal.batch:
            await self.journal.written()
        await self.learners.make_room()

    def _close_overdue(self, key: Key) -> int:
        """Close some impressions of a learner that nobody answered in time; says how many."""
        learner = self.learners.get(key)
        if learner is None:
            return 0
        now, served = self.now(), self._by_id[key[0]]
        answer = TIMED_OUT if served.settings.unanswered == "abandoned" else UNSEEN
        overdue = learner.overdue(now - served.settings.answer_within, now)[:_CLOSE_AT_ONCE]
        for number in overdue:
            self._append(served, learner, learner.answer(number, answer, now))
        return len(overdue)

    def _count_again(self) -> None:
        """After the store lost its connection nobody knows what came true of what it wrote last: look it up."""
        if self._renewals != self.store.renewals and self.journal.is_idle:
            self._renewals = self.store.renewals
            self.totals = self.store.totals()
            for (collection, _, what), count in self.journal.batch.activity.items():
                self.totals[collection, what] = self.totals.get((collection, what), 0) + count
            self.learners.count_again()


def _exists(name: str) -> ExistsError:
    return ExistsError(f"There is a collection “{name}” already: take another name.")


def _what_happened(event: Event) -> Iterable[int]:
    if event.answer is None:
        return (stored_as.SHOWN,)
    if is_satisfied(event.answer):
        return (stored_as.SATISFIED, event.answer)
    return (stored_as.UNSEEN if event.answer == UNSEEN else stored_as.ABANDONED,)


def _slot_of(served: Served, shown: list[int], clicked: DocumentId | None) -> int:
    """The slot of a clicked document."""
    if clicked is None:
        return ABANDONED
    try:
        return [served.document(position)["id"] for position in shown].index(clicked)
    except ValueError:
        raise UnusableError(f"Document {clicked!r} was not shown in this impression.") from None
