"""`Replicas`: who serves, and who has what. A service that works alone is one replica that has all partitions."""

from __future__ import annotations

import socket
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from zoomrank import wire
from zoomrank.service.engine import Engine
from zoomrank.service.load import Load
from zoomrank.service.storage.leases import Replica, Roster
from zoomrank.service.storage.partitions import CHAIR, PARTITIONS

_ALONE = 1  # the number of a service that works alone
_LOAD = tuple(wire.ReplicaLoad.__annotations__)


class Replicas:
    """As this one knows them."""

    def __init__(self, engine: Engine, load: Load, roster: Callable[[], Roster] | None = None) -> None:
        self.are_several = roster is not None  # or may be
        self._engine = engine
        self._load = load
        self._roster = roster or self._alone

    def roster(self) -> Roster:
        """Who is there, and who has what; what this one says of itself is as new as can be, though nobody may be able
        to write it down.
        """
        found = self._roster()
        since = time.monotonic() - found.looked
        own = self._engine.store.number
        replicas = [
            replica._replace(
                silent=replica.silent + since,
                said=self._load.says() if replica.number == own else replica.said,
            )
            for replica in found.replicas
        ]
        return found._replace(replicas=replicas)

    def _alone(self) -> Roster:
        alone = Replica(_ALONE, socket.gethostname(), self._load.began, 0.0, self._load.says())
        return Roster([alone], dict.fromkeys(range(PARTITIONS), _ALONE), 0, time.monotonic())

    def response(self) -> wire.ReplicasResponse:
        """All of it in few words."""
        roster = self.roster()
        counts = Counter(roster.owners.values())
        chair = roster.owners.get(CHAIR)
        rows: list[wire.ReplicaInfo] = [
            {
                "number": replica.number,
                "name": replica.name,
                "since": replica.joined,
                "silent": max(0.0, replica.silent),
                "partitions": counts[replica.number],
                "chair": replica.number == chair,
                "load": _load_in(replica.said),
            }
            for replica in roster.replicas
        ]
        return {"replicas": rows, "partitions": PARTITIONS, "free": roster.free}


def _load_in(said: dict[str, Any]) -> Any:
    """What a replica says of its load, if it has said so yet."""
    return {name: said[name] for name in _LOAD} if all(name in said for name in _LOAD) else None
