"""`QueryLearner`: the ranker of one query, with the impressions that wait for feedback.

It changes by events alone, and its rankings depend on nothing but its events and the number of the impression. So its
log replays to the same learner, bit for bit: `note` takes events from the log in their order, and `show`, `close` and
`move` create new ones and note them. When the tree of its collection changes, a learner moves to the newest version
with all that it has learned, before it ranks; its earlier rankings stay valid. A loan of similar queries is part of the
event of the ranking that it was made for, so a replay does not depend on what they learn later. Impressions that are
void are left out of a replay, as if they had never been shown; a learner that has noted some of them is rebuilt.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import struct
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from zoomrank.bandits import Loan, LoanZooming
from zoomrank.queries.loans import GrantedLoan, loan_from_bytes, loan_to_bytes, next_exchange_at
from zoomrank.rankers import Ranked
from zoomrank.rankers.feedback import VisitorActions, learn_outcomes, slot_outcomes
from zoomrank.rankers.ranker_file import from_bytes, has_same_counts, to_bytes
from zoomrank.rankers.ranking import RankingArrays
from zoomrank.rankers.slot_bandits import best_of_order, order_leads
from zoomrank.service.catalogue.served_version import ServedVersion
from zoomrank.service.catalogue.settings import Settings
from zoomrank.service.catalogue.version_history import VersionHistory
from zoomrank.service.errors import ExpiredError
from zoomrank.service.feedback import acts_of_notes, acts_of_outcome, final_outcome, new_notes, simple_outcome
from zoomrank.service.storage.events import (
    LONG_AGO,
    MOVED,
    SEEN,
    UNSEEN,
    VOIDED,
    WAITING,
    ArmRef,
    ArmVisit,
    Event,
    EventTags,
    Outcome,
    QueryListing,
    arm_of,
    arm_visit,
    is_note,
    is_satisfied,
    pack,
    pack_version,
    unpack,
    unpack_parts,
    unpack_version,
)
from zoomrank.spaces import Eligible

_MARK_EVERY = 64
_LATE = 50  # answers
_LENGTHS = struct.Struct("<QQ")
_OVERHEAD = 20_000  # bytes of a learner outside its arrays, roughly


@dataclass
class QueryCounts:
    """Outcome counts of a query's impressions."""

    impressions: int = 0
    satisfied: int = 0
    abandoned: int = 0
    unseen: int = 0
    voided: int = 0  # not in any of the other counts
    late: float = 0.0  # the satisfied share of the last answers, a moving average
    last: float = 0.0  # time of the last impression
    clicks: list[int] = field(default_factory=list)  # by slot
    examined: list[int] = field(default_factory=list)

    def count_answer(self, satisfied: bool) -> None:
        """Count a visitor who clicked, or who left without a click."""
        if satisfied:
            self.satisfied += 1
        else:
            self.abandoned += 1
        self.late += (satisfied - self.late) / min(_LATE, self.satisfied + self.abandoned)

    @property
    def recent(self) -> float | None:
        """The satisfied share of about the last fifty answers; None while that is most of them."""
        return self.late if self.satisfied + self.abandoned >= 2 * _LATE else None

    @property
    def listed(self) -> QueryListing:
        """The counts by which lists of queries are sorted."""
        return QueryListing(self.impressions, self.satisfied, self.satisfied + self.abandoned, self.recent)

    @property
    def waiting(self) -> int:
        """Number of impressions without feedback so far."""
        return self.impressions - self.satisfied - self.abandoned - self.unseen


