"""`QueryQuota`: quota for new queries. Each query has a learner and a log, so random queries would use up resources.

A collection has a maximum number of queries, and each API key may create a limited number per hour. The hourly quota is
a token bucket: unused tokens accumulate up to one hour's worth.
"""

from __future__ import annotations

from collections.abc import Callable

from zoomrank.service.refusals import QuotaExceededError
from zoomrank.service.served_collection import ServedCollection

_HOUR = 3600.0
_MOST_KNOWN = 10_000  # callers


class QueryQuota:
    """Token buckets of new queries, per collection and caller."""

    def __init__(self, steady: Callable[[], float]) -> None:
        self._steady = steady
        self._left: dict[tuple[int, bytes], tuple[float, float]] = {}  # (tokens, time of that count)

    def admit(self, served: ServedCollection, queries: int, asker: bytes | None) -> None:
        """Admit a new query or raise; a caller of None is the collection's owner and has no hourly limit."""
        settings = served.settings
        if queries >= settings.most_queries:
            raise QuotaExceededError(
                f"“{served.name}” has {queries} queries and takes no new ones beyond {settings.most_queries} (its "
                "setting `most_queries`). Existing queries still work."
            )
        if asker is None:
            return
        now, most = self._steady(), float(settings.new_queries)
        left, since = self._left.get((served.id, asker), (most, now))
        left = min(most, left + (now - since) * most / _HOUR)
        if left < 1:
            raise QuotaExceededError(
                f"“{served.name}” takes {settings.new_queries} new queries an hour from one key (its setting "
                "`new_queries`), and this key has used them up. Existing queries still work."
            )
        if len(self._left) >= _MOST_KNOWN:
            self._left.clear()
        self._left[served.id, asker] = (left - 1, now)
