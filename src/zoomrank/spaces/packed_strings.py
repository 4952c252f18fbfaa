"""Many strings as two arrays: all their UTF-8 bytes in a row, and the end of each.

A million titles as Python strings are a million objects to create on loading. As two arrays they are mapped from the
file and decoded one at a time, on access.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np

from zoomrank.compiled import compiled_nogil
from zoomrank.errors import FileFormatError
from zoomrank.types import Array

_PIECE = 1 << 16


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


@compiled_nogil
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
