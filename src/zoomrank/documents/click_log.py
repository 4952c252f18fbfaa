"""`ClickLog`: looks and clicks of each document, query by query, counted from the impressions of a click log.

An impression is the query, the documents shown, and the first click, if any. Tables (see `source_files`) may have
impressions in either of two forms; `query` can be left out if there is only one.

| a row is | columns |
|---|---|
| an impression, in JSONL or Parquet | `query`, `shown`: a list of ids from the top, `clicked`: an id, or null |
| a document of an impression, in any table | `query`, `impression`, `position`, `document`, `clicked`: 1 or 0 |

The first form is read row by row, whatever its size; the second is held in memory. Ids are compared as texts, since
that is what they are in most files.

Visitors read from the top. Those who clicked have looked at everything down to their first click, those who did not at
all that was shown or, if a column `looked_at` of the first form says how many documents were on the screen, at these;
documents further down are not counted, since it is unknown whether they were seen.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from zoomrank.documents.source_files import PathLike, chosen_columns, existing, name_in_errors, named, read_rows
from zoomrank.errors import EmptyCollectionError, FeedbackError, ParameterError, UnknownDocumentError
from zoomrank.spaces.ids import DocumentId, DocumentIds
from zoomrank.types import Array

USUAL_NAMES = {
    "query": ("query", "queryid", "topic", "topicid"),
    "shown": ("shown", "ranking", "documents"),
    "impression": ("impression", "impressionid", "visit", "visitid"),
    "position": ("position", "rank", "slot"),
    "document": ("document", "documentid", "docid", "doc"),
    "clicked": ("clicked", "click"),
    "looked_at": ("lookedat",),
}
_ANSWERS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False, "": False}

Impression = tuple[str, Sequence[DocumentId], DocumentId | None]  # query, documents from the top, document clicked


def read_impressions(path: PathLike, columns: Mapping[str, str] | None = None) -> Iterator[Impression]:
    """Read the impressions of a click log, in their order, from a table (CSV, TSV, JSONL or Parquet).

    Parameters
    ----------
    path : path-like
        The file.
    columns : mapping of str to str, optional
        The names of columns that differ from the usual ones, such as `{"shown": "results"}`.

    Returns
    -------
    iterator of tuple
        For each impression its query, the documents that were shown, from the top, and the one that was clicked first,
        or None. An invalid impression raises an error when it is reached.
    """
    with name_in_errors(path):
        yield from impressions_of(path, columns)


def impressions_of(
    source: PathLike | IO[bytes], columns: Mapping[str, str] | None = None, kind: str | None = None
) -> Iterator[Impression]:
    """Iterate over the impressions of a table, which may be an open file without a name, of the type `kind` (an
    ending).
    """
    file = existing(source) if isinstance(source, str | os.PathLike) else source
    table = read_rows(file, (Path(str(source)).suffix if kind is None else kind).lower())
    called = named(file)
    found = chosen_columns(called, table.names, columns or {}, USUAL_NAMES, needs=("clicked",))
    meanings: tuple[str, ...] = ("shown", "clicked", *(["looked_at"] if "looked_at" in found else []))
    if "shown" not in found:
        meanings = ("impression", "position", "document", "clicked")
        chosen_columns(called, table.names, found, USUAL_NAMES, needs=meanings[:-1])
    if "query" in found:
        rows = table.rows([found[meaning] for meaning in ("query", *meanings)])
    else:
        rows = (("", *row) for row in table.rows([found[meaning] for meaning in meanings]))
    return _rankings(rows) if "shown" in found else _regrouped(rows)


def positions_of(documents: DocumentIds) -> dict[str, int]:
    """Return the positions of a collection's documents, by their ids as texts."""
    positions = {str(document): position for position, document in enumerate(documents)}
    if len(positions) < len(documents):
        raise ParameterError("Two documents have the same id as text; give each an id of its own.")
    return positions


