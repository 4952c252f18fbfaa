"""`StoreSnapshot`: a store as it was at one moment, to read only, while a service may go on writing into it; and
opening a store by its folder or address.

Everything is read in one transaction. It takes no lock, and no writer waits for it.
"""

from __future__ import annotations

import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from zoomrank.errors import ParameterError
from zoomrank.service.errors import StorageError
from zoomrank.service.storage.database import LAYOUT
from zoomrank.service.storage.postgres_store import PostgresDatabase, postgres_server
from zoomrank.service.storage.sqlite_store import NAME, SQLiteDatabase, failure_words
from zoomrank.service.storage.store import Store
from zoomrank.service.storage.store_reader import StoreReader

_MOST_DAMAGE = 20  # findings about a file
_ROWS_AT_ONCE = 100  # that a server sends: some have a megabyte


class StoreSnapshot(ABC):
    """A read-only transaction, with a reader of its tables (`read`)."""

    mark: ClassVar[str]  # placeholder of a parameter

    def __init__(self, where: str, connection: Any, failures: tuple[type[Exception], ...]) -> None:
        self.where = where  # the file or database, for messages
        self.connection = connection
        self.failures = failures
        self.read = StoreReader(self)
        self._reading = threading.Lock()
        try:
            self._check_layout()
        except BaseException:
            self.close()
            raise

    def _check_layout(self) -> None:
        try:
            found = self.read.about("layout")
        except (StorageError, IndexError) as error:
            raise StorageError(f"{self.where} is no store of zoomrank, or a damaged one: {error}") from error
        if found != str(LAYOUT):
            raise StorageError(f"{self.where} has layout {found}; this zoomrank reads layout {LAYOUT}.")

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Return all rows that a statement finds."""
        with self._reading:
            try:
                cursor = self.connection.cursor()
                cursor.execute(statement.replace("?", self.mark), tuple(parameters))
                return list(cursor.fetchall())
            except self.failures as error:
                raise StorageError(f"The store cannot be read: {self.words(error)}.") from error

    def settle(self) -> None:  # noqa: B027
        """Do nothing: a snapshot never sees later writes."""

    def words(self, error: Exception) -> str:
        """Return the text of a failure, and what to do about it if that is known."""
        return str(error)

    @abstractmethod
    def rows(self, statement: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows that a statement finds, a few at a time."""

    @abstractmethod
    def damage(self) -> list[str]:
        """Return what the database itself finds wrong with its files, if it can tell."""

    def close(self) -> None:
        """Close the connection."""
        with self._reading:
            self.connection.close()


class SQLiteSnapshot(StoreSnapshot):
    """A snapshot of a file: that of a service, or a backup."""

    mark = "?"

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise StorageError(f"There is no {path}: say where it is.")
        self._path = path
        address = f"{path.absolute().as_uri()}?mode=ro"
        connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
        connection.execute("BEGIN")
        super().__init__(str(path), connection, (sqlite3.Error,))

    def words(self, error: Exception) -> str:
        """Return the text of a failure, and what to do about a damaged file."""
        return failure_words(self._path, error)

    def rows(self, statement: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows that a statement finds, one by one."""
        try:
            yield from self.connection.execute(statement)
        except sqlite3.Error as error:
            raise StorageError(f"{self.where} cannot be read: {error}.") from error

    def damage(self) -> list[str]:
        """Return what SQLite finds wrong with its file."""
        try:
            found = self.connection.execute(f"PRAGMA integrity_check({_MOST_DAMAGE})").fetchall()
        except sqlite3.Error as error:
            return [str(error)]
        return [str(said) for (said,) in found if said != "ok"]


class PostgresSnapshot(StoreSnapshot):
    """A snapshot of a database of a PostgreSQL server."""

    mark = "%s"

    def __init__(self, address: str) -> None:
        server = postgres_server(address)
        connection = server.connect()
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        connection.execute("SET LOCAL statement_timeout = 0")  # a backup of much may take long
        super().__init__("This database", connection, server.failures)

    def rows(self, statement: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows that a statement finds, as many at a time as memory surely holds."""
        try:
            with self.connection.cursor(name="zoomrank_rows") as cursor:
                cursor.itersize = _ROWS_AT_ONCE
                cursor.execute(statement)
                yield from cursor
        except self.failures as error:
            raise StorageError(f"{self.where} cannot be read: {error}.") from error

    def damage(self) -> list[str]:
        """Return nothing: a server checks its files itself."""
        return []


# Open the store in a folder of this machine, or the one at an address of PostgreSQL.


def open_store(folder: Path, address: str | None) -> Store:
    """Return the store at an address, or the one in a folder."""
    return Store(SQLiteDatabase(folder) if address is None else PostgresDatabase(_checked(address)))


def open_snapshot(folder: Path, address: str | None) -> StoreSnapshot:
    """Return a snapshot of the store at an address, or of the one in a folder."""
    return SQLiteSnapshot(folder / NAME) if address is None else PostgresSnapshot(_checked(address))


def _checked(address: str) -> str:
    if not address.startswith(("postgresql://", "postgres://")):
        raise ParameterError(f"A store is at postgresql://…, not at {address.split(':')[0]}:…")
    return address
