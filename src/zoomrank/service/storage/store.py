"""`Store`: where everything is kept; what SQLite and PostgreSQL share, which is nearly all (`tables` says of what).

One thread writes (`journal`), others read. A batch is one transaction: all of it is durable, or none.
"""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple

from zoomrank.service.refusals import StorageError
from zoomrank.service.storage.batch import Batch, Snapshot, StoredReport
from zoomrank.service.storage.database import Database
from zoomrank.service.storage.events import Event
from zoomrank.service.storage.outcomes import ABANDONED, TIMED_OUT, WAITING, Outcome
from zoomrank.service.storage.tables import ABOUT, LAYOUT, statements

PIECE = 2**20  # bytes of a collection file that are written at once
_BREATH = 0.002  # seconds between two of them
_NEWER_SNAPSHOT = (
    "ON CONFLICT (learner) DO UPDATE SET "
    "event = excluded.event, first = excluded.first, counts = excluded.counts, content = excluded.content"
)
_NEWER_REPORT = "ON CONFLICT (learner) DO UPDATE SET answers = excluded.answers, content = excluded.content"


class StoredCollection(NamedTuple):
    """A collection without its content."""

    id: int
    name: str
    created: float
    settings: str  # JSON, which whoever serves the collection understands
    digest: str


class QueryRow(NamedTuple):
    """A query in a list; its counts are those of the newest snapshot."""

    id: int
    query: str
    created: float
    counts: dict[str, Any] | None


