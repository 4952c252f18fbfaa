"""The caller's document ids, and the position of each document in the tree.

Inside zoomrank a document is its position among the leaves, left to right. Callers never see positions: they pass their
own ids and get the same ids back.

Ids are stored by type: positions, whole numbers, packed strings, or any hashable objects. Each type maps a position to
its id and an id to its position. Numbers and packed strings are arrays, without an object per id; they are scanned,
reordered and looked up by calls that release the GIL. A dict of a million strings would be a million objects, and half
a second in which no other thread runs; `StringTable` is one array, about twice as long as the number of strings: the
slot of a string's hash, or the next free one, has its position.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np

from zoomrank.compiled import Scalar, compiled_bulk, separate
from zoomrank.errors import DuplicateDocumentError, EmptyCollectionError, FileFormatError, UnknownDocumentError
from zoomrank.types import Array

# Many strings as two arrays: all their UTF-8 bytes in a row, and the end of each. A million titles as Python strings
# are a million objects to create on loading. As two arrays they are mapped from the file and decoded one at a time, on
# access.

_PIECE = 1 << 16  # ids at once


class PackedStrings(Sequence[str]):
    """A sequence of strings, decoded on access.

    >>> strings = PackedStrings.packed(["owl", "", "pike"])
    >>> strings[2], len(strings), list(strings)
    ('pike', 3, ['owl', '', 'pike'])
    """

    def __init__(self, letters: Array, ends: Array) -> None:
        self.letters = letters  # bytes
        self.ends = ends  # string i is letters[ends[i] : ends[i + 1]]

    @classmethod
    def packed(cls, strings: Iterable[str]) -> PackedStrings:
        """Pack strings into two arrays."""
        pieces = [string.encode("utf-8", "surrogatepass") for string in strings]
        ends = np.zeros(len(pieces) + 1, np.int64)
        np.cumsum([len(piece) for piece in pieces], out=ends[1:])
        return cls(np.frombuffer(b"".join(pieces), np.uint8), ends)

    def rearranged(self, source: Array, more: Iterable[str] = ()) -> PackedStrings:
        """Reorder strings: `source` has the old place of each; places beyond the last refer to `more`."""
        others = PackedStrings.packed(more)
        own, new = (read_only(self.letters), read_only(self.ends)), (read_only(others.letters), read_only(others.ends))
        return PackedStrings(*_gathered(*own, *new, source.astype(np.int64, copy=False)))

    def checked(self) -> PackedStrings:
        """Return the same strings if all can be decoded, checked without creating objects."""
        if not self._are_sound():
            list(self)  # raises an error that says which one
        return self

    def _are_sound(self) -> bool:
        begins = self.ends[:-1][np.diff(self.ends) > 0]
        if ((self.letters[begins] & 0xC0) == 0x80).any():  # a string starts inside a character
            return False
        with suppress(UnicodeDecodeError):
            for first in range(0, len(self), _PIECE):
                around = self.ends[first : first + _PIECE + 1]
                bytes(self.letters[around[0] : around[-1]]).decode("utf-8", "surrogatepass")
            return True
        return False

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        return _decoded(bytes(self.letters[self.ends[at] : self.ends[at + 1]]), at)

    def __iter__(self) -> Iterator[str]:
        """Iterate in pieces: a million single lookups would take most of the loading time."""
        for first in range(0, len(self), _PIECE):
            ends = self.ends[first : first + _PIECE + 1].tolist()
            letters = bytes(self.letters[ends[0] : ends[-1]])
            for at, (start, end) in enumerate(pairwise(ends), start=first):
                yield _decoded(letters[start - ends[0] : end - ends[0]], at)


def _decoded(letters: bytes, at: int) -> str:
    try:
        return letters.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"String {at} of this file is damaged: it is not UTF-8.") from error


def read_only(array: Array) -> Array:
    """Return a read-only view, so that kernels are compiled for one array type."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


@compiled_bulk
def _gathered(letters: Array, ends: Array, more: Array, more_ends: Array, source: Array) -> tuple[Array, Array]:
    count = len(ends) - 1
    found = np.zeros(len(source) + 1, np.int64)
    for at in range(len(source)):
        number = source[at]
        if number < count:
            found[at + 1] = found[at] + ends[number + 1] - ends[number]
        else:
            found[at + 1] = found[at] + more_ends[number - count + 1] - more_ends[number - count]
    gathered = np.empty(found[-1], np.uint8)
    for at in range(len(source)):
        number = source[at]
        if number < count:
            gathered[found[at] : found[at + 1]] = letters[ends[number] : ends[number + 1]]
        else:
            first = more_ends[number - count]
            gathered[found[at] : found[at + 1]] = more[first : more_ends[number - count + 1]]
    return gathered, found


# Hash table from packed strings to their positions. A dict of a million strings is a million objects, and half a second
# in which no other thread runs. This is one array, about twice as long as the number of strings, that is filled without
# the GIL: the slot of a string's hash, or the next free one, has its position.

_ROOM = 1.5  # fewest slots per string


