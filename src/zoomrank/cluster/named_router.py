"""`NamedRouter`: how Ray Serve chooses the replica for a request: the one that is named, or the less busy one of two.

Who passes a request on knows, from PostgreSQL, which replica it is for, and names it as the session of its call. What
comes from outside has no name, and any replica will do: of two at random the one that has less to do, so that one that
does not respond is passed over.

Serve's own consistent hashing would send each partition to some replica, too. It cannot be told that PostgreSQL has
another owner, though, as it has while a replica is stopped that Serve believes to be alive: see docs/cluster.md. What
this router takes over from it is that a request goes where it was meant to go, also when many wait.
"""

from __future__ import annotations

import random
from typing import Any

from ray.serve.experimental.consistent_hash_router import ConsistentHashRouter


class NamedRouter(ConsistentHashRouter):
    """Sends what has a name to whom it names."""

    async def choose_replicas(self, candidate_replicas: list[Any], pending_request: Any = None) -> list[list[Any]]:
        """Those that may take a request."""
        if pending_request is None:
            return [candidate_replicas]
        pending_request.routing_context.should_backoff = True  # before all of this is tried again
        named = pending_request.metadata.session_id
        if named:
            return [[replica for replica in candidate_replicas if replica.replica_id.unique_id == named]]
        return [random.sample(candidate_replicas, min(2, len(candidate_replicas)))]
