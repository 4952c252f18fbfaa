"""`PostgresDatabase`: a database of a PostgreSQL server, into which one service writes at a time."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

from zoomrank.errors import MissingExtraError, ParameterError
from zoomrank.service.errors import StorageError
from zoomrank.service.storage.database import Database
from zoomrank.service.storage.ownership import PARTITIONS

_PATIENCE = 5.0  # seconds until the server has noticed that a service was killed
# Every wait ends: for a server that cannot be reached, for a result that never comes, for a lock.
_LIMITS: dict[str, Any] = {
    "connect_timeout": 10,  # seconds
    "keepalives_idle": 30,
    "tcp_user_timeout": 30_000,  # milliseconds
    "options": "-c lock_timeout=10s -c statement_timeout=120s",
}


# Tables of replicas (`zoomrank.cluster`). Every database has them, so that a service that works alone can end replicas
# that used it before.
_REPLICA_TABLES = (
    "CREATE TABLE IF NOT EXISTS replicas (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT NOT NULL, "
    "token TEXT NOT NULL, joined TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(), ended TIMESTAMPTZ)",
    # Where several replicas may meet a visitor, the server decides which was first; one alone knows.
    "CREATE UNIQUE INDEX IF NOT EXISTS visitors_once ON visitors (experiment, visitor)",
    "CREATE TABLE IF NOT EXISTS signs (replica BIGINT PRIMARY KEY, seen TIMESTAMPTZ NOT NULL, said TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS partitions (number INTEGER PRIMARY KEY, owner BIGINT, epoch BIGINT NOT NULL)",
    "INSERT INTO partitions SELECT number, NULL, 0 "  # noqa: S608
    f"FROM generate_series(0, {PARTITIONS - 1}) number ON CONFLICT DO NOTHING",
)
_END_REPLICAS = (
    "UPDATE replicas SET ended = clock_timestamp() WHERE ended IS NULL",
    "UPDATE partitions SET owner = NULL WHERE owner IS NOT NULL",
)


class PostgresServer(NamedTuple):
    """The address of a PostgreSQL server, and its driver."""

    address: str
    open: Callable[..., Any]
    failures: tuple[type[Exception], ...]

    def connect(self) -> Any:
        """Return a new connection in autocommit mode."""
        try:
            return self.open(self.address, autocommit=True)
        except self.failures as error:
            raise StorageError(f"PostgreSQL cannot be reached: {error}.") from error


def postgres_server(address: str) -> PostgresServer:
    """Return the server at an address, with time limits where the address sets none."""
    try:
        import psycopg
        from psycopg import conninfo
    except ModuleNotFoundError as error:
        raise MissingExtraError("PostgreSQL needs psycopg: pip install 'zoomrank[postgres]'.") from error
    try:
        given = conninfo.conninfo_to_dict(address)
    except psycopg.Error as error:
        raise ParameterError(f"This is no address of a PostgreSQL server: {error}.") from error
    limits = {name: limit for name, limit in _LIMITS.items() if name not in given}
    return PostgresServer(conninfo.make_conninfo(address, **limits), psycopg.connect, (psycopg.Error,))


class PostgresDatabase(Database):
    """A database of a PostgreSQL server that this service writes into alone."""

    mark = "%s"
    nearby = False
    types: ClassVar = {"whole": "BIGINT", "real": "DOUBLE PRECISION", "bytes": "BYTEA"}

    def __init__(self, address: str) -> None:
        self.server = postgres_server(address)
        self.failures = self.server.failures
        self._owner = ""
        super().__init__()
        self._claim()

    def _create(self) -> None:
        super()._create()
        for statement in _REPLICA_TABLES:
            self.writer.execute(statement)

    def _claim(self) -> None:
        """Record this service as the owner: no other may write from now on, neither one alone nor replicas."""
        self._owner = secrets.token_hex(8)
        self._say_owner(self._owner)
        for statement in _END_REPLICAS:
            self.writer.execute(statement)

    def _say_owner(self, owner: str) -> None:
        self.writer.execute(
            "INSERT INTO about VALUES ('owner', %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value", (owner,)
        )

    def connect(self) -> Any:
        """Return a new connection in autocommit mode."""
        return self.server.connect()

    def connect_writer(self) -> Any:
        """Return a connection that holds a lock, so that two services never write at once: the server releases it when
        the connection ends. A lost one is replaced only if no other service has written meanwhile.
        """
        connection = self.connect()
        try:
            self._lock(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _lock(self, connection: Any) -> None:
        until = time.monotonic() + (0 if self._owner else _PATIENCE)
        while not connection.execute("SELECT pg_try_advisory_lock(2013)").fetchone()[0]:
            if time.monotonic() >= until:
                raise StorageError("Another zoomrank service uses this database: stop it, or take another database.")
            time.sleep(0.05)
        if self._owner:
            owner = connection.execute("SELECT value FROM about WHERE name = 'owner'").fetchone()[0]
            if owner != self._owner:
                raise StorageError("Another zoomrank service has taken this database over: start this one again.")

    def many(self, cursor: Any, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Execute one by one: while it expects more of a pipeline, the server does not end an idle transaction."""
        for row in rows:
            cursor.execute(self.sql(statement), row)

    def is_lost(self, connection: Any) -> bool:
        """Return whether the server has closed the connection."""
        return bool(connection.closed)
