"""`FeedbackDeadline`: deadline for feedback. Downtime does not count.

While the service is down, the store is unreachable or the machine sleeps, no click can be reported, and a visitor taken
for having left may have clicked. So after each of these every open impression gets the full time again, and also after
a clock jump, since its size is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable

CLOCK_JUMP = 2.0  # seconds by which the two clocks may drift apart between two checks


class FeedbackDeadline:
    """Start of the current waiting period."""

    def __init__(self, now: Callable[[], float], steady: Callable[[], float] | None = None) -> None:
        self._now = now  # wall clock, which can be set
        self._steady = steady or now  # monotonic seconds
        self.renew()

    def renew(self) -> None:
        """Restart the waiting period of every impression now."""
        self.since = self._now()
        self._ahead = self.since - self._steady()

    def began(self, within: float) -> float:
        """Return the time before which impressions have waited `within` seconds of uninterrupted service."""
        now = self._now()
        ahead = now - self._steady()
        if abs(ahead - self._ahead) > CLOCK_JUMP:
            self.renew()
        self._ahead = ahead
        return now - within if self.since < now - within else -math.inf
