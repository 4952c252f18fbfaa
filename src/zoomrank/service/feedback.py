"""`ImpressionFeedback`: the feedback on an impression, and the log events that it becomes.

A satisfying click (or purchase) ends the impression, and so does leaving it. Everything else becomes a note: an event
that keeps the impression open and counts when it ends. Feedback after the end becomes a note as well, as long as it
changes nothing that was learned. `zoomrank.rankers.feedback` derives what a learner concludes from all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from zoomrank.rankers.feedback import VisitorActions, satisfied_slot, slot_outcomes
from zoomrank.service.errors import ContradictionError, UnprocessableError
from zoomrank.service.storage.events import (
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

_NOTHING = VisitorActions()


class ImpressionFeedback(NamedTuple):
    """Feedback on one impression, by document ids."""

    clicked: Sequence[DocumentId] = ()
    left: bool = False  # the visitor does nothing more
    looked_at: int = 0  # number of slots; 0: not reported
    disliked: Sequence[DocumentId] = ()
    purchased: Sequence[DocumentId] = ()

    @classmethod
    def of_click(cls, clicked: DocumentId | None) -> ImpressionFeedback:
        """Return the simplest feedback: one click, or none."""
        return cls(left=True) if clicked is None else cls(clicked=(clicked,))

    def acts(self, shown: Sequence[DocumentId]) -> VisitorActions:
        """Return the feedback by slot instead of by document id."""
        if not (self.clicked or self.left or self.disliked or self.purchased or self.looked_at):
            raise UnprocessableError(
                "The feedback is empty: send `clicked` (an id, a list of ids, or null), `purchased`, `disliked`, or "
                "the number of documents `looked_at`."
            )
        clicked, disliked, purchased = (_slots(shown, named) for named in (self.clicked, self.disliked, self.purchased))
        return VisitorActions(clicked, disliked, purchased, min(self.looked_at, len(shown)))


def _slots(shown: Sequence[DocumentId], named: Sequence[DocumentId]) -> frozenset[int]:
    if not named:
        return _NOTHING.clicked
    try:
        return frozenset([shown.index(document) for document in named])
    except ValueError:
        missing = next(document for document in named if document not in shown)
        raise UnprocessableError(
            f"Document {missing!r} was not shown in this impression: send the ids that the ranking came with."
        ) from None


def simple_outcome(acts: VisitorActions, left: bool, by: str) -> Outcome | None:
    """Return the outcome of an impression without notes if this feedback says nothing else (the common case), or
    None.
    """
    clicked, disliked, purchased, looked_at = acts
    if disliked or purchased or looked_at or len(clicked) != 1 - left or (clicked and by != "click"):
        return None
    return ABANDONED if left else next(iter(clicked))


def final_outcome(acts: VisitorActions, left: bool, by: str) -> Outcome | None:
    """Return the outcome of an impression, or None while it stays open."""
    satisfied = satisfied_slot(acts, by)
    if satisfied is not None:
        return satisfied
    return ABANDONED if left else None


def acts_of_outcome(outcome: Outcome, by: str) -> VisitorActions:
    """Return the feedback implied by an outcome, which needs no notes of its own."""
    if not is_satisfied(outcome):
        return VisitorActions()
    slot = frozenset([outcome])
    return VisitorActions(purchased=slot) if by == "purchase" else VisitorActions(clicked=slot)


def acts_of_notes(notes: Sequence[Outcome]) -> VisitorActions:
    """Return the feedback that the notes on an impression contain."""
    if not notes:
        return _NOTHING
    slots: dict[Outcome, list[int]] = {CLICKED: [], DISLIKED: [], PURCHASED: [], LOOKED_AT: []}
    for note in notes:
        what, slot = note_of(note)
        slots[what].append(slot)
    clicked, disliked, purchased = (frozenset(slots[what]) for what in (CLICKED, DISLIKED, PURCHASED))
    return VisitorActions(clicked, disliked, purchased, max(slots[LOOKED_AT], default=0))


def new_notes(known: VisitorActions, acts: VisitorActions) -> list[Outcome]:
    """Return the notes to add for feedback beyond what is known."""
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


def notes_after_end(
    known: VisitorActions, acts: VisitorActions, left: bool, outcome: Outcome, slots: int, by: str
) -> list[Outcome]:
    """Return the notes to add after an impression has ended; raise if they would have taught something else."""
    satisfied = outcome if is_satisfied(outcome) else None
    both = known.and_(acts)
    if satisfied is None:
        changes = satisfied_slot(both, by) is not None
    else:
        changes = satisfied in both.disliked or (left and by == "click")
    if changes or slot_outcomes(both, slots, satisfied) != slot_outcomes(known, slots, satisfied):
        raise ContradictionError("This impression already has feedback that says otherwise: the first feedback counts.")
    return new_notes(known, acts)
