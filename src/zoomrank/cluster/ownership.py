"""`OwnsByLeases`: the partitions on which this replica has a lease, and the other replicas as it last saw them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from zoomrank.cluster.leases import LAPSES_AFTER, ClusterMember, ClusterMembers
from zoomrank.cluster.peer_server import ForwardedRequest, Peers, UnansweredError
from zoomrank.service.storage.ownership import PARTITIONS, Ownership

CATCH_UP = "/replicas/catch-up"  # a path of requests between replicas alone
_MARGIN = 0.5  # seconds before the lease expires at which this replica takes it for expired
_ANSWER_WITHIN = 4.0  # seconds
_TRY_AGAIN = 0.2  # seconds
_LONGEST = 15.0  # seconds for which it waits for other replicas


class OwnsByLeases(Ownership):
    """Ownership of a replica; `Membership` keeps it current."""

    is_shared = True

    def __init__(self, peers: Peers) -> None:
        self.members = ClusterMembers([], {}, PARTITIONS)  # as of the last renewal
        self.number = 0  # of this replica
        self._peers = peers
        self._owned: set[int] = set()
        self._renewed = 0.0  # by the steady clock

    def __contains__(self, partition: int) -> bool:
        return partition in self._owned and self.is_valid

    @property
    def partitions(self) -> frozenset[int]:
        """All partitions that were taken and not given up."""
        return frozenset(self._owned)

    @property
    def is_valid(self) -> bool:
        """True if no other replica can have ended this one."""
        return time.monotonic() - self._renewed < LAPSES_AFTER - _MARGIN

    @property
    def share(self) -> int:
        """Number of partitions that this replica should own."""
        return -(-PARTITIONS // max(1, len(self.members.replicas)))

    def join(self, number: int) -> None:
        """Begin under a new number."""
        self.number = number
        self._renewed = time.monotonic()

    def renew(self, members: ClusterMembers, began: float) -> None:
        """Note a renewal that began at a time, and the members that it found; any thread may."""
        self.members = members
        self._renewed = began

    def add(self, partitions: Iterable[int]) -> None:
        """Own some more partitions."""
        self._owned.update(partitions)

    def remove(self, partitions: Iterable[int]) -> None:
        """Own some partitions no more."""
        self._owned.difference_update(partitions)

    async def wait_for_replicas(self) -> None:
        """Wait until all other replicas have caught up with changes made here, or are gone."""
        waiting = {replica.number for replica in self.members.replicas if replica.number != self.number}
        until = time.monotonic() + _LONGEST  # a replica that cannot catch up stops no other for ever
        while waiting and time.monotonic() < until:
            there = [replica for replica in self.members.replicas if replica.number in waiting]
            told = await asyncio.gather(*(self._has_caught_up(replica) for replica in there), return_exceptions=True)
            done = {replica.number for replica, known in zip(there, told, strict=True) if known is True}
            waiting = {replica.number for replica in there} - done
            if waiting:
                await asyncio.sleep(_TRY_AGAIN)

    async def _has_caught_up(self, replica: ClusterMember) -> bool:
        request = ForwardedRequest("POST", CATCH_UP, b"", [], b"", None)
        try:
            return (await self._peers.ask(replica, request, _ANSWER_WITHIN)).status == 200
        except UnansweredError:
            return False
