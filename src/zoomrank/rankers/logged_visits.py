"""Impressions of another ranker, as visits that a learner can count.

A visit is a ranking of that ranker, cut to the number of slots here, and its first click. Unknown documents are left
out, with what their slots would have learned; the others keep their slots.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from zoomrank.documents.logged_impressions import Impression, checked, positions_of
from zoomrank.errors import ParameterError, UnknownDocumentError
from zoomrank.numbers import Array
from zoomrank.rankers.ranking_arrays import RankingArrays, given_rankings
from zoomrank.spaces import DocumentIds

UNKNOWN = ("refuse", "skip")
_AT_ONCE = 4096


class LoggedVisit(NamedTuple):
    """One visit: the documents of the slots, -1 for those that the collection lacks."""

    query: str
    shown: tuple[int, ...]
    click: int | None  # the slot


class VisitReader:
    """Converts impressions to visits, for a collection and a number of slots."""

    def __init__(self, documents: DocumentIds, slots: int, unknown: str = "refuse") -> None:
        if unknown not in UNKNOWN:
            raise ParameterError(f"unknown must be 'refuse' or 'skip', not {unknown!r}.")
        self._positions: Mapping[str, int] = positions_of(documents)
        self._slots = slots
        self._refuse = unknown == "refuse"

    def visits(self, impressions: Iterable[Impression]) -> Iterator[LoggedVisit]:
        """Convert impressions to visits, in order."""
        for number, (query, shown, clicked) in enumerate(impressions, start=1):
            names, click = checked(number, shown, clicked)
            places = tuple(self._position(number, name) for name in names[: self._slots])
            yield LoggedVisit(str(query), places, None if click is None or click >= self._slots else click)

    def _position(self, number: int, name: str) -> int:
        position = self._positions.get(name, -1)
        if position < 0 and self._refuse:
            raise UnknownDocumentError(
                f'Impression {number} shows {name!r}, which the collection lacks. Add it, or say unknown="skip" '
                "(--unknown skip) to go on without such documents."
            )
        return position


def visit_arrays(visits: Sequence[LoggedVisit], slots: int) -> tuple[RankingArrays, Array]:
    """Return visits as arrays for kernels, and the clicked slots: the number of slots for none."""
    shown = np.full((len(visits), slots), -1, np.int64)
    for row, visit in enumerate(visits):
        shown[row, : len(visit.shown)] = visit.shown
    clicks = np.array([slots if visit.click is None else visit.click for visit in visits], np.int64)
    return given_rankings(shown), clicks


def in_batches(visits: Iterator[LoggedVisit], slots: int) -> Iterator[tuple[RankingArrays, Array]]:
    """Convert visits to arrays for kernels in batches."""
    while some := list(islice(visits, _AT_ONCE)):
        yield visit_arrays(some, slots)
