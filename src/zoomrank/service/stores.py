"""The two kinds of store: SQLite in a folder of this machine, and a PostgreSQL server."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import IO, Any, ClassVar

from zoomrank.errors import ParameterError
from zoomrank.service.errors import StorageError
from zoomrank.service.store import Store


class SQLiteStore(Store):
    """A file; a write-ahead log that is synchronised at every commit makes it durable."""

    mark = "?"
    types: ClassVar = {"whole": "INTEGER", "real": "REAL", "bytes": "BLOB"}
    failures = (sqlite3.Error,)

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "zoomrank.sqlite"
        self._lock = _locked(folder / "lock")
        super().__init__()

    def connect(self) -> Any:
        """Transactions are begun and ended by hand."""
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    def close(self) -> None:
        """Let go of the file."""
        self.reader.close()
        self.writer.close()
        self._lock.close()


class PostgresStore(Store):
    """A database of a PostgreSQL server."""

    mark = "%s"
    types: ClassVar = {"whole": "BIGINT", "real": "DOUBLE PRECISION", "bytes": "BYTEA"}

    def __init__(self, address: str) -> None:
        try:
            import psycopg
        except ModuleNotFoundError as error:
            raise ParameterError("PostgreSQL needs the extra: pip install 'zoomrank[postgres]'.") from error
        self._connect = psycopg.connect
        self.failures = (psycopg.Error,)
        self._address = address
        self._owner = self.connect()
        if not self._owner.execute("SELECT pg_try_advisory_lock(2013)").fetchone()[0]:
            raise StorageError("Another zoomrank service uses this database: stop it, or take another database.")
        super().__init__()

    def connect(self) -> Any:
        """Transactions are begun and ended by hand."""
        try:
            return self._connect(self._address, autocommit=True)
        except self.failures as error:
            raise StorageError(f"PostgreSQL cannot be reached: {error}.") from error

    def close(self) -> None:
        """Let go of the server."""
        for connection in (self.reader, self.writer, self._owner):
            connection.close()


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
