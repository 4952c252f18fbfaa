"""The two kinds of store: SQLite in a folder of this machine, and a PostgreSQL server."""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, ClassVar

from zoomrank.errors import ParameterError
from zoomrank.service.refusals import StorageError
from zoomrank.service.storage.store import Store

_PATIENCE = 5.0  # seconds until the server has noticed that a service was killed
_LONG_LOG = 4096  # pages
# Nobody waits for ever: not for a server that cannot be reached, for an answer that never comes, or for a lock.
_LIMITS: dict[str, Any] = {
    "connect_timeout": 10,  # seconds
    "keepalives_idle": 30,
    "tcp_user_timeout": 30_000,  # milliseconds
    "options": "-c lock_timeout=10s -c statement_timeout=120s",
}


class SQLiteStore(Store):
    """A file; a write-ahead log that is synchronised at every commit makes it durable."""

    mark = "?"
    nearby = True
    types: ClassVar = {"whole": "INTEGER", "real": "REAL", "bytes": "BLOB"}
    failures = (sqlite3.Error,)

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "zoomrank.sqlite"
        self._lock = _locked(folder / "lock")
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))  # the secret that signs impressions is in it
        try:
            self._tidying = threading.Lock()
            self._tidier = self.connect()
            super().__init__()
        except BaseException:
            self._lock.close()
            raise

    def connect(self) -> Any:
        """Transactions are begun and ended by hand."""
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA wal_autocheckpoint = 0")  # `tidy` does it, where nobody has to wait
        except sqlite3.Error as error:
            connection.close()
            raise StorageError(f"{self.path} cannot be used: {error}.") from error
        return connection

    def tidy(self) -> None:
        """Move what is in the write-ahead log to where it belongs; requests go on meanwhile.

        What is written meanwhile stays in it, so under load it would never be empty, and never begin anew. When it has
        become long, writers wait until it is: most of the work was done before.
        """
        with self._tidying, suppress(sqlite3.Error):  # a full disk, say: there will be another time
            _, length, _ = self._tidier.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if length > _LONG_LOG:
                with self._writing:
                    self._tidier.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()

    def close(self) -> None:
        """Let go of the file."""
        with self._tidying:
            self._tidier.close()
            super().close()
        self._lock.close()


class PostgresStore(Store):
    """A database of a PostgreSQL server."""

    mark = "%s"
    nearby = False
    types: ClassVar = {"whole": "BIGINT", "real": "DOUBLE PRECISION", "bytes": "BYTEA"}

    def __init__(self, address: str) -> None:
        try:
            import psycopg
            from psycopg import conninfo
        except ModuleNotFoundError as error:
            raise ParameterError("PostgreSQL needs the extra: pip install 'zoomrank[postgres]'.") from error
        self._connect = psycopg.connect
        self.failures = (psycopg.Error,)
        try:
            given = conninfo.conninfo_to_dict(address)
        except psycopg.Error as error:
            raise ParameterError(f"This is no address of a PostgreSQL server: {error}.") from error
        limits = {name: limit for name, limit in _LIMITS.items() if name not in given}
        self._address = conninfo.make_conninfo(address, **limits)
        self._owner = ""
        super().__init__()
        self._owner = secrets.token_hex(8)
        self.writer.execute(
            "INSERT INTO about VALUES ('owner', %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (self._owner,),
        )

    def connect(self) -> Any:
        """Transactions are begun and ended by hand."""
        try:
            return self._connect(self._address, autocommit=True)
        except self.failures as error:
            raise StorageError(f"PostgreSQL cannot be reached: {error}.") from error

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

    def is_lost(self, connection: Any) -> bool:
        """Whether the server has gone, or had."""
        return bool(connection.closed)


def open_store(folder: Path, address: str | None) -> Store:
    """The store at an address, or the one in a folder."""
    if address is None:
        return SQLiteStore(folder)
    if not address.startswith(("postgresql://", "postgres://")):
        raise ParameterError(f"A store is at postgresql://…, not at {address.split(':')[0]}:…")
    return PostgresStore(address)


def _locked(path: Path) -> IO[str]:
    """Make sure that only one process works in a folder; the system lets go when the process ends, however it does."""
    file = path.open("w")
    if os.name == "posix":
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            raise StorageError(
                f"Another zoomrank service works in {path.parent}: stop it, or take another folder (--data)."
            ) from error
    return file
