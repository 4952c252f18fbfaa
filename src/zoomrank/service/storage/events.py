"""What is written down: that a ranking was shown, and what became of it. A learner is made of nothing else."""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from zoomrank.rankers.ranking_arrays import RankingArrays
from zoomrank.service.storage.outcomes import Outcome

_HEAD = struct.Struct("<BB")
_PICKS, _CHANCES, _LOAN = 1, 2, 4


class Event(NamedTuple):
    """One line of the log."""

    learner: int
    number: int  # of the impression, among those of its learner
    time: float  # seconds since 1970
    outcome: Outcome  # WAITING when it is shown
    shown: bytes | None  # the ranking, packed, when it is shown; behind it the loan that was taken for it, if one was


def pack(ranking: RankingArrays, loan: bytes | None = None) -> bytes:
    """One ranking in few bytes; what most rankings have in common is left out. A loan stands behind it as it is."""
    shown, pick, strategy, chance = (array[0].tolist() for array in ranking)
    flags, rows, behind = 0, shown + strategy, b""
    if pick != shown:
        flags |= _PICKS
        rows += pick
    if any(each != 1.0 for each in chance):
        flags |= _CHANCES
        behind = struct.pack(f"<{len(chance)}d", *chance)
    if loan is not None:
        flags |= _LOAN
        behind += loan
    return _HEAD.pack(flags, len(shown)) + struct.pack(f"<{len(rows)}I", *rows) + behind


def unpack(content: bytes) -> RankingArrays:
    """The ranking that was packed, whether or not there is a loan behind it."""
    flags, slots = _HEAD.unpack_from(content)
    count = 3 if flags & _PICKS else 2
    rows = np.frombuffer(content, "<u4", count * slots, _HEAD.size).astype(np.int64).reshape(count, 1, slots)
    shown, strategy, pick = rows[0], rows[1], rows[2] if flags & _PICKS else rows[0]
    chance = np.ones((1, slots))
    if flags & _CHANCES:
        chance[0] = np.frombuffer(content, "<f8", slots, _HEAD.size + 4 * count * slots)
    return RankingArrays(shown, pick, strategy, chance)


def parted(content: bytes) -> tuple[bytes, bytes | None]:
    """A ranking that was packed without its loan, and the loan, if there is one."""
    flags, slots = _HEAD.unpack_from(content)
    if not flags & _LOAN:
        return content, None
    end = _HEAD.size + 4 * slots * (3 if flags & _PICKS else 2) + (8 * slots if flags & _CHANCES else 0)
    return _HEAD.pack(flags ^ _LOAN, slots) + content[_HEAD.size : end], content[end:]
