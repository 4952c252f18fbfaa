"""`LoadMeter`: request counts and times of a process, for Prometheus, the page and other replicas.

Several readers ask at their own pace, so reading must not reset anything: the request rate is that of the last whole
seconds. Counting is cheap, and any thread may read.
"""

from __future__ import annotations

import os
import socket
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from typing import Any

from zoomrank.service.engine import Engine

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)  # seconds
_OF_LATE = 5  # seconds
_KEPT = 8  # seconds with counts; some more than the rate needs


class LoadMeter:
    """Request counts, beside the engine's own counts."""

    def __init__(self, engine: Engine, steady: Callable[[], float] = time.monotonic) -> None:
        self.began = engine.now()
        self._engine = engine
        self._steady = steady
        self._requests: Counter[tuple[str, int]] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}
        self._of_late = [0] * _KEPT  # requests per second, a ring indexed by second
        self._which = [-1] * _KEPT  # the second of each entry

    def count(self, kind: str, status: int, seconds: float) -> None:
        """Count one external request and its duration."""
        self._requests[kind, status] += 1
        buckets = self._buckets.setdefault(kind, [0] * (len(BOUNDS) + 1))
        buckets[bisect_left(BOUNDS, seconds)] += 1
        self._seconds[kind] = self._seconds.get(kind, 0.0) + seconds
        second = int(self._steady())
        place = second % _KEPT
        if self._which[place] != second:
            self._which[place], self._of_late[place] = second, 0
        self._of_late[place] += 1

    def says(self) -> dict[str, Any]:
        """Return all counts as JSON-compatible data."""
        engine = self._engine
        return {
            "requests_per_second": self._rate(),
            "learners": len(engine.learners),
            "learner_bytes": engine.learners.size,
            "writes": engine.journal.batches,
            "failed_writes": engine.journal.failures,
            "process": os.getpid(),
            "host": socket.gethostname(),
            "requests": [[kind, status, number] for (kind, status), number in sorted(dict(self._requests).items())],
            "times": {
                kind: {"buckets": list(buckets), "seconds": self._seconds.get(kind, 0.0)}
                for kind, buckets in sorted(dict(self._buckets).items())
            },
        }

    def _rate(self) -> float:
        now = int(self._steady())
        counted = zip(self._which, self._of_late, strict=True)
        return sum(number for second, number in counted if now - _OF_LATE <= second < now) / _OF_LATE
