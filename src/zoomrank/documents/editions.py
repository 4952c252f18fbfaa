"""`Edition`: a collection after some changes, in which documents and nodes have numbers that never change.

Positions and the nodes of a tree are numbered from left to right and from top to bottom, so that one document more
moves nearly all of them. Whoever remembers something of a document (a learner, a log) remembers its number.

A change happens in two steps. `placed` takes it as a caller says it, checks it, looks for neighbours, and says where
everything goes. `changed` does just that: it looks for nothing and decides nothing, so that what was written down leads
to the same edition whenever it is read again. Children stand in the order of their numbers, so it does not matter
either whether changes are applied one by one or all at once.
"""

from __future__ import annotations

import copy
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from zoomrank.documents.clustering import Progress
from zoomrank.documents.collection import Collection
from zoomrank.errors import UnknownDocumentError
from zoomrank.numbers import Array
from zoomrank.spaces.ids import DocumentId
from zoomrank.spaces.movement import Movement
from zoomrank.spaces.packed_strings import PackedStrings

COLUMNS = ("title", "url", "text")  # the metadata of a document
_METADATA = {"change", "document", *COLUMNS}  # keys of a placed change that leaves the tree as it is
_PACKED_AT_ONCE = 256  # changes
USUAL_RATIO = 0.837  # of the width of a category to that of its parent, where there is no category to tell
LATE, BORROWED = (
    np.uint8(1),
    np.uint8(2),
)  # marks of a document: placed since the tree was made; its vector is another's


class Gone(NamedTuple):
    """The documents that are gone.

    Attributes
    ----------
    numbers : ndarray of int
        Their numbers, ascending.
    ids : sequence of str or ndarray of int
        The ids that they had.

    Examples
    --------
    >>> Gone(np.array([3]), PackedStrings.packed(["owl"])).ids[0]
    'owl'
    """

    numbers: Array
    ids: PackedStrings | Array


class Crowd(NamedTuple):
    """A place where the tree no longer fits.

    Attributes
    ----------
    node : int
        In the tree of its edition.
    name : str
        What the place is called.
    documents : int
        How many are there now.
    added : int
        How many of them were put there since the tree was made.
    says : str
        What is wrong, in words for people.

    Examples
    --------
    >>> Crowd(3, "Animals", 50, 45, "Animals had 5 documents when the tree was made, and has 50 now.").added
    45
    """

    node: int
    name: str
    documents: int
    added: int
    says: str


