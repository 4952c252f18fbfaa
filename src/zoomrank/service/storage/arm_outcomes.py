"""What became of a visitor who counts in an experiment: fewer kinds than there are outcomes of impressions."""

from __future__ import annotations

from enum import IntEnum

from zoomrank.service.storage.batch import ArmVisit
from zoomrank.service.storage.events import Arm
from zoomrank.service.storage.outcomes import UNSEEN, VOIDED, WAITING, Outcome, is_end, is_satisfied

MINUTE = 60  # seconds


class ArmOutcome(IntEnum):
    """As the store has them."""

    CAME = 0
    SATISFIED = 1
    LEFT = 2
    UNSEEN = 3  # so she counts in neither share


def arm_outcome(outcome: Outcome) -> ArmOutcome:
    """What an outcome of an impression comes to.

    >>> arm_outcome(2).name, arm_outcome(WAITING).name
    ('SATISFIED', 'CAME')
    """
    if outcome == WAITING:
        return ArmOutcome.CAME
    if outcome == UNSEEN:
        return ArmOutcome.UNSEEN
    return ArmOutcome.SATISFIED if is_satisfied(outcome) else ArmOutcome.LEFT


def arm_visit(arm: Arm | None, time: float, outcome: Outcome) -> ArmVisit | None:
    """What is to be counted of an impression that was shown at a time, when it is shown and when it ends; nothing if it
    counts in no arm, and nothing of what comes between or takes it back.
    """
    if arm is None or outcome == VOIDED or not (outcome == WAITING or is_end(outcome)):
        return None
    return ArmVisit(arm.experiment, arm.number, int(time) // MINUTE, arm_outcome(outcome))
