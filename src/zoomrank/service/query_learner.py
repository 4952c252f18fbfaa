"""`QueryLearner`: the ranker of one query, with the impressions that wait for feedback.

It changes by events alone, and what it shows depends on nothing but its events and the number of the impression. So the
log makes the same learner again, bit for bit: `note` takes events from the log in their order, and `show`, `close` and
`move` make new ones and note them. When documents come and go, a learner moves on to the newest edition of its
collection with all that it knows, before it ranks; what it has shown before is understood still. What similar queries
lend is part of the event of the ranking that it was lent for: whatever they learn later, the log makes the same of it.
Impressions that are void are left out when the log is noted, as if they had never been shown; a learner that has noted
some of it already is made anew.
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
from zoomrank.queries.lending import Granted, granted_bytes, granted_from, next_meeting
from zoomrank.rankers import Ranked
from zoomrank.rankers.leading import best_of_order, is_led
from zoomrank.rankers.lessons import Acts, lesson_of, teach
from zoomrank.rankers.ranker_file import from_bytes, to_bytes
from zoomrank.rankers.ranking_arrays import RankingArrays
from zoomrank.service.answers import acts_noted, acts_told_by, end_alone, end_of, new_notes
from zoomrank.service.edition_history import EditionHistory
from zoomrank.service.refusals import ExpiredError
from zoomrank.service.served_edition import ServedEdition
from zoomrank.service.settings import Settings
from zoomrank.service.storage.arm_outcomes import arm_visit
from zoomrank.service.storage.batch import ArmVisit, Listed
from zoomrank.service.storage.events import (
    LONG_AGO,
    Arm,
    Event,
    Marks,
    arm_of,
    pack,
    packed_edition,
    parted,
    unpack,
    unpacked_edition,
)
from zoomrank.service.storage.outcomes import MOVED, SEEN, UNSEEN, VOIDED, WAITING, Outcome, is_note, is_satisfied
from zoomrank.spaces import Eligible

_MARK_EVERY = 64
_LATE = 50  # answers
_LENGTHS = struct.Struct("<QQ")
_OVERHEAD = 20_000  # bytes of a learner that are not in its arrays, roughly


@dataclass
class QueryCounts:
    """What became of a query's impressions."""

    impressions: int = 0
    satisfied: int = 0
    abandoned: int = 0
    unseen: int = 0
    voided: int = 0  # which are in none of the others
    late: float = 0.0  # the satisfied share of the last answers, which counts older ones less and less
    last: float = 0.0  # when something was last shown
    clicks: list[int] = field(default_factory=list)  # by slot
    examined: list[int] = field(default_factory=list)

    def count_answer(self, satisfied: bool) -> None:
        """Count somebody who clicked, or who left without a click."""
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
    def listed(self) -> Listed:
        """What lists of queries are sorted by."""
        return Listed(self.impressions, self.satisfied, self.satisfied + self.abandoned, self.recent)

    @property
    def waiting(self) -> int:
        """How many have had no feedback yet."""
        return self.impressions - self.satisfied - self.abandoned - self.unseen