class StringTable:
    """Finds strings among those that it was built from.

    >>> table = StringTable(PackedStrings.packed(["owl", "pike", "hen"]))
    >>> table.places(["hen", "cat", "owl"]).tolist(), table.twice
    ([2, -1, 0], None)
    """

    def __init__(self, strings: PackedStrings) -> None:
        self._letters, self._ends = read_only(strings.letters), read_only(strings.ends)
        slots = 1 << int(_ROOM * len(strings)).bit_length()
        self._slots = np.zeros(slots, np.uint32)  # positions counted from 1; 0 for an empty slot
        first, again = _filled(self._slots, self._letters, self._ends)
        self.twice = (int(first), int(again)) if again >= 0 else None  # two positions of the same string, if any

    def places(self, strings: Iterable[str]) -> Array:
        """Return the positions of strings, -1 for unknown ones."""
        wanted = PackedStrings.packed(strings)
        return _places(self._slots, self._letters, self._ends, read_only(wanted.letters), read_only(wanted.ends))


@separate
def _slot_of(slots: Array, letters: Array, ends: Array, wanted: Array, first: int, end: int) -> Scalar:
    """Return the slot of a string, or the empty one where it would be; hashed by FNV-1a (Fowler, Noll and Vo)."""
    mixed = np.uint64(0xCBF29CE484222325)
    for at in range(first, end):
        mixed = (mixed ^ np.uint64(wanted[at])) * np.uint64(0x100000001B3)
    mixed ^= mixed >> np.uint64(32)
    last = len(slots) - 1
    slot = np.int64(mixed & np.uint64(last))
    while slots[slot] > 0:
        begins, ends_at = ends[np.int64(slots[slot]) - 1], ends[np.int64(slots[slot])]
        same = ends_at - begins == end - first
        step = 0
        while same and step < end - first:
            same = letters[begins + step] == wanted[first + step]
            step += 1
        if same:
            break
        slot = (slot + 1) & last
    return slot


@compiled_bulk
def _filled(slots: Array, letters: Array, ends: Array) -> tuple[Scalar, Scalar]:
    """Put all strings into their slots; return the first two positions of the same string, if any."""
    for position in range(len(ends) - 1):
        slot = _slot_of(slots, letters, ends, letters, ends[position], ends[position + 1])
        if slots[slot] > 0:
            return np.int64(slots[slot]) - 1, position
        slots[slot] = position + 1
    return -1, -1


@compiled_bulk
def _places(slots: Array, letters: Array, ends: Array, wanted: Array, wanted_ends: Array) -> Array:
    found = np.empty(len(wanted_ends) - 1, np.int64)
    for at in range(len(found)):
        slot = _slot_of(slots, letters, ends, wanted, wanted_ends[at], wanted_ends[at + 1])
        found[at] = np.int64(slots[slot]) - 1
    return found


# Storage by type.

UNKNOWN = -1  # position of an unknown id


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
        return number if number is not None and 0 <= number < self._count else UNKNOWN

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
            return UNKNOWN
        at = int(self._ascending.searchsorted(self._numbers.dtype.type(number)))
        if at < len(self._ascending) and self._ascending[at] == number:
            return int(self._order[at])
        return UNKNOWN

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
        return np.where(possible & (self._ascending[at] == wanted), self._order[at].astype(np.int64), UNKNOWN)

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
        return int(self._table.places([document])[0]) if isinstance(document, str) else UNKNOWN

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
        """True if all ids are whole numbers; booleans are not."""
        return all(isinstance(each, int | np.integer) and not isinstance(each, bool) for each in self._things)

    def at(self, position: int) -> Any:
        """Return the id at a position."""
        return self._things[position]

    def find(self, document: Any) -> int:
        """Look an id up in a dict."""
        return self._position_of.get(document, UNKNOWN) if isinstance(document, Hashable) else UNKNOWN

    def find_all(self, documents: Sequence[Any]) -> Array:
        """Look all ids up without a call for each."""
        with suppress(TypeError):  # an unhashable object
            found = [self._position_of.get(document, UNKNOWN) for document in documents]
            return np.array(found, np.int64)
        return super().find_all(documents)

    def rearranged(self, source: Array, more: Sequence[Any]) -> StoredIds:
        """Gather ids from the list."""
        things = np.empty(len(self._things) + len(more), object)
        things[: len(self._things)] = self._things
        things[len(self._things) :] = list(more)
        return ObjectIds(things[source].tolist())


def _whole(document: Any) -> int | None:
    try:
        return operator.index(document)
    except TypeError:
        return None


def _twice(document: Any, first: int, again: int) -> DuplicateDocumentError:
    return DuplicateDocumentError(f"The id {document!r} stands for two documents: number {first} and number {again}.")


DocumentId = Any  # any hashable object
Positions = np.ndarray[Any, np.dtype[np.int64]]


