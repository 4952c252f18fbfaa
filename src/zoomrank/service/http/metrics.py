"""Prometheus metrics: requests by kind and status, their durations, outcomes of impressions, partitions per replica.

Where several replicas share a store, a scrape may reach any of them: each reports the metrics of all, labelled by
replica, and the total outcomes. `Replicas` has their status, also for `GET /v1/replicas`; a service that works alone is
one replica, and a cluster gives the application an object of its own (`zoomrank.cluster.membership`).
"""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from zoomrank import wire
from zoomrank.compiled import tiers
from zoomrank.service.engine import Engine
from zoomrank.service.http.access import BOUNDS, LoadMeter
from zoomrank.service.storage.events import by_word
from zoomrank.service.storage.ownership import PARTITIONS

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


def _of_kernels() -> Any:
    """Return how many kernels this process runs in which tier, whatever other replicas do."""
    kernels = GaugeMetricFamily(
        "zoomrank_kernels", "Kernels in use by this process, compiled or interpreted.", labels=["tier"]
    )
    for tier, number in tiers().items():
        kernels.add_metric([tier], number)
    return kernels


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
        yield _of_kernels()

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
