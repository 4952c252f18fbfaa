"""`Batch`: rows that are written together."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from zoomrank.service.storage.events import MOVED, UNSEEN, VOIDED, WAITING, ArmRef, Event, Outcome, is_end, is_satisfied
from zoomrank.service.storage.ownership import partition_in


class StoredLearner(NamedTuple):
    """The learner of a query, without its state."""

    id: int
    collection: int
    query: str
    created: float
    about: str | None = None  # its path or vector, given when it was first asked, as JSON
    edition: int = 0  # catalogue version in which it begins


class Snapshot(NamedTuple):
    """State of a learner after some event."""

    learner: int
    edition: int  # catalogue version
    event: int  # the last event that it includes
    first: int  # the first impression that later events can refer to
    waiting: int  # number of open impressions
    counts: str | None
    content: bytes | None  # None: no snapshot yet


class RetiredEvents(NamedTuple):
    """The oldest part of a learner's log, to be removed."""

    last: int  # the last impression that it covers
    until: float  # later events stay; seconds since 1970
    void: int  # number of voided impressions up to the last one
    impressions: int  # number of counted impressions up to the last one
    counted: Counter[tuple[int, Outcome]]  # by time step and outcome


class StoredReport(NamedTuple):
    """The latest report of a learner to its neighbours."""

    learner: int
    answers: int  # number of answers that it is based on
    content: bytes


class ArmVisit(NamedTuple):
    """One count for a visitor in an experiment."""

    experiment: int
    arm: int  # its number in the experiment
    minute: int  # of arrival
    outcome: int  # one of `ArmOutcome`


class QueryListing(NamedTuple):
    """Counts by which lists of queries are sorted; may lag behind the log."""

    impressions: int
    satisfied: int
    answered: int
    recent: float | None  # satisfied share of the last answers, if there are enough


@dataclass
class Batch:
    """One durable write."""

    learners: list[StoredLearner] = field(default_factory=list)
    events: list[tuple[int, Event]] = field(default_factory=list)  # with their places in the log
    snapshots: list[Snapshot] = field(default_factory=list)
    reports: dict[int, StoredReport] = field(default_factory=dict)  # by learner, the newest
    listed: dict[int, QueryListing] = field(default_factory=dict)  # by learner
    said: dict[str, str] = field(default_factory=dict)  # named facts about the store
    activity: Counter[tuple[int, int, Outcome]] = field(default_factory=Counter)  # by collection and time step
    arm_visits: Counter[ArmVisit] = field(default_factory=Counter)
    visitors: list[tuple[int, bytes]] = field(default_factory=list)  # (experiment, visitor) newly counted

    def __bool__(self) -> bool:
        return bool(self.learners or self.events or self.snapshots or self.reports or self.listed or self.said)

    def count(self, collection: int, event: Event, times: int = 1) -> None:
        """Add an event to the activity counts, or subtract it (-1)."""
        if event.outcome == MOVED:
            return
        self.activity[collection, event.step, event.outcome] += times

    @property
    def outcomes(self) -> dict[int, Counter[Outcome]]:
        """Outcome counts per collection."""
        found: dict[int, Counter[Outcome]] = defaultdict(Counter)
        for (collection, _, outcome), count in self.activity.items():
            found[collection][outcome] += count
        return found

    @property
    def partitions(self) -> set[int]:
        """Partitions of the learners in this batch."""
        numbers = {learner.id for learner in self.learners} | {event.learner for _, event in self.events}
        numbers |= {snapshot.learner for snapshot in self.snapshots} | self.reports.keys() | self.listed.keys()
        return {partition_in(number) for number in numbers}

    @property
    def queries(self) -> Counter[int]:
        """Number of new queries per collection."""
        return Counter(learner.collection for learner in self.learners)


# `StoredExperiment`: the row of an experiment; `StoreReader` reads it, `Store` writes it.


class StoredExperiment(NamedTuple):
    """An experiment as a row of its table."""

    id: int
    collection: int  # home collection
    name: str
    created: float
    ended: float | None
    content: str  # JSON, see `experiments`


# Outcomes of visitors in an experiment: fewer kinds than there are outcomes of impressions.

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
