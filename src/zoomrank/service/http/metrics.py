"""Prometheus metrics: requests by kind and status, their durations, outcomes of impressions, partitions per replica.

Where several replicas share a store, a scrape may reach any of them: each reports the metrics of all, labelled by
replica, and the total outcomes.
"""

from __future__ import annotations

import os
import socket
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from zoomrank import wire
from zoomrank.service.engine import Engine
from zoomrank.service.storage.events import by_word
from zoomrank.service.storage.ownership import PARTITIONS

# `LoadMeter`: request counts and times of a process, for Prometheus, the page and other replicas.
#
# Several readers ask at their own pace, so reading must not reset anything: the request rate is that of the last whole
# seconds. Counting is cheap, and any thread may read.

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


# `Replicas`: the status of all replicas, for `GET /v1/replicas` and metrics; a service that works alone is one.
#
# A cluster gives the application an object of its own (`zoomrank.cluster.membership`).

_ALONE = 1  # the number of a service that works alone
_LOAD = tuple(wire.ReplicaLoad.__annotations__)


class ReplicaStatus(NamedTuple):
    """A replica that serves."""

    number: int
    name: str
    joined: float  # seconds since 1970
    silent: float  # seconds since its last sign of life
    said: dict[str, Any]  # its load, as it reported it
    partitions: int  # that it owns
    is_coordinator: bool


class Replicas(Protocol):
    """All replicas of a service."""

    are_several: bool  # or may be

    def status(self) -> list[ReplicaStatus]:
        """Return the status of each replica."""

    def free(self) -> int:
        """Return how many partitions have no owner."""


class SingleReplica:
    """A service that works alone: one replica that owns all partitions."""

    are_several = False

    def __init__(self, load: LoadMeter) -> None:
        self._load = load

    def status(self) -> list[ReplicaStatus]:
        """Return the status of this process."""
        name = socket.gethostname()
        return [ReplicaStatus(_ALONE, name, self._load.began, 0.0, self._load.says(), PARTITIONS, True)]

    def free(self) -> int:
        """Return 0: all partitions are owned."""
        return 0


def replicas_response(replicas: Replicas) -> wire.ReplicasResponse:
    """Return the body of `GET /v1/replicas`."""
    rows: list[wire.ReplicaInfo] = [
        {
            "number": replica.number,
            "name": replica.name,
            "since": replica.joined,
            "silent": max(0.0, replica.silent),
            "partitions": replica.partitions,
            "chair": replica.is_coordinator,
            "load": _load_in(replica.said),
        }
        for replica in replicas.status()
    ]
    return {"replicas": rows, "partitions": PARTITIONS, "free": replicas.free()}


def _load_in(said: dict[str, Any]) -> Any:
    """Return the load that a replica reported, if it has reported one yet."""
    return {name: said[name] for name in _LOAD} if all(name in said for name in _LOAD) else None


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
