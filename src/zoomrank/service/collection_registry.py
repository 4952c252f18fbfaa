"""`CollectionRegistry`: all collections that are served, by name and by number; new ones are kept before they are.

Everything about a collection is in the store. Its file is mapped into memory from a copy without a name, which is made
at every start and compared with the digest in the store (`edition_history`): whatever happens to the folder, what is
served is what was kept.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from typing import IO

from zoomrank.documents import Collection
from zoomrank.documents.collection_file import write
from zoomrank.documents.edition_file import load_edition
from zoomrank.errors import ZoomrankError
from zoomrank.service.edition_history import EditionHistory
from zoomrank.service.nameless_files import digest_of, nameless_file, pieces_of
from zoomrank.service.ownership import Ownership
from zoomrank.service.query_learner import QueryLearner
from zoomrank.service.refusals import (
    ExistsError,
    NotFoundError,
    StoppingError,
    StorageError,
    UnusableError,
    refused_in_words,
)
from zoomrank.service.served_collection import ServedCollection
from zoomrank.service.settings import Settings
from zoomrank.service.storage.store import PIECE, Store
from zoomrank.service.storage.store_reader import StoredCollection

Made = Collection | IO[bytes]  # a collection, or a file of one that nobody else has
_MAPPED_ONCE = "collections"  # the folder from which earlier versions mapped them


class CollectionRegistry:
    """Collections that are there, and those that are being made."""

    def __init__(self, store: Store, folder: Path, now: Callable[[], float], ownership: Ownership) -> None:
        self.folder = folder  # for files without a name
        self.by_name: dict[str, ServedCollection] = {}
        self.by_id: dict[int, ServedCollection] = {}  # arms of experiments, too
        self.arms: dict[str, ServedCollection] = {}  # of experiments, by names that no collection can have
        self._store = store
        self._now = now
        self._ownership = ownership
        self._last = store.read.last("collections")
        self._coming: set[str] = set()  # names of collections that are being made
        self.makers = ThreadPoolExecutor(2, "zoomrank-maker")  # others need not wait for them
        self.when_stopped: list[Callable[[], None]] = []  # what else is being made, and is to be given up
        self.stopped = False

    def find(self, name: str) -> ServedCollection:
        """The collection of a name."""
        found = self.by_name.get(name) or self.arms.get(name)
        if found is None:
            raise NotFoundError(f"There is no collection “{name}”: see GET /v1/collections.")
        return found

    def start(self) -> None:
        """Bring all collections back."""
        shutil.rmtree(self.folder / _MAPPED_ONCE, ignore_errors=True)
        if self._ownership.is_coordinator:  # else the coordinator may be making one
            self._store.drop_unfinished()
        kept = self._store.read.collections()
        for stored in homes_first(kept):
            self.register(self.brought_back(stored))
        self.promote_all(kept)

    def brought_back(self, stored: StoredCollection) -> ServedCollection:
        """A collection that is kept, ready to be served; that of an arm is served already."""
        settings = Settings.model_validate_json(stored.settings)
        home = None if stored.home is None else self.by_id[stored.home]
        if home is None:
            editions = EditionHistory.kept(self._store.read, stored, settings, self.folder)
        else:
            editions = home.editions.for_arm(settings)
        served = ServedCollection(stored, settings, editions, home)
        if served.neighbours is not None:
            served.neighbours.read_back(self._store.read.learners(stored.id), self._store.read.reports(stored.id))
        rehearse(served)
        return served

    def promote_all(self, kept: Iterable[StoredCollection]) -> None:
        """Have those serve that were promoted; the collection itself, if none was, or none is any more."""
        for stored in kept:
            server = self.by_id.get(stored.id if stored.server is None else stored.server)
            if stored.home is None and server is not None:
                self.promote(server)

    def go_on_after(self, last: int) -> None:
        """Give only numbers behind one that somebody else has given."""
        self._last = max(self._last, last)

    def forget(self, home: int) -> None:
        """Serve a collection no more that somebody else has removed."""
        self.by_name = {name: served for name, served in self.by_name.items() if served.home.id != home}
        self.arms = {name: served for name, served in self.arms.items() if served.home.id != home}
        self.by_id.pop(home, None)

    def stop(self) -> None:
        """Make no more; what is being made is given up before the next piece is kept."""
        self.stopped = True
        for stop in self.when_stopped:
            stop()
        self.makers.shutdown(wait=False, cancel_futures=True)

    def check_free(self, name: str) -> None:
        """Refuse a name that a collection has."""
        if name in self.by_name or name in self._coming:
            raise _exists(name)

    async def add(self, name: str, make: Callable[[], Made], settings: Settings) -> ServedCollection:
        """Make a collection, keep it and serve it."""
        self.check_free(name)
        self._coming.add(name)
        coming = asyncio.create_task(self._add(self.next_number(), name, make, settings))
        return await asyncio.shield(coming)  # once begun it is ended, whether or not somebody still waits

    async def _add(self, number: int, name: str, make: Callable[[], Made], settings: Settings) -> ServedCollection:
        try:
            if self.stopped:
                raise StoppingError()
            loop = asyncio.get_running_loop()
            inside = copy_context()  # so that what it logs names the request
            served = await loop.run_in_executor(
                self.makers, inside.run, self._make_and_keep, number, name, make, settings
            )
        except asyncio.CancelledError:
            if self.stopped:  # before it was begun
                raise StoppingError() from None
            raise
        finally:
            self._coming.discard(name)
        self.register(served)  # nobody may use it before it is durable
        if served.settings != settings:
            raise _exists(name)
        return served

    def begin_removal(self, served: ServedCollection) -> None:
        """Serve a collection no more, nor its arms; its name is free when the removal has ended."""
        del self.by_name[served.name]
        for one in served.family:
            one.removed = True
        self._coming.add(served.name)

    def end_removal(self, served: ServedCollection) -> None:
        """Nothing is left of a collection."""
        for one in served.family:
            del self.by_id[one.id]
        self.arms = {name: arm for name, arm in self.arms.items() if arm.home is not served.home}
        self._coming.discard(served.name)

    def next_number(self) -> int:
        """A number that no collection has had."""
        self._last += 1
        return self._last

    def register(self, served: ServedCollection) -> None:
        """Serve a collection, or an arm of an experiment."""
        self.by_id[served.id] = served
        if served.home is served:
            self.by_name[served.name] = served
        else:
            served.home.arms.append(served)

    def meant_by(self, served: ServedCollection) -> list[ServedCollection]:
        """What is meant where something is counted or taken back: by a collection all arms of its experiments, too; by
        an arm that was asked for by its name, itself.
        """
        return served.family if self.serves(served) else [served]

    def serves(self, served: ServedCollection) -> bool:
        """Whether it is what those meet who ask for the collection."""
        return self.by_name.get(served.name) is served

    def forget_arm(self, arm: ServedCollection) -> None:
        """Serve an arm no more."""
        del self.by_id[arm.id]
        arm.home.arms.remove(arm)
        self.arms = {name: served for name, served in self.arms.items() if served is not arm}

    def promote(self, served: ServedCollection) -> None:
        """Have an arm, or the collection itself, serve those who ask for the collection."""
        served.name = served.home.stored.name
        self.by_name[served.name] = served

    def _make_and_keep(self, number: int, name: str, make: Callable[[], Made], settings: Settings) -> ServedCollection:
        with refused_in_words("The collection was not kept"), self._made(make) as file:
            served = self._served(number, name, file, settings)
            return self._kept(served, digest_of(file), file)

    def _made(self, make: Callable[[], Made]) -> IO[bytes]:
        made = make()
        if not isinstance(made, Collection):
            return made
        file = nameless_file(self.folder)
        write(made, file)
        file.flush()
        return file

    def _served(self, number: int, name: str, file: IO[bytes], settings: Settings) -> ServedCollection:
        """The collection of a file, checked whole."""
        try:
            edition = load_edition(file, verify=True)
        except ZoomrankError as error:
            raise UnusableError(str(error).replace("This file", "What was sent")) from error
        stored = StoredCollection(number, name, self._now(), settings.model_dump_json())
        editions = EditionHistory.kept(self._store.read, stored, settings, self.folder, edition)
        served = ServedCollection(stored, settings, editions)
        rehearse(served)
        return served

    def _kept(self, served: ServedCollection, digest: str, file: IO[bytes]) -> ServedCollection:
        """Have a collection written down."""
        try:
            self._store.add_collection(served.stored, digest, self.pieces(file))
        except StorageError:  # which may have come true all the same, now or when this was tried before
            found = next((one for one in self._store.read.collections() if one.name == served.name), None)
            if found is None:
                raise
            if found.id != served.id:  # so there never will be a row of this one
                with suppress(StorageError):  # it is let go of at the next start
                    self._store.drop_content(served.id, 0)
            whole = self._store.read.whole_edition(found.id, 0)
            if whole is None or whole.digest != digest:
                raise _exists(served.name) from None
            settings = Settings.model_validate_json(found.settings)
            first = served.edition.edition
            return ServedCollection(
                found, settings, EditionHistory.kept(self._store.read, found, settings, self.folder, first)
            )
        return served

    def pieces(self, file: IO[bytes]) -> Iterator[bytes]:
        """A file piece by piece, until the service stops."""
        for piece in pieces_of(file, PIECE):
            if self.stopped:
                raise StoppingError()
            yield piece


def homes_first(kept: Sequence[StoredCollection]) -> list[StoredCollection]:
    """Collections before the arms that have their documents; without arms whose collection is being removed."""
    there = {stored.id for stored in kept}
    whole = (stored for stored in kept if stored.home is None or stored.home in there)
    return sorted(whole, key=lambda one: one.home is not None)


def rehearse(served: ServedCollection) -> None:
    """Rank, learn and lend once, so that nobody has to wait for what must be compiled."""
    learner = QueryLearner.rehearse(served.editions, served.settings)
    if served.neighbours is not None:
        learner.show(0.0, served.settings.slots, None, served.neighbours.rehearsed(learner.ranker.state))


def _exists(name: str) -> ExistsError:
    return ExistsError(f"There is a collection “{name}” already: take another name.")
