"""Application of placed changes: fill arrays that are indexed by number, and build a tree of the nodes that are left.

Everything here is by number: the parent, width and name of a node, the title and vector of a document. The new tree has
the children of a node in the order of their numbers, so the order in which changes are applied does not matter.

`remade` builds another tree of the same documents under the same numbers, with categories that fit them now. Statistics
of a subtree of the old tree go to the smallest subtree of the new one that holds all its documents.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from zoomrank.compiled import compiled_bulk
from zoomrank.documents.clustering import Progress, tree_from_vectors
from zoomrank.documents.collection import Collection
from zoomrank.documents.nearest_documents import of_length_one
from zoomrank.documents.vectors import text_vectors
from zoomrank.documents.versions import BORROWED, COLUMNS, LATE, USUAL_RATIO, CollectionVersion, RemovedDocuments
from zoomrank.errors import ChangeError, ParameterError
from zoomrank.spaces.document_tree import DocumentTree
from zoomrank.spaces.ids import DocumentId, PackedStrings
from zoomrank.spaces.tree_shape import Shape, breadth_first_shape, exponential_widths, least_common_ancestor
from zoomrank.types import Array

PlacedChange = Mapping[str, Any]


def apply_changes(edition: CollectionVersion, placed: Iterable[PlacedChange]) -> CollectionVersion:
    """Return the edition after these changes."""
    run: list[PlacedChange] = []
    for change in placed:
        if "category" in change:  # its subtree is looked up in the tree as it was just before
            edition, run = _after(edition, run), []
            edition = _after(edition, [change])
        else:
            run.append(change)
    return _after(edition, run)


def encode_vector(vector: Array) -> str:
    """Encode a vector for JSON."""
    return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()


def decode_vector(words: str | Sequence[float]) -> Array:
    """Decode a vector, from base64 or from a list of numbers."""
    return np.frombuffer(base64.b64decode(words), "<f4") if isinstance(words, str) else np.array(words, np.float32)


class _Changes:
    """The net effect of a run of changes, by the numbers of nodes and documents."""

    def __init__(self, edition: CollectionVersion, run: Sequence[PlacedChange]) -> None:
        self.edition = edition
        self.root = int(edition.nodes[0])
        self.parent: dict[int, int] = {}
        self.width: dict[int, float] = {}
        self.name: dict[int, str] = {}
        self.heir: dict[int, int] = {}  # the successor of each dropped node
        self.made: list[int] = []  # nodes
        self.born: dict[int, DocumentId] = {}  # new documents
        self.leaf: dict[int, int] = {}  # of new documents
        self.left: list[int] = []  # removed documents
        self.said: dict[str, dict[int, str]] = {name: {} for name in COLUMNS}
        self.vector: dict[int, Array | int] = {}  # its own, or the number of the document whose vector it borrows
        self.borrowed: dict[int, bool] = {}  # True if its vector is another document's
        self.late: list[int] = []
        for change in run:
            self._take(change)
        if self.made != list(range(len(edition.heirs), len(edition.heirs) + len(self.made))) or list(self.born) != list(
            range(edition.numbered, edition.numbered + len(self.born))
        ):
            raise ChangeError("These changes were placed for another version of the collection: place them again.")

    def _take(self, change: PlacedChange) -> None:
        for node, parent, name, width in change.get("made", ()):
            self._make(node, parent, name, width)
        if "document" in change:
            self._take_document(change, int(change["document"]))
        elif "name" in change:
            self.name[change["node"]] = change["name"]
        if "parent" in change:
            self.parent[change["node"]] = change["parent"]
        for node, heir in change.get("dropped", ()):
            self.heir[node] = heir

    def _make(self, node: int, parent: int, name: str, width: float) -> None:
        self.made.append(node)
        self.name[node], self.width[node] = name, width
        if parent < 0:  # a root above the one that there was
            self.parent[self.root], self.root = node, node
        self.parent[node] = parent

    def _take_document(self, change: PlacedChange, document: int) -> None:
        if "add" in change:
            self.made.append(change["node"])
            self.born[document], self.leaf[document] = change["add"], change["node"]
            self.name[change["node"]] = str(change["add"])
        if "remove" in change:
            self.left.append(document)
        if "parent" in change:
            self.late.append(document)
        for name in COLUMNS:
            if name in change:
                self.said[name][document] = change[name]
        if "vector" in change:
            self.vector[document], self.borrowed[document] = decode_vector(change["vector"]), False
        elif "like" in change:
            like = int(change["like"])
            self.vector[document], self.borrowed[document] = self.vector.get(like, like), True

    def successor_of(self, node: int) -> int:
        """Return the node that finally inherits what was learned of a node."""
        while node in self.heir:
            node = self.heir[node]
        return node


def _after(edition: CollectionVersion, run: Sequence[PlacedChange]) -> CollectionVersion:
    if not run:
        return edition
    changes = _Changes(edition, run)
    total = len(edition.heirs) + len(changes.made)
    shape, old = edition.collection.geometry.shape, edition.nodes
    parent, width = np.full(total, -1, np.int64), np.zeros(total)
    parent[old], width[old] = old[shape.parent], edition.collection.geometry.width
    parent[old[0]] = -1
    _fill(parent, changes.parent)
    _fill(width, changes.width)
    alive = np.zeros(total, bool)
    alive[old] = True
    alive[changes.made] = True
    alive[list(changes.heir)] = False
    for change in run:
        if "factor" in change:
            inside = old[_below(edition, change["node"])]
            width[inside] = np.minimum(width[inside] * change["factor"], width[change["parent"]])
    live: Array = np.flatnonzero(alive)
    place = np.cumsum(alive) - 1
    shape, order = breadth_first_shape(np.where(parent[live] < 0, -1, place[parent[live]]))
    nodes = live[order].astype(np.uint32)
    document = np.zeros(total, np.uint32)
    document[old[edition.collection.geometry.shape.leaf]] = edition.documents
    document[list(changes.leaf.values())] = list(changes.leaf)
    documents = document[nodes[shape.leaf]]
    source = _sources(edition.numbered + len(changes.born), edition.documents, changes.born, documents)
    before = edition.collection.geometry.documents
    ids = before.rearranged(source, [before[0], *changes.born.values()])
    tree = DocumentTree(shape, width[nodes], ids, _names(edition, changes, nodes))
    return CollectionVersion(
        _collection(edition, changes, tree, documents),
        documents,
        nodes,
        _heirs(edition, changes, total),
        _gone(edition, changes),
        _marks(edition, changes, documents),
        edition.ratio,
        edition.searches_without(changes.said["text"]),
    )


def _fill(array: Array, values: Mapping[int, Any]) -> None:
    if values:
        array[np.fromiter(values, np.int64, len(values))] = np.array(list(values.values()))


def _below(edition: CollectionVersion, node: int) -> Array:
    """Return for each node of the tree whether it is in the subtree of a node; parents stand before their children."""
    shape, at = edition.collection.geometry.shape, int(edition.index[node])
    first, end = shape.first_document, shape.end_document
    inside = (first >= first[at]) & (end <= end[at])
    inside[:at] = False
    return np.asarray(inside)


def _heirs(edition: CollectionVersion, changes: _Changes, total: int) -> Array:
    heirs = np.arange(total, dtype=np.uint32)
    inherits = heirs.copy()
    for node in changes.heir:
        inherits[node] = changes.successor_of(node)
    heirs[: len(edition.heirs)] = edition.heirs
    return inherits[heirs]


def _sources(count: int, there: Array, said: Mapping[int, Any], wanted: Array) -> Array:
    """Return for each wanted number its old position; one behind the last means empty, later ones new values."""
    source = np.full(count, len(there), np.int64)
    source[there] = np.arange(len(there))
    source[np.fromiter(said, np.int64, len(said))] = len(there) + 1 + np.arange(len(said))
    return np.asarray(source[wanted])


def _names(edition: CollectionVersion, changes: _Changes, nodes: Array) -> PackedStrings | None:
    names = edition.collection.geometry.names
    if names is None:
        return None
    source = _sources(len(edition.heirs) + len(changes.made), edition.nodes, changes.name, nodes)
    return _packed(names).rearranged(source, ["", *changes.name.values()])


def _collection(edition: CollectionVersion, changes: _Changes, tree: DocumentTree, documents: Array) -> Collection:
    before = edition.collection
    named = zip(COLUMNS, before.columns, strict=True)
    columns = [_column(edition, changes, column, changes.said[name], documents) for name, column in named]
    vectors = None if before.vectors is None else _vectors(edition, changes, before.vectors, documents)
    return before.replaced(tree, columns, vectors)


def _column(
    edition: CollectionVersion,
    changes: _Changes,
    column: Sequence[str] | None,
    said: Mapping[int, str],
    documents: Array,
) -> PackedStrings | None:
    if column is None and not any(said.values()):
        return None
    if column is None:
        column = PackedStrings(np.zeros(0, np.uint8), np.zeros(len(edition) + 1, np.int64))
    source = _sources(edition.numbered + len(changes.born), edition.documents, said, documents)
    return _packed(column).rearranged(source, ["", *said.values()])


def _packed(column: Sequence[str]) -> PackedStrings:
    return column if isinstance(column, PackedStrings) else PackedStrings.packed(column)


def _vectors(edition: CollectionVersion, changes: _Changes, before: Array, documents: Array) -> Array:
    own = {number: vector for number, vector in changes.vector.items() if not isinstance(vector, int)}
    count = edition.numbered + len(changes.born)
    source = _sources(count, edition.documents, own, np.arange(count))
    for number, like in changes.vector.items():
        if isinstance(like, int):
            source[number] = edition.position(like)
    source = source[documents]
    vectors = np.asarray(before[np.minimum(source, len(before) - 1)])
    new = np.flatnonzero(source > len(before))
    if len(new):
        vectors[new] = np.stack(list(own.values()))[source[new] - len(before) - 1]
    return vectors


def _gone(edition: CollectionVersion, changes: _Changes) -> RemovedDocuments:
    if not changes.left:
        return edition.gone
    left = sorted(changes.left)
    ids = [changes.born[number] if number in changes.born else edition.id_of(number) for number in left]
    numbers = np.concatenate([edition.gone.numbers, np.array(left, np.uint32)])
    order = np.argsort(numbers, kind="stable")
    if isinstance(ids[0], str):
        before = edition.gone.ids if isinstance(edition.gone.ids, PackedStrings) else PackedStrings.packed([])
        return RemovedDocuments(numbers[order], before.rearranged(order, ids))
    earlier = edition.gone.ids if isinstance(edition.gone.ids, np.ndarray) else np.zeros(0, np.int64)
    return RemovedDocuments(numbers[order], np.concatenate([earlier, np.array(ids, np.int64)])[order])


def _marks(edition: CollectionVersion, changes: _Changes, documents: Array) -> Array:
    marks = np.zeros(edition.numbered + len(changes.born), np.uint8)
    marks[edition.documents] = edition.marks
    marks[changes.late] |= LATE
    for number, borrowed in changes.borrowed.items():
        marks[number] = marks[number] | BORROWED if borrowed else marks[number] & ~BORROWED
    return np.asarray(marks[documents])


def remade(edition: CollectionVersion, seed: int = 0, progress: Progress | None = None) -> CollectionVersion:
    """Rebuild the tree of the same documents from their present categories, vectors or texts."""
    collection = edition.collection
    if collection.geometry.names is not None:
        return _with_usual_widths(edition)
    if len(edition) == 1:
        return replace(edition, marks=np.zeros(1, np.uint8))
    vectors = collection.vectors
    if collection.texts is not None and (vectors is None or ((edition.marks & BORROWED) > 0).any()):
        dimensions = 128 if vectors is None else vectors.shape[1]
        vectors, _ = text_vectors(list(collection.texts), dimensions=dimensions, seed=seed)
    if vectors is None:
        raise ParameterError("This collection has no categories, vectors or texts to rebuild its tree from.")
    made, rows = tree_from_vectors(vectors, normalise=of_length_one(vectors), seed=seed, progress=progress)
    return _with_tree(edition, made, rows, vectors)


def _with_usual_widths(edition: CollectionVersion) -> CollectionVersion:
    """Return the same categories, with the usual width of their depth."""
    before = edition.collection.geometry
    ratio = edition.ratio if 0 < edition.ratio < 1 else USUAL_RATIO
    width = exponential_widths(before.shape, ratio, float(before.width[0])) if before.width[0] > 0 else before.width
    collection = _like(
        edition.collection, before.with_width(width), np.arange(len(edition)), edition.collection.vectors
    )
    return replace(edition, collection=collection, marks=np.zeros(len(edition), np.uint8), searches=edition.searches)


def _with_tree(edition: CollectionVersion, made: DocumentTree, rows: Array, vectors: Array) -> CollectionVersion:
    """Build a version with this tree, in which the row of each leaf is a position of the version before.

    Leaves keep their numbers, and so does the root: it holds all documents in both. Other nodes get new numbers.
    """
    old, before = edition.collection.geometry.shape, edition.nodes
    numbers = np.full(made.nodes, -1, np.int64)
    numbers[made.shape.leaf] = before[old.leaf[rows]]
    numbers[0] = before[0]
    new: Array = np.flatnonzero(numbers < 0)
    numbers[new] = len(edition.heirs) + np.arange(len(new))
    ascending = np.argsort(numbers)  # children stand in the order of their numbers
    place = np.empty(made.nodes, np.int64)
    place[ascending] = np.arange(made.nodes)
    parents = place[made.shape.parent[ascending]]
    parents[place[0]] = -1
    shape, order = breadth_first_shape(parents)
    nodes = numbers[ascending[order]].astype(np.uint32)
    at = np.empty(made.nodes, np.int64)  # the row of each leaf of the built tree
    at[made.shape.leaf] = rows
    source = at[ascending[order][shape.leaf]]
    ids = edition.collection.geometry.documents.rearranged(source)
    tree = DocumentTree(shape, made.width[ascending[order]], ids)
    heirs = np.arange(len(edition.heirs) + len(new), dtype=np.uint32)
    heirs[before] = nodes[_smallest_around(old, shape, source)]
    heirs[before[0]] = before[0]
    heirs[: len(edition.heirs)] = heirs[edition.heirs]
    return CollectionVersion(
        _like(edition.collection, tree, source, vectors),
        edition.documents[source],
        nodes,
        heirs,
        edition.gone,
        np.zeros(len(edition), np.uint8),
        edition.ratio,
        edition.searches,
    )


def _like(before: Collection, tree: DocumentTree, source: Array, vectors: Array | None) -> Collection:
    """Return the same collection in another tree."""
    columns = [None if column is None else _packed(column).rearranged(source) for column in before.columns]
    return before.replaced(tree, columns, None if vectors is None else vectors[source])


@compiled_bulk
def _smallest_around(old: Shape, new: Shape, source: Array) -> Array:
    """Return for each node of the old tree the smallest subtree of the new one that holds all its documents."""
    first, last = np.empty(len(source), np.int64), np.empty(len(old.parent), np.int64)
    lowest = np.empty(len(old.parent), np.int64)
    for position in range(len(source)):
        first[source[position]] = position
    for node in range(len(old.parent)):
        lowest[node], last[node] = len(source), -1
    for position in range(len(source)):
        lowest[old.leaf[position]] = last[old.leaf[position]] = first[position]
    found = np.zeros(len(old.parent), np.int64)
    for node in range(len(old.parent) - 1, -1, -1):
        above = old.parent[node]
        lowest[above], last[above] = min(lowest[above], lowest[node]), max(last[above], last[node])
        found[node] = least_common_ancestor(new.parent, new.leaf[lowest[node]], new.leaf[last[node]])
    return found
