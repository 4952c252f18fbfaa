"""Many strings as two arrays: all their UTF-8 bytes in a row, and where each one ends.

A million titles as Python strings are a million objects to make on loading. As two arrays they are mapped from the file
and decoded one at a time, when somebody looks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from zoomrank.errors import FileFormatError
from zoomrank.spaces.topology import Array


class Strings(Sequence[str]):
    """A sequence of strings, decoded when asked for.

    >>> strings = Strings.packed(["owl", "", "pike"])
    >>> strings[2], len(strings), list(strings)
    ('pike', 3, ['owl', '', 'pike'])
    """

    def __init__(self, letters: Array, ends: Array) -> None:
        self.letters = letters  # bytes
        self.ends = ends  # string i is letters[ends[i] : ends[i + 1]]

    @classmethod
    def packed(cls, strings: Iterable[str]) -> Strings:
        """Pack strings into two arrays."""
        pieces = [string.encode("utf-8", "surrogatepass") for string in strings]
        ends = np.zeros(len(pieces) + 1, np.int64)
        np.cumsum([len(piece) for piece in pieces], out=ends[1:])
        return cls(np.frombuffer(b"".join(pieces), np.uint8), ends)

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        try:
            return bytes(self.letters[self.ends[at] : self.ends[at + 1]]).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise FileFormatError(f"String {at} of this file is damaged: it is not UTF-8.") from error