class DocumentIds(Sequence[DocumentId]):
    """The ids of the documents of a collection, in the order of the leaves of its tree.

    Parameters
    ----------
    count : int
        Number of documents.
    ids : sequence of DocumentId, optional
        Their ids, all different; by default a document's id is its position.

    Examples
    --------
    >>> ids = DocumentIds(3, ["cats", "dogs", "fish"])
    >>> ids.position("dogs"), ids[2]
    (1, 'fish')
    """

    def __init__(
        self, count: int, ids: Sequence[DocumentId] | np.ndarray[Any, Any] | PackedStrings | None = None
    ) -> None:
        if count < 1:
            raise EmptyCollectionError("There are no documents: a collection needs at least one.")
        if ids is not None and len(ids) != count:
            raise UnknownDocumentError(f"{len(ids)} ids were given for {count} documents.")
        self._count = count
        self._kept = _kept(count, ids)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return [self[i] for i in range(*position.indices(self._count))]
        return self._kept.at(range(self._count)[position])

    def __iter__(self) -> Iterator[DocumentId]:
        return iter(self._kept)

    def __contains__(self, document: object) -> bool:
        return self._kept.find(document) != UNKNOWN

    def position(self, document: DocumentId) -> int:
        """Return the position of a document among the leaves.

        Parameters
        ----------
        document : DocumentId
            The document's id.

        Returns
        -------
        int
            Its position, counted from 0.
        """
        position = self._kept.find(document)
        if position == UNKNOWN:
            raise UnknownDocumentError(
                f"No document has the id {document!r}; the first of {self._count} is {self[0]!r}."
            )
        return position

    def positions(self, documents: Iterable[DocumentId]) -> Positions:
        """Return the positions of documents; raise an error if one is named twice.

        Parameters
        ----------
        documents : iterable of DocumentId
            The documents' ids.

        Returns
        -------
        ndarray of int
            Their positions, in the same order.
        """
        found = self.places(documents := list(documents))
        if (found == UNKNOWN).any():
            self.position(documents[int(np.argmin(found))])  # raises the error
        seen = set[int]()
        for position in found.tolist() if len(np.unique(found)) < len(found) else ():
            if position in seen:
                raise DuplicateDocumentError(f"The document {self[position]!r} is named twice.")
            seen.add(position)
        return found

    def places(self, documents: Iterable[DocumentId]) -> Positions:
        """Return the positions of documents, -1 for unknown ids.

        Parameters
        ----------
        documents : iterable of DocumentId
            Ids, known or not; one may be named twice.

        Returns
        -------
        ndarray of int
            Their positions, in the same order; -1 for unknown ids.
        """
        return self._kept.find_all(list(documents))

    def known(self, documents: Iterable[DocumentId]) -> list[DocumentId]:
        """Filter out unknown ids.

        Parameters
        ----------
        documents : iterable of DocumentId
            Ids, known or not.

        Returns
        -------
        list of DocumentId
            Known ids, in the same order.
        """
        documents = list(documents)
        return [documents[at] for at in np.flatnonzero(self.places(documents) != UNKNOWN).tolist()]

    def at(self, positions: Iterable[int]) -> list[DocumentId]:
        """Return the ids of the documents at some positions.

        Parameters
        ----------
        positions : iterable of int
            Positions, counted from 0.

        Returns
        -------
        list of DocumentId
            Their ids, in the same order.
        """
        return [self[int(position)] for position in positions]

    def rearranged(self, source: Positions, more: Sequence[DocumentId] = ()) -> DocumentIds:
        """Reorder ids, leave some out, and add others.

        Parameters
        ----------
        source : ndarray of int
            Old position for each new one; positions beyond the last refer to `more`.
        more : sequence of DocumentId
            New ids.

        Returns
        -------
        DocumentIds
            The ids in their new order.

        Examples
        --------
        >>> list(DocumentIds(3, ["cats", "dogs", "fish"]).rearranged(np.array([3, 0]), ["owls"]))
        ['owls', 'cats']
        """
        ids = DocumentIds.__new__(DocumentIds)
        ids._count, ids._kept = len(source), self._kept.rearranged(source, more)
        return ids

    @property
    def column(self) -> list[DocumentId] | np.ndarray[Any, Any] | PackedStrings:
        """All ids, as stored.

        Returns
        -------
        ndarray of int, PackedStrings or list
            An array of whole numbers, packed strings, or a list of objects; read-only.
        """
        column: list[DocumentId] | np.ndarray[Any, Any] | PackedStrings = self._kept.all
        return column

    @property
    def are_numbers(self) -> bool:
        """True if all ids are whole numbers.

        Returns
        -------
        bool
            False for any other type.
        """
        return self._kept.are_numbers


def _kept(count: int, ids: Sequence[DocumentId] | np.ndarray[Any, Any] | PackedStrings | None) -> StoredIds:
    if ids is None:
        return PositionIds(count)
    if isinstance(ids, PackedStrings):
        return StringIds(ids)
    if not isinstance(ids, np.ndarray):
        return ObjectIds(list(ids))
    return NumberIds(ids) if ids.dtype.kind in "iu" else ObjectIds(ids.tolist())
