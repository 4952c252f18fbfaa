"""Outcomes of visitors in an experiment: fewer kinds than there are outcomes of impressions."""

from __future__ import annotations

from enum import IntEnum

from zoomrank.service.storage.batch import ArmVisit
from zoomrank.service.storage.events import ArmRef
from zoomrank.service.storage.outcomes import UNSEEN, VOIDED, WAITING, Outcome, is_end, is_satisfied

MINUTE = 60  # seconds


class ArmOutcome(IntEnum):
    """Numbers as stored."""

    CAME = 0
    SATISFIED = 1
    LEFT = 2
    UNSEEN = 3  # counts neither as satisfied nor as left


def arm_outcome(outcome: Outcome) -> ArmOutcome:
    """Map the outcome of an impression to that of a visitor.

    >>> arm_outcome(2).name, arm_outcome(WAITING).name
    ('SATISFIED', 'CAME')
    """
    if outcome == WAITING:
        return ArmOutcome.CAME
    if outcome == UNSEEN:
        return ArmOutcome.UNSEEN
    return ArmOutcome.SATISFIED if is_satisfied(outcome) else ArmOutcome.LEFT


def arm_visit(arm: ArmRef | None, time: float, outcome: Outcome) -> ArmVisit | None:
    """Return the count that an event adds for an impression shown at `time`; None if it is in no arm, or if the event
    neither shows nor ends it.
    """
    if arm is None or outcome == VOIDED or not (outcome == WAITING or is_end(outcome)):
        return None
    return ArmVisit(arm.experiment, arm.number, int(time) // MINUTE, arm_outcome(outcome))
