"""`Ownership`: the partitions that this process owns. An engine is given one, and never asks which kind it is.

Only the owner of a partition has its learners in memory and writes their log. A service that works alone owns all of
them; a replica of a cluster owns those on which it has a lease.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from zoomrank.service.refusals import NotOwnerError
from zoomrank.service.storage.partitions import COORDINATOR, PARTITIONS


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
