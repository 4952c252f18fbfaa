"""`Replicas`: the status of all replicas, for `GET /v1/replicas` and metrics; a service that works alone is one.

A cluster gives the application an object of its own (`zoomrank.cluster.membership`).
"""

from __future__ import annotations

import socket
from typing import Any, NamedTuple, Protocol

from zoomrank import wire
from zoomrank.service.load import LoadMeter
from zoomrank.service.storage.partitions import PARTITIONS

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
