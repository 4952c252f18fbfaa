"""Search for text in titles, ids and addresses of documents, ignoring case.

Titles and addresses of a large collection are stored as consecutive bytes and searched as such, in chunks, so that a
million take a moment and other threads get their turn. Case folding beyond ASCII needs characters: such searches read
every string.
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
    """Return the positions of documents with a text in their title, id or address.

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
    """Search in chunks, and string by string only in chunks that contain the text."""
    wanted = text.casefold()
    found: list[int] = []
    first, rest = 0, iter(strings)
    while piece := list(islice(rest, _PIECE)):
        if wanted in "".join(piece).casefold():
            found += [at for at, string in enumerate(piece, first) if wanted in string.casefold()]
        first += len(piece)
    return np.array(found, np.int64)


def _in_bytes(strings: PackedStrings, wanted: bytes) -> Array:
    """Return the strings that contain some bytes; a match across two strings does not count."""
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
                at = letters.find(wanted, ends[string + 1])  # continue with the next string
            else:
                at = letters.find(wanted, at + 1)
    return np.array(found, np.int64)


def _ids_with(collection: Collection, text: str) -> Array:
    """Search ids: substrings of strings, whole numbers for integers."""
    ids = collection.tree.documents
    if isinstance(ids[0], str):
        return _one_by_one(ids, text)
    wanted = int(text) if text.isascii() and text.lstrip("-").isdecimal() and len(text) < 20 else None
    return np.array([ids.position(wanted)] if wanted in ids else [], np.int64)
