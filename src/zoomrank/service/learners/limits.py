"""`FeedbackDeadline`, in which downtime does not count, and `QueryQuota`, the limits on new queries.

While the service is down, the store is unreachable or the machine sleeps, no click can be reported, and a visitor taken
for having left may have clicked. So after each of these every open impression gets the full time again, and also after
a clock jump, since its size is unknown.

Each query has a learner and a log, so random queries would use up resources. A collection has a maximum number of
queries, and each API key may create a limited number per hour: a token bucket, where unused tokens accumulate up to one
hour's worth.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.errors import QuotaExceededError

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


_HOUR = 3600.0
_MOST_KNOWN = 10_000  # callers


class QueryQuota:
    """Token buckets of new queries, per collection and caller."""

    def __init__(self, steady: Callable[[], float]) -> None:
        self._steady = steady
        self._left: dict[tuple[int, bytes], tuple[float, float]] = {}  # (tokens, time of that count)

    def admit(self, served: ServedCollection, queries: int, caller: bytes | None) -> None:
        """Admit a new query or raise; a caller of None is the collection's owner and has no hourly limit."""
        settings = served.settings
        if queries >= settings.most_queries:
            raise QuotaExceededError(
                f"“{served.name}” has {queries} queries and takes no new ones beyond {settings.most_queries} (its "
                "setting `most_queries`). Existing queries still work."
            )
        if caller is None:
            return
        now, most = self._steady(), float(settings.new_queries)
        left, since = self._left.get((served.id, caller), (most, now))
        left = min(most, left + (now - since) * most / _HOUR)
        if left < 1:
            raise QuotaExceededError(
                f"“{served.name}” takes {settings.new_queries} new queries an hour from one key (its setting "
                "`new_queries`), and this key has used them up. Existing queries still work."
            )
        if len(self._left) >= _MOST_KNOWN:
            self._left.clear()
        self._left[served.id, caller] = (left - 1, now)
