"""`Patience`: for how long feedback is waited for. Time without service does not count.

While the service is down, or the store is away, or the machine sleeps, nobody can report a click. Whoever is taken for
having left meanwhile may have clicked. So after each of these everybody gets the whole time anew, and after a clock
that jumped too, since nobody knows by how much it was wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable

JUMP = 2.0  # seconds by which two clocks may drift apart between two looks


class Patience:
    """Since when waiting counts."""

    def __init__(self, now: Callable[[], float], steady: Callable[[], float] | None = None) -> None:
        self._now = now  # the time of day, which somebody may set
        self._steady = steady or now  # seconds, which nobody can
        self.renew()

    def renew(self) -> None:
        """Let everybody begin to wait now."""
        self.since = self._now()
        self._ahead = self.since - self._steady()

    def began(self, within: float) -> float:
        """Whatever was shown before this time has been waited for as long as that, and service was there."""
        now = self._now()
        ahead = now - self._steady()
        if abs(ahead - self._ahead) > JUMP:
            self.renew()
        self._ahead = ahead
        return now - within if self.since < now - within else -math.inf
