"""`CollectionRegistry`: all collections that are served, by name and by number; new ones are kept before they are.

Everything about a collection is in the store. Its file is written to a folder as well, from which it is mapped into
memory; such a file is named by its content alone, and is made again when it is not there.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from zoomrank.documents import Collection, load_collection
from zoomrank.errors import ZoomrankError
from zoomrank.files import whole_file
from zoomrank.service.query_learner import QueryLearner
from zoomrank.service.refusals import ExistsError, NotFoundError, StorageError, UnusableError
from zoomrank.service.served_collection import ServedCollection
from zoomrank.service.settings import Settings
from zoomrank.service.storage.store import Store, StoredCollection

Made = Collection | bytes  # a collection, or the file of one


class CollectionRegistry:
    """Collections that are there, and those that are being made."""

    def __init__(self, store: Store, folder: Path, now: Callable[[], float]) -> None:
        self.folder = folder  # of the files
        self.by_name: dict[str, ServedCollection] = {}
        self.by_id: dict[int, ServedCollection] = {}
        self._store = store
        self._now = now
        self._last = store.last("collections")
        self._coming: set[str] = set()  # names of collections that are being made
        self._makers = ThreadPoolExecutor(2, "zoomrank-maker")  # others need not wait for them

    def find(self, name: str) -> ServedCollection:
        """The collection of a name."""
        try:
            return self.by_name[name]
        except KeyError:
            raise NotFoundError(f"There is no collection “{name}”: see GET /v1/collections.") from None

    def start(self) -> None:
        """Bring all collections back."""
        for stored in self._store.collections():
            path = self._path(stored.digest)
            if not path.exists():
                self._write(stored.digest, self._store.content(stored.id))
            settings = Settings.model_validate_json(stored.settings)
            served = ServedCollection(stored, settings, load_collection(path))
            if served.neighbours is not None:
                served.neighbours.read_back(self._store.learners(stored.id), self._store.reports(stored.id))
            rehearse(served)
            self._register(served)

    def stop(self) -> None:
        """Make no more."""
        self._makers.shutdown(wait=False, cancel_futures=True)

    async def add(self, name: str, make: Callable[[], Made], settings: Settings) -> ServedCollection:
        """Make a collection, keep it and serve it."""
        if name in self.by_name or name in self._coming:
            raise _exists(name)
        self._coming.add(name)
        self._last += 1
        coming = asyncio.create_task(self._add(self._last, name, make, settings))
        return await asyncio.shield(coming)  # once begun it is ended, whether or not somebody still waits

    async def _add(self, number: int, name: str, make: Callable[[], Made], settings: Settings) -> ServedCollection:
        try:
            loop = asyncio.get_running_loop()
            served = await loop.run_in_executor(self._makers, self._make_and_keep, number, name, make, settings)
        finally:
            self._coming.discard(name)
        self._register(served)  # nobody may use it before it is durable
        if served.settings != settings:
            raise _exists(name)
        return served

    def _register(self, served: ServedCollection) -> None:
        self.by_name[served.name] = self.by_id[served.id] = served

    def _make_and_keep(self, number: int, name: str, make: Callable[[], Made], settings: Settings) -> ServedCollection:
        served, content = self._make(number, name, make, settings)
        try:
            self._store.add_collection(served.stored, content)
        except StorageError:  # which may have come true all the same, now or when this was tried before
            found = next((one for one in self._store.collections() if one.name == name), None)
            if found is None:
                raise
            if found.digest != served.stored.digest:
                raise _exists(name) from None
            return ServedCollection(found, Settings.model_validate_json(found.settings), served.collection)
        return served

    def _make(
        self, number: int, name: str, make: Callable[[], Made], settings: Settings
    ) -> tuple[ServedCollection, bytes]:
        try:
            made = make()
            content = self._saved(number, made) if isinstance(made, Collection) else made
            digest, collection = self._read(content)
            stored = StoredCollection(number, name, self._now(), settings.model_dump_json(), digest)
            served = ServedCollection(stored, settings, collection)
            rehearse(served)
        except ZoomrankError as error:
            raise UnusableError(str(error)) from error
        except OSError as error:
            raise StorageError(f"The collection was not kept: {error}.") from error
        return served, content

    # Files.

    def _path(self, digest: str) -> Path:
        return self.folder / f"{digest}.zoomrank"

    def _saved(self, number: int, collection: Collection) -> bytes:
        """The file of a collection."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"new-{number}.part"  # nobody else has this number
        collection.save(path)
        content = path.read_bytes()
        path.unlink()
        return content

    def _write(self, digest: str, content: bytes) -> None:
        """Put the file of a collection where it can be mapped."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self._path(digest).exists():
            with whole_file(self._path(digest)) as file:
                file.write(content)

    def _read(self, content: bytes) -> tuple[str, Collection]:
        """Check the file of a collection; says its digest."""
        digest = hashlib.sha256(content).hexdigest()
        path = self._path(digest)
        known = path.exists()
        try:
            self._write(digest, content)
            return digest, load_collection(path, verify=True)
        except ZoomrankError as error:
            if not known:
                path.unlink(missing_ok=True)
            raise UnusableError(str(error).replace(str(path), "What was sent")) from error


def rehearse(served: ServedCollection) -> None:
    """Rank, learn and lend once, so that nobody has to wait for what must be compiled."""
    learner = QueryLearner.rehearse(served.bandit, served.settings)
    if served.neighbours is not None:
        learner.show(0.0, served.settings.slots, None, served.neighbours.rehearsed(learner.ranker.state))


def _exists(name: str) -> ExistsError:
    return ExistsError(f"There is a collection “{name}” already: take another name.")
