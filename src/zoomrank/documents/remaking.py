"""Rebuilt trees: the same documents under the same numbers, with categories that fit them now.

Statistics of a subtree of the old tree go to the smallest subtree of the new one that holds all its documents.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from zoomrank.compiled import compiled
from zoomrank.documents.clustering import Progress, tree_from_vectors
from zoomrank.documents.collection import Collection
from zoomrank.documents.editions import BORROWED, USUAL_RATIO, CollectionVersion
from zoomrank.documents.nearest_documents import of_length_one
from zoomrank.documents.texts import text_vectors
from zoomrank.errors import ParameterError
from zoomrank.numbers import Array
from zoomrank.spaces.packed_strings import PackedStrings
from zoomrank.spaces.trees.document_tree import DocumentTree
from zoomrank.spaces.trees.shape import Shape, breadth_first_shape, least_common_ancestor
from zoomrank.spaces.trees.widths import exponential_widths


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
    columns = [
        None if column is None else _packed(column).rearranged(source)
        for column in (before.titles, before.urls, before.texts)
    ]
    return Collection(
        tree,
        scale=before.scale,
        titles=columns[0],
        urls=columns[1],
        texts=columns[2],
        vectors=None if vectors is None else vectors[source],
        notes=before.notes,
    )


def _packed(column: object) -> PackedStrings:
    return column if isinstance(column, PackedStrings) else PackedStrings.packed(column)  # type: ignore[arg-type]


@compiled
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
