"""`Ownership`: the partitions that this process owns. An engine is given one, and never asks which kind it is.

Only the owner of a partition has its learners in memory and writes their log. A service that works alone owns all of
them; a replica of a cluster owns those on which it has a lease.

Queries are spread over 256 partitions. The number of a learner, and the place of an event in the log, end with the
partition. So the name of an impression tells its partition, and processes that own different partitions of one store
assign different numbers without coordination.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from typing import ClassVar

from zoomrank.service.errors import NotOwnerError

PARTITIONS = 256  # part of all stored numbers, so it can never change
COORDINATOR = 0  # its owner changes collections and experiments, and does what only one process may do


def partition_of(collection: int, query: str) -> int:
    """Return the partition of a query. The collection is the one whose documents it ranks: the learners that arms of an
    experiment have for a query stay together.

    >>> partition_of(1, "owls"), partition_of(2, "owls")
    (228, 225)
    """
    return hashlib.blake2b(f"{collection}/{query}".encode(), digest_size=1).digest()[0]


def with_partition(count: int, partition: int) -> int:
    """Return a number that ends with its partition.

    >>> with_partition(3, 228), partition_in(996), count_in(996)
    (996, 228, 3)
    """
    return count * PARTITIONS + partition


def partition_in(number: int) -> int:
    """Return the partition with which a number ends."""
    return number % PARTITIONS


def count_in(number: int) -> int:
    """Return the part of a number before its partition; it grows within a partition."""
    return number // PARTITIONS


class Ownership(ABC):
    """Partitions that this process owns at the moment."""

    is_shared: ClassVar[bool]  # True if other processes may write into the same store

    @abstractmethod
    def __contains__(self, partition: int) -> bool:
        """Return whether this process surely owns a partition."""

    @property
    @abstractmethod
    def partitions(self) -> frozenset[int]:
        """All partitions that were taken and not given up."""

    @abstractmethod
    async def wait_for_replicas(self) -> None:
        """Wait until all other replicas have applied the changes that this one has made to collections."""

    @property
    def is_coordinator(self) -> bool:
        """True if this process does what only one may do, such as changing collections."""
        return COORDINATOR in self

    def check(self, partition: int) -> None:
        """Refuse a partition that another process owns."""
        if partition not in self:
            raise NotOwnerError()


class OwnsEverything(Ownership):
    """Ownership of a service that works alone."""

    is_shared = False

    def __contains__(self, partition: int) -> bool:
        return True

    @property
    def partitions(self) -> frozenset[int]:
        """All partitions that there are."""
        return frozenset(range(PARTITIONS))

    async def wait_for_replicas(self) -> None:
        """Return at once: there are no other replicas."""
