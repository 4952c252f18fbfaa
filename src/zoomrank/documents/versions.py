"""`CollectionVersion`: one version of a collection, in which documents and nodes have numbers that never change.

Positions and nodes of a tree are counted from left to right and from top to bottom, so one more document shifts nearly
all of them. What is stored about a document (by a learner, in a log) is stored under its number.

A change is made in two steps. `placed` validates it, searches for neighbours, and decides where everything goes.
`changed` applies those decisions and makes none itself, so a stored change leads to the same version whenever it is
replayed. Children stand in the order of their numbers, so it does not matter either whether changes are applied one by
one or all at once. Changes of metadata (titles, urls, texts) leave the tree as it is: the same object.

`crowded` finds places where the tree no longer fits, since too many documents were added there without any order.
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
from zoomrank.spaces.document_tree import Remap
from zoomrank.spaces.ids import DocumentId, PackedStrings
from zoomrank.types import Array

COLUMNS = ("title", "url", "text")  # the metadata of a document
_METADATA = {"change", "document", *COLUMNS}  # keys of a placed change that leaves the tree as it is
_PACKED_AT_ONCE = 256  # changes
USUAL_RATIO = 0.837  # of the width of a category to that of its parent, where a collection has no example of it
LATE, BORROWED = np.uint8(1), np.uint8(2)  # placed since the tree was built; the vector is another document's


class RemovedDocuments(NamedTuple):
    """Removed documents.

    Attributes
    ----------
    numbers : ndarray of int
        Their numbers, ascending.
    ids : sequence of str or ndarray of int
        The ids that they had.
    """

    numbers: Array
    ids: PackedStrings | Array


class CrowdedPlace(NamedTuple):
    """A place where the tree no longer fits.

    Attributes
    ----------
    node : int
        Its node in the tree.
    name : str
        Its name.
    documents : int
        Number of documents there now.
    added : int
        Number of those that were added since the tree was built.
    says : str
        The problem, in a sentence for people.
    """

    node: int
    name: str
    documents: int
    added: int
    says: str


@dataclass(frozen=True, eq=False)
class CollectionVersion:
    """A version of a collection.

    Parameters
    ----------
    collection : Collection
        The documents as they are now.
    documents : ndarray of int
        The number of the document at each position.
    nodes : ndarray of int
        The number of each node of the tree.
    heirs : ndarray of int
        For each number that a node ever had: itself while the node is there, else the number of its successor, which
        inherits what was learned of it.
    gone : RemovedDocuments
        Removed documents.
    marks : ndarray of int
        Flags of the document at each position: `LATE`, `BORROWED`.
    ratio : float
        The usual ratio of the width of a category to that of its parent.
    searches : dict
        Indexes that were built to search for neighbours, for reuse.

    Examples
    --------
    >>> birds = Collection.from_taxonomy({"owl": "Animals > Birds", "pike": "Animals > Fish"})
    >>> edition = CollectionVersion.first(birds)
    >>> later = edition.changed(edition.placed([{"add": "hen", "path": "Animals > Birds"}, {"remove": "pike"}]))
    >>> list(later.collection.tree.documents), later.documents.tolist(), later.id_of(1)
    (['owl', 'hen'], [0, 2], 'pike')
    """

    collection: Collection
    documents: Array
    nodes: Array
    heirs: Array
    gone: RemovedDocuments
    marks: Array
    ratio: float
    searches: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def first(cls, collection: Collection) -> CollectionVersion:
        """Begin with a collection: numbers are positions, and the nodes of its tree.

        Parameters
        ----------
        collection : Collection
            Any collection.

        Returns
        -------
        CollectionVersion
            The first version.
        """
        tree = collection.geometry
        documents, nodes = np.arange(len(tree), dtype=np.uint32), np.arange(tree.nodes, dtype=np.uint32)
        gone = RemovedDocuments(documents[:0], PackedStrings.packed([]))
        return cls(collection, documents, nodes, nodes, gone, np.zeros(len(tree), np.uint8), _usual_ratio(collection))

    def __len__(self) -> int:
        return len(self.documents)

    def __repr__(self) -> str:
        return f"CollectionVersion({len(self)} documents, {len(self.gone.numbers)} gone)"

    @property
    def numbered(self) -> int:
        """Number of documents that there ever were: the number that the next one gets.

        Returns
        -------
        int
            Present and removed documents together.
        """
        return len(self.documents) + len(self.gone.numbers)

    def position(self, number: int) -> int:
        """Return the position of a document.

        Parameters
        ----------
        number : int
            The document's number.

        Returns
        -------
        int
            Its position, -1 if it was removed.
        """
        if not 0 <= number < self.numbered:
            raise UnknownDocumentError(f"Documents have numbers from 0 to {self.numbered - 1} in this version.")
        return int(self._place[number])

    def positions(self, numbers: Array) -> Array:
        """Return the positions of some documents.

        Parameters
        ----------
        numbers : ndarray of int
            The documents' numbers.

        Returns
        -------
        ndarray of int
            Their positions, -1 for those that were removed.
        """
        numbers = np.asarray(numbers)
        if numbers.size and (numbers.min() < 0 or numbers.max() >= self.numbered):
            raise UnknownDocumentError(f"Documents have numbers from 0 to {self.numbered - 1} in this version.")
        return np.asarray(self._place[numbers])

    def id_of(self, number: int) -> DocumentId:
        """Return the id of a document, also of a removed one.

        Parameters
        ----------
        number : int
            The document's number.

        Returns
        -------
        DocumentId
            Its id.
        """
        position = self.position(number)
        if position >= 0:
            return self.collection.tree.documents[position]
        found = self.gone.ids[int(np.searchsorted(self.gone.numbers, number))]
        return found if isinstance(found, str) else int(found)

    def placed(self, changes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Validate changes, and decide where everything goes.

        Parameters
        ----------
        changes : iterable of mapping
            `{"add": ID}` with "title", "url", "text" and one of "path", "vector" and "near" (without these it is placed
            by its text), `{"change": ID}` with any of them, `{"remove": ID}`, or `{"category": PATH, "to": PATH}`. Each
            is understood as if those before it had been applied.

        Returns
        -------
        list of dict
            The same changes with numbers and places: plain data for JSON, and for `changed`.

        Examples
        --------
        >>> birds = Collection.from_taxonomy({"owl": "Animals > Birds", "pike": "Animals > Fish"})
        >>> edition = CollectionVersion.first(birds)
        >>> edition.placed([{"add": "hen", "near": "owl", "title": "Hens"}])
        [{'add': 'hen', 'title': 'Hens', 'document': 2, 'node': 6, 'parent': 2}]
        """
        from zoomrank.documents.change_placement import placed  # here, since that module imports this one

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

    def changed(self, placed: Iterable[Mapping[str, Any]]) -> CollectionVersion:
        """Apply placed changes.

        Parameters
        ----------
        placed : iterable of mapping
            The result of `placed` of this version, whole or its beginning.

        Returns
        -------
        CollectionVersion
            The next version. It is the same whether changes are applied one by one or at once.
        """
        from zoomrank.documents.change_application import apply_changes

        placed = list(placed)
        return self._described(placed) if is_metadata(placed) else apply_changes(self, placed)

    def _described(self, placed: Sequence[Mapping[str, Any]]) -> CollectionVersion:
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

    def remade(self, seed: int = 0, progress: Progress | None = None) -> CollectionVersion:
        """Rebuild the tree from the documents as they are now.

        Taxonomies keep their categories and get the usual widths of their depths. Other trees are built from vectors
        or, where some documents have none of their own, from texts.

        Parameters
        ----------
        seed : int
            Seed of the random numbers.
        progress : callable, optional
            Called now and then with the number of documents that are placed.

        Returns
        -------
        CollectionVersion
            The same documents under the same numbers, in another tree.
        """
        from zoomrank.documents.change_application import remade

        return remade(self, seed, progress)

    def crowded(self) -> list[CrowdedPlace]:
        """Find places where the tree no longer fits, since too many documents were added there without any order.

        Returns
        -------
        list of CrowdedPlace
            The places, the one with the most additions first.
        """
        return crowded(self)

    def remap_to(self, later: CollectionVersion) -> Remap:
        """Return where everything is in a later version.

        Parameters
        ----------
        later : CollectionVersion
            A version that this has become, after any number of changes.

        Returns
        -------
        Remap
            For `Ranked.move`.

        Examples
        --------
        >>> birds = Collection.from_taxonomy({"owl": "Birds", "hen": "Birds", "pike": "Fish"})
        >>> edition = CollectionVersion.first(birds)
        >>> edition.remap_to(edition.changed(edition.placed([{"remove": "owl"}]))).document.tolist()
        [-1, 0, 1]
        """
        heirs = later.heirs[self.nodes]
        return Remap(later.index[heirs], later.positions(self.documents), heirs == self.nodes)

    @cached_property
    def index(self) -> Array:
        """The node of each node number in the tree of this version, -1 for those that are gone.

        Returns
        -------
        ndarray of int
            As long as `heirs`.
        """
        index = np.full(len(self.heirs), -1, np.int32)
        index[self.nodes] = np.arange(len(self.nodes), dtype=np.int32)
        return index

    def searches_without(self, documents: Iterable[int]) -> dict[str, Any]:
        """Return the search indexes that stay valid when these documents have other texts.

        Parameters
        ----------
        documents : iterable of int
            Numbers of the documents.

        Returns
        -------
        dict
            For the next version.
        """
        stale = list(documents)
        return {name: search.without(stale) for name, search in self.searches.items()} if stale else self.searches

    @cached_property
    def _place(self) -> Array:
        place = np.full(self.numbered, -1, np.int32)
        place[self.documents] = np.arange(len(self.documents), dtype=np.int32)
        return place


