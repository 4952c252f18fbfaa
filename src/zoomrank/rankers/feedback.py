"""Feedback to rankings: clicks in the form kernels need, and the rankings that have had feedback."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from zoomrank.errors import FeedbackError, RepeatedFeedbackError
from zoomrank.numbers import Array, whole_number


def clicked_slots(clicks: Sequence[int | None] | Array, slots: int) -> Array:
    """Check and return the clicked slots; the number of slots stands for no click."""
    if isinstance(clicks, np.ndarray) and clicks.dtype.kind in "iu":
        found = clicks.astype(np.int64)
        outside = found[(found < 0) | (found > slots)]
    else:
        given = [None if click is None else whole_number(click, "click") for click in clicks]
        outside = np.array([slot for slot in given if slot is not None and not 0 <= slot < slots])
        found = np.array([slots if slot is None else slot for slot in given], dtype=np.int64)
    if len(outside):
        raise FeedbackError(f"A click on slot {outside[0]} is outside the ranking: slots are 0 to {slots - 1}.")
    return found


class FeedbackReceived:
    """Numbers of the rankings that have had feedback, a bit each."""

    def __init__(self, bits: bytes = b"") -> None:
        self.bits = bytearray(bits)

    def reject_repeated(self, first: int, count: int = 1) -> None:
        """Raise if one of these consecutive rankings has had feedback."""
        self._make_space(first + count)
        if count == 1:  # fast path for the common case
            again = first if self.bits[first >> 3] >> (first & 7) & 1 else None
        else:
            numbers = np.arange(first, first + count)
            bits = np.frombuffer(self.bits, np.uint8)[numbers >> 3] >> (numbers & 7) & 1
            again = numbers[bits.argmax()] if bits.any() else None
        if again is not None:
            raise RepeatedFeedbackError(f"Ranking {again} has had its feedback already: send feedback once.")

    def add(self, first: int, count: int = 1) -> None:
        """Mark these rankings as having had feedback."""
        if count == 1:
            self.bits[first >> 3] |= 1 << (first & 7)
        else:
            numbers = np.arange(first, first + count)
            bits = (1 << (numbers & 7)).astype(np.uint8)
            np.bitwise_or.at(np.frombuffer(self.bits, np.uint8), numbers >> 3, bits)

    def _make_space(self, count: int) -> None:
        missing = (count + 7) // 8 - len(self.bits)
        if missing > 0:
            self.bits.extend(bytes(missing))
