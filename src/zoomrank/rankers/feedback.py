"""Feedback to rankings: clicks in the form kernels need, other actions of visitors, and the log of another ranker.

Feedback may say more than the first click. The goal is that as few visitors as possible leave unsatisfied. So a slot
serves the visitors that the documents above leave unsatisfied, and learns the share of *those* that it satisfies: its
marginal gain. This decides what is learned.

- The topmost document that satisfied the visitor is a success for its slot; the slots above it learn a failure. The
  slots below learn nothing: they serve visitors who are not yet satisfied.
- An unsatisfied visitor has examined all slots, unless it is known how far down they looked; slots that were not
  examined learn nothing. A click proves that its slot and all above were examined, so the larger of the two counts.
- A disliked document was examined and is a failure, wherever it is, also below the document that satisfied. A document
  that was clicked and then disliked did not satisfy.
- Where purchases count, a click alone does not satisfy: it only proves that the slot was examined.

An impression of another ranker is a visit that a learner can count: the ranking, cut to the number of slots here, and
its first click. Unknown documents are left out, with what their slots would have learned; the others keep their slots.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from zoomrank.documents.click_log import Impression, checked, positions_of
from zoomrank.errors import FeedbackError, ParameterError, RepeatedFeedbackError, UnknownDocumentError
from zoomrank.rankers.ranking import RankingArrays, given_rankings
from zoomrank.rankers.slot_bandits import SlotBandits
from zoomrank.spaces import DocumentIds
from zoomrank.types import Array, whole_number


def clicked_slots(clicks: Sequence[int | None] | Array, slots: int) -> Array:
    """Check and return the clicked slots; the number of slots stands for no click."""
    if isinstance(clicks, np.ndarray) and clicks.dtype.kind in "iu":
        found = clicks.astype(np.int64)
        outside = found[(found < 0) | (found > slots)]
    else:
        given = [None if click is None else whole_number(click, "click") for click in clicks]
        outside = np.array([slot for slot in given if slot is not None and not 0 <= slot < slots])
        found = np.array([slots if slot is None else slot for slot in given], dtype=np.int64)
    if len(outside):
        raise FeedbackError(f"A click on slot {outside[0]} is outside the ranking: slots are 0 to {slots - 1}.")
    return found


class FeedbackReceived:
    """Numbers of the rankings that have had feedback, a bit each."""

    def __init__(self, bits: bytes = b"") -> None:
        self.bits = bytearray(bits)

    def reject_repeated(self, first: int, count: int = 1) -> None:
        """Raise if one of these consecutive rankings has had feedback."""
        missing = (first + count + 7) // 8 - len(self.bits)
        if missing > 0:
            self.bits.extend(bytes(missing))
        if count == 1:  # fast path for the common case
            again = first if self.bits[first >> 3] >> (first & 7) & 1 else None
        else:
            numbers = np.arange(first, first + count)
            bits = np.frombuffer(self.bits, np.uint8)[numbers >> 3] >> (numbers & 7) & 1
            again = numbers[bits.argmax()] if bits.any() else None
        if again is not None:
            raise RepeatedFeedbackError(f"Ranking {again} has had its feedback already: send feedback once.")

    def add(self, first: int, count: int = 1) -> None:
        """Mark these rankings as having had feedback."""
        if count == 1:
            self.bits[first >> 3] |= 1 << (first & 7)
        else:
            numbers = np.arange(first, first + count)
            bits = (1 << (numbers & 7)).astype(np.uint8)
            np.bitwise_or.at(np.frombuffer(self.bits, np.uint8), numbers >> 3, bits)


# Actions of a visitor, and what each slot learns from them.

_NONE: frozenset[int] = frozenset()


class VisitorActions(NamedTuple):
    """Actions of a visitor on a ranking; slots are counted from 0."""

    clicked: frozenset[int] = _NONE
    disliked: frozenset[int] = _NONE
    purchased: frozenset[int] = _NONE
    looked_at: int = 0  # number of slots examined from the top; 0: unknown

    def and_(self, more: VisitorActions) -> VisitorActions:
        """Merge with further actions of the same visitor."""
        return VisitorActions(
            self.clicked | more.clicked,
            self.disliked | more.disliked,
            self.purchased | more.purchased,
            max(self.looked_at, more.looked_at),
        )


class SlotOutcomes(NamedTuple):
    """Slots that learn: the one with success, if any, and those without."""

    satisfied: int | None
    skipped: tuple[int, ...]


def satisfied_slot(actions: VisitorActions, by: str = "click") -> int | None:
    """Return the topmost slot that satisfied a visitor, by a click (which every purchase begins with) or by a
    purchase.
    """
    satisfying = actions.purchased if by == "purchase" else actions.clicked | actions.purchased
    return min(satisfying - actions.disliked, default=None)


def slot_outcomes(actions: VisitorActions, slots: int, satisfied: int | None) -> SlotOutcomes:
    """Return what a ranking with this many slots teaches; `satisfied` is the slot that satisfied the visitor, if any.

    >>> slot_outcomes(VisitorActions(), 3, satisfied=None)
    SlotOutcomes(satisfied=None, skipped=(0, 1, 2))
    >>> slot_outcomes(VisitorActions(disliked=frozenset({2})), 3, satisfied=1)
    SlotOutcomes(satisfied=1, skipped=(0, 2))
    >>> slot_outcomes(VisitorActions(looked_at=1), 3, satisfied=None)
    SlotOutcomes(satisfied=None, skipped=(0,))
    """
    if satisfied is not None:
        above, slot = range(satisfied), satisfied
    else:
        proved = max(actions.clicked | actions.purchased, default=-1) + 1
        above, slot = range(min(slots, max(actions.looked_at, proved)) if actions.looked_at else slots), -1
    if not actions.disliked:
        return SlotOutcomes(satisfied, tuple(above))
    return SlotOutcomes(satisfied, tuple(sorted({*above, *actions.disliked} - {slot})))


def learn_outcomes(ranker: SlotBandits, ranking: RankingArrays, outcomes: SlotOutcomes) -> None:
    """Let a ranker learn the outcomes of one of its rankings."""
    end, skipped = outcomes.satisfied, outcomes.skipped
    upper = ranking.shown.shape[1] if end is None else end
    if len(skipped) == upper and (upper == 0 or skipped[-1] == upper - 1):  # the common case: the same as a click alone
        ranker.learn_arrays(ranking, np.array([ranker.slots if end is None else end]))
        return
    above = [slot for slot in skipped if slot < upper]
    below = [slot for slot in skipped if slot > upper]
    seen = _only(ranking, above if end is None else [*above, end])
    ranker.learn_arrays(seen, np.array([ranker.slots if end is None else end]))
    if below:
        ranker.learn_arrays(_only(ranking, below), np.array([ranker.slots]))


def _only(ranking: RankingArrays, slots: list[int]) -> RankingArrays:
    """Restrict a ranking to the slots that learn."""
    pick = np.full_like(ranking.pick, -1)
    pick[0, slots] = ranking.pick[0, slots]
    return ranking._replace(pick=pick)


# The log of another ranker.

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
