"""`NamedRouter`: how Ray Serve chooses the replica for a request: the one that is named, or the less busy one of two.

Who passes a request on knows, from PostgreSQL, which replica it is for, and names it as the session of its call. What
comes from outside has no name, and any replica will do: of two at random the one that has less to do, so that one that
does not respond is passed over.

A replica that is named may be gone, or stopped. Then another one gets the request, which says that it is not the one:
whoever passed it on looks again. It must not wait here, since a router waits for few replicas at a time, and all other
requests would wait behind it. That is what happens with Serve's own consistent hashing when it is strict (`python -m
bench ring`), and why it is not used: docs/cluster.md says more. What this router takes over from it is that a request
goes where it was meant to go, also when many wait.
"""

from __future__ import annotations

import random
from typing import Any

from ray.serve.experimental.consistent_hash_router import ConsistentHashRouter


class NamedRouter(ConsistentHashRouter):
    """Sends what has a name to whom it names."""

    async def choose_replicas(self, candidate_replicas: list[Any], pending_request: Any = None) -> list[list[Any]]:
        """Those that may take a request, the best first."""
        if pending_request is None:
            return [candidate_replicas]
        pending_request.routing_context.should_backoff = True  # before all of this is tried again
        named = pending_request.metadata.session_id
        meant = [replica for replica in candidate_replicas if named and replica.replica_id.unique_id == named]
        others = [replica for replica in candidate_replicas if replica not in meant]
        ranks = [meant, random.sample(others, min(2, len(others)))]
        return [rank for rank in ranks if rank]
