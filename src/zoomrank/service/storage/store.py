"""`Store`: where everything is kept, in SQL that SQLite and PostgreSQL both understand.

| table | what |
|---|---|
| about | the version of this layout, the secret that signs impressions |
| collections | settings and the collection file |
| learners | the query of each learner, and how often it was asked (as of late) |
| snapshots | the newest of each learner |
| events | the log: append-only, in the order in which learners noted it |
| activity | what became of impressions, per collection and ten seconds |

One thread writes (`journal`), others read. A batch is one transaction: all of it is durable, or none. The log has room
for one showing and one answer of each impression: what would apply a click twice is refused, whatever brought it about.
"""

from __future__ import annotations

import json
import secrets
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from zoomrank.service.refusals import StorageError
from zoomrank.service.settings import Settings
from zoomrank.service.storage.events import ABANDONED as LEFT
from zoomrank.service.storage.events import TIMED_OUT, Event

LAYOUT = 2
STEP = 10  # seconds of one row of `activity`
SHOWN, SATISFIED, ABANDONED, UNSEEN = -1, -2, -3, -4  # rows of `activity`; those of clicks are their slots
_MOST_ROWS = 256  # of one statement

_TABLES = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS collections (
    id {whole} PRIMARY KEY, name TEXT NOT NULL UNIQUE, created {real} NOT NULL, settings TEXT NOT NULL,
    digest TEXT NOT NULL, content {bytes} NOT NULL);
