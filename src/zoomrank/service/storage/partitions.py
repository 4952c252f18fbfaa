"""Partitions: queries are spread over 256 of them, and each is owned by one process at a time.

The number of a learner, and the place of a line in the log, end with the partition. So the name of an impression tells
its partition, and processes that own different partitions of one store assign different numbers without coordination.
"""

from __future__ import annotations

import hashlib

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