def checked(number: int, shown: Sequence[DocumentId], clicked: DocumentId | None) -> tuple[list[str], int | None]:
    """Check an impression; return its ids, as texts, and the slot of its click."""
    if isinstance(shown, str) or not isinstance(shown, Sequence | np.ndarray):
        raise FeedbackError(f"Impression {number} shows {shown!r}, which is not a list of documents.")
    names = [str(document) for document in shown]
    if not names:
        raise FeedbackError(f"Impression {number} shows nothing.")
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise FeedbackError(f"Impression {number} shows {twice!r} twice.")
    if clicked is not None and str(clicked) not in names:
        raise FeedbackError(f"Impression {number} has a click on {clicked!r}, which was not shown in it.")
    return names, None if clicked is None else names.index(str(clicked))


def _rankings(rows: Iterable[Sequence[Any]]) -> Iterator[Impression]:
    for number, (query, shown, clicked, *looked_at) in enumerate(rows, start=1):
        if isinstance(query, list | dict):
            raise FeedbackError(f"Impression {number} has {query!r} as its query; it must be a text.")
        if isinstance(clicked, list | dict | bool):
            raise FeedbackError(f"Impression {number} has {clicked!r} as what was clicked; it must be an id, or null.")
        click = None if clicked == "" else clicked
        if click is None and looked_at and isinstance(shown, list):
            shown = shown[: _looks(number, looked_at[0])]
        yield "" if query is None else query, shown, click


def _looks(number: int, looked_at: object) -> int | None:
    """Return how many documents were looked at, if known."""
    if looked_at in (None, ""):
        return None
    looks = _number(looked_at)
    if isinstance(looked_at, bool) or not (looks >= 1 and looks.is_integer()):
        raise FeedbackError(
            f"Impression {number} has {looked_at!r} for looked_at; it must be the number of documents on the screen, "
            "1 or more, or null."
        )
    return int(looks)


def _regrouped(rows: Iterable[Sequence[Any]]) -> Iterator[Impression]:
    """Group rows of one document each, in any order, into impressions. Of several clicks the first counts."""
    found: dict[tuple[str, str], dict[float, tuple[str, bool]]] = {}
    for row, (query, impression, position, document, clicked) in enumerate(rows, start=1):
        if impression in (None, "") or document in (None, ""):
            raise FeedbackError(f"Row {row} does not name its impression, or its document.")
        answer = _ANSWERS.get("" if clicked is None else str(clicked).strip().lower())
        if answer is None:
            raise FeedbackError(f"Row {row} has {clicked!r} for clicked; it must be 1 or 0.")
        slot = _number(position)
        if math.isnan(slot):
            raise FeedbackError(f"Row {row} has the position {position!r}, which is not a number.")
        ranking = found.setdefault(("" if query is None else str(query), str(impression)), {})
        if ranking.setdefault(slot, (str(document), answer)) != (str(document), answer):
            raise FeedbackError(
                f"Row {row} has a position of the impression {impression!r} that another row has already."
            )
    for (query, _), ranking in found.items():
        order = [ranking[slot] for slot in sorted(ranking)]
        yield query, [document for document, _ in order], next((document for document, click in order if click), None)


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return math.nan


class Counts(NamedTuple):
    """Looks and clicks of documents, sorted by query and document."""

    query: Array  # number of the query
    document: Array  # position in the tree
    looks: Array
    clicks: Array