CREATE TABLE IF NOT EXISTS learners (
    id {whole} PRIMARY KEY, collection {whole} NOT NULL, query TEXT NOT NULL, created {real} NOT NULL,
    impressions {whole} NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX IF NOT EXISTS learners_query ON learners (collection, query);
CREATE INDEX IF NOT EXISTS learners_impressions ON learners (collection, impressions);
CREATE TABLE IF NOT EXISTS snapshots (
    learner {whole} PRIMARY KEY, event {whole} NOT NULL, first {whole} NOT NULL, counts TEXT NOT NULL,
    content {bytes} NOT NULL);
CREATE TABLE IF NOT EXISTS events (
    id {whole} PRIMARY KEY, learner {whole} NOT NULL, number {whole} NOT NULL, time {real} NOT NULL,
    answer {whole}, shown {bytes});
CREATE UNIQUE INDEX IF NOT EXISTS events_impression ON events (learner, number, (answer IS NULL));
CREATE TABLE IF NOT EXISTS activity (
    collection {whole} NOT NULL, step {whole} NOT NULL, what {whole} NOT NULL, count {whole} NOT NULL,
    PRIMARY KEY (collection, step, what))
"""

_NEWER_SNAPSHOT = (
    "ON CONFLICT (learner) DO UPDATE SET "
    "event = excluded.event, first = excluded.first, counts = excluded.counts, content = excluded.content"
)


class StoredCollection(NamedTuple):
    """A collection without its content."""

    id: int
    name: str
    created: float
    settings: Settings
    digest: str


class Snapshot(NamedTuple):
    """A learner as it was when it was last written down whole."""

    learner: int
    event: int  # the last that it knows
    first: int  # the first impression that later events can be about
    counts: str | None
    content: bytes | None  # None: it never was


class QueryRow(NamedTuple):
    """A query in a list; its counts are those of the newest snapshot."""

    id: int
    query: str
    created: float
    counts: dict[str, Any] | None


@dataclass
class Batch:
    """What is written together."""

    learners: list[tuple[int, int, str, float]] = field(default_factory=list)  # id, collection, query, created
    events: list[tuple[int, Event]] = field(default_factory=list)  # with their places in the log
    snapshots: list[Snapshot] = field(default_factory=list)
    impressions: dict[int, int] = field(default_factory=dict)  # of a learner
    activity: Counter[tuple[int, int, int]] = field(default_factory=Counter)

    def __bool__(self) -> bool:
        return bool(self.learners or self.events or self.snapshots or self.impressions)


class Store(ABC):
    """Two connections: one for the thread that writes, one for all that read."""

    mark: str  # how a parameter is written
    nearby: bool  # whether it is on this machine, so that a write may be quick
    types: ClassVar[dict[str, str]]
    failures: tuple[type[Exception], ...]

    def __init__(self) -> None:
        self.renewals = 0  # of a writer that was lost: nobody knows whether what it wrote last came true
        self._closed = False
        self._reading = threading.Lock()
        self._writing = threading.Lock()
        self.writer = self.connect_writer()
        self.reader = self.connect()
        try:
            self._create()
        except self.failures as error:
            self.close()
            raise StorageError(f"The store cannot be used: {error}.") from error
        except StorageError:
            self.close()
            raise

    @abstractmethod
    def connect(self) -> Any:
        """A connection in which every statement is a transaction of its own, unless one was begun."""

    def connect_writer(self) -> Any:
        """A connection that may write: no other service has one."""
        return self.connect()

    def is_lost(self, connection: Any) -> bool:  # noqa: ARG002
        """Whether a connection can never be used again."""
        return False

    def tidy(self) -> None:  # noqa: B027  (most have nothing to tidy)
        """What has to be done now and then, in a thread of its own."""

    @property
    def is_busy(self) -> bool:
        """Whether a write would have to wait for another."""
        return self._writing.locked()

    def close(self) -> None:
        """Let go of everything, as soon as nobody is at it any more."""
        with self._reading, self._writing:
            self._closed = True
            self.reader.close()
            self.writer.close()

    def _create(self) -> None:
        cursor = self.writer.cursor()
        for statement in _TABLES.format(**self.types).split(";"):
            cursor.execute(statement)
        for name, value in (("layout", str(LAYOUT)), ("secret", secrets.token_hex(32))):
            cursor.execute(self._sql("INSERT INTO about VALUES (?, ?) ON CONFLICT (name) DO NOTHING"), (name, value))
        found = self.about("layout")
        if found != str(LAYOUT):
            raise StorageError(f"The store has layout {found}; this zoomrank reads layout {LAYOUT}.")

    def _sql(self, statement: str) -> str:
        return statement.replace("?", self.mark)

    def _read(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        with self._reading:
            self._check_open()
            try:
                if self.is_lost(self.reader):
                    self.reader = self.connect()
                cursor = self.reader.cursor()
                cursor.execute(self._sql(statement), tuple(parameters))
                return list(cursor.fetchall())
            except self.failures as error:
                raise StorageError(f"The store cannot be read: {error}.") from error

    def about(self, name: str) -> str:
        """One of the facts about the store."""
        return str(self._read("SELECT value FROM about WHERE name = ?", (name,))[0][0])

    def write(self, batch: Batch) -> None:
        """Make a batch durable, or none of it."""
        with self._writing:
            try:
                self._renew_writer()
                self._in_transaction(batch)
            except self.failures as error:
                raise StorageError(f"Nothing was written down: {error}.") from error

    def _in_transaction(self, batch: Batch) -> None:
        cursor = self.writer.cursor()
        cursor.execute("BEGIN")
        try:
            self._insert(cursor, "learners (id, collection, query, created)", batch.learners)
            self._insert(cursor, "events", [(place, *event) for place, event in batch.events])
            self._insert(
                cursor,
                "activity",
                [(*key, count) for key, count in sorted(batch.activity.items())],
                "ON CONFLICT (collection, step, what) DO UPDATE SET count = activity.count + excluded.count",
            )
            for snapshot in batch.snapshots:
                self._insert(cursor, "snapshots", [snapshot], _NEWER_SNAPSHOT)
            if batch.impressions:
                cursor.executemany(
                    self._sql("UPDATE learners SET impressions = ? WHERE id = ?"),
                    [(count, learner) for learner, count in batch.impressions.items()],
                )
            cursor.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def _insert(self, cursor: Any, into: str, rows: list[tuple[Any, ...]], otherwise: str = "") -> None:
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

    def _roll_back(self) -> None:
        with suppress(*self.failures):  # it is over already, or the connection is
            self.writer.cursor().execute("ROLLBACK")

    def _renew_writer(self) -> None:
        self._check_open()
        if self.is_lost(self.writer):
            self.writer = self.connect_writer()
            self.renewals += 1

    def _check_open(self) -> None:
        if self._closed:
            raise StorageError("The store is closed.")

    def add_collection(self, stored: StoredCollection, content: bytes) -> None:
        """Keep a new collection."""
        with self._writing:
            try:
                self._renew_writer()
                self.writer.cursor().execute(
                    self._sql("INSERT INTO collections VALUES (?, ?, ?, ?, ?, ?)"),
                    (stored.id, stored.name, stored.created, stored.settings.model_dump_json(), stored.digest, content),
                )
            except self.failures as error:
                raise StorageError(f"The collection was not kept: {error}.") from error

    def collections(self) -> list[StoredCollection]:
        """All collections."""
        rows = self._read("SELECT id, name, created, settings, digest FROM collections ORDER BY id")
        return [StoredCollection(row[0], row[1], row[2], Settings.model_validate_json(row[3]), row[4]) for row in rows]

    def content(self, collection: int) -> bytes:
        """The file of a collection."""
        return bytes(self._read("SELECT content FROM collections WHERE id = ?", (collection,))[0][0])

    def last(self, table: str) -> int:
        """The largest id in use."""
        return int(self._read(f"SELECT COALESCE(MAX(id), 0) FROM {table}")[0][0])  # noqa: S608  (not from outside)

    def find(self, collection: int, query: str) -> Snapshot | None:
        """The learner of a query."""
        if self.is_lost(self.writer):  # what it was about to commit may still come true; not once there is another
            with self._writing:
                self._renew_writer()
        rows = self._read(
            "SELECT l.id, COALESCE(s.event, 0), COALESCE(s.first, 0), s.counts, s.content "
            "FROM learners l LEFT JOIN snapshots s ON s.learner = l.id WHERE l.collection = ? AND l.query = ?",
            (collection, query),
        )
        if not rows:
            return None
        learner, event, first, counts, content = rows[0]
        return Snapshot(learner, event, first, counts, None if content is None else bytes(content))

    def query_of(self, learner: int) -> tuple[int, str] | None:
        """The collection and the query of a learner."""
        rows = self._read("SELECT collection, query FROM learners WHERE id = ?", (learner,))
        return (int(rows[0][0]), str(rows[0][1])) if rows else None

    def events(self, learner: int, after: int = 0, first: int = 0) -> Iterator[tuple[int, Event]]:
        """The log of a learner after a place, in its order, with places; all of it about impressions from one on."""
        rows = self._read(
            "SELECT id, learner, number, time, answer, shown FROM events "
            "WHERE learner = ? AND number >= ? AND id > ? ORDER BY id",
            (learner, first, after),
        )
        return ((int(row[0]), _event(row)) for row in rows)

    def unfinished(self) -> dict[tuple[int, str], float]:
        """The collection and query of learners of which impressions may wait, with since when: 0 if it is not known, as
        after a crash.
        """
        newer = (
            "EXISTS (SELECT 1 FROM events e "
            "WHERE e.learner = l.id AND e.number >= COALESCE(s.first, 0) AND e.id > COALESCE(s.event, 0))"
        )
        rows = self._read(
            f"SELECT l.collection, l.query, CASE WHEN {newer} THEN 0 ELSE (SELECT e.time FROM events e "  # noqa: S608
            "WHERE e.learner = l.id AND e.number = s.first AND e.answer IS NULL) END "
            f"FROM learners l LEFT JOIN snapshots s ON s.learner = l.id WHERE s.first < l.impressions OR {newer}"
        )
        return {(int(collection), str(query)): float(since or 0) for collection, query, since in rows}

    def shown(self, learner: int, number: int) -> bytes | None:
        """The ranking of an impression, packed."""
        rows = self._read(
            "SELECT shown FROM events WHERE learner = ? AND number = ? AND shown IS NOT NULL", (learner, number)
        )
        return bytes(rows[0][0]) if rows else None

    def queries(self, collection: int, offset: int, limit: int) -> tuple[list[QueryRow], int]:
        """The queries of a collection, those with most impressions first, and how many there are."""
        rows = self._read(
            "SELECT l.id, l.query, l.created, s.counts FROM learners l LEFT JOIN snapshots s ON s.learner = l.id "
            "WHERE l.collection = ? ORDER BY l.impressions DESC, l.id DESC LIMIT ? OFFSET ?",
            (collection, limit, offset),
        )
        total = self._read("SELECT COUNT(*) FROM learners WHERE collection = ?", (collection,))[0][0]
        return [QueryRow(row[0], row[1], row[2], json.loads(row[3]) if row[3] else None) for row in rows], int(total)

    def since_snapshots(self, learners: Sequence[int]) -> dict[int, tuple[int, int, int, float]]:
        """Of each learner that the log has more of than its snapshot: (shown, satisfied, abandoned, last shown)."""
        if not learners:
            return {}
        among = f"l.id IN ({', '.join('?' * len(learners))})"
        rows = self._read(
            "SELECT e.learner, SUM(CASE WHEN e.answer IS NULL THEN 1 ELSE 0 END), "
            "SUM(CASE WHEN e.answer < ? THEN 1 ELSE 0 END), SUM(CASE WHEN e.answer IN (?, ?) THEN 1 ELSE 0 END), "
            "MAX(CASE WHEN e.answer IS NULL THEN e.time ELSE 0 END) "
            "FROM learners l LEFT JOIN snapshots s ON s.learner = l.id "
            "JOIN events e ON e.learner = l.id AND e.number >= COALESCE(s.first, 0) "
            "WHERE " + among + " AND e.id > COALESCE(s.event, 0) GROUP BY e.learner",
            (LEFT, LEFT, TIMED_OUT, *learners),
        )
        return {int(row[0]): (int(row[1]), int(row[2]), int(row[3]), float(row[4])) for row in rows}

    def count_queries(self) -> dict[int, int]:
        """How many queries each collection has."""
        rows = self._read("SELECT collection, COUNT(*) FROM learners GROUP BY collection")
        return {int(collection): int(count) for collection, count in rows}

    def totals(self) -> dict[tuple[int, int], int]:
        """What became of all impressions, by collection."""
        rows = self._read("SELECT collection, what, SUM(count) FROM activity GROUP BY collection, what")
        return {(int(collection), int(what)): int(count) for collection, what, count in rows}

    def activity(self, collection: int | None, start: int) -> list[tuple[int, int, int]]:
        """Steps since one of them: (step, what, count)."""
        where = "" if collection is None else "AND collection = ?"
        rows = self._read(
            f"SELECT step, what, SUM(count) FROM activity WHERE step >= ? {where} GROUP BY step, what",  # noqa: S608
            (start,) if collection is None else (start, collection),
        )
        return [(int(step), int(what), int(count)) for step, what, count in rows]


def _event(row: Sequence[Any]) -> Event:
    return Event(row[1], row[2], row[3], row[4], None if row[5] is None else bytes(row[5]))
