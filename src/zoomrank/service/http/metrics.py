"""Prometheus metrics: requests by kind and status, their durations, outcomes of impressions, partitions per replica.

Where several replicas share a store, a scrape may reach any of them: each reports the metrics of all, labelled by
replica, and the total outcomes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from zoomrank.service.engine import Engine
from zoomrank.service.http.replicas import Replicas, ReplicaStatus
from zoomrank.service.load import BOUNDS
from zoomrank.service.storage.outcomes import by_word

_OF_EACH = (
    (GaugeMetricFamily, "learners", "Learners in memory."),
    (GaugeMetricFamily, "learner_bytes", "Approximate memory of these learners."),
    (CounterMetricFamily, "writes", "Durable writes of the log."),
    (CounterMetricFamily, "failed_writes", "Failed writes of the log."),
)


class Metrics:
    """Collector of all metrics."""

    def __init__(self, engine: Engine, replicas: Replicas) -> None:
        self._engine = engine
        self._replicas = replicas
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return bytes(generate_latest(self._registry))

    def collect(self) -> Iterable[Any]:
        """Yield the metric families; called by the registry."""
        replicas = self._replicas.status()
        # A replica restarted under its name may be listed twice for some seconds: the newer entry wins.
        said = {replica.name: replica.said for replica in replicas if replica.said}
        yield from self._of_requests(said)
        yield self._of_impressions()
        for family, name, about in _OF_EACH:
            found = family(f"zoomrank_{name}", about, labels=self._labels())
            for replica, words in said.items():
                found.add_metric(self._values(replica), words[name])
            yield found
        yield from _of_partitions(replicas, self._replicas.free())

    def _labels(self, *names: str) -> list[str]:
        """Return the labels of a per-replica metric; a single service needs no replica label."""
        return [*names, "replica"] if self._replicas.are_several else [*names]

    def _values(self, replica: str, *values: str) -> list[str]:
        return [*values, replica] if self._replicas.are_several else [*values]

    def _of_requests(self, said: Mapping[str, Mapping[str, Any]]) -> Iterable[Any]:
        requests = CounterMetricFamily("zoomrank_requests", "Requests.", labels=self._labels("kind", "status"))
        times = HistogramMetricFamily("zoomrank_request_seconds", "Duration of requests.", labels=self._labels("kind"))
        for replica, words in said.items():
            for kind, status, number in words["requests"]:
                requests.add_metric(self._values(replica, kind, str(status)), number)
            for kind, took in words["times"].items():
                total, rows = 0, []
                for bound, number in zip([*map(str, BOUNDS), "+Inf"], took["buckets"], strict=True):
                    total += number
                    rows.append((bound, total))
                times.add_metric(self._values(replica, kind), rows, took["seconds"])
        yield requests
        yield times

    def _of_impressions(self) -> Any:
        impressions = CounterMetricFamily(
            "zoomrank_impressions", "Outcomes of impressions.", labels=["collection", "outcome"]
        )
        for served in self._engine.collections.by_name.values():
            for word, number in sorted(by_word(self._engine.outcomes_of(served)).items()):
                impressions.add_metric([served.name, word], number)
        return impressions


def _of_partitions(replicas: Sequence[ReplicaStatus], free: int) -> Iterable[Any]:
    of_names: Counter[str] = Counter()
    for replica in replicas:
        of_names[replica.name] += replica.partitions
    partitions = GaugeMetricFamily("zoomrank_partitions", "Partitions owned by a replica.", labels=["replica"])
    for name, number in of_names.items():
        partitions.add_metric([name], number)
    yield partitions
    yield GaugeMetricFamily("zoomrank_partitions_nobody_has", "Partitions without a replica.", value=free)
    yield GaugeMetricFamily("zoomrank_replicas", "Replicas that are there.", value=len(replicas))
