"""`EditionHistory`: the editions of a collection. The newest is served; earlier ones are made again when needed.

Who was in an edition and has not been asked since is brought back there and moves on from there, as the log says. So
earlier editions are needed now and then: each is the newest before it of which the file is kept, and the changes since.
"""

from __future__ import annotations

import json
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from zoomrank.documents.edition_file import load_edition
from zoomrank.documents.editions import Edition
from zoomrank.service.nameless_files import filled, nameless_file
from zoomrank.service.refusals import NotFoundError, StorageError
from zoomrank.service.served_edition import ServedEdition
from zoomrank.service.settings import Settings
from zoomrank.service.storage.store_reader import StoredCollection, StoreReader
from zoomrank.spaces.movement import Movement

_A_NODE = 200  # bytes, roughly, of an edition
_BUDGET = 2**28  # bytes of earlier editions that are kept in memory though nobody is in them
_MOVEMENTS = 2**27  # bytes of movements between editions, roughly
_SAID_AT_ONCE = 256  # changes

Changes = Sequence[Mapping[str, Any]]  # where everything goes, as `Edition.placed` says
Begin = tuple[int, Edition]  # an earlier edition that is at hand, and its number
Again = Callable[[int, Begin | None], ServedEdition]


def packed_changes(changes: Changes) -> bytes:
    """Changes in few bytes; said some at a time, since no other thread runs meanwhile."""
    said = (_said(changes[first : first + _SAID_AT_ONCE]) for first in range(0, len(changes), _SAID_AT_ONCE))
    return zlib.compress(f"[{','.join(said)}]".encode(), 1)


def _said(changes: Changes) -> str:
    return json.dumps(list(changes), separators=(",", ":"), ensure_ascii=False)[1:-1]


def unpacked_changes(content: bytes) -> list[dict[str, Any]]:
    """The changes that were packed."""
    changes: list[dict[str, Any]] = json.loads(zlib.decompress(content))
    return changes


class EditionHistory:
    """Editions of one collection, by their numbers; any thread may ask for one, and for the way from one to another."""

    def __init__(self, newest: ServedEdition, again: Again | None = None) -> None:
        self.newest = newest
        self._again = again  # None: there never was another one
        self._finding, self._moving = threading.Lock(), threading.Lock()
        self._known: WeakValueDictionary[int, ServedEdition] = WeakValueDictionary()
        self._kept: OrderedDict[int, ServedEdition] = OrderedDict()  # the one that was asked for last at the end
        self._movements: OrderedDict[tuple[int, int], Movement] = OrderedDict()
        self._known[newest.number] = newest

    @classmethod
    def kept(
        cls,
        store: StoreReader,
        stored: StoredCollection,
        settings: Settings,
        folder: Path,
        first: Edition | None = None,
    ) -> EditionHistory:
        """The history of a collection that is kept, or (with its first edition) that is about to be."""

        def again(number: int, begin: Begin | None) -> ServedEdition:
            return ServedEdition(number, _made_again(store, stored, folder, number, begin), settings)

        if first is not None:
            return cls(ServedEdition(0, first, settings), again)
        return cls(again(store.last_edition(stored.documents), None), again)

    def for_arm(self, settings: Settings) -> EditionHistory:
        """The same editions for learners with other settings; whoever goes on has to tell both."""

        def again(number: int, _: Begin | None) -> ServedEdition:
            return ServedEdition(number, self.at(number).edition, settings)

        return EditionHistory(again(self.newest.number, None), again)

    def go_on(self, edition: ServedEdition) -> None:
        """Have a newer edition."""
        self._known[edition.number] = edition
        self.newest = edition

    def at(self, number: int) -> ServedEdition:
        """The edition of a number; one that is not in memory is made again."""
        if number == self.newest.number:
            return self.newest
        with self._finding:
            found = self._known.get(number)
            if found is None:
                near = max((known for known in list(self._known) if known < number), default=None)
                before = None if near is None else self._known.get(near)
                if self._again is None:
                    raise NotFoundError(f"There is no edition {number}.")
                begin = None if near is None or before is None else (near, before.edition)
                found = self._known[number] = self._again(number, begin)
            self._keep(found)
            return found

    def _keep(self, found: ServedEdition) -> None:
        self._kept[found.number] = found
        self._kept.move_to_end(found.number)
        size = sum(_A_NODE * kept.tree.nodes for kept in self._kept.values())
        while size > _BUDGET and len(self._kept) > 1:
            _, gone = self._kept.popitem(last=False)
            size -= _A_NODE * gone.tree.nodes

    def movement(self, before: ServedEdition, after: ServedEdition) -> Movement:
        """Where everything of one edition stands in a later one."""
        key = (before.number, after.number)
        found = self._movements.get(key)
        if found is None:
            found = before.edition.movement_to(after.edition)  # which takes long: others need not wait for it
            with self._moving:
                self._movements[key] = found
                while len(self._movements) > 1 and sum(map(_size, self._movements.values())) > _MOVEMENTS:
                    self._movements.popitem(last=False)
        return found


def _size(movement: Movement) -> int:
    return sum(array.nbytes for array in movement)


def _made_again(
    store: StoreReader,
    stored: StoredCollection,
    folder: Path,
    number: int,
    begin: Begin | None,
) -> Edition:
    """An edition, from the newest before it that is at hand or of which the file is kept."""
    whole = store.whole_edition(stored.documents, number)
    if begin is None or (whole is not None and whole.number > begin[0]):
        if whole is None:
            raise _damaged(stored)
        begin = whole.number, _read(store, stored, folder, whole.number, whole.digest or "")
    at, edition = begin
    changes: list[dict[str, Any]] = []
    for each in store.changes(stored.documents, at, number):
        if each.changes is None or each.number != at + 1:
            raise _damaged(stored)
        changes += unpacked_changes(each.changes)
        at = each.number
    if at != number:
        raise _damaged(stored)
    return edition.changed(changes) if changes else edition


def _read(store: StoreReader, stored: StoredCollection, folder: Path, number: int, digest: str) -> Edition:
    """An edition whose file is kept, mapped from a copy of it that only this process has."""
    try:
        with nameless_file(folder) as file:
            if filled(file, store.content(stored.documents, number)) == digest:
                return load_edition(file)
    except OSError as error:
        raise StorageError(f"The collection “{stored.name}” cannot be copied to {folder}: {error}.") from error
    raise _damaged(stored)


def _damaged(stored: StoredCollection) -> StorageError:
    return StorageError(
        f"The collection “{stored.name}” is damaged in the store: what is kept of it is not what was kept once. "
        "Look with “zoomrank verify”, and go back to a backup with “zoomrank restore”."
    )
