"""Search for the documents nearest to new ones, by their vectors or texts, to place them beside these.

New documents are compared with all existing ones at once. The counts for comparing texts are kept for later versions of
the catalogue, which count only what is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from zoomrank.documents.vectors import piece_counter
from zoomrank.documents.versions import CollectionVersion
from zoomrank.errors import ChangeError, VectorError
from zoomrank.spaces.ids import DocumentId
from zoomrank.types import Array

_SAMPLE = 64  # sample for checking whether all vectors have length 1
_ROWS, _COLUMNS = 1 << 16, 256  # of similarities that are in memory at a time
_LARGEST = 1 << 24  # similarities of texts that are in memory at a time


class Placement(NamedTuple):
    """A document to place: by its vector, or by its text."""

    document: DocumentId
    vector: Array | None
    text: str


def placement_of(edition: CollectionVersion, change: Mapping[str, Any]) -> Placement | None:
    """Return what to search for in order to place a change, if anything."""
    collection, document = edition.collection, change.get("add", change.get("change"))
    if "vector" in change:
        if collection.vectors is None:
            raise ChangeError('the documents of this collection have no vectors; say "near" which document it belongs.')
        return Placement(document, _checked(change["vector"], collection.vectors), "")
    if "add" not in change or "path" in change or "near" in change:
        return None
    if collection.texts is None:
        raise ChangeError('say where it belongs: "path", "vector" or "near"; the documents here have no texts.')
    text = change.get("text", "")
    if not text.strip():
        raise ChangeError('it has no "text" to place it by; say "path", "vector" or "near".')
    return Placement(document, None, text)


def _checked(vector: Any, beside: Array) -> Array:
    try:
        given = np.asarray(vector, np.float64)
    except (TypeError, ValueError):
        given = np.zeros(0)
    length = float(np.linalg.norm(given)) if given.ndim == 1 and np.isfinite(given).all() else np.inf
    if given.shape != beside.shape[1:] or not 0 < length < 1e18:
        raise VectorError(f"its vector must be {beside.shape[1]} finite numbers, not all of them 0.")
    return np.asarray(given / length if of_length_one(beside) else given, np.float32)


def of_length_one(vectors: Array) -> bool:
    """Return whether only directions of vectors matter: then all of them have length 1."""
    some = np.asarray(vectors[:: max(1, len(vectors) // _SAMPLE)], np.float64)
    return bool((np.abs(np.linalg.norm(some, axis=1) - 1) < 1e-3).all())


def nearest(
    edition: CollectionVersion, asked: Mapping[int, Placement], leaving: Iterable[DocumentId]
) -> dict[int, int]:
    """Return the numbers of the nearest documents, where there are any; never one that is removed, or the document
    itself.
    """
    found: dict[int, int] = {}
    if not asked:
        return found
    open_to = np.ones(len(edition), bool)
    gone = edition.collection.tree.documents.places(leaving)
    open_to[gone[gone >= 0]] = False
    for by_vector in (True, False):
        places = [at for at, one in asked.items() if (one.vector is not None) == by_vector]
        if places:
            search = _nearest_vectors if by_vector else _nearest_texts
            positions = search(edition, [asked[at] for at in places], open_to)
            found |= {at: int(edition.documents[p]) for at, p in zip(places, positions, strict=True) if p >= 0}
    return found


def _nearest_vectors(edition: CollectionVersion, asked: Sequence[Placement], open_to: Array) -> Array:
    vectors = edition.collection.vectors
    assert vectors is not None  # noqa: S101  (checked by `placement_of`)
    itself = edition.collection.tree.documents.places(one.document for one in asked)
    wished = np.stack([one.vector for one in asked if one.vector is not None])
    best, where = np.full(len(asked), -np.inf), np.full(len(asked), -1, np.int64)
    for start in range(0, len(vectors), _ROWS):
        rows = np.asarray(vectors[start : start + _ROWS])
        lengths = np.einsum("ij,ij->i", rows, rows) / 2  # |x - v|² is least where x·v - |v|²/2 is largest
        for first in range(0, len(asked), _COLUMNS):
            part = slice(first, first + _COLUMNS)
            likeness = np.where(open_to[start : start + _ROWS, None], rows @ wished[part].T - lengths[:, None], -np.inf)
            own = itself[part] - start
            for column in np.flatnonzero((own >= 0) & (own < len(rows))):
                likeness[own[column], column] = -np.inf
            top = likeness.argmax(axis=0)
            value = likeness[top, np.arange(likeness.shape[1])]
            better = np.flatnonzero(value > best[part])
            best[part][better], where[part][better] = value[better], start + top[better]
    return where


class TextSearch(NamedTuple):
    """The weights of the pieces of texts, a row for each of some documents."""

    counter: Any
    weights: Any  # a sparse matrix
    numbers: Array  # of the documents
    first: int  # number of rows when rarity was counted

    def without(self, documents: Sequence[int] | Array) -> TextSearch:
        """Return the same without some documents, such as those whose texts have changed."""
        kept = np.flatnonzero(~np.isin(self.numbers, np.asarray(documents, np.int64)))
        return self._replace(weights=self.weights[kept], numbers=self.numbers[kept])


def _nearest_texts(edition: CollectionVersion, asked: Sequence[Placement], open_to: Array) -> Array:
    search = _text_search(edition)
    position = edition.positions(search.numbers)
    weights = search.counter.transform([one.text for one in asked])
    barred = np.flatnonzero(~open_to[position])
    step, where = max(1, _LARGEST // len(position)), np.full(len(asked), -1, np.int64)
    for first in range(0, len(asked), step):
        likeness = (weights[first : first + step] @ search.weights.T).toarray()
        likeness[:, barred] = 0.0
        top = likeness.argmax(axis=1)
        some = likeness[np.arange(len(top)), top] > 0
        where[first : first + step] = np.where(some, position[top], -1)
    return where


def _text_search(edition: CollectionVersion) -> TextSearch:
    """Return the earlier counts, updated; counted from scratch where half of the documents are new."""
    texts = edition.collection.texts
    assert texts is not None  # noqa: S101  (checked by `placement_of`)
    search: TextSearch | None = edition.searches.get("texts")
    if search is not None:
        search = search.without(search.numbers[edition.positions(search.numbers) < 0])
        missing = np.flatnonzero(~np.isin(edition.documents, search.numbers))
        if len(search.numbers) - search.first + len(missing) > search.first // 2 or len(search.numbers) == 0:
            search = None
        elif len(missing):
            from scipy.sparse import vstack

            more = search.counter.transform([texts[int(position)] for position in missing])
            numbers = np.concatenate([search.numbers, edition.documents[missing]])
            search = search._replace(weights=vstack([search.weights, more], format="csr"), numbers=numbers)
    if search is None:
        counter = piece_counter()
        try:
            weights = counter.fit_transform(texts)
        except ValueError as error:  # an empty vocabulary
            raise ChangeError('the texts here are empty, so nothing is near it; say "near" or "path".') from error
        search = TextSearch(counter, weights, edition.documents, len(edition))
    edition.searches["texts"] = search
    return search
