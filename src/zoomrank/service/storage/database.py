"""`Database`: one connection for the writing thread and one for all readers, and statements on them.

A lost connection is replaced when it is needed next. Renewals of the writer are counted, since it is unknown whether
its last write succeeded.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from zoomrank.service.refusals import StorageError

_MOST_ROWS = 256  # per statement


class Database(ABC):
    """An SQL database."""

    mark: str  # placeholder of a parameter
    nearby: bool  # on this machine, so that writes are quick
    failures: tuple[type[Exception], ...]

    def __init__(self) -> None:
        self.renewals = 0  # number of times that the writer was replaced
        self.away = False  # something has failed since the last successful write
        self._closed = False
        self._reading = threading.Lock()
        self._writing = threading.Lock()
        self.writer = self.connect_writer()
        self.reader = self.connect()

    @abstractmethod
    def connect(self) -> Any:
        """Return a connection in autocommit mode."""

    def connect_writer(self) -> Any:
        """Return the connection that writes; no other service has one."""
        return self.connect()

    def is_lost(self, connection: Any) -> bool:  # noqa: ARG002
        """Return whether a connection is unusable."""
        return False

    def words(self, error: Exception) -> str:
        """Return the message of a failure, with advice where possible."""
        return str(error)

    def tidy(self) -> None:  # noqa: B027  (most have nothing to tidy)
        """Do periodic maintenance, in a thread of its own."""

    @property
    def is_busy(self) -> bool:
        """True while a write is running."""
        return self._writing.locked()

    def close(self) -> None:
        """Close the connections as soon as they are idle."""
        with self._writing, self._reading:  # the order in which a transaction that reads takes them
            self._closed = True
            self.reader.close()
            self.writer.close()

    def _sql(self, statement: str) -> str:
        """Replace question marks by this database's placeholders."""
        return statement.replace("?", self.mark)

    def _read(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of a query."""
        with self._reading:
            self._check_open()
            try:
                if self.is_lost(self.reader):
                    self.reader = self.connect()
                cursor = self.reader.cursor()
                cursor.execute(self._sql(statement), tuple(parameters))
                return list(cursor.fetchall())
            except self.failures as error:
                self.away = True
                raise StorageError(f"The store cannot be read: {self.words(error)}.") from error

    def _insert(self, cursor: Any, into: str, rows: Sequence[tuple[Any, ...]], otherwise: str = "") -> None:
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

    def _many(self, cursor: Any, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Execute one statement for many rows."""
        cursor.executemany(self._sql(statement), rows)

    def _roll_back(self) -> None:
        with suppress(*self.failures):  # already ended, or the connection is lost
            self.writer.cursor().execute("ROLLBACK")

    def _renew_writer(self) -> None:
        """Replace the writer if it is lost; call while no other thread writes."""
        self._check_open()
        if self.is_lost(self.writer):
            self.writer = self.connect_writer()
            self.renewals += 1

    def _check_open(self) -> None:
        if self._closed:
            raise StorageError("The store is closed.")
