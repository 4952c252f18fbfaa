"""Which documents have some letters in their title, id or address, in whatever case.

Titles and addresses of a large collection are bytes in a row: they are searched as such, a piece at a time, so that a
million take a moment and other threads have their turn. Letters beyond ASCII have cases that bytes do not know: where
they are looked for, every string is read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np

from zoomrank.documents import Collection
from zoomrank.numbers import Array
from zoomrank.spaces.packed_strings import PackedStrings

_PIECE = 1 << 14  # strings


def search_documents(collection: Collection, text: str) -> Array:
    """The positions of the documents that have a text in their title, id or address.

    >>> owls = Collection.from_texts(["barn owl", "pike"], ids=["A1", "A2"], titles=["Barn owls", "Pikes"])
    >>> search_documents(owls, "OWL").tolist(), search_documents(owls, "a").tolist()
    ([0], [0, 1])
    """
    found = np.zeros(len(collection.tree), np.bool_)
    for strings in (collection.titles, collection.urls):
        if strings is not None:
            found[_with_text(strings, text)] = True
    found[_ids_with(collection, text)] = True
    return np.flatnonzero(found)


def _with_text(strings: Sequence[str], text: str) -> Array:
    if isinstance(strings, PackedStrings) and text.isascii():
        return _in_bytes(strings, text.lower().encode())
    return _one_by_one(strings, text)


def _one_by_one(strings: Iterable[str], text: str) -> Array:
    """Piece by piece, and string by string where a piece has the text."""
    wanted = text.casefold()
    found: list[int] = []
    first, rest = 0, iter(strings)
    while piece := list(islice(rest, _PIECE)):
        if wanted in "".join(piece).casefold():
            found += [at for at, string in enumerate(piece, first) if wanted in string.casefold()]
        first += len(piece)
    return np.array(found, np.int64)


def _in_bytes(strings: PackedStrings, wanted: bytes) -> Array:
    """The strings that have some bytes in them; what begins in one of them and ends in the next does not count."""
    found: list[int] = []
    for first in range(0, len(strings), _PIECE):
        around = np.asarray(strings.ends[first : first + _PIECE + 1], np.int64)
        letters = bytes(strings.letters[around[0] : around[-1]]).lower()
        ends = (around - around[0]).tolist()
        string, at = 0, letters.find(wanted)
        while at >= 0:
            string = bisect_right(ends, at, string) - 1
            if at + len(wanted) <= ends[string + 1]:
                found.append(first + string)
                at = letters.find(wanted, ends[string + 1])  # the next string: this one is found
            else:
                at = letters.find(wanted, at + 1)
    return np.array(found, np.int64)


def _ids_with(collection: Collection, text: str) -> Array:
    """By their ids: letters in those that are texts, and the whole of those that are numbers."""
    ids = collection.tree.documents
    if isinstance(ids[0], str):
        return _one_by_one(ids, text)
    wanted = int(text) if text.isascii() and text.lstrip("-").isdecimal() and len(text) < 20 else None
    return np.array([ids.position(wanted)] if wanted in ids else [], np.int64)
