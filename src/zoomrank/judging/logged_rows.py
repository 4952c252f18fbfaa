"""Checked rows of a log, as the columns of an `ImpressionLog`.

Rows are read one after the other into flat lists, so that a long log takes little memory.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from zoomrank.documents.logged_impressions import checked
from zoomrank.errors import EmptyCollectionError, FeedbackError
from zoomrank.numbers import Array

COLUMNS = ("query", "shown", "propensity", "outcome", "slot", "clicked", "looked_at", "void", "collection")
NOTHING = -1  # in a slot that showed no document
_ANSWERED = ("satisfied", "abandoned", "timed_out")


class LoggedRows(NamedTuple):
    """The columns of an `ImpressionLog`."""

    queries: list[str]
    documents: list[str]
    query: Array
    shown: Array
    propensity: Array
    looks: Array
    click: Array
    left_out: int


def collect_rows(rows: Iterable[tuple[Any, ...]]) -> LoggedRows:
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
    return LoggedRows(list(queries), list(documents), np.asarray(query), *ranked, *told, left_out)


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
