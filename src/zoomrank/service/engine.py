"""`Engine`: the service without HTTP. One thread owns all learners; every answer is durable before it is given."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time as clock
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from zoomrank.documents import Collection, load_collection
from zoomrank.errors import ZoomrankError
from zoomrank.service import store as stored_as
from zoomrank.service.errors import (
    ContradictionError,
    ExistsError,
    ExpiredError,
    StorageError,
    UnknownError,
    UnusableError,
)
from zoomrank.service.events import ABANDONED, TIMED_OUT, UNSEEN, WAITING, Event, is_satisfied, unpack
from zoomrank.service.impressions import Signer
from zoomrank.service.journal import Journal
from zoomrank.service.learner import Learner
from zoomrank.service.served import Served, read_content, write_content
from zoomrank.service.settings import Settings
from zoomrank.service.store import Batch, Snapshot, Store, StoredCollection
from zoomrank.spaces import DocumentId, DocumentTree

SNAPSHOT_EVERY = 4096  # events of a learner: bounds how much of the log is read to bring it back
SWEEP_EVERY = 1.0  # seconds
_MEASURE_EVERY = 64  # events after which a learner's size is looked at again
_EVICT_AT_ONCE = 32
_FETCH_AT_ONCE = 256


class Engine:
    """Collections, learners and their log."""

    def __init__(self, store: Store, folder: Path, budget: int = 2**30, now: Callable[[], float] = clock.time) -> None:
        self.store = store
        self.folder = folder / "collections"
        self.budget = budget  # bytes of learners in memory
        self.now = now
        self.served: dict[str, Served] = {}
        self.learners: OrderedDict[tuple[int, str], Learner] = OrderedDict()
        self.size = 0  # of them
        self.ready = False
        self._sizes: dict[int, int] = {}
        self._keys: dict[int, tuple[int, str]] = {}  # of the learners in memory
        self._loading: dict[tuple[int, str], asyncio.Task[Learner | None]] = {}
        self._away: dict[tuple[int, str], float] = {}  # learners not in memory: since when an impression may wait
        self._coming: set[str] = set()  # names of collections that are being made
        self._signer = Signer(store.about("secret"))
        self.totals = store.totals()
        self.queries = store.count_queries()  # of each collection

    async def start(self) -> None:
        """Read what there is. Learners come back when they are asked for."""
        Learner.rehearse(Settings().bandit(DocumentTree.exponential(depth=3)), Settings())
        self.journal = Journal(self.store, self._refused)
        self._place = self.store.last("events")
        self._last_learner = self.store.last("learners")
        self._last_collection = self.store.last("collections")
        for stored in self.store.collections():
            path = self.folder / f"{stored.digest}.zoomrank"
            if not path.exists():
                path = write_content(self.folder, stored.digest, self.store.content(stored.id))
            self.served[stored.name] = served = Served(stored, load_collection(path))
            Learner.rehearse(served.bandit, served.settings)
        self._by_id = {served.id: served for served in self.served.values()}
        self._away = self.store.unfinished()
        self._sweeper = asyncio.create_task(self._sweep_on())
        self.ready = True

    async def stop(self) -> None:
        """Write every learner down, so that the next start is quick."""
        self.ready = False
        self._sweeper.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._sweeper
        with contextlib.suppress(StorageError):  # the log has everything anyway
            for learner in list(self.learners.values()):
                if learner.noted:
                    self._take_snapshot(learner)
                    if len(self.journal.batch.snapshots) >= _EVICT_AT_ONCE:
                        await self.journal.written()
        with contextlib.suppress(StorageError):
            await self.journal.close()
        self.store.close()

    # Collections.

    async def add_collection(self, name: str, make: Callable[[], Collection | bytes], settings: Settings) -> Served:
        """Keep a collection and serve it."""
        if name in self.served or name in self._coming:
            raise ExistsError(f"There is a collection “{name}” already: take another name.")
        self._coming.add(name)
        self._last_collection += 1
        number = self._last_collection
        try:
            served, content = await asyncio.to_thread(self._make, number, name, make, settings)
            await asyncio.to_thread(self.store.add_collection, served.stored, content)
        finally:
            self._coming.discard(name)
        self.served[name] = self._by_id[number] = served  # nobody may use it before it is durable
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
        learner = await self._learner(served, query, create=True)
        assert learner is not None  # noqa: S101
        time = round(self.now(), 3)
        try:
            event, ranking = learner.show(time, wanted, allowed)
        except ZoomrankError as error:
            raise UnusableError(str(error)) from error
        await self._append(served, learner, event)
        return self._signer.name(learner.number, event.number, time), served.describe(ranking.shown[0])

    async def feedback(self, name: str, clicked: DocumentId | None) -> str:
        """Learn what became of an impression; says whether that was "learned" or "repeated"."""
        impression = self._signer.read(name)
        key = self._keys.get(impression.learner)
        if key is None:
            key = await asyncio.to_thread(self.store.query_of, impression.learner)
        served = self._by_id.get(key[0]) if key is not None else None
        learner = await self._learner(served, key[1], create=False) if served is not None and key is not None else None
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
        await self._append(served, learner, learner.answer(impression.number, answer, now, ranking))
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

    # Learners in memory.

    async def known(self, served: Served, query: str) -> Learner:
        """The learner of a query that somebody has asked."""
        learner = await self._learner(served, query, create=False)
        if learner is None:
            raise UnknownError(f"Nobody has asked “{query}” in “{served.name}” yet.")
        return learner

    async def _learner(self, served: Served, query: str, create: bool) -> Learner | None:
        key = (served.id, query)
        learner = self.learners.get(key)
        if learner is not None:
            self.learners.move_to_end(key)
            return learner
        loading = self._loading.get(key)
        if loading is None:
            loading = asyncio.create_task(self._load(served, query))
            self._loading[key] = loading
            loading.add_done_callback(lambda _: self._loading.pop(key, None))
        learner = await asyncio.shield(loading)
        kept = self.learners.get(key)
        if learner is not None and kept is None:  # it has left again already
            return await self._learner(served, query, create)
        if kept is None and create:
            kept = self._create(served, query)
        return kept

    async def _load(self, served: Served, query: str) -> Learner | None:
        """Bring a learner back: its newest snapshot, and what the log has since."""
        found = await asyncio.to_thread(self.store.find, served.id, query)
        if found is None:
            return None

        def rebuild() -> Learner:
            learner = Learner.restored(found.id, served.bandit, served.settings, found.snapshot)
            learner.replay(
                event for _, event in self.store.events(found.id, found.snapshot_event, found.snapshot_first)
            )
            return learner

        learner = await asyncio.to_thread(rebuild)
        self._keep((served.id, query), learner)
        return learner

    def _create(self, served: Served, query: str) -> Learner:
        self._last_learner += 1
        learner = Learner(self._last_learner, served.bandit, served.settings)
        self.journal.batch.learners.append((learner.number, served.id, query, self.now()))
        self.queries[served.id] = self.queries.get(served.id, 0) + 1
        self._keep((served.id, query), learner)
        return learner

    def _keep(self, key: tuple[int, str], learner: Learner) -> None:
        self.learners[key] = learner
        self._keys[learner.number] = key
        self._away.pop(key, None)
        self._measure(learner)

    def _measure(self, learner: Learner) -> None:
        size = learner.size
        self.size += size - self._sizes.get(learner.number, 0)
        self._sizes[learner.number] = size

    def _drop(self, learner: Learner) -> None:
        key = self._keys.pop(learner.number, None)
        if key is not None:
            del self.learners[key]
            self.size -= self._sizes.pop(learner.number)

    def _append(self, served: Served, learner: Learner, event: Event) -> asyncio.Future[None]:
        """Write an event down that its learner has noted; done when it is durable."""
        self._place += 1
        batch = self.journal.batch
        batch.events.append((self._place, event))
        step = int(event.time) // stored_as.STEP
        for what in _what_happened(event):
            batch.activity[served.id, step, what] += 1
            self.totals[served.id, what] = self.totals.get((served.id, what), 0) + 1
        if learner.noted % _MEASURE_EVERY == 0:
            self._measure(learner)
        if learner.noted >= SNAPSHOT_EVERY:
            self._take_snapshot(learner)
        return self.journal.written()

    def _take_snapshot(self, learner: Learner) -> None:
        first = next(iter(learner.waiting), learner.ranker.made)
        counts = learner.counts
        content = learner.snapshot()
        self.journal.batch.snapshots.append(
            Snapshot(learner.number, content, self._place, first, json.dumps(asdict(counts)), counts.impressions)
        )
        learner.noted = 0

    def _refused(self, batch: Batch) -> None:
        """Forget what could not be written down: the learners that noted it are read again when they are needed."""
        for (collection, _, what), count in batch.activity.items():
            self.totals[collection, what] -= count
        for _, collection, _, _ in batch.learners:
            self.queries[collection] -= 1
        touched = {event.learner for _, event in batch.events} | {row.learner for row in batch.snapshots}
        for number in touched | {row[0] for row in batch.learners}:
            key = self._keys.get(number)
            if key is not None:
                self._drop(self.learners[key])
                self._away[key] = 0.0

    # In the background.

    async def _sweep_on(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_EVERY)
            with contextlib.suppress(StorageError):  # refused: it will be tried again
                await self.sweep()
            await asyncio.to_thread(self.store.tidy)

    async def sweep(self) -> None:
        """Close impressions that nobody answered in time, and make room."""
        now = self.now()
        await self._fetch_overdue(now)
        late: asyncio.Future[None] | None = None
        for (collection, _), learner in list(self.learners.items()):
            served = self._by_id[collection]
            answer = TIMED_OUT if served.settings.unanswered == "abandoned" else UNSEEN
            for number in learner.overdue(now - served.settings.answer_within):
                late = self._append(served, learner, learner.answer(number, answer, now))
        if late is not None:
            await late
        while self.size > self.budget and len(self.learners) > 1:
            await self._evict()

    async def _fetch_overdue(self, now: float) -> None:
        """Bring learners back of which an impression waits no longer, some at a time; they are the first to leave."""
        overdue = (key for key, since in self._away.items() if since < now - self._by_id[key[0]].settings.answer_within)
        for key in list(islice(overdue, _FETCH_AT_ONCE)):
            if await self._learner(self._by_id[key[0]], key[1], create=False) is None:
                self._away.pop(key, None)
            elif key in self.learners:
                self.learners.move_to_end(key, last=False)

    async def _evict(self) -> None:
        """Write the learners down that were idle longest, and let go of those that stayed idle meanwhile."""
        oldest = list(islice(self.learners.values(), min(_EVICT_AT_ONCE, len(self.learners) - 1)))
        for learner in oldest:
            if learner.noted:
                self._take_snapshot(learner)
        await self.journal.written()
        for learner in oldest:
            if learner.noted == 0 and self.size > self.budget:
                if learner.waiting:
                    self._away[self._keys[learner.number]] = next(iter(learner.waiting.values()))[0]
                self._drop(learner)


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