def _usual_ratio(collection: Collection) -> float:
    """Return the median over all categories of the ratio of a category's width to that of its parent."""
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


def pack_changes(placed: Sequence[Mapping[str, Any]]) -> bytes:
    """Compress placed changes; some at a time, since no other thread runs while JSON is written."""
    parts = (placed[first : first + _PACKED_AT_ONCE] for first in range(0, len(placed), _PACKED_AT_ONCE))
    said = (json.dumps(list(part), separators=(",", ":"), ensure_ascii=False)[1:-1] for part in parts)
    return zlib.compress(f"[{','.join(said)}]".encode(), 1)


def unpack_changes(content: bytes) -> list[dict[str, Any]]:
    """Return the placed changes that `pack_changes` compressed."""
    changes: list[dict[str, Any]] = json.loads(zlib.decompress(content))
    return changes


CROWD = 32  # additions that are too many, if they are most of the documents there
GROWN = 4  # a category that has grown by this factor no longer fits


def crowded(edition: CollectionVersion) -> list[CrowdedPlace]:
    """Return the crowded places, the one with the most additions first."""
    tree = edition.collection.tree
    shape, late = tree.shape, (edition.marks & LATE) > 0
    before = np.concatenate([[0], np.cumsum(late)])
    below = before[shape.end_document] - before[shape.first_document]
    documents = (shape.end_document - shape.first_document).astype(np.int64)
    if tree.names is None:
        beside = np.bincount(shape.parent[shape.leaf[late]], minlength=tree.nodes)
        full: Array = (beside >= CROWD) & (2 * beside > documents)
    else:
        beside = below
        full = (below >= CROWD) & (documents > below) & (documents > GROWN * (documents - below))
    full[shape.leaf] = False
    smallest = full.copy()
    smallest[shape.parent[1:][full[1:]]] = False  # where a subtree is crowded, report the subtree
    places = np.flatnonzero(smallest)
    places = places[np.argsort(-beside[places], kind="stable")]
    return [_crowd(edition, int(node), int(documents[node]), int(beside[node])) for node in places]


def _crowd(edition: CollectionVersion, node: int, documents: int, added: int) -> CrowdedPlace:
    tree = edition.collection.tree
    if tree.names is not None:
        name = tree.name(node) or "the whole collection"
        says = f"{name} had {documents - added} documents when the tree was made, and has {documents} now."
    else:
        first = tree.documents[int(tree.shape.first_document[node])]
        name = f"around {first!r}"
        says = (
            f"{added} of the {documents} documents {name} were added beside each other, without any order among them."
        )
    return CrowdedPlace(node, name, documents, added, says)
