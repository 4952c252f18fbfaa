"""What an answer teaches, slot by slot, when it says more than which document was clicked first.

As few visitors as possible are to leave with nothing. So a slot is there for those whom nothing above it satisfies, and
what it learns is how many of *those* it satisfies: its marginal gain. From this follows what is learned.

- The topmost document that satisfied her earns its slot a visit with success, and those above it one without. Below it
  nothing is learned: she was satisfied, so she is none of those for whom the slots below are there.
- Who was not satisfied has looked at everything, unless it is known how far down she looked. What she has not looked at
  says nothing about her. A click proves a look at it and at all above, so the larger of the two counts.
- What she disliked she has looked at, and did not want: a visit without success, wherever it stands, also below what
  satisfied her. A document that she clicked and then disliked did not satisfy her.
- Where a purchase is what counts, a click satisfies nobody: it is a look.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from zoomrank.rankers.ranking_arrays import RankingArrays
from zoomrank.rankers.slot_bandits import SlotBandits

_NONE: frozenset[int] = frozenset()


class Acts(NamedTuple):
    """What a visitor did with a ranking, by slots that are counted from 0."""

    clicked: frozenset[int] = _NONE
    disliked: frozenset[int] = _NONE
    purchased: frozenset[int] = _NONE
    looked_at: int = 0  # so many slots from the top; 0: nobody knows

    def and_(self, more: Acts) -> Acts:
        """These and more of the same visitor."""
        return Acts(
            self.clicked | more.clicked,
            self.disliked | more.disliked,
            self.purchased | more.purchased,
            max(self.looked_at, more.looked_at),
        )


class Lesson(NamedTuple):
    """What is learned: the slot with success, if there is one, and those without."""

    satisfied: int | None
    skipped: tuple[int, ...]


def satisfied_in(acts: Acts, by: str = "click") -> int | None:
    """The topmost slot that satisfied a visitor, by a click (which every purchase begins with) or by a purchase.

    >>> satisfied_in(Acts(clicked=frozenset({1, 3}))), satisfied_in(Acts(clicked=frozenset({1, 3})), by="purchase")
    (1, None)
    >>> satisfied_in(Acts(clicked=frozenset({1, 3}), disliked=frozenset({1})))
    3
    """
    satisfying = acts.purchased if by == "purchase" else acts.clicked | acts.purchased
    return min(satisfying - acts.disliked, default=None)


def lesson_of(acts: Acts, slots: int, satisfied: int | None) -> Lesson:
    """What a ranking of so many slots teaches, of which one satisfied the visitor or none did.

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
        return Lesson(satisfied, tuple(above))
    return Lesson(satisfied, tuple(sorted({*above, *acts.disliked} - {slot})))


def teach(ranker: SlotBandits, ranking: RankingArrays, lesson: Lesson) -> None:
    """Let a ranker learn a lesson about one ranking of its own."""
    end, skipped = lesson.satisfied, lesson.skipped
    upper = ranking.shown.shape[1] if end is None else end
    if len(skipped) == upper and (upper == 0 or skipped[-1] == upper - 1):  # as most are: what a click alone teaches
        ranker.learn_arrays(ranking, np.array([ranker.slots if end is None else end]))
        return
    above = [slot for slot in skipped if slot < upper]
    below = [slot for slot in skipped if slot > upper]
    seen = _only(ranking, above if end is None else [*above, end])
    ranker.learn_arrays(seen, np.array([ranker.slots if end is None else end]))
    if below:
        ranker.learn_arrays(_only(ranking, below), np.array([ranker.slots]))


def _only(ranking: RankingArrays, slots: list[int]) -> RankingArrays:
    """A ranking of which some slots alone learn."""
    pick = np.full_like(ranking.pick, -1)
    pick[0, slots] = ranking.pick[0, slots]
    return ranking._replace(pick=pick)
