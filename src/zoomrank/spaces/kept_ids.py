"""Storage of ids by type: positions, whole numbers, packed strings, or any hashable objects.

Each type maps a position to its id and an id to its position, -1 if unknown. Numbers and packed strings are arrays,
without an object per id; they are scanned, reordered and looked up by calls that release the GIL.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from zoomrank.errors import DuplicateDocumentError, UnknownDocumentError
from zoomrank.numbers import Array
from zoomrank.spaces.packed_strings import PackedStrings
from zoomrank.spaces.string_table import StringTable

NOBODY = -1
_PIECE = 1 << 16


class StoredIds(ABC):
    """Ids, all different, from the first position to the last."""

    are_numbers = True

    @property
    @abstractmethod
    def all(self) -> Any:
        """All ids: an array of whole numbers, packed strings, or a list of objects."""

    @abstractmethod
    def at(self, position: int) -> Any:
        """Return the id at a position."""

    @abstractmethod
    def find(self, document: Any) -> int:
        """Return the position of an id."""

    def find_all(self, documents: Sequence[Any]) -> Array:
        """Return the positions of ids."""
        return np.fromiter(map(self.find, documents), np.int64, len(documents))

    @abstractmethod
    def rearranged(self, source: Array, more: Sequence[Any]) -> StoredIds:
        """Reorder ids: `source` has the old position of each; positions beyond the last refer to `more`."""

    def __iter__(self) -> Iterator[Any]:
        """Iterate in bulk: a million single lookups take most of a second."""
        return iter(self.all)


class PositionIds(StoredIds):
    """Ids equal to the positions."""

    def __init__(self, count: int) -> None:
        self._count = count

    @property
    def all(self) -> Array:
        """The positions."""
        return np.arange(self._count)

    def at(self, position: int) -> int:
        """Return the id at a position."""
        return position

    def find(self, document: Any) -> int:
        """Return the id itself if it is a position."""
        number = _whole(document)
        return number if number is not None and 0 <= number < self._count else NOBODY

    def rearranged(self, source: Array, more: Sequence[Any]) -> StoredIds:
        """Reorder ids, which become numbers."""
        return NumberIds(self.all).rearranged(source, more)

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._count))


class NumberIds(StoredIds):
    """Whole-number ids, in an array, and once more in ascending order."""

    def __init__(self, ids: Array) -> None:
        if ids.dtype.kind == "u" and ids.size and ids.max() > np.iinfo(np.int64).max:
            raise UnknownDocumentError(f"The id {ids.max()} is too large; integer ids have 63 bits at most.")
        small = ids.dtype.kind == "i" and ids.dtype.itemsize <= 4
        kind: Any = np.int32 if small else np.int64
        self._numbers = ids.astype(kind)
        self._largest = int(np.iinfo(kind).max)
        self._numbers.flags.writeable = False
        self._order = np.argsort(self._numbers, kind="stable").astype(np.min_scalar_type(len(ids)))
        self._ascending = self._numbers[self._order]
        twice = np.flatnonzero(self._ascending[1:] == self._ascending[:-1])
        if len(twice):
            raise DuplicateDocumentError(f"The id {self._ascending[twice[0]]} stands for two documents.")

    @property
    def all(self) -> Array:
        """The numbers."""
        return self._numbers

    def at(self, position: int) -> int:
        """Return the id at a position."""
        return int(self._numbers[position])

    def find(self, document: Any) -> int:
        """Find an id by binary search."""
        number = _whole(document)
        if number is None or abs(number) > self._largest:
            return NOBODY
        at = int(self._ascending.searchsorted(self._numbers.dtype.type(number)))
        if at < len(self._ascending) and self._ascending[at] == number:
            return int(self._order[at])
        return NOBODY

    def find_all(self, documents: Sequence[Any]) -> Array:
        """Find all ids at once."""
        try:
            wanted = np.fromiter(map(operator.index, documents), np.int64, len(documents))
        except (TypeError, OverflowError):  # not a number, or out of range
            return super().find_all(documents)
        kind = self._numbers.dtype.type
        possible = (-self._largest <= wanted) & (wanted <= self._largest)
        wanted = np.where(possible, wanted, 0).astype(kind)
        at = np.minimum(self._ascending.searchsorted(wanted), len(self._ascending) - 1)
        return np.where(possible & (self._ascending[at] == wanted), self._order[at].astype(np.int64), NOBODY)

    def rearranged(self, source: Array, more: Sequence[Any]) -> StoredIds:
        """Gather ids from the array."""
        numbers = self._numbers
        return NumberIds(np.concatenate([numbers, np.array(more, np.int64)])[source] if len(more) else numbers[source])

    def __iter__(self) -> Iterator[int]:
        """Iterate in pieces, so that other threads can run in between."""
        for first in range(0, len(self._numbers), _PIECE):
            yield from self._numbers[first : first + _PIECE].tolist()


class StringIds(StoredIds):
    """String ids, packed into arrays."""

    are_numbers = False

    def __init__(self, strings: PackedStrings) -> None:
        self._strings = strings
        self._table = StringTable(strings)
        if self._table.twice is not None:
            raise _twice(strings[self._table.twice[1]], *self._table.twice)

    @property
    def all(self) -> PackedStrings:
        """The strings."""
        return self._strings

    def at(self, position: int) -> Any:
        """Return the id at a position."""
        return self._strings[position]

    def find(self, document: Any) -> int:
        """Look an id up by its hash."""
        return int(self._table.places([document])[0]) if isinstance(document, str) else NOBODY

    def find_all(self, documents: Sequence[Any]) -> Array:
        """Look all ids up at once."""
        if all(isinstance(document, str) for document in documents):
            return self._table.places(documents)
        return super().find_all(documents)

    def rearranged(self, source: Array, more: Sequence[Any]) -> StoredIds:
        """Gather ids from the packed letters."""
        return StringIds(self._strings.rearranged(source, more))


class ObjectIds(StoredIds):
    """Ids of any hashable type, in a list."""

    def __init__(self, ids: list[Any]) -> None:
        self._things = ids
        self._position_of: dict[Any, int] = {}
        with suppress(TypeError):  # an unhashable object: named below
            self._position_of = dict(zip(ids, range(len(ids)), strict=True))
            if len(self._position_of) == len(ids):
                return
        self._position_of = {}
        for position, document in enumerate(ids):
            if not isinstance(document, Hashable):
                raise UnknownDocumentError(f"{document!r} cannot be an id: it is not hashable.")
            first = self._position_of.setdefault(document, position)
            if first != position:
                raise _twice(document, first, position)

    @property
    def all(self) -> list[Any]:
        """All ids."""
        return self._things

    @property
    def are_numbers(self) -> bool:  # type: ignore[override]
        """True if all ids are whole numbers."""
        return are_whole_numbers(self._things)

    def at(self, position: int) -> Any:
        """Return the id at a position."""
        return self._things[position]

    def find(self, document: Any) -> int:
        """Look an id up in a dict."""
        return self._position_of.get(document, NOBODY) if isinstance(document, Hashable) else NOBODY

    def find_all(self, documents: Sequence[Any]) -> Array:
        """Look all ids up without a call for each."""
        with suppress(TypeError):  # an unhashable object
            found = [self._position_of.get(document, NOBODY) for document in documents]
            return np.array(found, np.int64)
        return super().find_all(documents)

    def rearranged(self, source: Array, more: Sequence[Any]) -> StoredIds:
        """Gather ids from the list."""
        things = np.empty(len(self._things) + len(more), object)
        things[: len(self._things)] = self._things
        things[len(self._things) :] = list(more)
        return ObjectIds(things[source].tolist())


def are_whole_numbers(ids: Iterable[Any]) -> bool:
    """Return whether all ids are whole numbers; booleans are not."""
    return all(isinstance(document, int | np.integer) and not isinstance(document, bool) for document in ids)


def _whole(document: Any) -> int | None:
    try:
        return operator.index(document)
    except TypeError:
        return None


def _twice(document: Any, first: int, again: int) -> DuplicateDocumentError:
    return DuplicateDocumentError(f"The id {document!r} stands for two documents: number {first} and number {again}.")