@dataclass(frozen=True, eq=False)
class Edition:
    """A collection after some changes.

    Parameters
    ----------
    collection : Collection
        The documents as they are now.
    documents : ndarray of int
        The number of the document at each position.
    nodes : ndarray of int
        The number of each node of the tree.
    heirs : ndarray of int
        For each number that a node ever had: itself while the node is there, else the number of the node that inherits
        what was learned of it.
    gone : Gone
        The documents that are gone.
    marks : ndarray of int
        What has become of the document at each position since the tree was made: `LATE`, `BORROWED`.
    ratio : float
        The usual ratio of the width of a category to that of its parent.
    searches : dict
        What was made to look for neighbours, and may serve again.

    Examples
    --------
    >>> edition = Edition.first(Collection.from_taxonomy({"owl": "Animals > Birds", "pike": "Animals > Fish"}))
    >>> later = edition.changed(edition.placed([{"add": "hen", "path": "Animals > Birds"}, {"remove": "pike"}]))
    >>> list(later.collection.tree.documents), later.documents.tolist(), later.id_of(1)
    (['owl', 'hen'], [0, 2], 'pike')
    """

    collection: Collection
    documents: Array
    nodes: Array
    heirs: Array
    gone: Gone
    marks: Array
    ratio: float
    searches: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def first(cls, collection: Collection) -> Edition:
        """Begin with a collection: numbers are positions, and the nodes of its tree.

        Parameters
        ----------
        collection : Collection
            Any one.

        Returns
        -------
        Edition
            Nothing has changed yet.

        Examples
        --------
        >>> Edition.first(Collection.from_taxonomy(["Animals > Owls", "Plants"])).nodes.tolist()
        [0, 1, 2, 3]
        """
        tree = collection.geometry
        documents, nodes = np.arange(len(tree), dtype=np.uint32), np.arange(tree.nodes, dtype=np.uint32)
        gone = Gone(documents[:0], PackedStrings.packed([]))
        return cls(collection, documents, nodes, nodes, gone, np.zeros(len(tree), np.uint8), _usual_ratio(collection))

    def __len__(self) -> int:
        return len(self.documents)

    def __repr__(self) -> str:
        return f"Edition({len(self)} documents, {len(self.gone.numbers)} gone)"

    @property
    def numbered(self) -> int:
        """How many documents there ever were: the number of the next one.

        Returns
        -------
        int
            Those that are there and those that are gone.

        Examples
        --------
        >>> Edition.first(Collection.from_taxonomy(["Animals", "Plants"])).numbered
        2
        """
        return len(self.documents) + len(self.gone.numbers)

    def position(self, number: int) -> int:
        """Say where a document stands.

        Parameters
        ----------
        number : int
            The document's number.

        Returns
        -------
        int
            Its position, -1 if it is gone.

        Examples
        --------
        >>> Edition.first(Collection.from_taxonomy(["Animals", "Plants"])).position(1)
        1
        """
        if not 0 <= number < self.numbered:
            raise UnknownDocumentError(f"Documents have numbers from 0 to {self.numbered - 1} in this edition.")
        return int(self._place[number])

    def positions(self, numbers: Array) -> Array:
        """Say where some documents stand.

        Parameters
        ----------
        numbers : ndarray of int
            The documents' numbers.

        Returns
        -------
        ndarray of int
            Their positions, -1 for those that are gone.

        Examples
        --------
        >>> Edition.first(Collection.from_taxonomy(["Animals", "Plants"])).positions(np.array([1, 0])).tolist()
        [1, 0]
        """
        numbers = np.asarray(numbers)
        if numbers.size and (numbers.min() < 0 or numbers.max() >= self.numbered):
            raise UnknownDocumentError(f"Documents have numbers from 0 to {self.numbered - 1} in this edition.")
        return np.asarray(self._place[numbers])

    def id_of(self, number: int) -> DocumentId:
        """Say what a document goes by, or went by.

        Parameters
        ----------
        number : int
            The number of a document that is there, or gone.

        Returns
        -------
        DocumentId
            Its id.

        Examples
        --------
        >>> Edition.first(Collection.from_taxonomy(["Animals", "Plants"])).id_of(1)
        'Plants'
        """
        position = self.position(number)
        if position >= 0:
            return self.collection.tree.documents[position]
        found = self.gone.ids[int(np.searchsorted(self.gone.numbers, number))]
        return found if isinstance(found, str) else int(found)

    def placed(self, changes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Check changes, and say where everything goes.

        Parameters
        ----------
        changes : iterable of mapping
            `{"add": ID}` with "title", "url", "text" and one of "path", "vector" and "near" (without these it is placed
            by its text), `{"change": ID}` with any of them, `{"remove": ID}`, or `{"category": PATH, "to": PATH}`. Each
            is meant as if those before it had happened.

        Returns
        -------
        list of dict
            The same changes with numbers and places: plain things that JSON can say, for `changed`.

        Examples
        --------
        >>> edition = Edition.first(Collection.from_taxonomy({"owl": "Animals > Birds", "pike": "Animals > Fish"}))
        >>> edition.placed([{"add": "hen", "near": "owl", "title": "Hens"}])
        [{'add': 'hen', 'title': 'Hens', 'document': 2, 'node': 6, 'parent': 2}]
        """
        from zoomrank.documents.placing_changes import placed  # what makes editions knows what they are

        changes = list(changes)
        metadata = self._placed_metadata(changes)
        return placed(self, changes) if metadata is None else metadata

    def _placed_metadata(self, changes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]] | None:
        """Return the placed form of changes that need no place; None if one of them does, or may be invalid."""
        if not all(isinstance(change, Mapping) and _is_description(change) for change in changes):
            return None
        positions = self.collection.geometry.documents.places(change["change"] for change in changes)
        if (positions < 0).any():
            return None
        numbers = self.documents[positions].tolist()
        return [
            {"change": change["change"], **{name: change[name] for name in COLUMNS if name in change}, "document": at}
            for change, at in zip(changes, numbers, strict=True)
        ]

    def changed(self, placed: Iterable[Mapping[str, Any]]) -> Edition:
        """Apply changes that were placed.

        Parameters
        ----------
        placed : iterable of mapping
            What `placed` of this edition returned, whole or its beginning.

        Returns
        -------
        Edition
            The next edition; the same ever again, and whether changes are applied one by one or at once.

        Examples
        --------
        >>> edition = Edition.first(Collection.from_taxonomy({"owl": "Animals > Birds", "pike": "Animals > Fish"}))
        >>> edition.changed(edition.placed([{"category": "Animals > Birds", "to": "Birds"}])).collection.tree.depth
        3
        """
        from zoomrank.documents.applying_changes import applied

        placed = list(placed)
        return self._described(placed) if is_metadata(placed) else applied(self, placed)

    def _described(self, placed: Sequence[Mapping[str, Any]]) -> Edition:
        """Build the same edition, in the same tree, with other metadata."""
        if not placed:
            return self
        collection = copy.copy(self.collection)
        for name in COLUMNS:
            said = {self.position(change["document"]): change[name] for change in placed if name in change}
            if said:
                setattr(collection, f"{name}s", _with_strings(getattr(collection, f"{name}s"), said, len(self)))
        texts = [change["document"] for change in placed if "text" in change]
        after = replace(self, collection=collection, searches=self.searches_without(texts))
        vars(after).update({name: vars(self)[name] for name in ("index", "_place") if name in vars(self)})
        return after

    def remade(self, seed: int = 0, progress: Progress | None = None) -> Edition:
        """Make the tree anew, from what is known of the documents now.

        Taxonomies keep their categories and get the widths that belong to their depths. Others are made of their
        vectors or, where those are not known of all documents, of their texts.

        Parameters
        ----------
        seed : int
            Where chance begins.
        progress : callable, optional
            Told now and then how many documents have found their place.

        Returns
        -------
        Edition
            The same documents under the same numbers, in another tree.

        Examples
        --------
        >>> edition = Edition.first(Collection.from_vectors(np.eye(3), ids=["a", "b", "c"]))
        >>> edition.remade().documents.tolist()
        [0, 1, 2]
        """
        from zoomrank.documents.remaking import remade

        return remade(self, seed, progress)

    def crowded(self) -> list[Crowd]:
        """Find where the tree no longer fits, since too much was added there without any order among it.

        Returns
        -------
        list of Crowd
            The places, the one with the most additions first.

        Examples
        --------
        >>> Edition.first(Collection.from_taxonomy(["Animals", "Plants"])).crowded()
        []
        """
        from zoomrank.documents.crowding import crowded

        return crowded(self)

    def movement_to(self, later: Edition) -> Movement:
        """Say where everything is in a later edition.

        Parameters
        ----------
        later : Edition
            One that this has become, after any number of changes.

        Returns
        -------
        Movement
            For `Ranked.move`.

        Examples
        --------
        >>> edition = Edition.first(Collection.from_taxonomy({"owl": "Birds", "hen": "Birds", "pike": "Fish"}))
        >>> edition.movement_to(edition.changed(edition.placed([{"remove": "owl"}]))).document.tolist()
        [-1, 0, 1]
        """
        heirs = later.heirs[self.nodes]
        return Movement(later.index[heirs], later.positions(self.documents), heirs == self.nodes)

    @cached_property
    def index(self) -> Array:
        """The node of each node number in the tree of this edition, -1 for those that are gone.

        Returns
        -------
        ndarray of int
            As long as `heirs`.

        Examples
        --------
        >>> Edition.first(Collection.from_taxonomy(["Animals", "Plants"])).index.tolist()
        [0, 1, 2]
        """
        index = np.full(len(self.heirs), -1, np.int32)
        index[self.nodes] = np.arange(len(self.nodes), dtype=np.int32)
        return index

    def searches_without(self, documents: Iterable[int]) -> dict[str, Any]:
        """What may serve again to look for neighbours when these documents have other texts.

        Parameters
        ----------
        documents : iterable of int
            Their numbers.

        Returns
        -------
        dict
            For the next edition.

        Examples
        --------
        >>> Edition.first(Collection.from_taxonomy(["Animals", "Plants"])).searches_without([1])
        {}
        """
        stale = list(documents)
        return {name: search.without(stale) for name, search in self.searches.items()} if stale else self.searches

    @cached_property
    def _place(self) -> Array:
        place = np.full(self.numbered, -1, np.int32)
        place[self.documents] = np.arange(len(self.documents), dtype=np.int32)
        return place


def _usual_ratio(collection: Collection) -> float:
    """The median over all categories of a category's width over that of its parent, if any."""
    shape, width = collection.geometry.shape, collection.geometry.width
    inner: Array = np.flatnonzero(np.diff(shape.child_start))[1:]
    inner = inner[(width[shape.parent[inner]] > 0) & (width[inner] > 0)]
    if len(inner) == 0:
        return USUAL_RATIO
    return float(np.median(width[inner] / width[shape.parent[inner]]))


def is_metadata(placed: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether placed changes leave the tree as it is: only titles, urls and texts change."""
    return all(change.keys() <= _METADATA for change in placed)


def _is_description(change: Mapping[str, Any]) -> bool:
    """Return whether a change, as a caller says it, is a valid one of metadata alone, if the document is there."""
    rest = change.keys() - {"change"}
    return (
        type(change.get("change")) in (str, int)
        and bool(rest)
        and rest <= set(COLUMNS)
        and all(isinstance(change[name], str) for name in rest)
    )


def _with_strings(column: Sequence[str] | None, said: Mapping[int, str], count: int) -> PackedStrings | None:
    """Return a column with other strings at some positions; None while all of its strings are empty."""
    if column is None and not any(said.values()):
        return None
    if column is None:
        column = PackedStrings(np.zeros(0, np.uint8), np.zeros(count + 1, np.int64))
    packed = column if isinstance(column, PackedStrings) else PackedStrings.packed(column)
    source = np.arange(count)
    source[list(said)] = count + np.arange(len(said))
    return packed.rearranged(source, said.values())


def packed_changes(placed: Sequence[Mapping[str, Any]]) -> bytes:
    """Compress placed changes; some at a time, since no other thread runs while JSON is written."""
    parts = (placed[first : first + _PACKED_AT_ONCE] for first in range(0, len(placed), _PACKED_AT_ONCE))
    said = (json.dumps(list(part), separators=(",", ":"), ensure_ascii=False)[1:-1] for part in parts)
    return zlib.compress(f"[{','.join(said)}]".encode(), 1)


def unpacked_changes(content: bytes) -> list[dict[str, Any]]:
    """Return the placed changes that `packed_changes` compressed."""
    changes: list[dict[str, Any]] = json.loads(zlib.decompress(content))
    return changes
