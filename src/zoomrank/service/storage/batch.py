"""`Batch`: what is written together, and the rows that it is made of."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from zoomrank.service.storage.events import Event
from zoomrank.service.storage.outcomes import MOVED, Outcome
from zoomrank.service.storage.partitions import partition_in


class StoredLearner(NamedTuple):
    """The learner of a query, without what it has learned."""

    id: int
    collection: int
    query: str
    created: float
    about: str | None = None  # what it said of itself when it was first asked, as JSON
    edition: int = 0  # of its collection, in which it begins


class Snapshot(NamedTuple):
    """A learner as it was when it was last written down whole."""

    learner: int
    edition: int  # of its collection, in which it is
    event: int  # the last that it knows
    first: int  # the first impression that later events can be about
    waiting: int  # how many wait
    counts: str | None
    content: bytes | None  # None: it never was


class Retired(NamedTuple):
    """The beginning of a learner's log, which is to be taken away."""

    last: int  # the last impression that it is about
    until: float  # what is later stays, in seconds since 1970
    void: int  # how many impressions up to the last one the log says are void
    impressions: int  # that counted, up to there
    counted: Counter[tuple[int, Outcome]]  # of a step of time


class StoredReport(NamedTuple):
    """What a learner has told its neighbours last."""

    learner: int
    answers: int  # that it had had
    content: bytes


class ArmVisit(NamedTuple):
    """Something that became of a visitor who counts in an experiment."""

    experiment: int
    arm: int  # its number in the experiment
    minute: int  # in which she came
    outcome: int  # one of `ArmOutcome`


class Listed(NamedTuple):
    """What lists of queries are sorted by, as of late."""

    impressions: int
    satisfied: int
    answered: int
    recent: float | None  # the satisfied share of the last answers, if there were many


@dataclass
class Batch:
    """One durable write."""

    learners: list[StoredLearner] = field(default_factory=list)
    events: list[tuple[int, Event]] = field(default_factory=list)  # with their places in the log
    snapshots: list[Snapshot] = field(default_factory=list)
    reports: dict[int, StoredReport] = field(default_factory=dict)  # of a learner, the newest
    listed: dict[int, Listed] = field(default_factory=dict)  # of a learner
    said: dict[str, str] = field(default_factory=dict)  # facts about the store, by their names
    activity: Counter[tuple[int, int, Outcome]] = field(default_factory=Counter)  # of a collection and a step
    arm_visits: Counter[ArmVisit] = field(default_factory=Counter)
    visitors: list[tuple[int, bytes]] = field(default_factory=list)  # who count in an experiment from now on

    def __bool__(self) -> bool:
        return bool(self.learners or self.events or self.snapshots or self.reports or self.listed or self.said)

    def count(self, collection: int, event: Event, times: int = 1) -> None:
        """Count an event, or (-1) count it no more, in what became of its collection's impressions."""
        if event.outcome == MOVED:
            return
        self.activity[collection, event.step, event.outcome] += times

    @property
    def outcomes(self) -> dict[int, Counter[Outcome]]:
        """How often what became of the impressions of each collection."""
        found: dict[int, Counter[Outcome]] = defaultdict(Counter)
        for (collection, _, outcome), count in self.activity.items():
            found[collection][outcome] += count
        return found

    @property
    def partitions(self) -> set[int]:
        """Of which learners something is written."""
        numbers = {learner.id for learner in self.learners} | {event.learner for _, event in self.events}
        numbers |= {snapshot.learner for snapshot in self.snapshots} | self.reports.keys() | self.listed.keys()
        return {partition_in(number) for number in numbers}

    @property
    def queries(self) -> Counter[int]:
        """How many new queries each collection has."""
        return Counter(learner.collection for learner in self.learners)
