"""Columns that come with documents (titles, urls, texts): checked and sorted in the tree's order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zoomrank.documents.source_files import Table
from zoomrank.errors import UnknownDocumentError
from zoomrank.numbers import Array
from zoomrank.spaces.ids import DocumentId, DocumentIds

Column = Sequence[str] | Mapping[DocumentId, str] | None  # in the order of the documents, or by id


def check_lengths(columns: Mapping[str, Column], documents: int) -> None:
    """Raise an error for a column that does not have one string for each document."""
    for name, column in columns.items():
        if isinstance(column, str):
            raise UnknownDocumentError(f"The {name} must be a sequence, one for each document, not a single string.")
        if column is not None and not isinstance(column, Mapping) and len(column) != documents:
            raise UnknownDocumentError(f"{len(column)} {name} were given for {documents} documents.")


def columns_in_order(columns: Mapping[str, Column], table: Table, rows: Array, ids: DocumentIds) -> dict[str, Any]:
    """Sort columns in the order of the leaves; those that the caller does not give may be in the table."""
    arranged: dict[str, list[str] | None] = {}
    for name, given in columns.items():
        column = table.get(name.removesuffix("s")) if given is None else given
        if column is None or isinstance(column, Mapping):
            arranged[name] = _by_id(name, column, ids)
        else:
            arranged[name] = [column[row] for row in rows]
    return arranged


def columns_by_id(
    columns: Mapping[str, Mapping[DocumentId, str] | None], table: Table, ids: DocumentIds
) -> dict[str, Any]:
    """Sort columns that are keyed by id in the order of the leaves; those not given may be in the table."""
    arranged = {}
    for name, given in columns.items():
        known = name.removesuffix("s")
        if given is None and known in table:
            given = dict(zip(table["id"], table[known], strict=True))
            given = {document: given[document] for document in ids}  # without the categories that are left out
        arranged[name] = _by_id(name, given, ids)
    return arranged


def _by_id(name: str, column: Mapping[DocumentId, str] | None, ids: DocumentIds) -> list[str] | None:
    if column is None:
        return None
    strange = next((document for document in column if document not in ids), None)
    if strange is not None:
        raise UnknownDocumentError(f"The {name} mention {strange!r}, which is not a document of this collection.")
    return [column.get(document, "") for document in ids]
