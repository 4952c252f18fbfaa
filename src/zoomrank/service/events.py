"""What is written down: that a ranking was shown, and what became of it. A learner is made of nothing else."""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from zoomrank.rankers.ranked import Impressions

ABANDONED, TIMED_OUT, UNSEEN, WAITING = 252, 253, 254, 255  # answers that are not a slot
_HEAD = struct.Struct("<BB")
_PICKS, _CHANCES = 1, 2


class Event(NamedTuple):
    """One line of the log."""

    learner: int
    number: int  # of the impression, among those of its learner
    time: float  # seconds since 1970
    answer: int | None  # None when it is shown; then the clicked slot, or one of the above
    shown: bytes | None  # the ranking, packed


def is_satisfied(answer: int) -> bool:
    """Whether somebody clicked."""
    return answer < ABANDONED


def pack(ranking: Impressions) -> bytes:
    """One ranking in few bytes; what most rankings have in common is left out."""
    shown, pick, strategy, chance = (array[0] for array in ranking)
    parts = [shown.astype("<u4").tobytes(), strategy.astype("<u4").tobytes()]
    flags = 0
    if (pick != shown).any():
        flags |= _PICKS
        parts.append(pick.astype("<u4").tobytes())
    if (chance != 1.0).any():
        flags |= _CHANCES
        parts.append(chance.astype("<f8").tobytes())
    return _HEAD.pack(flags, len(shown)) + b"".join(parts)


def unpack(content: bytes) -> Impressions:
    """The ranking that was packed."""
    flags, slots = _HEAD.unpack_from(content)
    at, rows = _HEAD.size, []
    for there in (True, True, bool(flags & _PICKS)):
        if there:
            rows.append(np.frombuffer(content, "<u4", slots, at).astype(np.int64)[None])
            at += 4 * slots
    shown, strategy = rows[:2]
    chance = np.frombuffer(content, "<f8", slots, at)[None].copy() if flags & _CHANCES else np.ones((1, slots))
    return Impressions(shown, rows[2] if flags & _PICKS else shown, strategy, chance)
