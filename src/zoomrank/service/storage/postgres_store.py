"""`PostgresStore`: a database of a PostgreSQL server, into which one service writes at a time."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

from zoomrank.errors import MissingExtraError, ParameterError
from zoomrank.service.refusals import StorageError
from zoomrank.service.storage.leases import END_ALL, FREE_ALL, TABLES
from zoomrank.service.storage.store import Store

_PATIENCE = 5.0  # seconds until the server has noticed that a service was killed
# Nobody waits for ever: not for a server that cannot be reached, for a result that never comes, or for a lock.
_LIMITS: dict[str, Any] = {
    "connect_timeout": 10,  # seconds
    "keepalives_idle": 30,
    "tcp_user_timeout": 30_000,  # milliseconds
    "options": "-c lock_timeout=10s -c statement_timeout=120s",
}


class Reachable(NamedTuple):
    """A PostgreSQL server as it can be reached."""

    address: str
    open: Callable[..., Any]
    failures: tuple[type[Exception], ...]

    def connect(self) -> Any:
        """A connection in which every statement is a transaction of its own, unless one was begun."""
        try:
            return self.open(self.address, autocommit=True)
        except self.failures as error:
            raise StorageError(f"PostgreSQL cannot be reached: {error}.") from error


def reachable(address: str) -> Reachable:
    """The server at an address, with limits for all that the address does not limit itself."""
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
    return Reachable(conninfo.make_conninfo(address, **limits), psycopg.connect, (psycopg.Error,))


class PostgresStore(Store):
    """A database of a PostgreSQL server."""

    mark = "%s"
    nearby = False
    types: ClassVar = {"whole": "BIGINT", "real": "DOUBLE PRECISION", "bytes": "BYTEA"}

    def __init__(self, address: str) -> None:
        self.server = reachable(address)
        self.failures = self.server.failures
        self._owner = ""
        super().__init__()
        self._claim()

    def _create(self) -> None:
        super()._create()
        for statement in TABLES:
            self.writer.execute(statement)

    def _claim(self) -> None:
        """Have it known that nobody else may write from now on who did before, alone or with others."""
        self._owner = secrets.token_hex(8)
        self._say_owner(self._owner)
        for statement in (END_ALL, FREE_ALL):
            self.writer.execute(statement)

    def _say_owner(self, owner: str) -> None:
        self.writer.execute(
            "INSERT INTO about VALUES ('owner', %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value", (owner,)
        )

    def connect(self) -> Any:
        """Transactions are begun and ended by hand."""
        return self.server.connect()

    def connect_writer(self) -> Any:
        """The connection that writes holds a lock, so that two services never write at once: the server lets go of it
        when the connection ends. One that was lost is replaced only if nobody else has written meanwhile.
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

    def _many(self, cursor: Any, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """One by one: the server does not end a transaction for being idle while it expects more of a pipeline."""
        for row in rows:
            cursor.execute(self._sql(statement), row)

    def is_lost(self, connection: Any) -> bool:
        """Whether the server has gone, or had."""
        return bool(connection.closed)
