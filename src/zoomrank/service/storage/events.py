"""Events of the log: a ranking was shown, and its outcome. The state of a learner follows from nothing else.

A ranking is packed into few bytes: document numbers are stable across versions of the catalogue, and the common cases
(all propensities 1, or unknown) take no space. It may be followed by the request that it answered, the caller, and the
loan that it used.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

import numpy as np

from zoomrank.rankers.ranking import RankingArrays

# Outcome of an impression, as one number: the slot that was clicked, or one of the constants below.
#
# An impression begins as `WAITING` and ends once. So the log has two events of it, the first with `WAITING`, and
# counts of `WAITING` count what was shown. Two more may be added: the page reported it as `SEEN`, and it was `VOIDED`,
# which undoes what it taught. An event `MOVED` says that the learner moved to another version of the catalogue before
# the impression; it is no outcome of a visitor. All of them fit into a byte, since a learner keeps one per impression
# that may still get feedback.
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
_PICKS, _CHANCES, _LOAN, _REQUEST, _ASKER, _CERTAIN, _PROPENSITIES, _ARM = 1, 2, 4, 8, 16, 32, 64, 128
_OF_RANKING = _PICKS | _CHANCES | _CERTAIN | _PROPENSITIES | _ARM
REQUEST_SIZE, ASKER_SIZE = 24, 8  # bytes
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
    asker: bytes | None = None  # digest of the API key, 8 bytes
    arm: ArmRef | None = None  # in which the visitor counts


class PackedParts(NamedTuple):
    """The parts of a packed ranking."""

    ranking: bytes  # including the arm, without the rest
    marks: EventTags
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


def pack(ranking: RankingArrays, loan: bytes | None = None, marks: EventTags = EventTags()) -> bytes:  # noqa: B008  (a tuple)
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
    if marks.arm is not None:
        flags |= _ARM
        behind += _ARM_OF.pack(*marks.arm)
    for flag, part in ((_REQUEST, marks.request), (_ASKER, marks.asker), (_LOAN, loan)):
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
    request = asker = None
    if flags & _REQUEST:
        request, end = content[end : end + REQUEST_SIZE], end + REQUEST_SIZE
    if flags & _ASKER:
        asker, end = content[end : end + ASKER_SIZE], end + ASKER_SIZE
    return PackedParts(ranking, EventTags(request, asker, arm), content[end:] if flags & _LOAN else None)


def arm_of(content: bytes) -> ArmRef | None:
    """Return the arm in which a ranking counts, or None."""
    flags, slots = _HEAD.unpack_from(content)
    return ArmRef(*_ARM_OF.unpack_from(content, _own_end(flags, slots))) if flags & _ARM else None


def _own_end(flags: int, slots: int) -> int:
    """Return where the ranking itself ends."""
    doubles = bool(flags & _CHANCES) + bool(flags & _PROPENSITIES)
    return _HEAD.size + 4 * slots * (3 if flags & _PICKS else 2) + 8 * slots * doubles
