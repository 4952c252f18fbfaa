"""Click logs: what was shown for which query, in which order, and what was clicked first, if anything.

Tables (see `source_files`) may have them in either of two forms; `query` can be left out if there is but one.

| a row is | columns |
|---|---|
| an impression, in JSONL or Parquet | `query`, `shown`: a list of ids from the top, `clicked`: an id, or null |
| a document of an impression, in any table | `query`, `impression`, `position`, `document`, `clicked`: 1 or 0 |

Visitors read from the top. Those who clicked have looked at everything down to their first click, those who did not at
all that was shown; nobody knows about the rest, so it does not count. What is kept of a log is how often each document
was looked at and clicked, query by query. Ids are compared as texts, since that is what they are in most files.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from zoomrank.documents.source_files import PathLike, Table, chosen_columns, read_columns
from zoomrank.errors import (
    EmptyCollectionError,
    FeedbackError,
    ParameterError,
    SourceError,
    UnknownDocumentError,
    ZoomrankError,
)
from zoomrank.numbers import Array
from zoomrank.spaces.ids import DocumentId, DocumentIds

USUAL_NAMES = {
    "query": ("query", "queryid", "topic", "topicid"),
    "shown": ("shown", "ranking", "documents"),
    "impression": ("impression", "impressionid", "visit", "visitid"),
    "position": ("position", "rank", "slot"),
    "document": ("document", "documentid", "docid", "doc"),
    "clicked": ("clicked", "click"),
}
_ANSWERS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False, "": False}

Impression = tuple[str, Sequence[DocumentId], DocumentId | None]  # query, what was shown from the top, what was clicked


class Counts(NamedTuple):
    """How often documents were looked at and clicked, sorted by query and document."""

    query: Array  # number of the query
    document: Array  # position in the tree
    looks: Array
    clicks: Array


class ClickLog:
    """What visitors looked at and clicked, counted by query and document.

    Parameters
    ----------
    impressions : iterable of tuple
        For each impression its query, the documents that were shown, from the top, and the one that was clicked first,
        or None.

    Attributes
    ----------
    impressions, clicks : int
        How many there are.

    Examples
    --------
    >>> log = ClickLog([("owls", ["a", "b", "c"], "b"), ("owls", ["a", "c"], None)])
    >>> log
    ClickLog(2 impressions, 1 clicks, 1 queries)
    >>> log.counted(DocumentIds(3, ["a", "b", "c"])).looks.tolist()  # nobody knows whether c was seen the first time
    [2, 1, 1]
    """

    def __init__(self, impressions: Iterable[Impression]) -> None:
        self.impressions, self.clicks = 0, 0
        self._seen: dict[str, dict[str, list[int]]] = {}  # by query and document: looks and clicks
        for query, shown, clicked in impressions:
            self.impressions += 1
            names = _checked(self.impressions, shown)
            last = len(names)
            if clicked is not None:
                self.clicks += 1
                if str(clicked) not in names:
                    raise FeedbackError(
                        f"Impression {self.impressions} has a click on {clicked!r}, which was not shown in it."
                    )
                last = names.index(str(clicked)) + 1
            seen = self._seen.setdefault(str(query), {})
            for name in names[:last]:
                seen.setdefault(name, [0, 0])[0] += 1
            if clicked is not None:
                seen[str(clicked)][1] += 1
        if not self.impressions:
            raise EmptyCollectionError("The click log is empty: there are no impressions in it.")
        if not self.clicks:
            raise EmptyCollectionError(f"There is not a single click in {self.impressions:,} impressions.")

    def __repr__(self) -> str:
        return f"ClickLog({self.impressions} impressions, {self.clicks} clicks, {len(self._seen)} queries)"

    @property
    def queries(self) -> tuple[str, ...]:
        """The queries, in the order in which they came.

        Returns
        -------
        tuple of str
            Each query once.

        Examples
        --------
        >>> ClickLog([("owls", ["a"], "a"), ("pikes", ["b"], None)]).queries
        ('owls', 'pikes')
        """
        return tuple(self._seen)

    @property
    def documents(self) -> list[str]:
        """All documents that somebody looked at.

        Returns
        -------
        list of str
            Their ids, as texts.

        Examples
        --------
        >>> ClickLog([("owls", ["a", "b", "c"], "b")]).documents
        ['a', 'b']
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

        Examples
        --------
        >>> ClickLog([("owls", ["a", "b"], "b")]).unknown(DocumentIds(2, ["b", "c"]))
        ['a']
        """
        positions = _positions(documents)
        return [name for name in self.documents if name not in positions]

    def counted(self, documents: DocumentIds, unknown: str = "refuse") -> Counts:
        """Count how often a collection's documents were looked at, and clicked.

        Parameters
        ----------
        documents : DocumentIds
            The ids of the collection.
        unknown : {"refuse", "skip"}
            What to do with documents that it does not have.

        Returns
        -------
        Counts
            Four arrays, sorted by query and document: number of the query, position of the document, looks, clicks.

        Examples
        --------
        >>> log = ClickLog([("owls", ["a", "b"], "b"), ("owls", ["b"], None)])
        >>> log.counted(DocumentIds(2, ["a", "b"])).looks.tolist()
        [1, 2]
        """
        if unknown not in ("refuse", "skip"):
            raise ParameterError(f"What to do with unknown documents is 'refuse' or 'skip', not {unknown!r}.")
        positions = _positions(documents)
        missing = [name for name in self.documents if name not in positions]
        if missing and unknown == "refuse":
            few = ", ".join(map(repr, missing[:5])) + (", …" if len(missing) > 5 else "")
            raise UnknownDocumentError(
                f"The collection lacks {len(missing)} of the {len(self.documents)} documents in the click log: {few}. "
                'Add them, or say unknown="skip" (--unknown skip) to go on without them.'
            )
        rows = [
            (number, positions[name], looks, clicks)
            for number, seen in enumerate(self._seen.values())
            for name, (looks, clicks) in seen.items()
            if name in positions
        ]
        columns = np.array(sorted(rows), np.int64).reshape(-1, 4).T
        if not columns[3].any():
            raise EmptyCollectionError("None of the clicked documents is in the collection; are these its ids?")
        return Counts(*columns)


def read_clicks(path: PathLike, columns: Mapping[str, str] | None = None) -> ClickLog:
    """Read a click log from a table (CSV, TSV, JSONL or Parquet): a row is an impression, or a document of one.

    Parameters
    ----------
    path : path-like
        The file.
    columns : mapping of str to str, optional
        Which column is which where names are unusual, such as `{"document": "sku"}`.

    Returns
    -------
    ClickLog
        What was looked at, and clicked.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "clicks.csv")
    ...     with open(file, "w") as text:
    ...         _ = text.write("impression,position,sku,clicked\\n1,1,owl,0\\n1,2,pike,1\\n")
    ...     read_clicks(file, columns={"document": "sku"})
    ClickLog(1 impressions, 1 clicks, 1 queries)
    """
    file, names, read = read_columns(path)
    found = chosen_columns(file, names, columns or {}, USUAL_NAMES, needs=("clicked",))
    nested = "shown" in found
    if not nested:
        chosen_columns(file, names, found, USUAL_NAMES, needs=("impression", "position", "document"))
    table = {meaning: read[name] for meaning, name in found.items()}
    table.setdefault("query", [""] * len(table["clicked"]))
    try:
        return ClickLog(_rankings(table) if nested else _regrouped(table))
    except ZoomrankError as error:
        raise SourceError(f"{path}: {error}") from error


def _positions(documents: DocumentIds) -> dict[str, int]:
    positions = {str(document): position for position, document in enumerate(documents)}
    if len(positions) < len(documents):
        raise ParameterError("Two documents have the same id once it is written down.")
    return positions


def _checked(number: int, shown: Sequence[DocumentId]) -> list[str]:
    if isinstance(shown, str) or not isinstance(shown, Sequence | np.ndarray):
        raise FeedbackError(f"Impression {number} shows {shown!r}, which is not a list of documents.")
    names = [str(document) for document in shown]
    if not names:
        raise FeedbackError(f"Impression {number} shows nothing.")
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise FeedbackError(f"Impression {number} shows {twice!r} twice.")
    return names


def _rankings(table: Table) -> Iterator[Impression]:
    for number, (query, shown, clicked) in enumerate(
        zip(table["query"], table["shown"], table["clicked"], strict=True), start=1
    ):
        if isinstance(clicked, list | bool):
            raise FeedbackError(
                f"Impression {number} has {clicked!r} as what was clicked; it should be an id, or null."
            )
        yield "" if query is None else query, shown, None if clicked == "" else clicked


def _regrouped(table: Table) -> Iterator[Impression]:
    """Impressions whose documents have a row each, in any order. Of several clicks the first is what counts."""
    found: dict[tuple[str, str], dict[float, tuple[str, bool]]] = {}
    columns = (table[name] for name in ("query", "impression", "position", "document", "clicked"))
    for row, (query, impression, position, document, clicked) in enumerate(zip(*columns, strict=True), start=1):
        if impression in (None, "") or document in (None, ""):
            raise FeedbackError(f"Row {row} does not say which impression it is of, or which document.")
        answer = _ANSWERS.get("" if clicked is None else str(clicked).strip().lower())
        if answer is None:
            raise FeedbackError(f"Row {row} has {clicked!r} for clicked; it should be 1 or 0.")
        slot = _number(position)
        if math.isnan(slot):
            raise FeedbackError(f"Row {row} has the position {position!r}, which is no number.")
        ranking = found.setdefault(("" if query is None else str(query), str(impression)), {})
        if ranking.setdefault(slot, (str(document), answer)) != (str(document), answer):
            raise FeedbackError(f"Row {row} is about a position of the impression {impression!r} that is taken.")
    for (query, _), ranking in found.items():
        order = [ranking[slot] for slot in sorted(ranking)]
        yield query, [document for document, _ in order], next((document for document, click in order if click), None)


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return math.nan
