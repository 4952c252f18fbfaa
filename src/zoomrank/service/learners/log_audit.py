"""`LogAudit`: an audit of one learner's log: the outcomes, the counts, and the findings, in sentences.

This is the one place that defines which events make a learner and which counts follow from them, and the start of a
log: a fresh learner or, if its first events are no longer kept, its base, the learner as it was after them. Whatever is
replayed starts there: rebuilt learners, and those that `verify` compares with their snapshots.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.learners.query_learner import QueryLearner
from zoomrank.service.storage.events import (
    LOOKED_AT,
    MOVED,
    SEEN,
    VOIDED,
    WAITING,
    ArmVisit,
    Event,
    Outcome,
    arm_of,
    arm_visit,
    counted,
    is_note,
    is_satisfied,
    note_of,
    unpack,
    word_of,
)
from zoomrank.service.storage.store_reader import StoreReader

_FEW = 5  # names in a finding


@dataclass
class LogAudit:
    """The outcome of each impression, the events to replay, and the counts."""

    outcomes: dict[int, Outcome] = field(default_factory=dict)  # of each impression; WAITING while it has none
    events: list[tuple[int, Event]] = field(default_factory=list)  # to be replayed, with their places
    counted: Counter[tuple[int, Outcome]] = field(default_factory=Counter)  # of a step of time
    findings: list[str] = field(default_factory=list)

    early: int = 0  # impressions that were shown before it begins
    following: int = 0  # the expected number of the next impression

    @classmethod
    def read(
        cls,
        rows: Iterable[tuple[int, Event]],
        early: int = 0,
        outcomes: Mapping[int, Outcome] | None = None,
        slots: Mapping[int, int] | None = None,
    ) -> LogAudit:
        """Read the events of a learner, in the order of their places.

        `early` impressions were shown before it begins. Of those that may still have events in it, `outcomes` has the
        outcome so far, and `slots` the number of slots of those that waited for feedback.
        """
        slots = dict(slots or {})  # of each ranking
        log = cls(dict(outcomes or {}), early=early, following=early)
        wrong: dict[str, list[int]] = {}
        for place, event in rows:
            said = _wrong(event, log, slots)
            if said is not None:
                wrong.setdefault(said, []).append(event.number)
            if event.outcome not in (SEEN, MOVED) and not is_note(event.outcome):
                log.outcomes[event.number] = event.outcome
            log.events.append((place, event))
        for event in counted(event for _, event in log.events):
            log.counted[event.step, event.outcome] += 1
        log.findings = [f"{said}: {few(numbers)}" for said, numbers in wrong.items()]
        return log

    @property
    def shown(self) -> int:
        """Number of impressions that count."""
        return sum(count for (_, outcome), count in self.counted.items() if outcome == WAITING)

    @property
    def arm_visits(self) -> Counter[ArmVisit]:
        """Counts for experiments, of impressions that the log has from their beginning."""
        shown: dict[int, Event] = {}
        found: Counter[ArmVisit] = Counter()
        for event in counted(event for _, event in self.events):
            if event.outcome == WAITING and _slots(event):  # else it is unreadable, which is a finding already
                shown[event.number] = event
            begun = shown.get(event.number)
            visit = None if begun is None else arm_visit(arm_of(begun.shown or b""), begun.time, event.outcome)
            if visit is not None:
                found[visit] += 1
        return found

    @property
    def answers(self) -> tuple[int, int]:
        """Number of impressions that ended with a click, and number that ended with a click or without one."""
        counts: Counter[str] = Counter()
        for (_, outcome), count in self.counted.items():
            counts[word_of(outcome)] += count
        return counts["satisfied"], counts["satisfied"] + counts["abandoned"]


def _wrong(event: Event, log: LogAudit, slots: dict[int, int]) -> str | None:
    """Return a finding on an event after those before it, if there is one; record the length of its ranking."""
    outcomes, following = log.outcomes, log.following
    if event.outcome == MOVED:
        return "moves to another version that are not where they were made" if event.number != following else None
    if event.outcome == WAITING:
        slots[event.number] = _slots(event)
        log.following = event.number + 1
        if event.number != following:
            return "impressions that are not numbered one after the other"
        return None if slots[event.number] else "impressions whose ranking cannot be read"
    if event.outcome == VOIDED and event.number < log.early and event.number not in outcomes:
        return None  # its impression has left the log already
    if event.number not in outcomes:
        return "impressions that have an end and were not shown before it"
    if event.outcome == VOIDED:
        return "impressions that are void twice" if outcomes[event.number] == VOIDED else None
    if is_note(event.outcome):  # which may come after the end
        return _wrong_note(event, outcomes[event.number], slots.get(event.number))
    if outcomes[event.number] != WAITING:
        return "impressions that were seen or end after their end"
    if is_satisfied(event.outcome) and event.outcome >= slots.get(event.number, 0):
        return "impressions with a click in a slot that they do not have"
    return None


def _wrong_note(event: Event, outcome: Outcome, slots: int | None) -> str | None:
    """Return a finding on a note, given the outcome and the slots of its impression, if there is one."""
    if outcome == VOIDED:
        return "notes on impressions that are void"
    if slots is None:  # it was shown, and ended, before the log begins
        return None
    what, slot = note_of(event.outcome)
    return None if slot < slots + (what == LOOKED_AT) else "notes on slots that an impression does not have"


def _slots(event: Event) -> int:
    """Return the length of a ranking; 0 if it cannot be read."""
    try:
        return int(unpack(event.shown or b"").shown.shape[1])
    except (ValueError, struct.error):
        return 0


def few(names: Iterable[object]) -> str:
    """List the first few names, and count the rest.

    >>> few(range(7))
    '0, 1, 2, 3, 4 and 2 more'
    """
    listed = [str(name) for name in names]
    more = f" and {len(listed) - _FEW:,} more" if len(listed) > _FEW else ""
    return ", ".join(listed[:_FEW]) + more


def begun(store: StoreReader, served: ServedCollection, learner: int) -> QueryLearner:
    """Return a learner as it was before the first event of its log."""
    base = store.base(learner)
    version, content = (store.begun_in(learner), None) if base is None else (base.version, base.content)
    return QueryLearner.restored(learner, served.versions, served.settings, version, content)


def read_log_from(begins: QueryLearner, rows: Iterable[tuple[int, Event]]) -> LogAudit:
    """Read the log of a learner from its start."""
    slots = {number: begins.shown_at(number).shown.shape[1] for number in begins.waiting}
    known = enumerate(begins.outcomes, begins.first)
    outcomes = {number: outcome for number, outcome in known if outcome != VOIDED}  # a later event may void them
    return LogAudit.read(rows, begins.ranker.made, outcomes, slots)
