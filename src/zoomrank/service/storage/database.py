"""`Database`: the connections to SQLite or PostgreSQL, one to write and one to read, and statements over them.

A lost connection is replaced when it is needed next. Replacements of the writing connection are counted, since it is
unknown whether its last transaction was committed.
"""

from __future__ import annotations

import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

from zoomrank.service.errors import StorageError
from zoomrank.service.storage.ownership import COORDINATOR
from zoomrank.service.storage.tables import ABOUT, LAYOUT, statements

_MOST_ROWS = 256  # per statement

Touched = Callable[[], Collection[int]]  # the partitions that a transaction writes to


def coordinator_only() -> Collection[int]:
    """Return the partition of transactions that change collections and experiments."""
    return (COORDINATOR,)


class Database(ABC):
    """A database with the tables of a store; other threads may read while one writes."""

    mark: ClassVar[str]  # placeholder of a parameter
    nearby: ClassVar[bool]  # True if it is on this machine, so that a write may be quick
    types: ClassVar[dict[str, str]]  # names of this database for the types in `tables`
    failures: tuple[type[Exception], ...]  # exceptions that its driver raises
    writer_id = 0  # of this process, in rows of counts

    def __init__(self) -> None:
        self.renewals = 0  # of the writing connection
        self.away = False  # True if something failed since the last successful write
        self._closed = False
        self._reading = threading.Lock()
        self._writing = threading.Lock()
        self.writer = self.connect_writer()
        self.reader = self.connect()
        try:
            self._create()
        except self.failures as error:
            self.close()
            raise StorageError(f"The store cannot be used: {self.words(error)}.") from error
        except StorageError:
            self.close()
            raise

    @abstractmethod
    def connect(self) -> Any:
        """Return a new connection in autocommit mode; transactions are begun explicitly."""

    def connect_writer(self) -> Any:
        """Return a new connection that may write: no other service has one."""
        return self.connect()

    def is_lost(self, connection: Any) -> bool:  # noqa: ARG002
        """Return whether a connection can never be used again."""
        return False

    def words(self, error: Exception) -> str:
        """Return the text of a failure, and what to do about it if that is known."""
        return str(error)

    def tidy(self) -> None:  # noqa: B027  (most have nothing to tidy)
        """Do periodic maintenance, in a thread of its own."""

    @property
    def is_busy(self) -> bool:
        """True while a write is running."""
        return self._writing.locked()

    def close(self) -> None:
        """Close both connections, as soon as no thread uses them."""
        with self._writing, self._reading:  # in the order in which a transaction that reads takes them
            self._closed = True
            self.reader.close()
            self.writer.close()

    # Reading.

    def sql(self, statement: str) -> str:
        """Return a statement with question marks in the syntax of this database."""
        return statement.replace("?", self.mark)

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Return all rows that a statement finds."""
        with self._reading:
            self._check_open()
            try:
                if self.is_lost(self.reader):
                    self.reader = self.connect()
                cursor = self.reader.cursor()
                cursor.execute(self.sql(statement), tuple(parameters))
                return list(cursor.fetchall())
            except self.failures as error:
                self.away = True
                raise StorageError(f"The store cannot be read: {self.words(error)}.") from error

    def settle(self) -> None:
        """Wait until a write on a lost connection is committed or not: it may be until there is another writer."""
        if self.is_lost(self.writer):
            with self._writing:
                self._renew_writer()

    # Writing.

    @contextmanager
    def transaction(
        self, otherwise: str = "Nothing was written down", touching: Touched | None = coordinator_only
    ) -> Iterator[Any]:
        """Commit all statements of a block, or none; refused unless this process owns the partitions it touches."""
        with self._writing:
            try:
                self._renew_writer()
                cursor = self.writer.cursor()
                cursor.execute("BEGIN")
                try:
                    if touching is not None:
                        self._check_owned(cursor, touching)
                    yield cursor
                    cursor.execute("COMMIT")
                except BaseException:
                    self._roll_back()
                    raise
            except self.failures as error:
                self.away = True
                raise StorageError(f"{otherwise}: {self.words(error)}.") from error

    def _check_owned(self, cursor: Any, touching: Touched) -> None:  # noqa: B027
        """Refuse a write to partitions that another process owns; one that works alone owns all."""

    def insert(self, cursor: Any, into: str, rows: Sequence[tuple[Any, ...]], otherwise: str = "") -> None:
        """Insert rows, many per statement: between statements this thread competes with the one that owns the learners.

        Chunks are powers of two, so that few different statements need to be prepared.
        """
        start = 0
        while start < len(rows):
            count = min(1 << (len(rows) - start).bit_length() - 1, _MOST_ROWS)
            marks = ", ".join([f"({', '.join([self.mark] * len(rows[0]))})"] * count)
            values = [value for row in rows[start : start + count] for value in row]
            cursor.execute(f"INSERT INTO {into} VALUES {marks} {otherwise}", values)  # noqa: S608  (marks alone)
            start += count

    def many(self, cursor: Any, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Execute the same statement for each row."""
        cursor.executemany(self.sql(statement), rows)

    def _roll_back(self) -> None:
        with suppress(*self.failures):  # the transaction is over already, or the connection is
            self.writer.cursor().execute("ROLLBACK")

    def _renew_writer(self) -> None:
        """Replace a lost writing connection; the caller has the lock."""
        self._check_open()
        if self.is_lost(self.writer):
            self.writer = self.connect_writer()
            self.renewals += 1

    def _check_open(self) -> None:
        if self._closed:
            raise StorageError("The store is closed.")

    # Tables.

    def _create(self) -> None:
        cursor = self.writer.cursor()
        cursor.execute(ABOUT)
        for name, value in (("layout", str(LAYOUT)), ("secret", secrets.token_hex(32))):
            cursor.execute(self.sql("INSERT INTO about VALUES (?, ?) ON CONFLICT (name) DO NOTHING"), (name, value))
        self._check_layout()  # before other tables are touched, which may differ
        for statement in statements(self.types):
            cursor.execute(statement)

    def _check_layout(self) -> None:
        found = str(self.query("SELECT value FROM about WHERE name = 'layout'")[0][0])
        if found != str(LAYOUT):
            raise StorageError(f"The store has layout {found}; this zoomrank reads layout {LAYOUT}.")
