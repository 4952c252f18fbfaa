"""`CatalogueUpdates`: documents are added, changed, moved and removed. A change is durable before it is served.

The changes of a collection are applied one after the other, and those that wait for their turn are applied together.
Each is a row in the store, a *revision*: what was asked for, and where everything goes. That row decides whether the
change has happened. A revision that changes the tree begins another version, to which learners move when they are asked
next; one that changes titles, urls and texts alone is served at once, in the version that there is
(`version_history`). Now and then the whole file of a revision is stored, so that a start need not begin with the first.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from zoomrank.documents.collection_file import write_version
from zoomrank.documents.versions import is_metadata, pack_changes
from zoomrank.service.catalogue.registry import CollectionRegistry, Done
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.catalogue.served_version import ServedVersion
from zoomrank.service.catalogue.version_history import Revision, digest_of, temp_file
from zoomrank.service.errors import ServiceError, StorageError, UnprocessableError
from zoomrank.service.experiments import ExperimentRegistry
from zoomrank.service.learners.learner_events import LearnerEvents
from zoomrank.service.learners.query_learner import QueryLearner
from zoomrank.service.storage.store import EngineContext
from zoomrank.service.storage.store_reader import StoredVersion
from zoomrank.spaces import DocumentIds

MOST_AT_ONCE = 20_000  # changes of one revision
_LEAST_FILE = 2**20  # bytes of changes before the file of a revision is stored
_MOST_REVISIONS = 256  # revisions after the last stored file

Change = Mapping[str, Any]


class _Waiting(NamedTuple):
    """Changes that wait for their turn."""

    changes: Sequence[Change]
    unknown: str  # "skip": leave out changes of unknown documents
    done: asyncio.Future[ServedVersion]


class _Update(NamedTuple):
    """A revision that is durable."""

    revision: Revision
    versions: Mapping[int, ServedVersion] | None  # of the collection and its arms, by id; None: the tree is the same


class CatalogueUpdates:
    """Applies changes to collections."""

    def __init__(
        self,
        context: EngineContext,
        collections: CollectionRegistry,
        experiments: ExperimentRegistry,
        learner_events: LearnerEvents,
    ) -> None:
        self._store, self._now = context.store, context.now
        self._collections = collections
        self._experiments = experiments
        self._learner_events = learner_events
        self._waiting: dict[int, list[_Waiting]] = defaultdict(list)
        self._busy: dict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._tasks: set[asyncio.Task[Any]] = set()

    async def change(
        self, served: ServedCollection, changes: Sequence[Change], unknown: str = "refuse"
    ) -> ServedVersion:
        """Apply changes to a collection, all or none; return the version in which they are served."""
        done: asyncio.Future[ServedVersion] = asyncio.get_running_loop().create_future()
        served = served.home  # arms of experiments share the documents
        done.add_done_callback(lambda future: future.cancelled() or future.exception())  # also if the caller is gone
        self._waiting[served.id].append(_Waiting(changes, unknown, done))
        self._begin(self._change_all(served))
        return await asyncio.shield(done)  # goes on if the caller is cancelled

    async def remake(self, served: ServedCollection, seed: int = 0) -> ServedVersion:
        """Rebuild the tree of a collection; what was learned is carried over document by document."""
        return await asyncio.shield(self._begin(self._remake(served.home, seed)))

    def _begin(self, work: Any) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _remake(self, served: ServedCollection, seed: int) -> ServedVersion:
        async with self._busy[served.id]:
            return await self._go_on(served, partial(self._remade, served, seed))

    async def _change_all(self, served: ServedCollection) -> None:
        """Apply all waiting changes, together if possible."""
        async with self._busy[served.id]:
            while waiting := self._next(served.id):
                await self._apply(served, waiting)
            with suppress(ServiceError):  # there will be another time
                await self._elsewhere(partial(self._keep_file, served))

    async def _apply(self, served: ServedCollection, waiting: Sequence[_Waiting]) -> None:
        try:
            self._tell(waiting, await self._go_on(served, partial(self._changed, served, waiting)))
        except Exception as error:  # noqa: BLE001  (whatever it is, no caller may wait for ever)
            if not isinstance(error, UnprocessableError) or len(waiting) == 1:
                self._tell(waiting, error)
                return
            for one in waiting:  # one of them is invalid: apply each by itself
                await self._apply(served, [one])

    def _next(self, collection: int) -> list[_Waiting]:
        """Return the next waiting changes, as many as make one revision."""
        queue, count = self._waiting[collection], 0
        taken: list[_Waiting] = []
        while queue and (not taken or count + len(queue[0].changes) <= MOST_AT_ONCE):
            count += len(queue[0].changes)
            taken.append(queue.pop(0))
        return taken

    def _tell(self, waiting: Sequence[_Waiting], result: ServedVersion | Exception) -> None:
        for one in waiting:
            if one.done.done():
                continue
            if isinstance(result, Exception):
                one.done.set_exception(result)
            else:
                one.done.set_result(result)

    async def _go_on(self, served: ServedCollection, make: Callable[[], _Update | None]) -> ServedVersion:
        """Serve the revision that another thread makes, and stores."""
        served.check_exists()
        missed = await self._elsewhere(partial(self._missed, served))
        if missed is not None:  # a write that seemed to fail succeeded
            await serve_revision(served, missed)
        update = await self._elsewhere(make)
        if update is not None:  # else there was nothing to change
            await serve_revision(served, *update)
        return served.version

    async def _elsewhere(self, work: Callable[[], Done]) -> Done:
        return await self._collections.in_thread(work, "The collection was not changed")

    # In another thread.

    def _missed(self, served: ServedCollection) -> Revision | None:
        is_served = self._store.read.last_version(served.id) == served.version.revision
        return None if is_served else served.versions.newer()

    def _changed(self, served: ServedCollection, waiting: Sequence[_Waiting]) -> _Update | None:
        before = served.version
        changes = resolve_changes(
            before.tree.documents, ((change, one.unknown) for one in waiting for change in one.changes)
        )
        if not changes:
            return None
        placed = before.catalogue.placed(changes)
        number, catalogue = before.revision + 1, before.catalogue.changed(placed)
        stored = StoredVersion(number, self._now(), pack_changes(placed), None)
        if is_metadata(placed):
            return self._stored(served, stored, _Update(Revision(number, before.number, catalogue), None))
        return self._stored(served, stored, _new_version(served, Revision(number, number, catalogue)))

    def _remade(self, served: ServedCollection, seed: int) -> _Update:
        number = served.version.revision + 1
        update = _new_version(served, Revision(number, number, served.version.catalogue.remade(seed)))
        with temp_file(self._collections.folder) as file:
            write_version(update.revision.catalogue, file)
            file.flush()
            stored = StoredVersion(number, self._now(), None, digest_of(file))
            return self._stored(served, stored, update, lambda: self._collections.pieces(file))

    def _stored(
        self, served: ServedCollection, stored: StoredVersion, update: _Update, pieces: Callable[[], Any] | None = None
    ) -> _Update:
        """Make a revision durable."""
        try:
            self._store.add_version(served.id, stored, None if pieces is None else pieces())
        except StorageError:  # the write may have succeeded all the same
            with suppress(StorageError):
                if self._store.read.last_version(served.id) == stored.number:
                    return update
            raise
        return update

    def _keep_file(self, served: ServedCollection) -> None:
        """Store the file of the newest revision, if there are many changes since the last stored file."""
        number, catalogue = served.version.revision, served.version.catalogue
        whole = self._store.read.whole_version(served.id, number)
        since = number - (whole.number if whole is not None else 0)
        size, file_size = self._store.read.sizes(served.id, number - since)
        if since < _MOST_REVISIONS and size < max(_LEAST_FILE, file_size // 4):
            return
        with temp_file(self._collections.folder) as file:
            write_version(catalogue, file)
            file.flush()
            self._store.keep_whole(served.id, number, digest_of(file), self._collections.pieces(file))

    # Removal of collections.

    async def remove(self, served: ServedCollection) -> None:
        """Remove a collection with all that was learned in it."""
        await asyncio.shield(self._begin(self._remove(served)))

    async def _remove(self, served: ServedCollection) -> None:
        self._collections.begin_removal(served)
        async with self._busy[served.home.id]:
            for one in served.family:  # the collection itself first: then it is gone
                await self._learner_events.drop(one.id)
            await self._experiments.forget(served.home)
        self._collections.end_removal(served)


def resolve_changes(documents: DocumentIds, changes: Iterable[tuple[Change, str]]) -> list[Change]:
    """Decide whether "put" adds or changes a document, and leave out changes of unknown documents if they may be
    skipped; each change is understood as if those before it had been applied.

    >>> there = DocumentIds(1, ["a"])
    >>> resolve_changes(there, [({"put": "a"}, "refuse"), ({"put": "b"}, "refuse"), ({"remove": "c"}, "skip")])
    [{'change': 'a'}, {'add': 'b'}]
    """
    changes = list(changes)
    there = set(documents.known(change[verb] for change, _ in changes if (verb := _verb(change)) != "category"))
    found: list[Change] = []
    for change, unknown in changes:
        verb = _verb(change)
        if verb == "category":
            found.append(change)
            continue
        name, rest = change[verb], {key: value for key, value in change.items() if key != verb}
        if verb == "put":
            verb = "change" if name in there else "add"
        elif verb != "add" and name not in there and unknown == "skip":
            continue
        if verb == "remove":
            there.discard(name)
        else:
            there.add(name)
        found.append({verb: name, **rest})
    return found


def _verb(change: Change) -> str:
    return next(verb for verb in ("category", "put", "add", "change", "remove") if verb in change)


async def serve_revision(
    served: ServedCollection, revision: Revision, versions: Mapping[int, ServedVersion] | None = None
) -> None:
    """Serve a newer revision of a collection in it and in its arms.

    One that begins another version has one for each of them in `versions`, by id; those that are missing are built.
    """
    if revision.version == served.version.number:
        for one in served.family:
            one.version.take_metadata(revision.catalogue, revision.number)
        return
    found = dict(versions) if versions is not None else await asyncio.to_thread(_versions, served, revision)
    for one in served.family:
        if one.neighbours is not None and one.id in found:
            await one.neighbours.move_to_newest(found[one.id])
    for one in served.family:  # in the same turn of the loop in which the neighbours are there
        one.versions.go_on(found.get(one.id) or _version(one, revision))


def _new_version(served: ServedCollection, revision: Revision) -> _Update:
    """Build a version that learners can move to, in the collection and in its arms."""
    versions = _versions(served, revision)
    for one in served.family:
        if one.id in versions:
            _check_growable(one.version, versions[one.id], None if one is served else one.name)
            QueryLearner(0, one.versions, one.settings, one.version.number).seen_from(versions[one.id])  # or fail here
    return _Update(revision, versions)


def _versions(served: ServedCollection, revision: Revision) -> dict[int, ServedVersion]:
    versions = {one.id: _version(one, revision) for one in served.family}
    for version in versions.values():
        version.prepare()  # here, where no request waits for it
    return versions


def _version(one: ServedCollection, revision: Revision) -> ServedVersion:
    return ServedVersion(revision.version, revision.catalogue, one.settings, revision.number)


def _check_growable(before: ServedVersion, after: ServedVersion, arm: str | None = None) -> None:
    """Raise if the tree is another and the learners, of an arm or of the collection itself, cannot move to it."""
    if before.bandit.growable or before.tree.fingerprint == after.tree.fingerprint:
        return
    if arm is not None:
        raise UnprocessableError(
            f"Learners of “{arm}” cannot move to another tree: titles, urls and texts can be changed, documents cannot "
            "come or go while there is this experiment. Stop and remove it."
        )
    raise UnprocessableError(
        "Learners of this collection's algorithm cannot move to another tree: titles, urls and texts can be changed, "
        "documents cannot come or go. Make a new collection, with ZoomRank say."
    )
