"""`Newcomers`: how many new queries are taken. Each has a learner and a log, and whoever asks at random makes many.

A collection has so many queries at most, and whoever asks (by the key with which she was let in) makes so many new ones
in an hour at most: what she did not use stays hers, up to those of one hour.
"""

from __future__ import annotations

from collections.abc import Callable

from zoomrank.service.refusals import TooManyError
from zoomrank.service.served_collection import ServedCollection

_HOUR = 3600.0
_MOST_KNOWN = 10_000  # askers


class Newcomers:
    """What everybody may still ask that is new."""

    def __init__(self, steady: Callable[[], float]) -> None:
        self._steady = steady
        self._left: dict[tuple[int, bytes], tuple[float, float]] = {}  # so many, and when that was so

    def admit(self, served: ServedCollection, queries: int, asker: bytes | None) -> None:
        """Let somebody ask something new in a collection that has so many queries, or say why not; None: its owner."""
        settings = served.settings
        if queries >= settings.most_queries:
            raise TooManyError(
                f"“{served.name}” has {queries} queries, and takes no new ones beyond {settings.most_queries} "
                "(its setting `most_queries`). Those that it has go on."
            )
        if asker is None:
            return
        now, most = self._steady(), float(settings.new_queries)
        left, since = self._left.get((served.id, asker), (most, now))
        left = min(most, left + (now - since) * most / _HOUR)
        if left < 1:
            raise TooManyError(
                f"“{served.name}” takes {settings.new_queries} new queries an hour from one key (its setting "
                "`new_queries`), and these have been asked. Those that it has go on."
            )
        if len(self._left) >= _MOST_KNOWN:
            self._left.clear()
        self._left[served.id, asker] = (left - 1, now)
