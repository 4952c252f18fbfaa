"""`StringTable`: hash table from packed strings to their positions.

A dict of a million strings is a million objects, and half a second in which no other thread runs. This is one array,
about twice as long as the number of strings, that is filled without the GIL: the slot of a string's hash, or the next
free one, has its position.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from zoomrank.compiled import Scalar, compiled, compiled_nogil, separate
from zoomrank.numbers import Array
from zoomrank.spaces.packed_strings import PackedStrings, read_only

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


@compiled_nogil
def _filled(slots: Array, letters: Array, ends: Array) -> tuple[Scalar, Scalar]:
    """Put all strings into their slots; return the first two positions of the same string, if any."""
    for position in range(len(ends) - 1):
        slot = _slot_of(slots, letters, ends, letters, ends[position], ends[position + 1])
        if slots[slot] > 0:
            return np.int64(slots[slot]) - 1, position
        slots[slot] = position + 1
    return -1, -1


@compiled
def _places(slots: Array, letters: Array, ends: Array, wanted: Array, wanted_ends: Array) -> Array:
    found = np.empty(len(wanted_ends) - 1, np.int64)
    for at in range(len(found)):
        slot = _slot_of(slots, letters, ends, wanted, wanted_ends[at], wanted_ends[at + 1])
        found[at] = np.int64(slots[slot]) - 1
    return found
