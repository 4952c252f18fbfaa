"""Rankings of a target from files: one per query, or one for all queries.

| a row is | columns |
|---|---|
| a ranking, in JSONL or Parquet | `query`, `shown`: a list of ids from the top |
| a document, in any table | `query`, `document`, and `position` if rows are not in order |

Without a column `query` there is one ranking, for all queries.
"""

from __future__ import annotations

from typing import Any

from zoomrank.documents.source_files import PathLike, chosen_columns, existing, read_rows
from zoomrank.errors import SourceError

_USUAL_NAMES = {
    "query": ("query", "queryid", "topic"),
    "shown": ("shown", "ranking", "documents"),
    "document": ("document", "documentid", "docid", "doc", "id"),
    "position": ("position", "rank", "slot"),
}


def read_rankings(path: PathLike) -> list[str] | dict[str, list[str]]:
    """Read the rankings of a target from a table (CSV, TSV, JSONL or Parquet).

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    list of str, or dict of str to list of str
        One ranking for all queries, or a ranking for each: ids from the top, as texts.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "rankings.jsonl")
    ...     with open(file, "w") as text:
    ...         _ = text.write('{"query": "owls", "shown": ["snow", "barn"]}')
    ...     read_rankings(file)
    {'owls': ['snow', 'barn']}
    """
    file = existing(path)
    table = read_rows(file, file.suffix.lower())
    found = chosen_columns(str(path), table.names, {}, _USUAL_NAMES, needs=())
    if not {"shown", "document"} & found.keys():
        raise SourceError(f"{path} has no rankings: it needs a column shown, with lists, or a column document.")
    rows = [dict(zip(found, row, strict=True)) for row in table.rows(list(found.values()))]
    rankings = _whole(str(path), rows) if "shown" in found else _by_document(rows)
    return rankings if "query" in found else rankings[""]


def _whole(path: str, rows: list[dict[str, Any]]) -> dict[str, list[str]]:
    rankings: dict[str, list[str]] = {}
    for number, row in enumerate(rows, start=1):
        query = str(row.get("query", ""))
        if not isinstance(row["shown"], list) or not row["shown"]:
            raise SourceError(f"{path} has no list of documents in row {number}.")
        if query in rankings:
            raise SourceError(f"{path} has two rankings for {query!r}; the second is in row {number}.")
        rankings[query] = [str(document) for document in row["shown"]]
    return rankings


def _by_document(rows: list[dict[str, Any]]) -> dict[str, list[str]]:
    if rows and "position" in rows[0]:
        rows = sorted(rows, key=lambda row: float(row["position"]))
    rankings: dict[str, list[str]] = {}
    for row in rows:
        rankings.setdefault(str(row.get("query", "")), []).append(str(row["document"]))
    return rankings
