"""`Changing`: documents come and go. A change is written down before anybody sees it; then learners follow.

The changes of a collection happen one after the other, and those that wait for their turn happen at once. Each makes
another edition: what was asked for, and where everything goes, is a line in the store, and that line decides whether
the change has happened. Now and then the whole file of an edition is kept, so that nobody has to begin with the first.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from zoomrank.documents.edition_file import write_edition
from zoomrank.service.collection_registry import CollectionRegistry
from zoomrank.service.edition_history import packed_changes
from zoomrank.service.experiments import Experiments
from zoomrank.service.ledger import Ledger
from zoomrank.service.nameless_files import digest_of, nameless_file
from zoomrank.service.query_learner import QueryLearner
from zoomrank.service.refusals import ServiceError, StoppingError, StorageError, UnusableError, refused_in_words
from zoomrank.service.served_collection import ServedCollection
from zoomrank.service.served_edition import ServedEdition
from zoomrank.service.storage.store import Store
from zoomrank.service.storage.store_reader import StoredEdition
from zoomrank.spaces import DocumentIds

MOST_AT_ONCE = 20_000  # changes of one edition
_LEAST_FILE = 2**20  # bytes of changes before the file of an edition is kept
_MOST_EDITIONS = 256  # after the last file that was kept

Change = Mapping[str, Any]


class _Waiting(NamedTuple):
    """Changes whose turn has not come."""

    changes: Sequence[Change]
    unknown: str  # "skip": changes of documents that are not there are left out
    done: asyncio.Future[ServedEdition]


class _Made(NamedTuple):
    """An edition that is durable."""

    edition: ServedEdition
    of_arms: Mapping[int, ServedEdition]  # as the arms of experiments see it, by their ids


class Changing:
    """Makes editions."""

    def __init__(
        self,
        store: Store,
        collections: CollectionRegistry,
        experiments: Experiments,
        ledger: Ledger,
        now: Callable[[], float],
    ) -> None:
        self._store = store
        self._collections = collections
        self._experiments = experiments
        self._ledger = ledger
        self._now = now
        self._waiting: dict[int, list[_Waiting]] = defaultdict(list)
        self._busy: dict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._tasks: set[asyncio.Task[Any]] = set()

    async def change(
        self, served: ServedCollection, changes: Sequence[Change], unknown: str = "refuse"
    ) -> ServedEdition:
        """Change a collection as told, all of it or nothing; returns the edition in which it has happened."""
        done: asyncio.Future[ServedEdition] = asyncio.get_running_loop().create_future()
        served = served.home  # arms of its experiments have the same documents
        done.add_done_callback(lambda future: future.cancelled() or future.exception())  # though nobody may wait
        self._waiting[served.id].append(_Waiting(changes, unknown, done))
        self._begin(self._change_all(served))
        return await asyncio.shield(done)  # once begun it is ended, whether or not somebody still waits

    async def remake(self, served: ServedCollection, seed: int = 0) -> ServedEdition:
        """Make the tree of a collection anew; what was learned is carried over document by document."""
        return await asyncio.shield(self._begin(self._remake(served.home, seed)))

    def _begin(self, work: Any) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _remake(self, served: ServedCollection, seed: int) -> ServedEdition:
        async with self._busy[served.id]:
            return await self._go_on(served, partial(self._remade, served, seed))

    async def _change_all(self, served: ServedCollection) -> None:
        """Let all that wait happen, at once if they can."""
        async with self._busy[served.id]:
            while waiting := self._next(served.id):
                try:
                    self._tell(waiting, await self._go_on(served, partial(self._changed, served, waiting)))
                except UnusableError as error:
                    if len(waiting) == 1:
                        self._tell(waiting, error)
                    else:  # one of them spoils it for the others: each by itself
                        await self._one_by_one(served, waiting)
                except Exception as error:  # noqa: BLE001  (whatever it is, nobody may wait for ever)
                    self._tell(waiting, error)
            await self._keep_whole(served)

    async def _one_by_one(self, served: ServedCollection, waiting: Sequence[_Waiting]) -> None:
        for one in waiting:
            try:
                self._tell([one], await self._go_on(served, partial(self._changed, served, [one])))
            except Exception as error:  # noqa: BLE001
                self._tell([one], error)

    def _next(self, collection: int) -> list[_Waiting]:
        """Those whose turn it is: as many as make one edition."""
        queue, count = self._waiting[collection], 0
        taken: list[_Waiting] = []
        while queue and (not taken or count + len(queue[0].changes) <= MOST_AT_ONCE):
            count += len(queue[0].changes)
            taken.append(queue.pop(0))
        return taken

    def _tell(self, waiting: Sequence[_Waiting], result: ServedEdition | Exception) -> None:
        for one in waiting:
            if one.done.done():
                continue
            if isinstance(result, Exception):
                one.done.set_exception(result)
            else:
                one.done.set_result(result)

    async def _go_on(self, served: ServedCollection, make: Callable[[], _Made]) -> ServedEdition:
        """Serve the edition that is made, and durable, in another thread."""
        served.check_there()
        made: _Made = await self._elsewhere(make)
        edition, of_arms = made
        if edition is not served.edition:  # else there was nothing to change
            await serve_edition(served, edition, of_arms)
        return served.edition

    async def _elsewhere(self, work: Callable[[], Any]) -> Any:
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._collections.makers, copy_context().run, _in_words, work
            )
        except (RuntimeError, asyncio.CancelledError):
            if self._collections.stopped:  # before it was begun
                raise StoppingError() from None
            raise

    # In another thread.

    def _changed(self, served: ServedCollection, waiting: Sequence[_Waiting]) -> _Made:
        before = self._caught_up(served)
        changes = settled(before.tree.documents, ((change, one.unknown) for one in waiting for change in one.changes))
        if not changes:
            return _Made(before, {})
        placed = before.edition.placed(changes)
        after = ServedEdition(before.number + 1, before.edition.changed(placed), served.settings)
        stored = StoredEdition(after.number, self._now(), packed_changes(placed), None)
        return self._kept(served, before, after, stored)

    def _remade(self, served: ServedCollection, seed: int) -> _Made:
        before = self._caught_up(served)
        after = ServedEdition(before.number + 1, before.edition.remade(seed), served.settings)
        with nameless_file(self._collections.folder) as file:
            write_edition(after.edition, file)
            file.flush()
            stored = StoredEdition(after.number, self._now(), None, digest_of(file))
            return self._kept(served, before, after, stored, lambda: self._collections.pieces(file))

    def _caught_up(self, served: ServedCollection) -> ServedEdition:
        """The newest edition that the store has: one whose write seemed to fail may have come true."""
        newest = self._store.read.last_edition(served.id)
        return served.edition if newest == served.edition.number else served.editions.at(newest)

    def _kept(
        self,
        served: ServedCollection,
        before: ServedEdition,
        after: ServedEdition,
        stored: StoredEdition,
        pieces: Callable[[], Any] | None = None,
    ) -> _Made:
        """Write an edition down that learners can move to."""
        _check_growable(before, after)
        after.prepare()  # here, where nobody waits for it
        rehearse_move(served, before, after)
        made = _Made(after, {arm.id: self._of_arm(arm, before, after) for arm in list(served.arms)})
        try:
            self._store.add_edition(served.id, stored, None if pieces is None else pieces())
        except StorageError:  # which may have come true all the same
            with suppress(StorageError):
                if self._store.read.last_edition(served.id) == after.number:
                    return made
            raise
        return made

    def _of_arm(self, arm: ServedCollection, before: ServedEdition, after: ServedEdition) -> ServedEdition:
        """An edition as an arm of an experiment will see it, whose learners can move there, too."""
        there, then = arm_edition(before, arm), arm_edition(after, arm)
        _check_growable(there, then, arm.name)
        rehearse_move(arm, there, then)
        return then

    async def _keep_whole(self, served: ServedCollection) -> None:
        """Keep the file of the newest edition, if there have been many changes since the last that was kept."""
        with suppress(ServiceError):  # there will be another time
            await self._elsewhere(partial(self._keep_file, served))

    def _keep_file(self, served: ServedCollection) -> None:
        edition = served.edition
        whole = self._store.read.whole_edition(served.id, edition.number)
        since = edition.number - (whole.number if whole is not None else 0)
        size, file_size = self._store.read.sizes(served.id, edition.number - since)
        if since < _MOST_EDITIONS and size < max(_LEAST_FILE, file_size // 4):
            return
        with nameless_file(self._collections.folder) as file:
            write_edition(edition.edition, file)
            file.flush()
            self._store.keep_whole(served.id, edition.number, digest_of(file), self._collections.pieces(file))

    # Collections that go.

    async def remove(self, served: ServedCollection) -> None:
        """Remove a collection with all that was learned in it."""
        await asyncio.shield(self._begin(self._remove(served)))

    async def _remove(self, served: ServedCollection) -> None:
        self._collections.begin_removal(served)
        async with self._busy[served.home.id]:
            for one in served.family:  # its home first: then it is gone
                await self._ledger.drop(one.id)
            await self._experiments.forget(served.home)
        self._collections.end_removal(served)


def settled(documents: DocumentIds, changes: Iterable[tuple[Change, str]]) -> list[Change]:
    """Changes that say whether documents are added or changed, without those of documents that are not there, if they
    are to be left out; each is meant as if those before it had happened.

    >>> there = DocumentIds(1, ["a"])
    >>> settled(there, [({"put": "a"}, "refuse"), ({"put": "b"}, "refuse"), ({"remove": "c"}, "skip")])
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


