"""What Prometheus may ask: requests by kind and status, how long they took, what became of impressions."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from zoomrank.service.engine import Engine
from zoomrank.service.storage import store as stored_as

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)


class Metrics:
    """Counts that cost next to nothing until somebody asks."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._requests: Counter[tuple[str, int]] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def count(self, path: str, status: int, seconds: float) -> None:
        """One request."""
        kind = "rank" if path.endswith("/rank") else "page" if path == "/" or path.startswith("/page/") else path
        kind = kind.removeprefix("/v1/")
        self._requests[kind, status] += 1
        buckets = self._buckets.setdefault(kind, [0] * (len(_BOUNDS) + 1))
        buckets[bisect_left(_BOUNDS, seconds)] += 1
        self._seconds[kind] += seconds  # type: ignore[assignment]

    def text(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return bytes(generate_latest(self._registry))

    def collect(self) -> Iterable[Any]:
        """What the registry asks for."""
        requests = CounterMetricFamily("zoomrank_requests", "Requests.", labels=["kind", "status"])
        for (kind, status), number in sorted(self._requests.items()):
            requests.add_metric([kind, str(status)], number)
        yield requests
        times = HistogramMetricFamily("zoomrank_request_seconds", "How long requests took.", labels=["kind"])
        for kind, buckets in sorted(self._buckets.items()):
            total, rows = 0, []
            for bound, number in zip([*map(str, _BOUNDS), "+Inf"], buckets, strict=True):
                total += number
                rows.append((bound, total))
            times.add_metric([kind], rows, self._seconds[kind])
        yield times
        engine = self._engine
        names = {served.id: served.name for served in engine.served.values()}
        outcome = {
            stored_as.SHOWN: "shown",
            stored_as.SATISFIED: "satisfied",
            stored_as.ABANDONED: "abandoned",
            stored_as.UNSEEN: "unseen",
        }
        impressions = CounterMetricFamily(
            "zoomrank_impressions", "What became of impressions.", labels=["collection", "outcome"]
        )
        for (collection, what), number in sorted(engine.totals.items()):
            if what in outcome and collection in names:
                impressions.add_metric([names[collection], outcome[what]], number)
        yield impressions
        for name, text, value in (
            ("zoomrank_learners", "Learners in memory.", len(engine.learners)),
            ("zoomrank_learner_bytes", "Memory that they take, about.", engine.learners.size),
        ):
            yield GaugeMetricFamily(name, text, value=value)
        yield CounterMetricFamily("zoomrank_writes", "Durable writes of the log.", value=engine.journal.batches)
        yield CounterMetricFamily("zoomrank_failed_writes", "Those that failed.", value=engine.journal.failures)
