"""`CatchingUp`: what others who work in the same store have made or removed: collections, editions, experiments.

Whoever has the chair makes them, and knows them; everybody else looks what the store has. Nobody looks after anything
before it has looked.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from zoomrank.service.changing import serve_revision
from zoomrank.service.collection_registry import CollectionRegistry, homes_first
from zoomrank.service.experiments import Experiments
from zoomrank.service.held import Held
from zoomrank.service.ledger import Ledger
from zoomrank.service.storage.experiment_rows import StoredExperiment
from zoomrank.service.storage.partitions import CHAIR
from zoomrank.service.storage.store import Store
from zoomrank.service.storage.store_reader import StoredCollection


class _Kept(NamedTuple):
    """What the store has."""

    collections: list[StoredCollection]
    editions: dict[int, int]  # the number of the newest, of each
    experiments: list[StoredExperiment]


class CatchingUp:
    """Looks, and has what there is."""

    def __init__(
        self, store: Store, collections: CollectionRegistry, experiments: Experiments, ledger: Ledger, held: Held
    ) -> None:
        self._store = store
        self._collections = collections
        self._experiments = experiments
        self._ledger = ledger
        self._held = held
        self._one_at_a_time = asyncio.Lock()
        self._known: _Kept | None = None

    async def __call__(self) -> None:
        """Have what the store has."""
        async with self._one_at_a_time:
            is_chair = CHAIR in self._held.partitions  # then all that there is was made here
            kept = None if is_chair else await asyncio.to_thread(self._read)
            if kept is None or kept == self._known:
                return
            await self._forget(kept)
            await self._bring(kept)
            await self._go_on(kept)
            self._collections.promote_all(kept.collections)
            self._experiments.read_again(kept.experiments)
            self._known = kept

    def _read(self) -> _Kept:
        return _Kept(self._store.collections(), self._store.newest_editions(), self._store.experiments())

    async def _forget(self, kept: _Kept) -> None:
        there = {stored.id for stored in kept.collections}
        gone = [served for served in self._collections.by_id.values() if served.id not in there]
        for served in gone:
            served.removed = True
        for served in gone:
            await self._ledger.let_go(served.id)
            if served.home is served:
                self._collections.forget(served.id)
            else:
                self._collections.forget_arm(served)

    async def _bring(self, kept: _Kept) -> None:
        for stored in homes_first(kept.collections):
            if stored.id not in self._collections.by_id:
                self._collections.register(await asyncio.to_thread(self._collections.brought_back, stored))

    async def _go_on(self, kept: _Kept) -> None:
        for served in list(self._collections.by_id.values()):
            newest = kept.editions.get(served.id, 0)
            if served.home is served and newest > served.edition.revision:
                revision = await asyncio.to_thread(served.editions.newer)
                if revision is not None:
                    await serve_revision(served, revision)
