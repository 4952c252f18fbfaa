"""Leases: which replica of one PostgreSQL database owns which partitions.

A replica joins under a new number, renews its lease every second, and takes partitions without an owner. A replica that
has not renewed for a while is ended by the first other one that notices, and its partitions are free. All of this is
judged by the server's clock alone.

A replica that was paused, or cut off, does not know that it was ended. So every write checks, in its own transaction,
that its replica has not been ended, and that it owns the partitions written to in the epoch in which it took them
(`are_owned`). The check locks the row that ending changes: a write is over before its replica is ended, or refused
after. A transaction that holds that lock and does nothing is ended by the server (`IDLE`), so no other waits for it.

A server that was restarted has heard of no replica for a while: time before its start does not count.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from zoomrank.service.errors import StorageError

LAPSES_AFTER = 4.0  # seconds
_CHANNEL = "zoomrank_leases"
IDLE = int(LAPSES_AFTER * 750)  # milliseconds that a transaction may be idle

_LAPSED = (
    "SELECT r.id FROM replicas r JOIN signs s ON s.replica = r.id WHERE r.ended IS NULL "  # noqa: S608
    f"AND GREATEST(s.seen, pg_postmaster_start_time()) < clock_timestamp() - interval '{LAPSES_AFTER} s'"
)
_END_LAPSED = (  # a replica whose row is locked is in the middle of a write: next time
    f"WITH lapsed AS ({_LAPSED} FOR UPDATE OF r SKIP LOCKED) "  # noqa: S608
    "UPDATE replicas r SET ended = clock_timestamp() FROM lapsed WHERE r.id = lapsed.id"
)
_FREE = (  # a statement of its own, which sees partitions taken until then
    "UPDATE partitions p SET owner = NULL FROM replicas r WHERE p.owner = r.id AND r.ended IS NOT NULL "
    "RETURNING p.number"
)
_SEEN = (
    "INSERT INTO signs VALUES (%s, clock_timestamp(), %s) "
    "ON CONFLICT (replica) DO UPDATE SET seen = excluded.seen, said = excluded.said"
)
_LIVING = (
    "SELECT r.id, r.name, r.token, "
    "EXTRACT(EPOCH FROM r.joined), EXTRACT(EPOCH FROM clock_timestamp() - s.seen), s.said "
    "FROM replicas r JOIN signs s ON s.replica = r.id WHERE r.ended IS NULL ORDER BY r.id"
)
_TAKE = (
    "WITH mine AS MATERIALIZED (SELECT id FROM replicas WHERE id = %s AND ended IS NULL FOR SHARE), "
    "free AS MATERIALIZED (SELECT number FROM partitions WHERE owner IS NULL ORDER BY number LIMIT %s "
    "FOR UPDATE SKIP LOCKED) "  # once: a join might look again, and lock others
    "UPDATE partitions p SET owner = mine.id, epoch = p.epoch + 1 FROM free, mine WHERE p.number = free.number "
    "RETURNING p.number, p.epoch"
)
_OWNED = (
    "WITH mine AS (SELECT id FROM replicas WHERE id = %s AND ended IS NULL FOR SHARE) "
    "SELECT COUNT(*) FROM partitions p JOIN mine ON p.owner = mine.id "
    "JOIN unnest(%s::int[], %s::bigint[]) AS owned (number, epoch) USING (number, epoch)"
)


class EndedError(StorageError):
    """The lease of this replica has expired: others own its partitions by now."""

    def __init__(self) -> None:
        super().__init__("The lease of this replica has expired, and others own its partitions.")


class ClusterMember(NamedTuple):
    """A replica whose lease has not expired."""

    number: int
    name: str  # its address for other replicas
    joined: float  # seconds since 1970
    silent: float  # seconds since its last renewal
    said: dict[str, Any]  # its load, as it reported it
    token: str = ""  # shared secret of requests to it: only replicas can read it


class ClusterMembers(NamedTuple):
    """All replicas, and the owners of partitions."""

    replicas: list[ClusterMember]
    owners: dict[int, int]  # the number of the replica that owns a partition
    free: int  # partitions without an owner
    looked: float = 0.0  # when that was so, by the steady clock of this process
    last: int = 0  # the last place in the log

    def owner(self, partition: int) -> ClusterMember | None:
        """Return the replica that owns a partition, if one does."""
        owner = self.owners.get(partition)
        return next((replica for replica in self.replicas if replica.number == owner), None)


class _Connection:
    """A connection that is replaced when it was lost; one thread at a time uses it."""

    def __init__(self, connect: Callable[[], Any], failures: tuple[type[Exception], ...], first: str = "") -> None:
        self._connect = connect
        self._failures = failures
        self._first = first  # the first statement on a new connection
        self._connection: Any = None
        self._since = 0.0  # when it was opened
        self._one_at_a_time = threading.Lock()

    @property
    def age(self) -> float:
        """Seconds since it was opened."""
        return time.monotonic() - self._since

    @contextmanager
    def use(self) -> Iterator[Any]:
        with self._one_at_a_time:
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = self._connect()
                    self._since = time.monotonic()
                    if self._first:
                        self._connection.execute(self._first)
                yield self._connection
            except self._failures as error:
                self._close()
                raise StorageError(f"PostgreSQL cannot be asked for the owners of partitions: {error}.") from error

    def close(self) -> None:
        with self._one_at_a_time:
            self._close()

    def _close(self) -> None:
        if self._connection is not None:
            with suppress(*self._failures):
                self._connection.close()
        self._connection = None


class Leases:
    """The lease of one replica: one connection to renew and to listen, one to act."""

    def __init__(self, connect: Callable[[], Any], failures: tuple[type[Exception], ...]) -> None:
        self._renewing = _Connection(connect, failures, f"LISTEN {_CHANNEL}")
        self._acting = _Connection(connect, failures)
        self.number = 0  # of this replica

    def join(self, name: str, token: str) -> int:
        """Register this replica under a new number."""
        with self._acting.use() as connection:
            (self.number,) = connection.execute(
                "INSERT INTO replicas (name, token) VALUES (%s, %s) RETURNING id", (name, token)
            ).fetchone()
            connection.execute(_SEEN, (self.number, "{}"))
        return self.number

    def renew(self, said: Mapping[str, Any]) -> ClusterMembers:
        """Renew the lease of this replica, end expired ones, and return all members."""
        with self._renewing.use() as connection:
            connection.execute(_SEEN, (self.number, json.dumps(said)))
            if self._renewing.age > LAPSES_AFTER:  # else others may have been silent for the same reason
                connection.execute(_END_LAPSED)
            if connection.execute(_FREE).fetchall():
                _notify(connection)
            replicas = [
                ClusterMember(number, name, float(joined), float(silent), json.loads(words), token)
                for number, name, token, joined, silent, words in connection.execute(_LIVING).fetchall()
            ]
            rows = connection.execute("SELECT number, owner FROM partitions").fetchall()
            [(last,)] = connection.execute("SELECT COALESCE(MAX(id), 0) FROM events").fetchall()
        if all(replica.number != self.number for replica in replicas):
            raise EndedError()
        owners = {number: owner for number, owner in rows if owner is not None}
        return ClusterMembers(replicas, owners, len(rows) - len(owners), time.monotonic(), int(last))

    def take(self, most: int) -> dict[int, int]:
        """Take some free partitions; returns the epoch of each."""
        with self._acting.use() as connection:
            rows = connection.execute(_TAKE, (self.number, most)).fetchall()
            if rows:
                _notify(connection)
        return dict(rows)

    def release(self, partitions: Collection[int]) -> None:
        """Give up some partitions, of which everything is durable."""
        with self._acting.use() as connection:
            connection.execute(
                "UPDATE partitions SET owner = NULL WHERE owner = %s AND number = ANY(%s)",
                (self.number, list(partitions)),
            )
            _notify(connection)

    def leave(self) -> None:
        """End this replica."""
        with suppress(StorageError), self._acting.use() as connection:
            connection.execute(
                "WITH gone AS (UPDATE replicas SET ended = clock_timestamp() WHERE id = %s RETURNING id) "
                "UPDATE partitions SET owner = NULL FROM gone WHERE owner = gone.id",
                (self.number,),
            )
            _notify(connection)
        self.close()

    def wait(self, seconds: float) -> None:
        """Wait until an owner changes, or a time is over."""
        with self._renewing.use() as connection:
            for _ in connection.notifies(timeout=seconds, stop_after=1):
                pass

    def close(self) -> None:
        """Close the connections."""
        self._renewing.close()
        self._acting.close()


def _notify(connection: Any) -> None:
    connection.execute(f"NOTIFY {_CHANNEL}")


def are_owned(cursor: Any, number: int, epochs: Mapping[int, int], partitions: Collection[int]) -> bool:
    """Return whether a replica that has not been ended owns some partitions in the epochs in which it took them; it
    stays so until the transaction is over.
    """
    known = [partition for partition in partitions if partition in epochs]
    cursor.execute(_OWNED, (number, known, [epochs[partition] for partition in known]))
    return int(cursor.fetchone()[0]) == len(partitions)