class ClickLog:
    """Looks and clicks of visitors, counted by query and document.

    Parameters
    ----------
    impressions : iterable of tuple
        For each impression its query, the documents that were shown, from the top, and the one that was clicked first,
        or None.

    Attributes
    ----------
    impressions, clicks : int
        Their numbers.

    Examples
    --------
    >>> log = ClickLog([("owls", ["a", "b", "c"], "b"), ("owls", ["a", "c"], None)])
    >>> log
    ClickLog(2 impressions, 1 clicks, 1 queries)
    >>> log.counted(DocumentIds(3, ["a", "b", "c"])).looks.tolist()  # it is unknown whether c was seen the first time
    [2, 1, 1]
    """

    def __init__(self, impressions: Iterable[Impression]) -> None:
        self.impressions, self.clicks = 0, 0
        self._seen: dict[str, dict[str, list[int]]] = {}  # by query and document: looks and clicks
        for query, shown, clicked in impressions:
            self.impressions += 1
            names, click = checked(self.impressions, shown, clicked)
            seen = self._seen.setdefault(str(query), {})
            for name in names if click is None else names[: click + 1]:
                seen.setdefault(name, [0, 0])[0] += 1
            if click is not None:
                self.clicks += 1
                seen[names[click]][1] += 1
        if not self.impressions:
            raise EmptyCollectionError("The click log is empty: there are no impressions in it.")
        if not self.clicks:
            raise EmptyCollectionError(f"There is not a single click in {self.impressions:,} impressions.")

    def __repr__(self) -> str:
        return f"ClickLog({self.impressions} impressions, {self.clicks} clicks, {len(self._seen)} queries)"

    @property
    def queries(self) -> tuple[str, ...]:
        """Queries, in the order in which they came.

        Returns
        -------
        tuple of str
            Each query once.
        """
        return tuple(self._seen)

    @property
    def documents(self) -> list[str]:
        """Documents that at least one visitor looked at.

        Returns
        -------
        list of str
            Their ids, as texts.
        """
        return list(dict.fromkeys(name for seen in self._seen.values() for name in seen))

    def unknown(self, documents: DocumentIds) -> list[str]:
        """List the documents of the log that a collection does not have.

        Parameters
        ----------
        documents : DocumentIds
            The ids of the collection.

        Returns
        -------
        list of str
            Ids, as texts.
        """
        positions = positions_of(documents)
        return [name for name in self.documents if name not in positions]

    def counted(self, documents: DocumentIds, unknown: str = "refuse") -> Counts:
        """Count the looks and clicks of a collection's documents.

        Parameters
        ----------
        documents : DocumentIds
            The ids of the collection.
        unknown : {"refuse", "skip"}
            Raise an error for documents that it lacks, or skip them.

        Returns
        -------
        Counts
            Four arrays, sorted by query and document: number of the query, position of the document, looks, clicks.
        """
        if unknown not in ("refuse", "skip"):
            raise ParameterError(f"unknown must be 'refuse' or 'skip', not {unknown!r}.")
        positions, missing = positions_of(documents), self.unknown(documents)
        if missing and unknown == "refuse":
            few = ", ".join(map(repr, missing[:5])) + (", …" if len(missing) > 5 else "")
            raise UnknownDocumentError(
                f"The collection lacks {len(missing)} of the {len(self.documents)} documents in the click log: {few}. "
                'Add them, or say unknown="skip" (--unknown skip) to continue without them.'
            )
        rows = [
            (number, positions[name], looks, clicks)
            for number, seen in enumerate(self._seen.values())
            for name, (looks, clicks) in seen.items()
            if name in positions
        ]
        columns = np.array(sorted(rows), np.int64).reshape(-1, 4).T
        if not columns[3].any():
            raise EmptyCollectionError(
                "None of the clicked documents is in the collection; check that both use the same ids."
            )
        return Counts(*columns)


def read_clicks(path: PathLike, columns: Mapping[str, str] | None = None) -> ClickLog:
    """Read a click log from a table (CSV, TSV, JSONL or Parquet): a row is an impression, or a document of one.

    Parameters
    ----------
    path : path-like
        The file.
    columns : mapping of str to str, optional
        The names of columns that differ from the usual ones, such as `{"document": "sku"}`.

    Returns
    -------
    ClickLog
        Looks and clicks.
    """
    with name_in_errors(path):
        return ClickLog(impressions_of(path, columns))
