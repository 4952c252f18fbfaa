"""`ImpressionLog`: impressions of which it is known how likely they were, as arrays.

A row is an impression that somebody answered: its query, what was shown, the propensity of each document in its slot
given those above, how far the visitor looked, and where she was satisfied, if she was. Impressions that are void, were
never seen or still wait for an answer say nothing, and are only counted. Rows come from a file as `zoomrank export`
writes them, which is read row by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from zoomrank.documents.source_files import PathLike, chosen_columns, existing, read_rows, said_of
from zoomrank.errors import CannotTellError, SourceError
from zoomrank.judging.logged_rows import COLUMNS, gathered
from zoomrank.numbers import Array

_USUAL_NAMES = {
    "query": ("query", "queryid"),
    "shown": ("shown", "ranking", "documents"),
    "propensity": ("propensity", "propensities"),
    **{name: (name.replace("_", ""),) for name in COLUMNS[3:]},
}


@dataclass(frozen=True, eq=False)
class ImpressionLog:
    """Impressions and their answers, a row each, in the order in which they were shown.

    Attributes
    ----------
    queries : list of str
        The queries that were asked, in the order in which they came.
    documents : list of str
        The ids of the documents that were shown, as texts.
    query : ndarray of int
        Of each impression, the number of its query.
    shown : ndarray of int
        The numbers of its documents, a column per slot; -1 where nothing was shown.
    propensity : ndarray
        How likely each was in its slot, given those above; NaN where that is not known.
    looks : ndarray of int
        How many slots the visitor looked at, from the top.
    click : ndarray of int
        The slot that satisfied her; the number of slots if none did.
    left_out : int
        How many impressions say nothing: void, never seen, or without an answer.

    Examples
    --------
    >>> log = ImpressionLog.from_rows([
    ...     {"query": "owls", "shown": ["barn", "snow"], "propensity": [0.5, 1.0], "clicked": "snow"},
    ...     {"query": "owls", "shown": ["snow", "barn"], "propensity": [0.5, 1.0], "clicked": None},
    ... ])
    >>> len(log), log.slots, log.satisfied
    (2, 2, 0.5)
    """

    queries: list[str]
    documents: list[str]
    query: Array
    shown: Array
    propensity: Array
    looks: Array
    click: Array
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.query)

    @property
    def slots(self) -> int:
        """How many slots the longest ranking has.

        Returns
        -------
        int
            The columns of `shown`.

        Examples
        --------
        >>> ImpressionLog.from_rows([{"query": "", "shown": ["a"], "propensity": [1.0], "clicked": "a"}]).slots
        1
        """
        return int(self.shown.shape[1])

    @property
    def satisfied(self) -> float:
        """The share of visitors who were satisfied.

        Returns
        -------
        float
            From 0 to 1.

        Examples
        --------
        >>> ImpressionLog.from_rows([{"query": "", "shown": ["a"], "propensity": [1.0], "clicked": "a"}]).satisfied
        1.0
        """
        return float((self.click < self.slots).mean())

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]]) -> ImpressionLog:
        """Make a log of impressions as `zoomrank export` writes them.

        Parameters
        ----------
        rows : iterable of mapping
            Each with `query`, `shown` and `propensity`, `clicked` (an id or None) or `slot`; `outcome`, `looked_at` and
            `void` count if they are there.

        Returns
        -------
        ImpressionLog
            Those that were answered.

        Examples
        --------
        >>> row = {"query": "owls", "shown": ["barn", "snow"], "propensity": [0.5, 1.0], "outcome": "waiting"}
        >>> ImpressionLog.from_rows([row, {**row, "outcome": "satisfied", "slot": 1}]).left_out
        1
        """
        return cls(*gathered(tuple(row.get(name) for name in COLUMNS) for row in rows))

    def only(self, rows: Array) -> ImpressionLog:
        """Keep some of the impressions.

        Parameters
        ----------
        rows : ndarray
            Their numbers, ascending, or which of all they are.

        Returns
        -------
        ImpressionLog
            The same queries and documents, with fewer impressions.

        Examples
        --------
        >>> row = {"query": "", "shown": ["a"], "propensity": [1.0], "clicked": "a"}
        >>> len(ImpressionLog.from_rows([row, row, row]).only(np.array([0, 2])))
        2
        """
        columns = {name: getattr(self, name)[rows] for name in ("query", "shown", "propensity", "looks", "click")}
        return replace(self, **columns)

    def of_query(self, query: str) -> ImpressionLog:
        """Keep the impressions of one query.

        Parameters
        ----------
        query : str
            Which.

        Returns
        -------
        ImpressionLog
            One that never was asked is refused.

        Examples
        --------
        >>> row = {"query": "owls", "shown": ["a"], "propensity": [1.0], "clicked": "a"}
        >>> len(ImpressionLog.from_rows([row, {**row, "query": "pikes"}]).of_query("owls"))
        1
        """
        if query not in self.queries:
            raise CannotTellError(f"Nobody asked for {query!r} in this log: nobody knows how it would go.")
        return self.only(self.query == self.queries.index(query))

    def cut(self, slots: int) -> ImpressionLog:
        """Look at the first slots only, as if the others had not been shown.

        Parameters
        ----------
        slots : int
            How many.

        Returns
        -------
        ImpressionLog
            A visitor who was satisfied further down left this one unsatisfied.

        Examples
        --------
        >>> row = {"query": "", "shown": ["a", "b"], "propensity": [1.0, 1.0], "clicked": "b"}
        >>> ImpressionLog.from_rows([row]).cut(1).satisfied
        0.0
        """
        if slots >= self.slots:
            return self
        return replace(
            self,
            shown=self.shown[:, :slots],
            propensity=self.propensity[:, :slots],
            looks=np.minimum(self.looks, slots),
            click=np.minimum(self.click, slots),
        )


def read_log(path: PathLike, columns: Mapping[str, str] | None = None) -> ImpressionLog:
    """Read a log as `zoomrank export` writes it: JSON Lines or Parquet.

    Parameters
    ----------
    path : path-like
        The file.
    columns : mapping of str to str, optional
        Which column is which where names are unusual, such as `{"shown": "results"}`.

    Returns
    -------
    ImpressionLog
        The impressions that were answered.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "log.jsonl")
    ...     with open(file, "w") as text:
    ...         _ = text.write('{"query": "owls", "shown": ["barn", "snow"], "propensity": [0.5, 1], "clicked": null}')
    ...     len(read_log(file))
    1
    """
    file = existing(path)
    table = read_rows(file, Path(str(path)).suffix.lower())
    found = chosen_columns(str(path), table.names, columns or {}, _USUAL_NAMES, needs=("shown",))
    if not {"slot", "clicked"} & found.keys():
        raise SourceError(f"{path} says nothing of clicks: it has neither a column slot nor a column clicked.")
    rows = (dict(zip(found, row, strict=True)) for row in table.rows(list(found.values())))
    with said_of(path):
        return ImpressionLog.from_rows(rows)
