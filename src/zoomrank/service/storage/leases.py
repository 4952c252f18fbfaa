"""Leases: which of several services in one PostgreSQL database works on which partitions.

A service joins under a number that nobody had before, says every second that it is there, and takes partitions that
nobody has. One of which nothing was heard for a while is ended by whoever notices, and its partitions are free. All of
this is judged by the server's clock alone.

A service that was stopped, or cut off, does not know that it was ended. So every write looks, in its own transaction,
whether its service has not been, and whether the partitions that it is about are the service's in the epoch in which it
took them (`are_held`). The look locks the row that ending changes: a write is over before its service is ended, or
refused after. What holds that lock and does nothing is ended by the server (`IDLE`), so nobody waits for it.

A server that was started anew has heard of nobody for a while: time before its start does not count.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from zoomrank.service.refusals import StorageError
from zoomrank.service.storage.partitions import PARTITIONS

LAPSES_AFTER = 4.0  # seconds
_CHANNEL = "zoomrank_leases"
IDLE = int(LAPSES_AFTER * 750)  # milliseconds that a transaction may be idle

TABLES = (
    "CREATE TABLE IF NOT EXISTS replicas (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT NOT NULL, "
    "token TEXT NOT NULL, joined TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(), ended TIMESTAMPTZ)",
    # Where several may meet a visitor, the server decides who was first; one service alone knows (`tables`).
    "CREATE UNIQUE INDEX IF NOT EXISTS visitors_once ON visitors (experiment, visitor)",
    "CREATE TABLE IF NOT EXISTS signs (replica BIGINT PRIMARY KEY, seen TIMESTAMPTZ NOT NULL, said TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS partitions (number INTEGER PRIMARY KEY, owner BIGINT, epoch BIGINT NOT NULL)",
    "INSERT INTO partitions SELECT number, NULL, 0 "  # noqa: S608
    f"FROM generate_series(0, {PARTITIONS - 1}) number ON CONFLICT DO NOTHING",
)
END_ALL = "UPDATE replicas SET ended = clock_timestamp() WHERE ended IS NULL"
FREE_ALL = "UPDATE partitions SET owner = NULL WHERE owner IS NOT NULL"
_LAPSED = (
    "SELECT r.id FROM replicas r JOIN signs s ON s.replica = r.id WHERE r.ended IS NULL "  # noqa: S608
    f"AND GREATEST(s.seen, pg_postmaster_start_time()) < clock_timestamp() - interval '{LAPSES_AFTER} s'"
)
_END_LAPSED = (  # those whose row is locked are in the middle of a write: next time
    f"WITH lapsed AS ({_LAPSED} FOR UPDATE OF r SKIP LOCKED) "  # noqa: S608
    "UPDATE replicas r SET ended = clock_timestamp() FROM lapsed WHERE r.id = lapsed.id"
)
_FREE = (  # a statement of its own, which sees what was taken until then
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
_HELD = (
    "WITH mine AS (SELECT id FROM replicas WHERE id = %s AND ended IS NULL FOR SHARE) "
    "SELECT COUNT(*) FROM partitions p JOIN mine ON p.owner = mine.id "
    "JOIN unnest(%s::int[], %s::bigint[]) AS held (number, epoch) USING (number, epoch)"
)


class EndedError(StorageError):
    """This service was taken for gone: its partitions are somebody else's by now."""

    def __init__(self) -> None:
        super().__init__("Another replica has taken this one for gone, and has its partitions.")


class Replica(NamedTuple):
    """A service that works in the database."""

    number: int
    name: str  # where others reach it
    joined: float  # seconds since 1970
    silent: float  # seconds since it was heard of
    said: dict[str, Any]  # of itself
    token: str = ""  # by which it knows who asks it: nobody else can read this


class Roster(NamedTuple):
    """Who is there, and who has what."""

    replicas: list[Replica]
    owners: dict[int, int]  # the number of the replica that has a partition
    free: int  # partitions that nobody has
    looked: float = 0.0  # when that was so, by the steady clock of whoever looked
    last: int = 0  # the last place in the log

    def replica(self, partition: int) -> Replica | None:
        """Who has a partition, if somebody has."""
        owner = self.owners.get(partition)
        return next((replica for replica in self.replicas if replica.number == owner), None)


