"""`ImpressionFeedback`: the feedback on an impression, and the log events that it becomes.

A satisfying click (or purchase) ends the impression, and so does leaving it. Everything else becomes a note: an event
that keeps the impression open and counts when it ends. Feedback after the end becomes a note as well, as long as it
changes nothing that was learned. `zoomrank.rankers.feedback` derives what a learner concludes from all of it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence
from typing import NamedTuple

from zoomrank.rankers.feedback import VisitorActions, satisfied_slot, slot_outcomes
from zoomrank.service.errors import ContradictionError, NotFoundError, UnprocessableError
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
from zoomrank.service.storage.ownership import partition_in
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


# Signed names of impressions: they identify the learner and the time, and cannot be forged.

_FORM = re.compile(r"([0-9a-f]{1,16})-([0-9a-f]{1,16})-([0-9a-f]{1,16})-([0-9a-f]{20})")


def partition_of_impression(name: str) -> int | None:
    """Return the partition in the name of an impression, without checking its signature; None if it is no such name.

    >>> partition_of_impression("3e4-0-18bcfe56800-0123456789abcdef0123")
    228
    """
    found = _FORM.fullmatch(name)
    return None if found is None else partition_in(int(found[1], 16))


class ImpressionId(NamedTuple):
    """A decoded impression name."""

    learner: int
    number: int
    time: float


class ImpressionSigner:
    """Signs impression names with the secret of the store."""

    def __init__(self, secret: str) -> None:
        self._secret = bytes.fromhex(secret)

    def name(self, learner: int, number: int, time: float) -> str:
        """Return the name that a visitor's page sends back with its feedback."""
        plain = f"{learner:x}-{number:x}-{round(time * 1000):x}"
        return f"{plain}-{self._signature(plain)}"

    def read(self, name: str) -> ImpressionId:
        """Return the impression of a name; raise unless it was signed by this store."""
        found = _FORM.fullmatch(name)
        if found is None or not hmac.compare_digest(self._signature(name.rpartition("-")[0]), found[4]):
            raise NotFoundError("Unknown impression: send the name that the ranking came with.")
        return ImpressionId(int(found[1], 16), int(found[2], 16), int(found[3], 16) / 1000)

    def _signature(self, plain: str) -> str:
        return hashlib.blake2b(plain.encode(), key=self._secret, digest_size=10).hexdigest()
