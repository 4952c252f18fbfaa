"""`ImpressionLog`: logged impressions with their propensities, as arrays.

A row is an impression with feedback: its query, the ranking shown, the propensity of each document in its slot given
those above, the number of slots that the visitor looked at, and the slot that satisfied the visitor, if any.
Impressions that are void, were never seen or still wait for feedback carry no information; they are only counted. Rows
come from a file as `zoomrank export` writes it, one after the other into flat lists, so that a long log takes little
memory.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from zoomrank.documents.click_log import checked
from zoomrank.documents.source_files import PathLike, chosen_columns, existing, name_in_errors, read_rows
from zoomrank.errors import CannotTellError, EmptyCollectionError, FeedbackError, SourceError
from zoomrank.types import Array

COLUMNS = ("query", "shown", "propensity", "outcome", "slot", "clicked", "looked_at", "void", "collection")
NOTHING = -1  # in a slot that showed no document
_ANSWERED = ("satisfied", "abandoned", "timed_out")


_USUAL_NAMES = {
    "query": ("query", "queryid"),
    "shown": ("shown", "ranking", "documents"),
    "propensity": ("propensity", "propensities"),
    **{name: (name.replace("_", ""),) for name in COLUMNS[3:]},
}


@dataclass(frozen=True, eq=False)
class ImpressionLog:
    """Impressions with feedback, a row each, in the order in which they were shown.

    Attributes
    ----------
    queries : list of str
        The queries that were asked, in the order in which they came.
    documents : list of str
        The ids of the documents that were shown, as texts.
    query : ndarray of int
        The index of the query of each impression.
    shown : ndarray of int
        The indices of its documents, a column per slot; -1 where nothing was shown.
    propensity : ndarray
        The probability of each document in its slot, given those above; NaN where unknown.
    looks : ndarray of int
        Number of slots that the visitor looked at, from the top.
    click : ndarray of int
        The slot that satisfied the visitor; the number of slots if none did.
    left_out : int
        Number of impressions left out: void, never seen, or without feedback.

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
        """Number of slots of the longest ranking.

        Returns
        -------
        int
            The number of columns of `shown`.
        """
        return int(self.shown.shape[1])

    @property
    def satisfied(self) -> float:
        """Share of visitors who were satisfied.

        Returns
        -------
        float
            From 0 to 1.
        """
        return float((self.click < self.slots).mean())

    @staticmethod
    def from_rows(rows: Iterable[Mapping[str, Any]]) -> ImpressionLog:
        """Build a log from impressions as `zoomrank export` writes them.

        Parameters
        ----------
        rows : iterable of mapping
            Each with `query`, `shown`, `propensity`, and `clicked` (an id or None) or `slot`; optionally `outcome`,
            `looked_at` and `void`.

        Returns
        -------
        ImpressionLog
            The impressions that have feedback.
        """
        return _collected(tuple(row.get(name) for name in COLUMNS) for row in rows)

    def only(self, rows: Array) -> ImpressionLog:
        """Return a part of the impressions.

        Parameters
        ----------
        rows : ndarray
            Their indices, ascending, or a boolean mask.

        Returns
        -------
        ImpressionLog
            The same queries and documents, with fewer impressions.
        """
        columns = {name: getattr(self, name)[rows] for name in ("query", "shown", "propensity", "looks", "click")}
        return replace(self, **columns)

    def of_query(self, query: str) -> ImpressionLog:
        """Return the impressions of one query.

        Parameters
        ----------
        query : str
            The query.

        Returns
        -------
        ImpressionLog
            Its impressions; a query that is not in the log raises an error.
        """
        if query not in self.queries:
            raise CannotTellError(f"The query {query!r} is not in the log, so nothing can be estimated for it.")
        return self.only(self.query == self.queries.index(query))

    def cut(self, slots: int) -> ImpressionLog:
        """Keep the first slots only, as if the others had not been shown.

        Parameters
        ----------
        slots : int
            The number of slots to keep.

        Returns
        -------
        ImpressionLog
            The shortened impressions; a visitor who was satisfied further down counts as unsatisfied.
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
        The names of columns that differ from the usual ones, such as `{"shown": "results"}`.

    Returns
    -------
    ImpressionLog
        The impressions that have feedback.
    """
    file = existing(path)
    table = read_rows(file, Path(str(path)).suffix.lower())
    found = chosen_columns(str(path), table.names, columns or {}, _USUAL_NAMES, needs=("shown",))
    if not {"slot", "clicked"} & found.keys():
        raise SourceError(f"{path} has no clicks: it needs a column slot or a column clicked.")
    rows = (dict(zip(found, row, strict=True)) for row in table.rows(list(found.values())))
    with name_in_errors(path):
        return ImpressionLog.from_rows(rows)


