"""`CollectionRegistry`: all collections that are served, by name and by id; new ones are stored before they are.

Everything about a collection is in the store. Its file is mapped into memory from a temporary copy, which is written at
every start and compared with the digest in the store (`version_history`): damage to the folder cannot change what is
served.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import IO, TypeVar

from zoomrank.documents import Collection
from zoomrank.documents.collection_file import load_version, write
from zoomrank.errors import ZoomrankError
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.catalogue.settings import Settings
from zoomrank.service.catalogue.version_history import VersionHistory, chunks_of, digest_of, temp_file
from zoomrank.service.errors import (
    ExistsError,
    NotFoundError,
    ServiceError,
    StoppingError,
    StorageError,
    UnprocessableError,
)
from zoomrank.service.storage.store import PIECE, EngineContext
from zoomrank.service.storage.store_reader import StoredCollection

Done = TypeVar("Done")
NewContent = Collection | IO[bytes]  # a collection, or an open file of one
_MAPPED_ONCE = "collections"  # the folder from which earlier versions mapped them


class CollectionRegistry:
    """Collections that are served, and names of those that are being created."""

    def __init__(self, context: EngineContext, folder: Path) -> None:
        self.folder = folder  # for temporary files
        self.by_name: dict[str, ServedCollection] = {}
        self.by_id: dict[int, ServedCollection] = {}  # arms of experiments, too
        self.arms: dict[str, ServedCollection] = {}  # of experiments, by names that no collection can have
        self._store, self._ownership, self._now, _ = context
        self._last = self._store.read.last("collections")
        self._coming: set[str] = set()  # names of collections that are being created
        self.builders = ThreadPoolExecutor(2, "zoomrank-builder")  # so that requests need not wait
        self.when_stopped: list[Callable[[], None]] = []  # called by `stop`, to cancel other work
        self.stopped = False

    def find(self, name: str) -> ServedCollection:
        """Return the collection of a name."""
        found = self.by_name.get(name) or self.arms.get(name)
        if found is None:
            raise NotFoundError(f"There is no collection “{name}”: see GET /v1/collections.")
        return found

    def start(self) -> None:
        """Restore all collections."""
        shutil.rmtree(self.folder / _MAPPED_ONCE, ignore_errors=True)
        if self._ownership.is_coordinator:  # else the coordinator may be making one
            self._store.drop_unfinished()
        kept = self._store.read.collections()
        for stored in homes_first(kept):
            self.register(self.restore_collection(stored))
        self.promote_all(kept)

    def restore_collection(self, stored: StoredCollection) -> ServedCollection:
        """Restore a stored collection, ready to be served; the one that an arm belongs to is served already."""
        settings = Settings.model_validate_json(stored.settings)
        home = None if stored.home is None else self.by_id[stored.home]
        if home is None:
            versions = VersionHistory.kept(self._store.read, stored, settings, self.folder)
        else:
            versions = home.versions.for_arm(settings)
        served = ServedCollection(stored, settings, versions, home)
        if served.neighbours is not None:
            served.neighbours.read_back(self._store.read.learners(stored.id), self._store.read.reports(stored.id))
        return served

    def promote_all(self, kept: Iterable[StoredCollection]) -> None:
        """Serve promoted arms in place of their collections, and collections without one by themselves."""
        for stored in kept:
            server = self.by_id.get(stored.id if stored.server is None else stored.server)
            if stored.home is None and server is not None:
                self.promote(server)

    def continue_after(self, last: int) -> None:
        """Issue only ids after one that another replica has issued."""
        self._last = max(self._last, last)

    def forget(self, home: int) -> None:
        """Stop serving a collection that another replica has removed."""
        self.by_name = {name: served for name, served in self.by_name.items() if served.home.id != home}
        self.arms = {name: served for name, served in self.arms.items() if served.home.id != home}
        self.by_id.pop(home, None)

    def stop(self) -> None:
        """Create no more collections; one that is being created is cancelled before its next piece is stored."""
        self.stopped = True
        for stop in self.when_stopped:
            stop()
        self.builders.shutdown(wait=False, cancel_futures=True)

    def check_free(self, name: str) -> None:
        """Raise ExistsError if a name is taken."""
        if name in self.by_name or name in self._coming:
            raise _exists(name)

    async def add(self, name: str, make: Callable[[], NewContent], settings: Settings) -> ServedCollection:
        """Create a collection, store it and serve it."""
        self.check_free(name)
        self._coming.add(name)
        coming = asyncio.create_task(self._add(self.next_number(), name, make, settings))
        return await asyncio.shield(coming)  # goes on if the caller is cancelled

    async def _add(
        self, number: int, name: str, make: Callable[[], NewContent], settings: Settings
    ) -> ServedCollection:
        try:
            work = partial(self._make_and_keep, number, name, make, settings)
            served = await self.in_thread(work, "The collection was not kept")
        finally:
            self._coming.discard(name)
        self.register(served)  # not before it is durable
        if served.settings != settings:
            raise _exists(name)
        return served

    async def in_thread(self, work: Callable[[], Done], otherwise: str) -> Done:
        """Run long work in one of few threads; errors of the library and of the disk become errors of the service.

        `otherwise` is what a disk error says was not done.
        """
        if self.stopped:
            raise StoppingError()
        inside = copy_context()  # so that its log lines have the request id
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self.builders, inside.run, _checked, work, otherwise)
        except (RuntimeError, asyncio.CancelledError):
            if self.stopped:  # before it was begun
                raise StoppingError() from None
            raise

    def begin_removal(self, served: ServedCollection) -> None:
        """Stop serving a collection and its arms; its name is free when the removal has ended."""
        del self.by_name[served.name]
        for one in served.family:
            one.removed = True
        self._coming.add(served.name)

    def end_removal(self, served: ServedCollection) -> None:
        """Free the name of a collection of which nothing is left."""
        for one in served.family:
            del self.by_id[one.id]
        self.arms = {name: arm for name, arm in self.arms.items() if arm.home is not served.home}
        self._coming.discard(served.name)

    def next_number(self) -> int:
        """Return an id that no collection has had."""
        self._last += 1
        return self._last

    def register(self, served: ServedCollection) -> None:
        """Serve a collection, or an arm of an experiment."""
        self.by_id[served.id] = served
        if served.home is served:
            self.by_name[served.name] = served
        else:
            served.home.arms.append(served)

    def resolve_name(self, served: ServedCollection) -> list[ServedCollection]:
        """Return what a name stands for in counts and voids: a collection with all arms of its experiments; an arm by
        its own name alone.
        """
        return served.family if self.serves(served) else [served]

    def serves(self, served: ServedCollection) -> bool:
        """Return whether requests for the collection's name are served by it."""
        return self.by_name.get(served.name) is served

    def forget_arm(self, arm: ServedCollection) -> None:
        """Stop serving an arm."""
        del self.by_id[arm.id]
        arm.home.arms.remove(arm)
        self.arms = {name: served for name, served in self.arms.items() if served is not arm}

    def promote(self, served: ServedCollection) -> None:
        """Serve requests for a collection by one of its arms, or by the collection itself."""
        served.name = served.home.stored.name
        self.by_name[served.name] = served

    def _make_and_keep(
        self, number: int, name: str, make: Callable[[], NewContent], settings: Settings
    ) -> ServedCollection:
        with self._made(make) as file:
            served = self._served(number, name, file, settings)
            return self._kept(served, digest_of(file), file)

    def _made(self, make: Callable[[], NewContent]) -> IO[bytes]:
        made = make()
        if not isinstance(made, Collection):
            return made
        file = temp_file(self.folder)
        write(made, file)
        file.flush()
        return file

    def _served(self, number: int, name: str, file: IO[bytes], settings: Settings) -> ServedCollection:
        """Return the collection of a file, with its checksum verified."""
        try:
            version = load_version(file, verify=True)
        except ZoomrankError as error:
            raise UnprocessableError(str(error).replace("This file", "What was sent")) from error
        stored = StoredCollection(number, name, self._now(), settings.model_dump_json())
        versions = VersionHistory.kept(self._store.read, stored, settings, self.folder, version)
        return ServedCollection(stored, settings, versions)

    def _kept(self, served: ServedCollection, digest: str, file: IO[bytes]) -> ServedCollection:
        """Store a collection."""
        try:
            self._store.add_collection(served.stored, digest, self.pieces(file))
        except StorageError:  # the write may have succeeded all the same, now or in an earlier attempt
            found = next((one for one in self._store.read.collections() if one.name == served.name), None)
            if found is None:
                raise
            if found.id != served.id:  # so there never will be a row of this one
                with suppress(StorageError):  # the next start drops it
                    self._store.drop_content(served.id, 0)
            whole = self._store.read.whole_version(found.id, 0)
            if whole is None or whole.digest != digest:
                raise _exists(served.name) from None
            settings = Settings.model_validate_json(found.settings)
            first = served.version.catalogue
            return ServedCollection(
                found, settings, VersionHistory.kept(self._store.read, found, settings, self.folder, first)
            )
        return served

    def pieces(self, file: IO[bytes]) -> Iterator[bytes]:
        """Yield a file piece by piece; StoppingError when the service stops."""
        for piece in chunks_of(file, PIECE):
            if self.stopped:
                raise StoppingError()
            yield piece


def homes_first(kept: Sequence[StoredCollection]) -> list[StoredCollection]:
    """Sort collections before their arms; leave out arms whose collection is being removed."""
    there = {stored.id for stored in kept}
    whole = (stored for stored in kept if stored.home is None or stored.home in there)
    return sorted(whole, key=lambda one: one.home is not None)


def _checked(work: Callable[[], Done], otherwise: str) -> Done:
    try:
        return work()
    except ServiceError:
        raise
    except ZoomrankError as error:
        raise UnprocessableError(str(error)) from error
    except OSError as error:
        raise StorageError(f"{otherwise}: {error}.") from error


def _exists(name: str) -> ExistsError:
    return ExistsError(f"There is a collection “{name}” already: take another name.")
