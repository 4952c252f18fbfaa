"""`Database`: the connections to SQLite or PostgreSQL, one to write and one to read, and statements over them.

A lost connection is replaced when it is needed next. Replacements of the writing connection are counted, since it is
unknown whether its last transaction was committed. The tables are here, too.
"""

from __future__ import annotations

import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

from zoomrank.service.errors import StorageError
from zoomrank.service.storage.events import MOVED, SEEN, VOIDED, WAITING
from zoomrank.service.storage.ownership import COORDINATOR

# Tables of a store, in SQL that SQLite and PostgreSQL share once their names of types are filled in.
#
# | table | content |
# |---|---|
# | about | the version of this layout, the secret that signs impressions |
# | collections | name and settings; of an arm of an experiment, its home collection; which arm serves it now |
# | experiments | arms and their shares, start and end |
# | arm_visits | outcomes of visitors who count in an experiment, per arm and minute of arrival |
# | visitors | visitors counted in an experiment, appended unsorted (sorted, each insert would touch another page) |
# | editions | versions of a catalogue: the changes, and the digest of its file where that is kept |
# | contents | files of catalogue versions, in chunks; without a digest in `editions` a file is incomplete |
# | learners | the query of each learner, its path or vector, and counts for lists (which may lag behind) |
# | snapshots | the newest of each learner |
# | bases | state of each learner whose oldest events were removed, as of that point |
# | reports | the latest report of each learner to its neighbours |
# | events | the log: append-only, in the order in which learners applied it |
# | activity | outcome counts per collection and ten seconds |
# | folded | the part of `activity` whose events have left the log, with their query or by age |
#
# A unique index allows one shown and one end event per impression, one each for seen and void, and one of each note:
# applying a click twice fails, whatever the cause. Moves to another catalogue version precede an impression and may
# repeat.
#
# Several replicas count at once, each in rows of its own, by its number as a writer, so that none waits for
# another. A single service has the number 0.
#
# Events beyond the retention time leave the log; the learner as of that point is kept as its base, from which the log
# continues. Old counts are merged by day (`DAY` steps).

LAYOUT = 8

ABOUT = "CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL)"

_OTHERS = f"""
CREATE TABLE IF NOT EXISTS collections (
    id {{whole}} PRIMARY KEY, name TEXT NOT NULL UNIQUE, created {{real}} NOT NULL, settings TEXT NOT NULL,
    home {{whole}}, server {{whole}});
CREATE TABLE IF NOT EXISTS experiments (
    id {{whole}} PRIMARY KEY, collection {{whole}} NOT NULL, name TEXT NOT NULL, created {{real}} NOT NULL,
    ended {{real}}, content TEXT NOT NULL, UNIQUE (collection, name));
CREATE TABLE IF NOT EXISTS arm_visits (
    experiment {{whole}} NOT NULL, arm {{whole}} NOT NULL, minute {{whole}} NOT NULL, outcome {{whole}} NOT NULL,
    count {{whole}} NOT NULL, writer {{whole}} NOT NULL, PRIMARY KEY (experiment, arm, minute, outcome, writer));
CREATE TABLE IF NOT EXISTS visitors (
    experiment {{whole}} NOT NULL, visitor {{bytes}} NOT NULL);
CREATE INDEX IF NOT EXISTS visitors_experiment ON visitors (experiment);
CREATE TABLE IF NOT EXISTS editions (
    collection {{whole}} NOT NULL, number {{whole}} NOT NULL, created {{real}} NOT NULL, changes {{bytes}}, digest TEXT,
    PRIMARY KEY (collection, number));
CREATE TABLE IF NOT EXISTS contents (
    collection {{whole}} NOT NULL, edition {{whole}} NOT NULL, part {{whole}} NOT NULL, bytes {{bytes}} NOT NULL,
    PRIMARY KEY (collection, edition, part));
CREATE TABLE IF NOT EXISTS learners (
    id {{whole}} PRIMARY KEY, collection {{whole}} NOT NULL, query TEXT NOT NULL, created {{real}} NOT NULL,
    about TEXT, edition {{whole}} NOT NULL, impressions {{whole}} NOT NULL DEFAULT 0,
    satisfied {{whole}} NOT NULL DEFAULT 0, answered {{whole}} NOT NULL DEFAULT 0, recent {{real}});
CREATE UNIQUE INDEX IF NOT EXISTS learners_query ON learners (collection, query);
CREATE INDEX IF NOT EXISTS learners_impressions ON learners (collection, impressions);
CREATE INDEX IF NOT EXISTS learners_once ON learners (collection, created) WHERE impressions <= 1;
CREATE TABLE IF NOT EXISTS snapshots (
    learner {{whole}} PRIMARY KEY, edition {{whole}} NOT NULL, event {{whole}} NOT NULL, first {{whole}} NOT NULL,
    waiting {{whole}} NOT NULL, counts TEXT NOT NULL, content {{bytes}} NOT NULL);
CREATE TABLE IF NOT EXISTS bases (
    learner {{whole}} PRIMARY KEY, edition {{whole}} NOT NULL, event {{whole}} NOT NULL, first {{whole}} NOT NULL,
    waiting {{whole}} NOT NULL, counts TEXT NOT NULL, content {{bytes}} NOT NULL);
CREATE TABLE IF NOT EXISTS reports (
    learner {{whole}} PRIMARY KEY, answers {{whole}} NOT NULL, content {{bytes}} NOT NULL);
CREATE TABLE IF NOT EXISTS events (
    id {{whole}} PRIMARY KEY, learner {{whole}} NOT NULL, number {{whole}} NOT NULL, time {{real}} NOT NULL,
    outcome {{whole}} NOT NULL, shown {{bytes}});
CREATE UNIQUE INDEX IF NOT EXISTS events_impression ON events (
    learner, number, (CASE WHEN outcome > {WAITING} THEN -outcome ELSE CASE outcome WHEN {WAITING} THEN 0
    WHEN {SEEN} THEN 1 WHEN {VOIDED} THEN 2 WHEN {MOVED} THEN 16 + id ELSE 3 END END));
CREATE TABLE IF NOT EXISTS activity (
    collection {{whole}} NOT NULL, step {{whole}} NOT NULL, outcome {{whole}} NOT NULL, count {{whole}} NOT NULL,
    writer {{whole}} NOT NULL, PRIMARY KEY (collection, step, outcome, writer));
CREATE TABLE IF NOT EXISTS folded (
    collection {{whole}} NOT NULL, step {{whole}} NOT NULL, outcome {{whole}} NOT NULL, count {{whole}} NOT NULL,
    writer {{whole}} NOT NULL, PRIMARY KEY (collection, step, outcome, writer))
"""


def statements(types: Mapping[str, str]) -> list[str]:
    """Return the statements that create the other tables if missing."""
    return _OTHERS.format(**types).split(";")


_MOST_ROWS = 256  # per statement

Touched = Callable[[], Collection[int]]  # the partitions that a transaction writes to


def coordinator_only() -> Collection[int]:
    """Return the partition of transactions that change collections and experiments."""
    return (COORDINATOR,)


class Database(ABC):
    """A database with the tables of a store; other threads may read while one writes."""

    mark: ClassVar[str]  # placeholder of a parameter
    nearby: ClassVar[bool]  # True if it is on this machine, so that a write may be quick
    types: ClassVar[dict[str, str]]  # names of this database for the types in the tables
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
                    with suppress(*self.failures):  # the transaction is over already, or the connection is
                        self.writer.cursor().execute("ROLLBACK")
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
