"""What is written down: that a ranking was shown, and what became of it. A learner is made of nothing else.

The ranking is packed into few bytes: its documents have numbers that no change of the collection alters. That all of
them were certain costs nothing, nor does it that nobody knows how likely they were. Behind it may stand which request
it answered, who asked, and the loan that was taken for it.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable
from typing import NamedTuple

import numpy as np

from zoomrank.rankers.ranking_arrays import RankingArrays
from zoomrank.service.storage.outcomes import MOVED, VOIDED, Outcome

STEP = 10  # seconds of one row of `activity`
LONG_AGO = 0.0  # the time of what another ranker showed, before there was this log
DAY = 86_400 // STEP  # steps; those of days that are long gone are one
_HEAD = struct.Struct("<BB")
_PICKS, _CHANCES, _LOAN, _REQUEST, _ASKER, _CERTAIN, _PROPENSITIES, _ARM = 1, 2, 4, 8, 16, 32, 64, 128
_OF_RANKING = _PICKS | _CHANCES | _CERTAIN | _PROPENSITIES | _ARM
REQUEST_SIZE, ASKER_SIZE = 24, 8  # bytes
_ARM_OF = struct.Struct("<IB")


class Event(NamedTuple):
    """One line of the log."""

    learner: int
    number: int  # of the impression, among those of its learner
    time: float  # seconds since 1970
    outcome: Outcome  # WAITING when it is shown
    shown: bytes | None  # what is packed, when it is shown; where to, when the learner moves

    @property
    def step(self) -> int:
        """The row of `activity` that it counts in."""
        return int(self.time) // STEP


def bounds(since: float | None, until: float | None) -> tuple[float, float]:
    """Where a time begins and where it ends, of which either end may be left open."""
    return since or 0.0, float("inf") if until is None else until


class Arm(NamedTuple):
    """An arm of an experiment."""

    experiment: int
    number: int


class Marks(NamedTuple):
    """Where an impression comes from."""

    request: bytes | None = None  # the key of the request and what it asked for, as digests of 16 and 8 bytes
    asker: bytes | None = None  # a digest of the key with which she was let in, of 8 bytes
    arm: Arm | None = None  # in which she counts


class Parts(NamedTuple):
    """What is packed, in its parts."""

    ranking: bytes  # as if there were nothing else but the arm
    marks: Marks
    loan: bytes | None


def counted(log: Iterable[Event], known: Collection[int] = ()) -> list[Event]:
    """The lines of a learner's log that count in what became of impressions: of those that are void, that they are.

    `known` are impressions of which a later line says that they are void.
    """
    log = [event for event in log if event.outcome != MOVED]
    void = {event.number for event in log if event.outcome == VOIDED}.union(known)
    return [event for event in log if event.number not in void or event.outcome == VOIDED]


def packed_edition(number: int) -> bytes:
    """The number of the edition that a learner moves on to."""
    return struct.pack("<I", number)


def unpacked_edition(content: bytes) -> int:
    """The number that was packed."""
    number: int = struct.unpack("<I", content)[0]
    return number


def pack(ranking: RankingArrays, loan: bytes | None = None, marks: Marks = Marks()) -> bytes:  # noqa: B008  (a tuple)
    """One ranking in few bytes; what most rankings have in common is left out. A loan stands behind it as it is."""
    shown, pick, strategy, chance, propensity = (array[0].tolist() for array in ranking)  # below 0: unknown here
    flags, rows, behind = 0, shown + strategy, b""
    if pick != shown:
        flags |= _PICKS
        rows += pick
    if any(each != 1.0 for each in chance):
        flags |= _CHANCES
        behind = struct.pack(f"<{len(chance)}d", *chance)
    if all(each == 1.0 for each in propensity):
        flags |= _CERTAIN
    elif any(each == each for each in propensity):  # some are numbers
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
    """The ranking that was packed, whatever stands behind it."""
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
    """How likely each document of a ranking was in its slot, given those above; None where nobody knows."""
    return [None if each != each else each for each in ranking.propensity[0].tolist()]


def parted(content: bytes) -> Parts:
    """What was packed, in its parts."""
    flags, slots = _HEAD.unpack_from(content)
    own, arm = flags & _OF_RANKING, arm_of(content)
    if flags == own:
        return Parts(content, Marks(None, None, arm), None)
    end = _own_end(flags, slots) + (0 if arm is None else _ARM_OF.size)
    ranking = _HEAD.pack(own, slots) + content[_HEAD.size : end]
    request = asker = None
    if flags & _REQUEST:
        request, end = content[end : end + REQUEST_SIZE], end + REQUEST_SIZE
    if flags & _ASKER:
        asker, end = content[end : end + ASKER_SIZE], end + ASKER_SIZE
    return Parts(ranking, Marks(request, asker, arm), content[end:] if flags & _LOAN else None)


def arm_of(content: bytes) -> Arm | None:
    """The arm that a ranking counts in, if it counts in one."""
    flags, slots = _HEAD.unpack_from(content)
    return Arm(*_ARM_OF.unpack_from(content, _own_end(flags, slots))) if flags & _ARM else None


def _own_end(flags: int, slots: int) -> int:
    """Where what a ranking is made of ends."""
    doubles = bool(flags & _CHANCES) + bool(flags & _PROPENSITIES)
    return _HEAD.size + 4 * slots * (3 if flags & _PICKS else 2) + 8 * slots * doubles
