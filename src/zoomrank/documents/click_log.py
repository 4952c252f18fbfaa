"""`ClickLog`: looks and clicks of each document, query by query, counted from a log of impressions.

Visitors read from the top. Those who clicked have looked at everything down to their first click, those who did not at
all that was shown or, if known, all on the screen; documents further down are not counted. `logged_impressions` reads
impressions from files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from zoomrank.documents.logged_impressions import Impression, checked, impressions_of, positions_of
from zoomrank.documents.source_files import PathLike, name_in_errors
from zoomrank.errors import EmptyCollectionError, ParameterError, UnknownDocumentError
from zoomrank.numbers import Array
from zoomrank.spaces.ids import DocumentIds


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
        positions = positions_of(documents)
        missing = [name for name in self.documents if name not in positions]
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
