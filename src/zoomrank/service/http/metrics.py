"""What Prometheus may ask: requests by kind and status, how long they took, what became of impressions."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from zoomrank.service.engine import Engine
from zoomrank.service.storage.outcomes import by_word

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

    def count(self, kind: str, status: int, seconds: float) -> None:
        """One request."""
        self._requests[kind, status] += 1
        buckets = self._buckets.setdefault(kind, [0] * (len(_BOUNDS) + 1))
        buckets[bisect_left(_BOUNDS, seconds)] += 1
        self._seconds[kind] += seconds  # type: ignore[assignment]

    def text(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return bytes(generate_latest(self._registry))

    def collect(self) -> Iterable[Any]:
        """What the registry asks for."""
        engine = self._engine
        yield from self._of_requests()
        yield self._of_impressions()
        yield GaugeMetricFamily("zoomrank_learners", "Learners in memory.", value=len(engine.learners))
        yield GaugeMetricFamily("zoomrank_learner_bytes", "Memory that they take, about.", value=engine.learners.size)
        yield CounterMetricFamily("zoomrank_writes", "Durable writes of the log.", value=engine.journal.batches)
        yield CounterMetricFamily("zoomrank_failed_writes", "Those that failed.", value=engine.journal.failures)

    def _of_requests(self) -> Iterable[Any]:
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

    def _of_impressions(self) -> Any:
        impressions = CounterMetricFamily(
            "zoomrank_impressions", "What became of impressions.", labels=["collection", "outcome"]
        )
        for served in self._engine.collections.by_name.values():
            for word, number in sorted(by_word(self._engine.outcomes_of(served)).items()):
                impressions.add_metric([served.name, word], number)
        return impressions