class _Line:
    """A connection that is made again when it was lost; one thread at a time asks."""

    def __init__(self, connect: Callable[[], Any], failures: tuple[type[Exception], ...], first: str = "") -> None:
        self._connect = connect
        self._failures = failures
        self._first = first  # what is said on a new connection
        self._connection: Any = None
        self._since = 0.0  # when it was made
        self._one_at_a_time = threading.Lock()

    @property
    def age(self) -> float:
        """Seconds for which it has been there."""
        return time.monotonic() - self._since

    @contextmanager
    def asking(self) -> Iterator[Any]:
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
                raise StorageError(f"PostgreSQL cannot be asked who has what: {error}.") from error

    def close(self) -> None:
        with self._one_at_a_time:
            self._close()

    def _close(self) -> None:
        if self._connection is not None:
            with suppress(*self._failures):
                self._connection.close()
        self._connection = None


class Leases:
    """One service's part in it: one line to renew and to listen, one to act."""

    def __init__(self, connect: Callable[[], Any], failures: tuple[type[Exception], ...]) -> None:
        self._renewing = _Line(connect, failures, f"LISTEN {_CHANNEL}")
        self._acting = _Line(connect, failures)
        self.number = 0  # of this service

    def join(self, name: str, token: str) -> int:
        """Be there, under a number that nobody had before."""
        with self._acting.asking() as connection:
            (self.number,) = connection.execute(
                "INSERT INTO replicas (name, token) VALUES (%s, %s) RETURNING id", (name, token)
            ).fetchone()
            connection.execute(_SEEN, (self.number, "{}"))
        return self.number

    def renew(self, said: Mapping[str, Any]) -> Roster:
        """Say that this service is there, end those that are not, and look who is."""
        with self._renewing.asking() as connection:
            connection.execute(_SEEN, (self.number, json.dumps(said)))
            if self._renewing.age > LAPSES_AFTER:  # else others may not have been heard of for the same reason
                connection.execute(_END_LAPSED)
            if connection.execute(_FREE).fetchall():
                _tell(connection)
            replicas = [
                Replica(number, name, float(joined), float(silent), json.loads(words), token)
                for number, name, token, joined, silent, words in connection.execute(_LIVING).fetchall()
            ]
            rows = connection.execute("SELECT number, owner FROM partitions").fetchall()
            [(last,)] = connection.execute("SELECT COALESCE(MAX(id), 0) FROM events").fetchall()
        if all(replica.number != self.number for replica in replicas):
            raise EndedError()
        owners = {number: owner for number, owner in rows if owner is not None}
        return Roster(replicas, owners, len(rows) - len(owners), time.monotonic(), int(last))

    def take(self, most: int) -> dict[int, int]:
        """Take some partitions that nobody has; says in which epoch each is now."""
        with self._acting.asking() as connection:
            rows = connection.execute(_TAKE, (self.number, most)).fetchall()
            if rows:
                _tell(connection)
        return dict(rows)

    def let_go(self, partitions: Collection[int]) -> None:
        """Let others have some partitions, of which everything is durable."""
        with self._acting.asking() as connection:
            connection.execute(
                "UPDATE partitions SET owner = NULL WHERE owner = %s AND number = ANY(%s)",
                (self.number, list(partitions)),
            )
            _tell(connection)

    def leave(self) -> None:
        """Be there no more."""
        with suppress(StorageError), self._acting.asking() as connection:
            connection.execute(
                "WITH gone AS (UPDATE replicas SET ended = clock_timestamp() WHERE id = %s RETURNING id) "
                "UPDATE partitions SET owner = NULL FROM gone WHERE owner = gone.id",
                (self.number,),
            )
            _tell(connection)
        self.close()

    def wait(self, seconds: float) -> None:
        """Wait until somebody has taken something, or let go of it, or a time is over."""
        with self._renewing.asking() as connection:
            for _ in connection.notifies(timeout=seconds, stop_after=1):
                pass

    def close(self) -> None:
        """Let go of the connections."""
        self._renewing.close()
        self._acting.close()


def _tell(connection: Any) -> None:
    connection.execute(f"NOTIFY {_CHANNEL}")


def are_held(cursor: Any, number: int, epochs: Mapping[int, int], partitions: Collection[int]) -> bool:
    """Whether a service that has not been ended has some partitions in the epochs in which it took them; it stays so
    until the transaction is over.
    """
    known = [partition for partition in partitions if partition in epochs]
    cursor.execute(_HELD, (number, known, [epochs[partition] for partition in known]))
    return int(cursor.fetchone()[0]) == len(partitions)