def _in_words(work: Callable[[], Any]) -> Any:
    with refused_in_words("The collection was not changed"):
        return work()


async def serve_edition(
    served: ServedCollection, edition: ServedEdition, of_arms: Mapping[int, ServedEdition] = MappingProxyType({})
) -> None:
    """Have a newer edition served, which arms may have seen already, by their ids."""
    for one in served.family:
        if one.neighbours is not None:
            await one.neighbours.move_on(of_arms.get(one.id, edition))
    served.editions.go_on(edition)  # in the same turn of the loop in which the neighbours are there
    for arm in served.arms:
        arm.editions.go_on(of_arms.get(arm.id) or arm_edition(edition, arm))


def arm_edition(edition: ServedEdition, arm: ServedCollection) -> ServedEdition:
    """An edition of a collection as an arm of an experiment sees it."""
    if edition.number == arm.edition.number:
        return arm.edition
    return ServedEdition(edition.number, edition.edition, arm.settings)


def _check_growable(before: ServedEdition, after: ServedEdition, arm: str | None = None) -> None:
    """Refuse another tree where learners, of an arm or of the collection itself, could not follow."""
    if before.bandit.growable or before.tree.fingerprint == after.tree.fingerprint:
        return
    if arm is not None:
        raise UnusableError(
            f"Learners of “{arm}” cannot move to another tree: titles, urls and texts can be changed, documents cannot "
            "come or go while there is this experiment. Stop and remove it."
        )
    raise UnusableError(
        "Learners of this collection's algorithm cannot move to another tree: titles, urls and texts can be changed, "
        "documents cannot come or go. Make a new collection, with ZoomRank say."
    )


def rehearse_move(served: ServedCollection, before: ServedEdition, after: ServedEdition) -> None:
    """Move once, so that nobody has to wait for what must be compiled, or finds that it cannot be."""
    learner = QueryLearner(0, served.editions, served.settings, before.number)
    learner.seen_from(after)