class Store(Database):
    """What a service knows, in SQL."""

    types: ClassVar[dict[str, str]]  # the words of this database for the types in `tables`

    def __init__(self) -> None:
        super().__init__()
        try:
            self._create()
        except self.failures as error:
            self.close()
            raise StorageError(f"The store cannot be used: {self.words(error)}.") from error
        except StorageError:
            self.close()
            raise

    def _create(self) -> None:
        cursor = self.writer.cursor()
        cursor.execute(ABOUT)
        for name, value in (("layout", str(LAYOUT)), ("secret", secrets.token_hex(32))):
            cursor.execute(self._sql("INSERT INTO about VALUES (?, ?) ON CONFLICT (name) DO NOTHING"), (name, value))
        found = self.about("layout")
        if found != str(LAYOUT):  # before anything else is looked for in tables that may be others
            raise StorageError(f"The store has layout {found}; this zoomrank reads layout {LAYOUT}.")
        for statement in statements(self.types):
            cursor.execute(statement)

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
                raise StorageError(f"Nothing was written down: {self.words(error)}.") from error

    def _in_transaction(self, batch: Batch) -> None:
        cursor = self.writer.cursor()
        cursor.execute("BEGIN")
        try:
            self._insert(cursor, "learners (id, collection, query, created, about)", batch.learners)
            self._insert(cursor, "events", [(place, *event) for place, event in batch.events])
            self._insert(
                cursor,
                "activity",
                [(*key, count) for key, count in sorted(batch.activity.items())],
                "ON CONFLICT (collection, step, outcome) DO UPDATE SET count = activity.count + excluded.count",
            )
            for snapshot in batch.snapshots:
                self._insert(cursor, "snapshots", [snapshot], _NEWER_SNAPSHOT)
            self._insert(cursor, "reports", list(batch.reports.values()), _NEWER_REPORT)
            if batch.impressions:
                cursor.executemany(
                    self._sql("UPDATE learners SET impressions = ? WHERE id = ?"),
                    [(count, learner) for learner, count in batch.impressions.items()],
                )
            cursor.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def add_collection(self, stored: StoredCollection, pieces: Iterable[bytes]) -> None:
        """Keep a new collection: piece by piece, so that others need not wait for all of it, and its row last, so that
        it is there when all of it is.
        """
        try:
            for part, piece in enumerate(pieces):
                self._change("INSERT INTO contents VALUES (?, ?, ?)", (stored.id, part, piece))
                time.sleep(_BREATH)  # who waits for the lock has it now: it does not go to the one who waited longest
        except BaseException:
            with suppress(StorageError):  # then it is let go of at the next start
                self.drop_content(stored.id)
            raise
        self._change("INSERT INTO collections VALUES (?, ?, ?, ?, ?)", stored)

    def _change(self, statement: str, parameters: Sequence[Any]) -> None:
        """One statement that is durable at once."""
        with self._writing:
            try:
                self._renew_writer()
                self.writer.cursor().execute(self._sql(statement), tuple(parameters))
            except self.failures as error:
                raise StorageError(f"The collection was not kept: {self.words(error)}.") from error

    def drop_content(self, collection: int) -> None:
        """Let go of what was kept of a collection whose row will never be there."""
        self._change("DELETE FROM contents WHERE collection = ?", (collection,))

    def drop_unfinished(self) -> None:
        """Let go of what was kept of collections that never were complete; nobody may be making one."""
        self._change("DELETE FROM contents WHERE collection NOT IN (SELECT id FROM collections)", ())

    def collections(self) -> list[StoredCollection]:
        """All collections."""
        rows = self._read("SELECT id, name, created, settings, digest FROM collections ORDER BY id")
        return [StoredCollection(*row) for row in rows]

    def content(self, collection: int) -> Iterator[bytes]:
        """The file of a collection, piece by piece."""
        wanted = "SELECT bytes FROM contents WHERE collection = ? AND part = ?"
        part = 0
        while rows := self._read(wanted, (collection, part)):
            yield bytes(rows[0][0])
            part += 1

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

    def learners(self, collection: int) -> Iterator[tuple[int, str, str | None]]:
        """All learners of a collection in the order of their ids: the id, the query, what it said of itself."""
        rows = self._read("SELECT id, query, about FROM learners WHERE collection = ? ORDER BY id", (collection,))
        return ((int(learner), str(query), about) for learner, query, about in rows)

    def reports(self, collection: int) -> Iterator[StoredReport]:
        """What the learners of a collection have told last."""
        rows = self._read(
            "SELECT r.learner, r.answers, r.content FROM reports r JOIN learners l ON l.id = r.learner "
            "WHERE l.collection = ? ORDER BY r.learner",
            (collection,),
        )
        return (StoredReport(int(learner), int(answers), bytes(content)) for learner, answers, content in rows)

    def asked(self, learners: Sequence[int]) -> dict[int, tuple[str, int]]:
        """Of some learners the query, and how often it was asked, as of late."""
        if not learners:
            return {}
        among = ", ".join("?" * len(learners))
        rows = self._read(f"SELECT id, query, impressions FROM learners WHERE id IN ({among})", learners)  # noqa: S608
        return {int(learner): (str(query), int(impressions)) for learner, query, impressions in rows}

    def events(self, learner: int, after: int = 0, first: int = 0) -> Iterator[tuple[int, Event]]:
        """The log of a learner after a place, in its order, with places; all of it about impressions from one on."""
        rows = self._read(
            "SELECT id, learner, number, time, outcome, shown FROM events "
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
            "WHERE e.learner = l.id AND e.number = s.first AND e.outcome = ?) END "
            f"FROM learners l LEFT JOIN snapshots s ON s.learner = l.id WHERE s.first < l.impressions OR {newer}",
            (WAITING,),
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
            "SELECT e.learner, SUM(CASE WHEN e.outcome = ? THEN 1 ELSE 0 END), "
            "SUM(CASE WHEN e.outcome < ? THEN 1 ELSE 0 END), SUM(CASE WHEN e.outcome IN (?, ?) THEN 1 ELSE 0 END), "
            "MAX(CASE WHEN e.outcome = ? THEN e.time ELSE 0 END) "
            "FROM learners l LEFT JOIN snapshots s ON s.learner = l.id "
            "JOIN events e ON e.learner = l.id AND e.number >= COALESCE(s.first, 0) "
            "WHERE " + among + " AND e.id > COALESCE(s.event, 0) GROUP BY e.learner",
            (WAITING, ABANDONED, ABANDONED, TIMED_OUT, WAITING, *learners),
        )
        return {int(row[0]): (int(row[1]), int(row[2]), int(row[3]), float(row[4])) for row in rows}

    def count_queries(self) -> dict[int, int]:
        """How many queries each collection has."""
        rows = self._read("SELECT collection, COUNT(*) FROM learners GROUP BY collection")
        return {int(collection): int(count) for collection, count in rows}

    def outcomes(self) -> dict[int, Counter[Outcome]]:
        """How often what became of the impressions of each collection."""
        found: dict[int, Counter[Outcome]] = defaultdict(Counter)
        for row in self._read("SELECT collection, outcome, SUM(count) FROM activity GROUP BY collection, outcome"):
            collection, outcome, count = map(int, row)
            found[collection][outcome] = count
        return found

    def activity(self, collection: int | None, start: int) -> list[tuple[int, Outcome, int]]:
        """Steps since one of them: (step, outcome, count)."""
        where = "" if collection is None else "AND collection = ?"
        rows = self._read(
            f"SELECT step, outcome, SUM(count) FROM activity WHERE step >= ? {where} "  # noqa: S608
            "GROUP BY step, outcome",
            (start,) if collection is None else (start, collection),
        )
        return [(int(step), int(outcome), int(count)) for step, outcome, count in rows]


def _event(row: Sequence[Any]) -> Event:
    return Event(row[1], row[2], row[3], row[4], None if row[5] is None else bytes(row[5]))
