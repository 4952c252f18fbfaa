"""Partitions: queries are spread over so many, and each belongs to one process at a time.

The number of a learner, and the place of a line in the log, end with the partition. So whoever has the name of an
impression knows whose it is, and processes that work on different partitions of one store give different numbers
without asking each other.
"""

from __future__ import annotations

import hashlib

PARTITIONS = 256  # more than anybody has machines; it is part of all numbers, so it stays what it is
CHAIR = 0  # whoever has this one makes collections and experiments, and does what is done once for all


def partition_of(collection: int, query: str) -> int:
    """The partition of a query. The collection is the one whose documents it ranks: what arms of an experiment have
    learned of a query stays together.

    >>> partition_of(1, "owls"), partition_of(2, "owls")
    (228, 225)
    """
    return hashlib.blake2b(f"{collection}/{query}".encode(), digest_size=1).digest()[0]


def with_partition(count: int, partition: int) -> int:
    """A number that ends with its partition.

    >>> with_partition(3, 228), partition_in(996), count_in(996)
    (996, 228, 3)
    """
    return count * PARTITIONS + partition


def partition_in(number: int) -> int:
    """The partition with which a number ends."""
    return number % PARTITIONS


def count_in(number: int) -> int:
    """What stands before the partition in a number: those of one partition grow with it."""
    return number // PARTITIONS