class QueryLearner:
    """One query of a collection."""

    def __init__(self, number: int, versions: VersionHistory, settings: Settings, begin: int | None = None) -> None:
        self.number = number
        self.settings = settings
        self._versions = versions
        self.version = versions.newest if begin is None else versions.at(begin)
        slots = settings.slots
        self.ranker = Ranked(self.version.bandit, slots, seed=0)
        self.ranker.name = str(number)
        self.counts = QueryCounts(clicks=[0] * slots, examined=[0] * slots)
        self.waiting: dict[int, tuple[float, bytes]] = {}
        self.seen: set[int] = set()  # of impressions that wait for feedback
        self.notes: dict[int, list[Outcome]] = {}  # on impressions that wait
        self.outcomes = bytearray()  # of the impressions from `first` on
        self.first = 0
        self.marks: deque[tuple[int, float]] = deque()  # time of every 64th impression
        self.meets = 0  # number of answers at which it borrows from its neighbours next
        self.lenders: tuple[int, ...] = ()  # learners that its loan is from, the nearest first
        self.arm_visits: list[ArmVisit] = []  # not yet counted
        self.noted = 0  # events, since it came into memory
        self.written = 0  # of these are in the last snapshot
        self.written_in = self.version.number  # the version of the last snapshot, or the one in which it began
        self.listed: QueryListing | None = None  # the counts that lists of queries have

    def show(
        self,
        time: float,
        slots: int,
        eligible: Eligible | None,
        granted: GrantedLoan | None = None,
        tags: EventTags = EventTags(),  # noqa: B008  (a tuple)
        order: list[int] | None = None,
        exactly: bool = False,
    ) -> tuple[Event, RankingArrays]:
        """Choose a ranking for the next visitor, with a loan, and with an order that comes first while the learner is
        new, or that is shown exactly.
        """
        loan = None if granted is None else loan_to_bytes(granted)
        chooser = self.chooser(loan)
        lead = None
        if order is not None and (exactly or order_leads(chooser, self.settings.prior)):
            lead = best_of_order(chooser, order, eligible, exactly)
        ranking = chooser.rank_arrays(1, eligible, slots, self.settings.explore, lead)
        shown = pack(self.version.numbered(ranking), loan, tags)
        # Noting it takes the loan from the event, as a replay does.
        return self._new(self.ranker.made, WAITING, time, shown), ranking

    def import_visit(
        self,
        ranking: RankingArrays,
        outcome: Outcome,
        time: float,
        tags: EventTags = EventTags(),  # noqa: B008  (a tuple)
    ) -> tuple[Event, Event]:
        """Learn from a ranking that another ranker has shown, and its outcome."""
        shown = self._new(self.ranker.made, WAITING, time, pack(ranking, None, tags))
        return shown, self.close(shown.number, outcome, time, ranking)

    def chooser(self, loan: bytes | None = None) -> Ranked:
        """Return the ranker that chooses next: this learner's own or, with a loan, a copy that has taken the loan."""
        ranker = self.ranker
        if loan is not None:
            ranker = ranker.copied()  # if ranking fails, no loan stays that is not in the log
            _borrow(ranker, loan_from_bytes(loan))
        self._draw_for(ranker)
        return ranker

    def _draw_for(self, ranker: Ranked) -> None:
        """Seed the random numbers by the number of the impression alone, so that the log need not have them."""
        impression = ranker.made
        mixed = hashlib.blake2b(f"{self.settings.seed}/{self.number}/{impression}".encode(), digest_size=32).digest()
        state = {"state": int.from_bytes(mixed[:16], "little"), "inc": int.from_bytes(mixed[16:], "little") | 1}
        ranker.rng.bit_generator.state = {"bit_generator": "PCG64", "state": state, "has_uint32": 0, "uinteger": 0}

    def outcome_of(self, number: int) -> Outcome:
        """Return the outcome of an impression; WAITING if it has none yet."""
        if number < self.first:
            raise ExpiredError("This impression has expired.")
        return self.outcomes[number - self.first]

    def shown_at(self, number: int) -> RankingArrays:
        """Return the ranking of a waiting impression as in the log: documents by number."""
        return unpack(self.waiting[number][1])

    def move(self, version: ServedVersion, time: float) -> Event:
        """Move to a later version."""
        return self._new(self.ranker.made, MOVED, time, pack_version(version.number))

    def is_in(self, revision: int) -> bool:
        """Return whether a revision of the collection belongs to the version that this learner is in."""
        return self._versions.version_of(revision) == self.version.number

    def seen_from(self, version: ServedVersion) -> QueryLearner:
        """Return this learner as it will be in a version, to look at: itself if it is there, or a moved copy."""
        if version is self.version:
            return self
        twin = copy.copy(self)
        twin._move_to(version)
        return twin

    def _move_to(self, version: ServedVersion) -> None:
        self.ranker.prepare_room()
        ranker = Ranked(version.bandit, self.settings.slots, seed=0)
        ranker.name, ranker.made, ranker.recomputed = self.ranker.name, self.ranker.made, self.ranker.recomputed
        ranker.state = self.ranker.state  # enough for learners that cannot move: their tree is the same
        if version.bandit.growable:
            ranker.state = version.bandit.adopted(ranker.state, self._versions.remap(self.version, version))
        self.ranker, self.version = ranker, version

    def close(self, number: int, outcome: Outcome, time: float, ranking: RankingArrays | None = None) -> Event:
        """Learn the outcome of a waiting impression; pass its ranking if it is unpacked already."""
        return self._new(number, outcome, time, None, ranking)

    def answer(
        self, number: int, acts: VisitorActions, left: bool, time: float, ranking: RankingArrays | None = None
    ) -> list[Event]:
        """Take a visitor's acts on a waiting impression: note new ones, and learn the outcome if they decide it."""
        by = self.settings.satisfied_by
        if number not in self.notes and (alone := simple_outcome(acts, left, by)) is not None:
            return [self.close(number, alone, time, ranking)]
        known = acts_of_notes(self.notes.get(number, ()))
        outcome = final_outcome(known.and_(acts), left, by)
        told = known if outcome is None else known.and_(acts_of_outcome(outcome, by))
        events = [self.remember(number, note, time) for note in new_notes(told, acts)]
        if outcome is not None:
            events.append(self.close(number, outcome, time, ranking))
        return events

    def remember(self, number: int, note: Outcome, time: float) -> Event:
        """Note one more act on an impression; after its outcome, that teaches nothing."""
        return self._new(number, note, time)

    def was_seen(self, number: int) -> bool:
        """Return whether a waiting impression is known to have been on a screen."""
        return number in self.seen or number in self.notes

    def confirm(self, number: int, time: float) -> Event:
        """Note that a waiting impression was on a screen."""
        return self._new(number, SEEN, time)

    def overdue(self, before: float, now: float) -> list[int]:
        """Return the waiting impressions that were shown before a time, oldest first."""
        late = []
        for number, (time, _) in self.waiting.items():
            if time < before:
                late.append(number)
            elif time <= now:  # not from the future, where a clock was ahead
                break
        return late

    def _new(
        self,
        number: int,
        outcome: Outcome,
        time: float,
        shown: bytes | None = None,
        ranking: RankingArrays | None = None,
    ) -> Event:
        """Create an event and apply it."""
        event = Event(self.number, number, time, outcome, shown)
        self.note(event, ranking)
        return event

    def note(self, event: Event, ranking: RankingArrays | None = None) -> None:
        """Apply an event."""
        if event.outcome == WAITING:
            assert event.shown is not None  # noqa: S101
            self._note_shown(event.number, event.time, event.shown)
        elif event.outcome == SEEN:
            self.seen.add(event.number)
        elif event.outcome == MOVED:
            assert event.shown is not None  # noqa: S101
            self._move_to(self._versions.at(unpack_version(event.shown)))
        elif is_note(event.outcome):
            if event.number in self.waiting:  # notes after the outcome teach nothing
                self.notes.setdefault(event.number, []).append(event.outcome)
        else:
            self._note_closed(event.number, event.outcome, ranking)
        self.noted += 1

    def _note_shown(self, number: int, time: float, shown: bytes) -> None:
        ranking, tags, loan = unpack_parts(shown)
        if loan is not None:  # before anything else
            granted = loan_from_bytes(loan)
            _borrow(self.ranker, granted)
            self.meets, self.lenders = next_exchange_at(self.answers), granted.lenders
        self.waiting[number] = (time, ranking)
        self._count_in(tags.arm, time, WAITING)
        self.counts.impressions += 1
        self.counts.last = max(self.counts.last, time)
        self._go_on(number, time, WAITING)

    def _count_in(self, arm: ArmRef | None, time: float, outcome: Outcome) -> None:
        if (visit := arm_visit(arm, time, outcome)) is not None:
            self.arm_visits.append(visit)

    def _go_on(self, number: int, time: float, outcome: Outcome) -> None:
        self.ranker.made = number + 1
        self.outcomes.append(outcome)
        if number % _MARK_EVERY == 0:
            if time == LONG_AGO and self.marks:  # else earlier impressions would look even older
                time = self.marks[-1][1]
            self.marks.append((number, time))
            self._forget(time - self.settings.feedback_within)

    def _note_closed(self, number: int, outcome: Outcome, ranking: RankingArrays | None) -> None:
        if outcome == UNSEEN:
            self.counts.unseen += 1
        else:
            acts = acts_of_notes(self.notes.get(number, ()))
            self._learn(outcome, self.shown_at(number) if ranking is None else ranking, acts)
        time, shown = self.waiting.pop(number)
        self._count_in(arm_of(shown), time, outcome)
        self.notes.pop(number, None)
        self.seen.discard(number)
        self.outcomes[number - self.first] = outcome

    def _learn(self, outcome: Outcome, ranking: RankingArrays, acts: VisitorActions) -> None:
        lesson = slot_outcomes(acts, ranking.shown.shape[1], outcome if is_satisfied(outcome) else None)
        learn_outcomes(self.ranker, self.version.placed(ranking), lesson)
        counts = self.counts  # count after everything that can fail
        for slot in lesson.skipped:
            counts.examined[slot] += 1
        counts.count_answer(lesson.satisfied is not None)
        if lesson.satisfied is not None:
            counts.examined[lesson.satisfied] += 1
            counts.clicks[lesson.satisfied] += 1

    def _forget(self, before: float) -> None:
        """Drop outcomes of impressions that were shown before a time: their feedback deadline is over."""
        while len(self.marks) > 1 and self.marks[1][1] < before:
            self.marks.popleft()
        keep = min(self.marks[0][0], next(iter(self.waiting), self.ranker.made))
        if keep > self.first:
            del self.outcomes[: keep - self.first]
            self.first = keep

    @property
    def answers(self) -> int:
        """Number of impressions that it has learned from."""
        return self.counts.satisfied + self.counts.abandoned

    @property
    def size(self) -> int:
        """Approximate memory of this learner in bytes."""
        own = sum(array.nbytes for array in self.ranker.learned.values())
        return own + len(self.outcomes) + 300 * len(self.waiting) + _OVERHEAD

    def snapshot(self) -> bytes:
        """Return everything as bytes; learners with the same events have the same snapshot."""
        self._draw_for(self.ranker)
        self.ranker.prepare_room()  # ranking may have allocated room earlier than learning alone does
        about: dict[str, Any] = {
            "counts": asdict(self.counts),
            "first": self.first,
            "marks": list(self.marks),
            "meets": self.meets,
            "lenders": self.lenders,
            "outcomes": base64.b64encode(self.outcomes).decode(),
            "seen": sorted(self.seen),
            "notes": list(self.notes.items()),
            "waiting": [
                [number, time, base64.b64encode(shown).decode()] for number, (time, shown) in self.waiting.items()
            ],
        }
        head = json.dumps(about).encode()
        body = to_bytes(self.ranker)
        return _LENGTHS.pack(len(head), len(body)) + head + body

    def agrees_with(self, snapshot: bytes) -> bool:
        """Return whether a snapshot is of this learner: bit for bit or, if an earlier version has computed its bounds,
        in all that it has counted.
        """
        own = self.snapshot()
        length, rest = _LENGTHS.unpack_from(snapshot)
        head = _LENGTHS.size + length
        return snapshot == own or (
            snapshot[_LENGTHS.size : head] == own[_LENGTHS.size : head]
            and has_same_counts(snapshot[head : head + rest], self.ranker)
        )

    @classmethod
    def restored(
        cls, number: int, versions: VersionHistory, settings: Settings, begin: int, snapshot: bytes | None = None
    ) -> QueryLearner:
        """Return the learner of a snapshot, or a fresh one, in the version of a revision."""
        learner = cls(number, versions, settings, begin)
        if snapshot is not None:
            length, rest = _LENGTHS.unpack_from(snapshot)
            start = _LENGTHS.size
            about = json.loads(snapshot[start : start + length])
            learner.ranker = from_bytes(snapshot[start + length : start + length + rest], learner.version.bandit)
            learner.counts = QueryCounts(**about["counts"])
            learner.first = about["first"]
            learner.marks = deque((mark, time) for mark, time in about["marks"])
            learner.seen = set(about["seen"])
            learner.notes = {number: list(notes) for number, notes in about["notes"]}
            learner.meets, learner.lenders = about["meets"], tuple(about["lenders"])
            learner.outcomes = bytearray(base64.b64decode(about["outcomes"]))
            learner.waiting = {key: (time, base64.b64decode(shown)) for key, time, shown in about["waiting"]}
        return learner

    def replay(self, events: Iterable[Event], known: Collection[int] = ()) -> None:
        """Apply events of the log, in their order, without impressions that one of them makes void, or that are known
        to be void.
        """
        events = list(events)
        void = {event.number for event in events if event.outcome == VOIDED}.union(known)
        for event in events:
            if event.number not in void or event.outcome == MOVED:
                self.note(event)
            elif event.outcome == WAITING:
                self.counts.voided += 1  # it takes a number, and nothing else
                self._go_on(event.number, event.time, VOIDED)
                self.noted += 1
        self.arm_visits.clear()  # they were counted when they came


def _borrow(ranker: Ranked, granted: GrantedLoan) -> None:
    """Give a ranker a loan; its allocated room depends on what it has learned alone, before and after."""
    ranker.prepare_room()
    bandit, (node, visits, clicks, credit) = cast(LoanZooming, ranker.bandit), granted.loan
    loan = Loan(node.copy(), visits.copy(), clicks.copy(), credit)  # writable copies, as kernels are compiled for these
    ranker.state = bandit.with_loan(ranker.state, loan)
