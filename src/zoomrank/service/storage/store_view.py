"""`StoreView`: one look at a store, in which nothing changes, while a service may go on writing into it.

It is a store without a writer: all that it reads is read in one transaction, so it is what the store had at one moment.
It takes no lock, and nobody waits for it.
"""

from __future__ import annotations

import sqlite3
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from zoomrank.service.refusals import StorageError
from zoomrank.service.storage.database import Database
from zoomrank.service.storage.postgres_store import PostgresStore, reachable
from zoomrank.service.storage.sqlite_store import SQLiteStore
from zoomrank.service.storage.store import Store
from zoomrank.service.storage.tables import LAYOUT

_MOST_DAMAGE = 20  # that is said of a file
_ROWS_AT_ONCE = 100  # that a server sends: some have a megabyte


class StoreView(Store):
    """What there is at one moment."""

    where: str  # it is, in words

    def __init__(self) -> None:
        Database.__init__(self)  # what a store does besides is to make its tables
        try:
            self._check_layout()
        except BaseException:
            self.close()
            raise

    def _check_layout(self) -> None:
        try:
            found = self.about("layout")
        except (StorageError, IndexError) as error:
            raise StorageError(f"{self.where} is no store of zoomrank, or a damaged one: {error}") from error
        if found != str(LAYOUT):
            raise StorageError(f"{self.where} has layout {found}; this zoomrank reads layout {LAYOUT}.")

    @abstractmethod
    def begin(self) -> Any:
        """A connection in which a transaction was begun that sees what there is, and goes on seeing it."""

    @abstractmethod
    def rows(self, statement: str) -> Iterator[tuple[Any, ...]]:
        """What a statement finds, a few rows at a time."""

    @abstractmethod
    def damage(self) -> list[str]:
        """What the database itself finds wrong with its files, if it can say."""

    def connect_writer(self) -> Any:
        """There is but one connection, and it only reads."""
        self._only = self.begin()
        return self._only

    def connect(self) -> Any:
        """The same."""
        return self._only

    def is_lost(self, connection: Any) -> bool:  # noqa: ARG002
        """Whether another connection would do: never, it would see another moment."""
        return False

    def close(self) -> None:
        """Let go of the connection."""
        Database.close(self)


class SQLiteView(StoreView, SQLiteStore):
    """A look at a file: that of a service, or a backup."""

    def __init__(self, path: Path) -> None:
        self.path, self.where = path, str(path)
        if not path.is_file():
            raise StorageError(f"There is no {path}: say where it is.")
        super().__init__()

    def begin(self) -> Any:
        """The snapshot of the first statement."""
        address = f"{self.path.absolute().as_uri()}?mode=ro"
        connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
        connection.execute("BEGIN")
        return connection

    def rows(self, statement: str) -> Iterator[tuple[Any, ...]]:
        """What a statement finds, row by row."""
        try:
            yield from self.reader.execute(statement)
        except sqlite3.Error as error:
            raise StorageError(f"{self.where} cannot be read: {error}.") from error

    def damage(self) -> list[str]:
        """What SQLite finds wrong with its file."""
        try:
            found = self.reader.execute(f"PRAGMA integrity_check({_MOST_DAMAGE})").fetchall()
        except sqlite3.Error as error:
            return [str(error)]
        return [str(said) for (said,) in found if said != "ok"]


class PostgresView(StoreView, PostgresStore):
    """A look at a database of a PostgreSQL server."""

    where = "This database"

    def __init__(self, address: str) -> None:
        self.server = reachable(address)
        self.failures = self.server.failures
        super().__init__()

    def begin(self) -> Any:
        """The snapshot of the first statement; none of them is stopped for taking long."""
        connection = self.server.connect()
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        connection.execute("SET LOCAL statement_timeout = 0")
        return connection

    def rows(self, statement: str) -> Iterator[tuple[Any, ...]]:
        """What a statement finds, as many rows at a time as memory surely holds."""
        try:
            with self.reader.cursor(name="zoomrank_rows") as cursor:
                cursor.itersize = _ROWS_AT_ONCE
                cursor.execute(statement)
                yield from cursor
        except self.failures as error:
            raise StorageError(f"{self.where} cannot be read: {error}.") from error

    def damage(self) -> list[str]:
        """Nothing: a server looks after its files itself."""
        return []
