"""`Answer`: what somebody says of an impression, and how that stands in the log.

What satisfied her ends the impression, and so does it that she has left. Everything else is a note: a line of the log
which keeps the impression open, and counts when it ends. What comes after the end is a note as well, as long as it
changes nothing that was learned. What a learner concludes from all of it is derived in `zoomrank.rankers.lessons`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from zoomrank.rankers.lessons import Acts, lesson_of, satisfied_in
from zoomrank.service.refusals import ContradictionError, UnusableError
from zoomrank.service.storage.outcomes import (
    ABANDONED,
    CLICKED,
    DISLIKED,
    LOOKED_AT,
    PURCHASED,
    Outcome,
    is_satisfied,
    note_of,
)
from zoomrank.spaces import DocumentId

_NOTHING = Acts()


class Answer(NamedTuple):
    """What somebody says, by the ids of documents."""

    clicked: Sequence[DocumentId] = ()
    left: bool = False  # she does no more
    looked_at: int = 0  # so many slots; 0: nothing is said of it
    disliked: Sequence[DocumentId] = ()
    purchased: Sequence[DocumentId] = ()

    @classmethod
    def of_click(cls, clicked: DocumentId | None) -> Answer:
        """The simplest one: a click, or none."""
        return cls(left=True) if clicked is None else cls(clicked=(clicked,))

    def acts(self, shown: Sequence[DocumentId]) -> Acts:
        """What was done with the documents that were shown, by their slots."""
        if not (self.clicked or self.left or self.disliked or self.purchased or self.looked_at):
            raise UnusableError(
                "Say what became of it: what was `clicked` (an id, a list of ids, or null), `purchased` or `disliked`, "
                "or how many documents were `looked_at`."
            )
        clicked, disliked, purchased = (_slots(shown, named) for named in (self.clicked, self.disliked, self.purchased))
        return Acts(clicked, disliked, purchased, min(self.looked_at, len(shown)))


def _slots(shown: Sequence[DocumentId], named: Sequence[DocumentId]) -> frozenset[int]:
    if not named:
        return _NOTHING.clicked
    try:
        return frozenset([shown.index(document) for document in named])
    except ValueError:
        missing = next(document for document in named if document not in shown)
        raise UnusableError(f"Document {missing!r} was not shown in this impression.") from None


def end_alone(acts: Acts, left: bool, by: str) -> Outcome | None:
    """What became of an impression of which nothing was noted, if an answer says that and nothing else: most do."""
    clicked, disliked, purchased, looked_at = acts
    if disliked or purchased or looked_at or len(clicked) != 1 - left or (clicked and by != "click"):
        return None
    return ABANDONED if left else next(iter(clicked))


def end_of(acts: Acts, left: bool, by: str) -> Outcome | None:
    """What became of an impression, if that is known now."""
    satisfied = satisfied_in(acts, by)
    if satisfied is not None:
        return satisfied
    return ABANDONED if left else None


def acts_told_by(outcome: Outcome, by: str) -> Acts:
    """What the end of an impression says by itself, so that no note need say it again."""
    if not is_satisfied(outcome):
        return Acts()
    slot = frozenset([outcome])
    return Acts(purchased=slot) if by == "purchase" else Acts(clicked=slot)


def acts_noted(notes: Sequence[Outcome]) -> Acts:
    """What the notes on an impression say."""
    if not notes:
        return _NOTHING
    slots: dict[Outcome, list[int]] = {CLICKED: [], DISLIKED: [], PURCHASED: [], LOOKED_AT: []}
    for note in notes:
        what, slot = note_of(note)
        slots[what].append(slot)
    clicked, disliked, purchased = (frozenset(slots[what]) for what in (CLICKED, DISLIKED, PURCHASED))
    return Acts(clicked, disliked, purchased, max(slots[LOOKED_AT], default=0))


def new_notes(known: Acts, acts: Acts) -> list[Outcome]:
    """What is to be noted of some acts after those that are known."""
    notes = [
        what + slot
        for what, some, before in (
            (CLICKED, acts.clicked, known.clicked),
            (DISLIKED, acts.disliked, known.disliked),
            (PURCHASED, acts.purchased, known.purchased),
        )
        for slot in sorted(some - before)
    ]
    return [*notes, LOOKED_AT + acts.looked_at] if acts.looked_at > known.looked_at else notes


def later_notes(known: Acts, acts: Acts, left: bool, outcome: Outcome, slots: int, by: str) -> list[Outcome]:
    """What is to be noted of some acts after the end of an impression of so many slots; refused if they would have
    taught something else than was learned.
    """
    satisfied = outcome if is_satisfied(outcome) else None
    both = known.and_(acts)
    if satisfied is None:
        changes = satisfied_in(both, by) is not None
    else:
        changes = satisfied in both.disliked or (left and by == "click")
    if changes or lesson_of(both, slots, satisfied) != lesson_of(known, slots, satisfied):
        raise ContradictionError("This impression has had its feedback already, and that said otherwise.")
    return new_notes(known, acts)
