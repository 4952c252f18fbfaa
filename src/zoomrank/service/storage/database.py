"""`Database`: two connections, one for the thread that writes and one for all that read, and statements over them.

Connections come and go: one that was lost is replaced when it is needed next. Of the writer this is counted, since
nobody knows whether what it wrote last came true.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from zoomrank.service.refusals import StorageError

_MOST_ROWS = 256  # of one statement


class Database(ABC):
    """Something that understands SQL."""

    mark: str  # how a parameter is written
    nearby: bool  # whether it is on this machine, so that a write may be quick
    failures: tuple[type[Exception], ...]

    def __init__(self) -> None:
        self.renewals = 0  # of the writer
        self.away = False  # whether something has failed since it was last known that it can be written
        self._closed = False
        self._reading = threading.Lock()
        self._writing = threading.Lock()
        self.writer = self.connect_writer()
        self.reader = self.connect()

    @abstractmethod
    def connect(self) -> Any:
        """A connection in which every statement is a transaction of its own, unless one was begun."""

    def connect_writer(self) -> Any:
        """A connection that may write: no other service has one."""
        return self.connect()

    def is_lost(self, connection: Any) -> bool:  # noqa: ARG002
        """Whether a connection can never be used again."""
        return False

    def words(self, error: Exception) -> str:
        """What a failure says, and what to do if that can be known."""
        return str(error)

    def tidy(self) -> None:  # noqa: B027  (most have nothing to tidy)
        """What has to be done now and then, in a thread of its own."""

    @property
    def is_busy(self) -> bool:
        """Whether a write would have to wait for another."""
        return self._writing.locked()

    def close(self) -> None:
        """Let go of everything, as soon as nobody is at it any more."""
        with self._writing, self._reading:  # in the order in which a transaction that reads takes them
            self._closed = True
            self.reader.close()
            self.writer.close()

    def _sql(self, statement: str) -> str:
        """A statement whose parameters are question marks, as this database has it."""
        return statement.replace("?", self.mark)

    def _read(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """All rows that a statement finds."""
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
        """Insert rows, many by one statement: between statements this thread waits for the one that owns the learners.

        By powers of two, so that few different statements need to be prepared.
        """
        start = 0
        while start < len(rows):
            count = min(1 << (len(rows) - start).bit_length() - 1, _MOST_ROWS)
            marks = ", ".join([f"({', '.join([self.mark] * len(rows[0]))})"] * count)
            values = [value for row in rows[start : start + count] for value in row]
            cursor.execute(f"INSERT INTO {into} VALUES {marks} {otherwise}", values)  # noqa: S608  (marks alone)
            start += count

    def _many(self, cursor: Any, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """The same statement for many rows."""
        cursor.executemany(self._sql(statement), rows)

    def _roll_back(self) -> None:
        with suppress(*self.failures):  # it is over already, or the connection is
            self.writer.cursor().execute("ROLLBACK")

    def _renew_writer(self) -> None:
        """Make sure that there is a writer, while nobody else writes."""
        self._check_open()
        if self.is_lost(self.writer):
            self.writer = self.connect_writer()
            self.renewals += 1

    def _check_open(self) -> None:
        if self._closed:
            raise StorageError("The store is closed.")