def _collected(rows: Iterable[tuple[Any, ...]]) -> ImpressionLog:
    """Collect the rows that have feedback, each with the values that `COLUMNS` names."""
    queries: dict[str, int] = {}
    documents: dict[str, int] = {}
    query, lengths, looks, clicks, shown = (array("q") for _ in range(5))
    propensity, left_out, collections = array("d"), 0, set[Any]()
    for number, (asked, ranking, chances, outcome, slot, clicked, looked_at, void, where) in enumerate(rows, start=1):
        if void or outcome not in (None, *_ANSWERED):
            left_out += 1
            continue
        collections.add(where)
        names, found = checked(number, ranking, clicked)
        click = _clicked(number, found if slot is None else slot, outcome, len(names))
        query.append(queries.setdefault("" if asked is None else str(asked), len(queries)))
        shown.extend(documents.setdefault(name, len(documents)) for name in names)
        propensity.extend(_known(number, chances, len(names)))
        lengths.append(len(names))
        clicks.append(-1 if click is None else click)
        looks.append(-1 if looked_at is None else _looked_at(number, looked_at))
    if not lengths:
        raise EmptyCollectionError("The log has no impression with feedback.")
    if len(collections) > 1:
        raise FeedbackError("The log has impressions of several collections; export one with --collection.")
    sizes = np.asarray(lengths)
    there = np.arange(sizes.max()) < sizes[:, None]
    ranked = _padded(there, np.asarray(shown), NOTHING), _padded(there, np.asarray(propensity), 1.0)
    told = _looks_and_clicks(np.asarray(looks), np.asarray(clicks), there.shape[1])
    return ImpressionLog(list(queries), list(documents), np.asarray(query), *ranked, *told, left_out)


def _looks_and_clicks(looks: Array, clicks: Array, slots: int) -> tuple[Array, Array]:
    """Cap the slots looked at by the length of the ranking; a visitor who clicked looked no further than the click."""
    click = np.where(clicks < 0, slots, clicks)
    far = np.where(looks < 0, slots, np.minimum(looks, slots))
    return np.where(clicks < 0, far, click + 1), click


def _padded(there: Array, flat: Array, otherwise: float) -> Array:
    placed = np.full(there.shape, otherwise, flat.dtype)
    placed[there] = flat
    return placed


def _known(number: int, chances: Any, slots: int) -> Sequence[float]:
    """Return the propensities of an impression; NaN for those that were not recorded."""
    if chances is None:
        return [np.nan] * slots
    known = [np.nan if chance is None else float(chance) for chance in chances]
    if len(known) != slots or not all(np.isnan(chance) or 0 < chance <= 1 for chance in known):
        raise FeedbackError(
            f"Impression {number} has the propensities {chances!r}; it needs {slots}, one for each document, "
            "above 0 and at most 1, or null."
        )
    return known


def _clicked(number: int, slot: Any, outcome: str | None, slots: int) -> int | None:
    if outcome is not None and (slot is None) == (outcome == "satisfied"):
        raise FeedbackError(f"Impression {number} has the outcome {outcome!r}, but the slot {slot!r}.")
    if slot is not None and not 0 <= slot < slots:
        raise FeedbackError(f"Impression {number} has a click on slot {slot}, but {slots} slots, counted from 0.")
    return None if slot is None else int(slot)


def _looked_at(number: int, looked_at: Any) -> int:
    if isinstance(looked_at, bool) or not isinstance(looked_at, int) or looked_at < 1:
        raise FeedbackError(f"Impression {number} has looked_at {looked_at!r}; it must be 1 or more, or null.")
    return looked_at
