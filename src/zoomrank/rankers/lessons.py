"""Feedback that says more than the first click, and what each slot learns from it.

The goal is that as few visitors as possible leave unsatisfied. So a slot serves the visitors that the documents above
leave unsatisfied, and learns the share of *those* that it satisfies: its marginal gain. This decides what is learned.

- The topmost document that satisfied the visitor is a success for its slot; the slots above it learn a failure. The
  slots below learn nothing: they serve visitors who are not yet satisfied.
- An unsatisfied visitor has examined all slots, unless it is known how far down they looked; slots that were not
  examined learn nothing. A click proves that its slot and all above were examined, so the larger of the two counts.
- A disliked document was examined and is a failure, wherever it is, also below the document that satisfied. A document
  that was clicked and then disliked did not satisfy.
- Where purchases count, a click alone does not satisfy: it only proves that the slot was examined.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from zoomrank.rankers.ranking_arrays import RankingArrays
from zoomrank.rankers.slot_bandits import SlotBandits

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


def satisfied_slot(acts: VisitorActions, by: str = "click") -> int | None:
    """Return the topmost slot that satisfied a visitor, by a click (which every purchase begins with) or by a
    purchase.
    """
    satisfying = acts.purchased if by == "purchase" else acts.clicked | acts.purchased
    return min(satisfying - acts.disliked, default=None)


def slot_outcomes(acts: VisitorActions, slots: int, satisfied: int | None) -> SlotOutcomes:
    """Return what a ranking with this many slots teaches; `satisfied` is the slot that satisfied the visitor, if any.

    >>> lesson_of(Acts(), 3, satisfied=None), lesson_of(Acts(disliked=frozenset({2})), 3, satisfied=1)
    (Lesson(satisfied=None, skipped=(0, 1, 2)), Lesson(satisfied=1, skipped=(0, 2)))
    >>> lesson_of(Acts(looked_at=1), 3, satisfied=None)
    Lesson(satisfied=None, skipped=(0,))
    """
    if satisfied is not None:
        above, slot = range(satisfied), satisfied
    else:
        proved = max(acts.clicked | acts.purchased, default=-1) + 1
        above, slot = range(min(slots, max(acts.looked_at, proved)) if acts.looked_at else slots), -1
    if not acts.disliked:
        return SlotOutcomes(satisfied, tuple(above))
    return SlotOutcomes(satisfied, tuple(sorted({*above, *acts.disliked} - {slot})))


def learn_outcomes(ranker: SlotBandits, ranking: RankingArrays, lesson: SlotOutcomes) -> None:
    """Let a ranker learn a lesson about one of its rankings."""
    end, skipped = lesson.satisfied, lesson.skipped
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