class QueryLearner:
    """One query of a collection."""

    def __init__(self, number: int, editions: EditionHistory, settings: Settings, begin: int | None = None) -> None:
        self.number = number
        self.settings = settings
        self._editions = editions
        self.edition = editions.newest if begin is None else editions.at(begin)
        slots = settings.slots
        self.ranker = Ranked(self.edition.bandit, slots, seed=0)
        self.ranker.name = str(number)
        self.counts = QueryCounts(clicks=[0] * slots, examined=[0] * slots)
        self.waiting: dict[int, tuple[float, bytes]] = {}
        self.seen: set[int] = set()  # of those that wait
        self.notes: dict[int, list[Outcome]] = {}  # on those that wait
        self.outcomes = bytearray()  # of the impressions from `first` on
        self.first = 0
        self.marks: deque[tuple[int, float]] = deque()  # when every 64th impression was shown
        self.meets = 0  # its neighbours, when it has had so many answers
        self.lenders: tuple[int, ...] = ()  # the learners who made its loan, the nearest first
        self.arm_visits: list[ArmVisit] = []  # that nobody has counted yet
        self.noted = 0  # events, since it is in memory
        self.written = 0  # of them are in the last snapshot
        self.written_in = self.edition.number  # the edition of that, or the one in which it began
        self.listed: Listed | None = None  # as lists of queries have it

    def show(
        self,
        time: float,
        slots: int,
        eligible: Eligible | None,
        granted: Granted | None = None,
        marks: Marks = Marks(),  # noqa: B008  (a tuple)
        order: list[int] | None = None,
        exactly: bool = False,
    ) -> tuple[Event, RankingArrays]:
        """Choose a ranking for the next visitor, with what is lent for it, and an order that leads if it is new, or
        that is to be shown as it is.
        """
        loan = None if granted is None else granted_bytes(granted)
        chooser = self.chooser(loan)
        lead = None
        if order is not None and (exactly or is_led(chooser, self.settings.prior)):
            lead = best_of_order(chooser, order, eligible, exactly)
        ranking = chooser.rank_arrays(1, eligible, slots, self.settings.explore, lead)
        event = Event(self.number, self.ranker.made, time, WAITING, pack(self.edition.numbered(ranking), loan, marks))
        self.note(event)  # which takes the loan from the event, as it will from the log
        return event, ranking

    def take_in(
        self,
        ranking: RankingArrays,
        outcome: Outcome,
        time: float,
        marks: Marks = Marks(),  # noqa: B008  (a tuple)
    ) -> tuple[Event, Event]:
        """Learn from a ranking that another ranker has shown, and what became of it."""
        shown = Event(self.number, self.ranker.made, time, WAITING, pack(ranking, None, marks))
        self.note(shown)
        return shown, self.close(shown.number, outcome, time, ranking)

    def chooser(self, loan: bytes | None = None) -> Ranked:
        """What chooses the next ranking: the ranker or, if it is to take a loan first, a copy that has taken it."""
        ranker = self.ranker
        if loan is not None:
            ranker = ranker.copied()  # one that cannot rank leaves no loan behind of which the log knows nothing
            _borrow(ranker, granted_from(loan))
        self._draw_for(ranker)
        return ranker

    def _draw_for(self, ranker: Ranked) -> None:
        """Chance depends on the number of the impression alone, so that the log need not say what was drawn."""
        impression = ranker.made
        mixed = hashlib.blake2b(f"{self.settings.seed}/{self.number}/{impression}".encode(), digest_size=32).digest()
        state = {"state": int.from_bytes(mixed[:16], "little"), "inc": int.from_bytes(mixed[16:], "little") | 1}
        ranker.rng.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": state,
            "has_uint32": 0,
            "uinteger": 0,
        }

    def outcome_of(self, number: int) -> Outcome:
        """What became of an impression; WAITING if that is not known yet."""
        if number < self.first:
            raise ExpiredError("This impression has expired.")
        return self.outcomes[number - self.first]

    def shown_at(self, number: int) -> RankingArrays:
        """The ranking of an impression that waits, as the log has it: documents by their numbers."""
        return unpack(self.waiting[number][1])

    def move(self, edition: ServedEdition, time: float) -> Event:
        """Move on to a later edition."""
        event = Event(self.number, self.ranker.made, time, MOVED, packed_edition(edition.number))
        self.note(event)
        return event

    def is_in(self, revision: int) -> bool:
        """Return whether a revision of the collection belongs to the version that this learner is in."""
        return self._editions.version_of(revision) == self.edition.number

    def seen_from(self, edition: ServedEdition) -> QueryLearner:
        """This learner as it will be in an edition, to look at: itself if it is there already, or a copy that is."""
        if edition is self.edition:
            return self
        twin = copy.copy(self)
        twin._move_to(edition)
        return twin

    def _move_to(self, edition: ServedEdition) -> None:
        self.ranker.settle_room()
        ranker = Ranked(edition.bandit, self.settings.slots, seed=0)
        ranker.name, ranker.made = self.ranker.name, self.ranker.made
        ranker.state = self.ranker.state  # which is all, for learners that stay where their tree stays the same
        if edition.bandit.growable:
            ranker.state = edition.bandit.adopted(ranker.state, self._editions.movement(self.edition, edition))
        self.ranker, self.edition = ranker, edition

    def close(self, number: int, outcome: Outcome, time: float, ranking: RankingArrays | None = None) -> Event:
        """Learn what became of an impression that waits; its ranking, if it is at hand, need not be unpacked again."""
        event = Event(self.number, number, time, outcome, None)
        self.note(event, ranking)
        return event

    def answer(
        self, number: int, acts: Acts, left: bool, time: float, ranking: RankingArrays | None = None
    ) -> list[Event]:
        """Take in what a visitor did with an impression that waits: what is new of it is noted, and if it says what
        became of the impression, that is learned.
        """
        by = self.settings.satisfied_by
        if number not in self.notes and (alone := end_alone(acts, left, by)) is not None:
            return [self.close(number, alone, time, ranking)]
        known = acts_noted(self.notes.get(number, ()))
        outcome = end_of(known.and_(acts), left, by)
        told = known if outcome is None else known.and_(acts_told_by(outcome, by))
        events = [self.remember(number, note, time) for note in new_notes(told, acts)]
        if outcome is not None:
            events.append(self.close(number, outcome, time, ranking))
        return events

    def remember(self, number: int, note: Outcome, time: float) -> Event:
        """Take in something more of an impression; if it has ended, that teaches nothing."""
        event = Event(self.number, number, time, note, None)
        self.note(event)
        return event

    def was_seen(self, number: int) -> bool:
        """Whether an impression that waits was on somebody's screen, as far as it is known."""
        return number in self.seen or number in self.notes

    def confirm(self, number: int, time: float) -> Event:
        """Take in that an impression that waits was on somebody's screen."""
        event = Event(self.number, number, time, SEEN, None)
        self.note(event)
        return event

    def overdue(self, before: float, now: float) -> list[int]:
        """The impressions that were shown before a time and still wait, oldest first."""
        late = []
        for number, (time, _) in self.waiting.items():
            if time < before:
                late.append(number)
            elif time <= now:  # a clock that was ahead may have left some from the future; later ones count still
                break
        return late

    def note(self, event: Event, ranking: RankingArrays | None = None) -> None:
        """Take an event in."""
        if event.outcome == WAITING:
            assert event.shown is not None  # noqa: S101
            self._note_shown(event.number, event.time, event.shown)
        elif event.outcome == SEEN:
            self.seen.add(event.number)
        elif event.outcome == MOVED:
            assert event.shown is not None  # noqa: S101
            self._move_to(self._editions.at(unpacked_edition(event.shown)))
        elif is_note(event.outcome):
            if event.number in self.waiting:  # what is noted after the end teaches nothing
                self.notes.setdefault(event.number, []).append(event.outcome)
        else:
            self._note_closed(event.number, event.outcome, ranking)
        self.noted += 1

    def _note_shown(self, number: int, time: float, shown: bytes) -> None:
        ranking, marks, loan = parted(shown)
        if loan is not None:  # before anything else
            granted = granted_from(loan)
            _borrow(self.ranker, granted)
            self.meets, self.lenders = next_meeting(self.answers), granted.lenders
        self.waiting[number] = (time, ranking)
        self._count_in(marks.arm, time, WAITING)
        self.counts.impressions += 1
        self.counts.last = max(self.counts.last, time)
        self._go_on(number, time, WAITING)

    def _count_in(self, arm: Arm | None, time: float, outcome: Outcome) -> None:
        if (visit := arm_visit(arm, time, outcome)) is not None:
            self.arm_visits.append(visit)

    def _note_voided(self, number: int, time: float) -> None:
        """Take in that an impression was shown which is void: nothing but its number was taken."""
        self.counts.voided += 1
        self._go_on(number, time, VOIDED)
        self.noted += 1

    def _go_on(self, number: int, time: float, outcome: Outcome) -> None:
        self.ranker.made = number + 1
        self.outcomes.append(outcome)
        if number % _MARK_EVERY == 0:
            if time == LONG_AGO and self.marks:  # so that what was shown before it is not taken for older still
                time = self.marks[-1][1]
            self.marks.append((number, time))
            self._forget(time - self.settings.feedback_within)

    def _note_closed(self, number: int, outcome: Outcome, ranking: RankingArrays | None) -> None:
        if outcome == UNSEEN:
            self.counts.unseen += 1
        else:
            acts = acts_noted(self.notes.get(number, ()))
            self._learn(outcome, self.shown_at(number) if ranking is None else ranking, acts)
        time, shown = self.waiting.pop(number)
        self._count_in(arm_of(shown), time, outcome)
        self.notes.pop(number, None)
        self.seen.discard(number)
        self.outcomes[number - self.first] = outcome

    def _learn(self, outcome: Outcome, ranking: RankingArrays, acts: Acts) -> None:
        lesson = lesson_of(acts, ranking.shown.shape[1], outcome if is_satisfied(outcome) else None)
        teach(self.ranker, self.edition.placed(ranking), lesson)
        counts = self.counts  # nothing is counted before all that can fail is done
        for slot in lesson.skipped:
            counts.examined[slot] += 1
        counts.count_answer(lesson.satisfied is not None)
        if lesson.satisfied is not None:
            counts.examined[lesson.satisfied] += 1
            counts.clicks[lesson.satisfied] += 1

    def _forget(self, before: float) -> None:
        """Let go of outcomes of impressions that were shown before a time, so that no feedback on them is taken."""
        while len(self.marks) > 1 and self.marks[1][1] < before:
            self.marks.popleft()
        keep = min(self.marks[0][0], next(iter(self.waiting), self.ranker.made))
        if keep > self.first:
            del self.outcomes[: keep - self.first]
            self.first = keep

    @property
    def answers(self) -> int:
        """How many impressions it has learned from."""
        return self.counts.satisfied + self.counts.abandoned

    @property
    def size(self) -> int:
        """About how much memory this learner takes for itself."""
        own = sum(array.nbytes for array in self.ranker.learned.values())
        return own + len(self.outcomes) + 300 * len(self.waiting) + _OVERHEAD

    def snapshot(self) -> bytes:
        """Everything, in bytes; two learners that have noted the same events give the same."""
        self._draw_for(self.ranker)
        self.ranker.settle_room()  # a ranking may have made room that learning alone would have made later
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

    @classmethod
    def restored(
        cls, number: int, editions: EditionHistory, settings: Settings, begin: int, snapshot: bytes | None = None
    ) -> QueryLearner:
        """The learner of a snapshot, or a fresh one, in an edition."""
        learner = cls(number, editions, settings, begin)
        if snapshot is not None:
            length, rest = _LENGTHS.unpack_from(snapshot)
            start = _LENGTHS.size
            about = json.loads(snapshot[start : start + length])
            learner.ranker = from_bytes(snapshot[start + length : start + length + rest], learner.edition.bandit)
            learner.counts = QueryCounts(**about["counts"])
            learner.first = about["first"]
            learner.marks = deque((mark, time) for mark, time in about["marks"])
            learner.seen = set(about["seen"])
            learner.notes = {number: list(notes) for number, notes in about["notes"]}
            learner.meets, learner.lenders = about["meets"], tuple(about["lenders"])
            learner.outcomes = bytearray(base64.b64decode(about["outcomes"]))
            learner.waiting = {key: (time, base64.b64decode(shown)) for key, time, shown in about["waiting"]}
        return learner

    @classmethod
    def rehearse(cls, editions: EditionHistory, settings: Settings) -> QueryLearner:
        """Rank and learn once, so that what must be compiled is compiled before anybody waits for it."""
        learner = cls(0, editions, settings)
        learner.show(0.0, settings.slots, None)
        learner.close(0, 0, 0.0)
        if learner.edition.bandit.restrictable:
            learner.show(0.0, settings.slots, Eligible.everything(learner.edition.tree.documents))
            learner.close(1, 0, 0.0)
        learner.snapshot()
        if learner.edition.bandit.keeps_records:
            learner.ranker.forecast(visits=1)
        return learner

    def replay(self, events: Iterable[Event], known: Collection[int] = ()) -> None:
        """Note events of the log, in their order, without the impressions that any of them says are void, or that are
        known to be.
        """
        events = list(events)
        void = {event.number for event in events if event.outcome == VOIDED}.union(known)
        for event in events:
            if event.number not in void or event.outcome == MOVED:
                self.note(event)
            elif event.outcome == WAITING:
                self._note_voided(event.number, event.time)
        self.arm_visits.clear()  # they were counted when they came


def _borrow(ranker: Ranked, granted: Granted) -> None:
    """Let a ranker take a loan; the room that it has before depends on what it has learned alone, and so after."""
    ranker.settle_room()
    bandit, (node, visits, clicks, credit) = cast(LoanZooming, ranker.bandit), granted.loan
    loan = Loan(node.copy(), visits.copy(), clicks.copy(), credit)  # arrays that may be written to, as all others are
    ranker.state = bandit.with_loan(ranker.state, loan)
