"""From the caller's order to the tree's: checks of what comes with documents, and where each piece of it goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zoomrank.documents.reading import Table
from zoomrank.errors import (
    DuplicateDocumentError,
    EmptyCollectionError,
    MetricError,
    ParameterError,
    TaxonomyError,
    UnknownDocumentError,
)
from zoomrank.numbers import Array
from zoomrank.spaces.ids import DocumentId, DocumentIds
from zoomrank.spaces.topology import shape_from_breadth_first
from zoomrank.spaces.tree import DocumentTree

Column = Sequence[str] | Mapping[Any, str] | None  # in the order of the documents, or by id
ROUNDING = 1e-6  # by how much, relative to the largest, two directions of one distance may differ


def checked_scale(scale: float) -> float:
    """The scale, if it is one."""
    if not 0 < scale < np.inf:
        raise ParameterError(f"A scale must be a positive number, not {scale}.")
    return float(scale)


def check_counts(columns: Mapping[str, Column], documents: int) -> None:
    """Refuse a column that does not have one string for each document."""
    for name, column in columns.items():
        if isinstance(column, str):
            raise UnknownDocumentError(f"The {name} must be a sequence, one for each document, not a single string.")
        if column is not None and not isinstance(column, Mapping) and len(column) != documents:
            raise UnknownDocumentError(f"{len(column)} {name} were given for {documents} documents.")


def columns_in_order(columns: Mapping[str, Column], table: Table, rows: Array, ids: DocumentIds) -> dict[str, Any]:
    """Bring columns into the order of the leaves; what the caller does not give, the table may have."""
    arranged: dict[str, list[str] | None] = {}
    for name, given in columns.items():
        column = table.get(name.removesuffix("s")) if given is None else given
        if column is None or isinstance(column, Mapping):
            arranged[name] = _by_id(name, column, ids)
        else:
            arranged[name] = [column[row] for row in rows]
    return arranged


def columns_by_id(columns: Mapping[str, Mapping[Any, str] | None], table: Table, ids: DocumentIds) -> dict[str, Any]:
    """Bring columns that go by id into the order of the leaves; what the caller does not give, the table may have."""
    arranged = {}
    for name, given in columns.items():
        known = name.removesuffix("s")
        if given is None and known in table:
            given = dict(zip(table["id"], table[known], strict=True))
            given = {document: given[document] for document in ids}  # without the categories that are left out
        arranged[name] = _by_id(name, given, ids)
    return arranged


def _by_id(name: str, column: Mapping[Any, str] | None, ids: DocumentIds) -> list[str] | None:
    if column is None:
        return None
    strange = next((document for document in column if document not in ids), None)
    if strange is not None:
        raise UnknownDocumentError(f"The {name} mention {strange!r}, which is not a document of this collection.")
    return [column.get(document, "") for document in ids]


def taxonomy_tree(
    table: Table, place: str, separator: str, categories: str, epsilon: float
) -> tuple[DocumentTree, Table]:
    """Build the tree of a taxonomy; the table comes back with an id for each path, perhaps a title."""
    if place not in ("below", "end"):
        raise TaxonomyError(f'Documents are placed "below" a category or at the "end" of a path, not {place!r}.')
    paths = [path if isinstance(path, str) else tuple(path) for path in table["path"]]
    table = {"id": paths, **table}
    if place == "below":
        homes = dict(zip(table["id"], paths, strict=True))
        if len(homes) < len(paths):
            raise DuplicateDocumentError("A path is given twice; documents below one category need ids of their own.")
        return DocumentTree.from_paths(homes, separator=separator, epsilon=epsilon), table
    tree = DocumentTree.from_paths(paths, separator=separator, categories=categories, epsilon=epsilon)
    called = dict(zip(paths, table["id"], strict=True))
    last = [(path.split(separator) if isinstance(path, str) else path)[-1].strip() for path in paths]
    return tree.with_documents([called[path] for path in tree.documents]), {"title": last, **table}


def pruned(tree: DocumentTree, kept: Array) -> DocumentTree:
    """The tree of the documents at these positions alone, with the widths that it has."""
    mask = np.zeros(len(tree), bool)
    mask[kept] = True
    before = np.concatenate([[0], np.cumsum(mask)])
    alive = before[tree.shape.end_document] > before[tree.shape.first_document]
    nodes = np.flatnonzero(alive)  # still breadth first
    number = np.cumsum(alive) - 1
    parent = number[tree.shape.parent[nodes]].astype(np.uint32)
    children = np.bincount(parent[1:], minlength=len(nodes))
    child_start = np.concatenate([[1], 1 + np.cumsum(children)]).astype(np.uint32)
    ids: list[DocumentId] | Array = tree.documents.at(kept)
    if all(type(document) is int for document in ids):
        ids = np.array(ids)  # integers are looked up in less memory than objects
    names = None if tree.names is None else [tree.names[node] for node in nodes.tolist()]
    return DocumentTree(
        shape_from_breadth_first(parent, child_start), tree.width[nodes], DocumentIds(len(kept), ids), names
    )


def checked_distances(matrix: Sequence[Sequence[float]] | Array) -> Array:
    """A matrix of distances, exactly symmetric, or an error that says where it is not one."""
    distances = np.array(matrix, np.float64)
    if distances.size == 0:
        raise EmptyCollectionError("There are no distances; a collection needs at least one document.")
    if distances.ndim != 2 or distances.shape[0] != distances.shape[1]:
        raise MetricError(f"A distance matrix is square; this one has shape {distances.shape}.")

    def refuse(where: Array, says: str) -> None:
        if where.any():
            i, j = np.argwhere(where)[0]
            raise MetricError(f"The distance in row {i}, column {j} is {distances[i, j]}; {says}.")

    refuse(~np.isfinite(distances), "distances must be finite numbers")
    refuse(distances < 0, "distances must not be negative")
    refuse(np.diag(np.diag(distances) != 0), "a document is at distance 0 from itself")
    difference = np.abs(distances - distances.T)
    refuse(difference > ROUNDING * distances.max(), "that in the other direction is another")
    return np.maximum(distances, distances.T)
