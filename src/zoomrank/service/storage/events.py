"""Events of the log, the rows that are written together with them (`Batch`), and signed names of impressions.

An event says that a ranking was shown, or its outcome. The state of a learner follows from nothing else.

A ranking is packed into few bytes: document numbers are stable across versions of the catalogue, and the common cases
(all propensities 1, or unknown) take no space. It may be followed by the request that it answered, the caller, and the
loan that it used.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import struct
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from zoomrank.rankers.ranking import RankingArrays
from zoomrank.service.errors import NotFoundError
from zoomrank.service.storage.ownership import partition_in

# Outcome of an impression, as one number: the slot that was clicked, or one of the constants below. An impression
# begins as `WAITING` and ends once. So the log has two events of it, the first with `WAITING`, and counts of `WAITING`
# count what was shown. Two more may be added: the page reported it as `SEEN`, and it was `VOIDED`, which undoes what it
# taught. An event `MOVED` says that the learner moved to another version of the catalogue before the impression; it is
# no outcome of a visitor. All of them fit into a byte, since a learner keeps one per impression that may still get
# feedback.
#
# Besides, there are notes: a slot was clicked, disliked or purchased without ending the impression, or a number of
# slots was looked at. Each is a constant below plus the slot or the number. The log holds each of them once.

Outcome = int

MOVED: Final = 240  # to another version of the catalogue
VOIDED: Final = 250  # does not count, whatever other events say
SEEN: Final = 251  # the page reports it on screen: without feedback the visitor has left without a click
ABANDONED: Final = 252  # the visitor or the page reported that there was no click
TIMED_OUT: Final = 253  # no feedback in time, which the collection counts as leaving
UNSEEN: Final = 254  # no feedback in time, which the collection counts as not looking
WAITING: Final = 255  # shown, outcome unknown

CLICKED: Final = 300  # plus a slot, besides the one that satisfied
DISLIKED: Final = 400
PURCHASED: Final = 500
LOOKED_AT: Final = 600  # plus a number of slots
_HUNDRED = 100

_NOTES = {CLICKED: "clicked", DISLIKED: "disliked", PURCHASED: "purchased", LOOKED_AT: "looked_at"}
_WORDS = {
    MOVED: "moved",
    VOIDED: "voided",
    SEEN: "seen",
    ABANDONED: "abandoned",
    TIMED_OUT: "abandoned",
    UNSEEN: "unseen",
    WAITING: "shown",
}


def is_satisfied(outcome: Outcome) -> bool:
    """Return whether the visitor was satisfied; then the outcome is the slot."""
    return outcome < MOVED


def is_note(outcome: Outcome) -> bool:
    """Return whether it is a note, which neither begins nor ends an impression."""
    return outcome > WAITING


def note_of(outcome: Outcome) -> tuple[Outcome, int]:
    """Split a note into its kind and its slot or number.

    >>> note_of(CLICKED + 7) == (CLICKED, 7)
    True
    """
    return outcome - outcome % _HUNDRED, outcome % _HUNDRED


def is_end(outcome: Outcome) -> bool:
    """Return whether it ends or voids an impression."""
    return is_satisfied(outcome) or outcome in (VOIDED, ABANDONED, TIMED_OUT, UNSEEN)


def word_of(outcome: Outcome) -> str:
    """Return its name on pages and in metrics.

    >>> [word_of(outcome) for outcome in (0, 7, VOIDED, SEEN, ABANDONED, TIMED_OUT, UNSEEN, WAITING, PURCHASED + 2)]
    ['satisfied', 'satisfied', 'voided', 'seen', 'abandoned', 'abandoned', 'unseen', 'shown', 'purchased']
    """
    if is_note(outcome):
        return _NOTES[note_of(outcome)[0]]
    return _WORDS.get(outcome, "satisfied")


def by_word(counts: Mapping[Outcome, int]) -> Counter[str]:
    """Sum outcome counts by name: shown, satisfied, abandoned, unseen and so on."""
    found: Counter[str] = Counter()
    for outcome, count in counts.items():
        found[word_of(outcome)] += count
    return found


STEP = 10  # seconds per row of `activity`
LONG_AGO = 0.0  # time of imported impressions, older than this log
DAY = 86_400 // STEP  # steps per day; old counts are merged by day
_HEAD = struct.Struct("<BB")
_PICKS, _CHANCES, _LOAN, _REQUEST, _CALLER, _CERTAIN, _PROPENSITIES, _ARM = 1, 2, 4, 8, 16, 32, 64, 128
_OF_RANKING = _PICKS | _CHANCES | _CERTAIN | _PROPENSITIES | _ARM
REQUEST_SIZE, CALLER_SIZE = 24, 8  # bytes
_ARM_OF = struct.Struct("<IB")


class Event(NamedTuple):
    """One event of the log."""

    learner: int
    number: int  # of the impression, per learner
    time: float  # seconds since 1970
    outcome: Outcome  # WAITING: it was shown
    shown: bytes | None  # the packed ranking when shown; the new version when the learner moves

    @property
    def step(self) -> int:
        """The time step of `activity` in which it counts."""
        return int(self.time) // STEP


def bounds(since: float | None, until: float | None) -> tuple[float, float]:
    """Return the bounds of a time span, infinite where an end is open."""
    return since or 0.0, float("inf") if until is None else until


class ArmRef(NamedTuple):
    """An arm of an experiment."""

    experiment: int
    number: int


class EventTags(NamedTuple):
    """Origin of an impression."""

    request: bytes | None = None  # digests of the idempotency key and of the body, 16 and 8 bytes
    caller: bytes | None = None  # digest of the API key, 8 bytes
    arm: ArmRef | None = None  # in which the visitor counts


class PackedParts(NamedTuple):
    """The parts of a packed ranking."""

    ranking: bytes  # including the arm, without the rest
    tags: EventTags
    loan: bytes | None


def counted(log: Iterable[Event], known: Collection[int] = ()) -> list[Event]:
    """Return the events of a learner that count as activity: of voided impressions, only that they are void.

    `known` are impressions that a later event voids.
    """
    log = [event for event in log if event.outcome != MOVED]
    void = {event.number for event in log if event.outcome == VOIDED}.union(known)
    return [event for event in log if event.number not in void or event.outcome == VOIDED]


def pack_version(number: int) -> bytes:
    """Pack the catalogue version that a learner moves to."""
    return struct.pack("<I", number)


def unpack_version(content: bytes) -> int:
    """Unpack the catalogue version that a learner moves to."""
    number: int = struct.unpack("<I", content)[0]
    return number


def pack(ranking: RankingArrays, loan: bytes | None = None, tags: EventTags = EventTags()) -> bytes:  # noqa: B008  (a tuple)
    """Pack one ranking, omitting what most rankings have in common; a loan is appended unchanged."""
    shown, pick, strategy, chance, propensity = (array[0].tolist() for array in ranking)  # negative: unknown document
    flags, rows, behind = 0, shown + strategy, b""
    if pick != shown:
        flags |= _PICKS
        rows += pick
    if any(each != 1.0 for each in chance):
        flags |= _CHANCES
        behind = struct.pack(f"<{len(chance)}d", *chance)
    if all(each == 1.0 for each in propensity):
        flags |= _CERTAIN
    elif any(each == each for each in propensity):  # not NaN: some are known
        flags |= _PROPENSITIES
        behind += struct.pack(f"<{len(propensity)}d", *propensity)
    if tags.arm is not None:
        flags |= _ARM
        behind += _ARM_OF.pack(*tags.arm)
    for flag, part in ((_REQUEST, tags.request), (_CALLER, tags.caller), (_LOAN, loan)):
        if part is not None:
            flags |= flag
            behind += part
    return _HEAD.pack(flags, len(shown)) + struct.pack(f"<{len(rows)}i", *rows) + behind


def unpack(content: bytes) -> RankingArrays:
    """Unpack the ranking, ignoring what follows it."""
    flags, slots = _HEAD.unpack_from(content)
    count = 3 if flags & _PICKS else 2
    rows = np.frombuffer(content, "<i4", count * slots, _HEAD.size).astype(np.int64).reshape(count, 1, slots)
    shown, strategy, pick = rows[0], rows[1], rows[2] if flags & _PICKS else rows[0]
    chance, end = np.ones((1, slots)), _HEAD.size + 4 * count * slots
    propensity = np.full((1, slots), 1.0 if flags & _CERTAIN else np.nan)  # older logs do not say
    if flags & _CHANCES:
        chance[0], end = np.frombuffer(content, "<f8", slots, end), end + 8 * slots
    if flags & _PROPENSITIES:
        propensity[0] = np.frombuffer(content, "<f8", slots, end)
    return RankingArrays(shown, pick, strategy, chance, propensity)


def known_propensities(ranking: RankingArrays) -> list[float | None]:
    """Return the propensity of each document given those above it; None where unknown."""
    return [None if each != each else each for each in ranking.propensity[0].tolist()]


def unpack_parts(content: bytes) -> PackedParts:
    """Split a packed ranking into its parts."""
    flags, slots = _HEAD.unpack_from(content)
    own, arm = flags & _OF_RANKING, arm_of(content)
    if flags == own:
        return PackedParts(content, EventTags(None, None, arm), None)
    end = _own_end(flags, slots) + (0 if arm is None else _ARM_OF.size)
    ranking = _HEAD.pack(own, slots) + content[_HEAD.size : end]
    request = caller = None
    if flags & _REQUEST:
        request, end = content[end : end + REQUEST_SIZE], end + REQUEST_SIZE
    if flags & _CALLER:
        caller, end = content[end : end + CALLER_SIZE], end + CALLER_SIZE
    return PackedParts(ranking, EventTags(request, caller, arm), content[end:] if flags & _LOAN else None)


def arm_of(content: bytes) -> ArmRef | None:
    """Return the arm in which a ranking counts, or None."""
    flags, slots = _HEAD.unpack_from(content)
    return ArmRef(*_ARM_OF.unpack_from(content, _own_end(flags, slots))) if flags & _ARM else None


def _own_end(flags: int, slots: int) -> int:
    """Return where the ranking itself ends."""
    doubles = bool(flags & _CHANCES) + bool(flags & _PROPENSITIES)
    return _HEAD.size + 4 * slots * (3 if flags & _PICKS else 2) + 8 * slots * doubles


class StoredLearner(NamedTuple):
    """The learner of a query, without its state."""

    id: int
    collection: int
    query: str
    created: float
    about: str | None = None  # its path or vector, given when it was first asked, as JSON
    version: int = 0  # catalogue version in which it begins


class Snapshot(NamedTuple):
    """State of a learner after some event."""

    learner: int
    version: int  # catalogue version
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


# Names of impressions: they tell the learner and the time, and are signed, so that they cannot be forged.

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
