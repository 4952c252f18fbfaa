"""`Store`: where everything is kept; what SQLite and PostgreSQL share, which is nearly all (`tables` says of what).

One thread writes (`journal`), others read. A batch is one transaction: all of it is durable, or none.
"""

from __future__ import annotations

import json
import secrets
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar, NamedTuple

from zoomrank.service.refusals import DamagedError, StorageError
from zoomrank.service.storage.batch import STEP, Batch, Snapshot, StoredReport
from zoomrank.service.storage.database import Database
from zoomrank.service.storage.events import Event, counted
from zoomrank.service.storage.outcomes import ABANDONED, TIMED_OUT, VOIDED, WAITING, Outcome
from zoomrank.service.storage.tables import ABOUT, LAYOUT, statements

PIECE = 2**20  # bytes of a collection file that are written at once
_BREATH = 0.002  # seconds between two of them
_NEWER_SNAPSHOT = (
    "ON CONFLICT (learner) DO UPDATE SET "
    "event = excluded.event, first = excluded.first, waiting = excluded.waiting, counts = excluded.counts, "
    "content = excluded.content"
)
_ADD_COUNTS = "ON CONFLICT (collection, step, outcome) DO UPDATE SET count = {0}.count + excluded.count"
_SAY = "INSERT INTO about VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_AT_ONCE = 4096  # lines of the log
_ROOM = 65_536  # letters
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
        with self._transaction() as cursor:
            self._insert(cursor, "learners (id, collection, query, created, about)", batch.learners)
            self._insert(cursor, "events", [(place, *event) for place, event in batch.events])
            self._add_counts(cursor, "activity", batch.activity)
            for snapshot in batch.snapshots:
                packed = zlib.compress(snapshot.content or b"", 1)  # most of a new learner is zeros
                self._insert(cursor, "snapshots", [snapshot._replace(content=packed)], _NEWER_SNAPSHOT)
            self._insert(cursor, "reports", list(batch.reports.values()), _NEWER_REPORT)
            if batch.impressions:
                cursor.executemany(
                    self._sql("UPDATE learners SET impressions = ? WHERE id = ?"),
                    [(count, learner) for learner, count in batch.impressions.items()],
                )

    def probe(self) -> None:
        """Write something that needs room, to know whether that is possible."""
        with self._transaction() as cursor:
            cursor.execute(self._sql(_SAY), ("room", "." * _ROOM))
            cursor.execute("DELETE FROM about WHERE name = 'room'")
        self.away = False

    @contextmanager
    def _transaction(self, otherwise: str = "Nothing was written down") -> Iterator[Any]:
        """All that is done meanwhile is durable at the end, or none of it."""
        with self._writing:
            try:
                self._renew_writer()
                cursor = self.writer.cursor()
                cursor.execute("BEGIN")
                try:
                    yield cursor
                    cursor.execute("COMMIT")
                except BaseException:
                    self._roll_back()
                    raise
            except self.failures as error:
                self.away = True
                raise StorageError(f"{otherwise}: {self.words(error)}.") from error

    def _add_counts(self, cursor: Any, table: str, counts: Mapping[tuple[int, int, Outcome], int]) -> None:
        rows = [(*key, count) for key, count in sorted(counts.items()) if count]
        self._insert(cursor, table, rows, _ADD_COUNTS.format(table))

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
        with self._transaction("The collection was not kept") as cursor:
            cursor.execute(self._sql(statement), tuple(parameters))

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
        """The largest id that was ever in use."""
        largest = int(self._read(f"SELECT COALESCE(MAX(id), 0) FROM {table}")[0][0])  # noqa: S608  (not from outside)
        removed = self._read("SELECT value FROM about WHERE name = ?", (f"last of {table}",))
        return max([largest, *(int(value) for (value,) in removed)])

    def find(self, collection: int, query: str) -> Snapshot | None:
        """The learner of a query."""
        self.settle()
        rows = self._read(
            "SELECT l.id, COALESCE(s.event, 0), COALESCE(s.first, 0), COALESCE(s.waiting, 0), s.counts, s.content "
            "FROM learners l LEFT JOIN snapshots s ON s.learner = l.id WHERE l.collection = ? AND l.query = ?",
            (collection, query),
        )
        if not rows:
            return None
        found = Snapshot(*rows[0])
        try:
            return found if found.content is None else found._replace(content=zlib.decompress(found.content))
        except zlib.error as error:
            raise DamagedError(
                f"What “{query}” has learned is damaged: see zoomrank verify, restore a backup."
            ) from error

    def settle(self) -> None:
        """Wait until what was about to be committed is or is not: it may come true until there is another writer."""
        if self.is_lost(self.writer):
            with self._writing:
                self._renew_writer()

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

    def recent(self, seconds: float) -> Iterator[Event]:
        """What was shown in the last seconds of the log, the newest first."""
        self.settle()
        since, end = None, self.last("events")
        while end > 0:
            rows = self._read(
                "SELECT id, learner, number, time, outcome, shown FROM events "
                "WHERE id > ? AND id <= ? AND outcome = ? ORDER BY id DESC",
                (end - _AT_ONCE, end, WAITING),
            )
            for event in map(_event, rows):
                since = event.time - seconds if since is None else since
                if event.time < since:
                    return
                yield event
            end -= _AT_ONCE

    def shown_in(
        self, collection: int, query: str | None, start: float, end: float, after: int
    ) -> list[tuple[int, Event]]:
        """Some impressions of a collection, or of one of its queries, that were shown in a time and are not void, with
        their places in the log, from one on.
        """
        rows = self._read(
            "SELECT e.id, e.learner, e.number, e.time, e.outcome, e.shown FROM events e "
            "JOIN learners l ON l.id = e.learner WHERE e.id > ? AND l.collection = ? AND (? OR l.query = ?) "
            "AND e.outcome = ? AND e.time >= ? AND e.time < ? AND NOT EXISTS (SELECT 1 FROM events v "
            "WHERE v.learner = e.learner AND v.number = e.number AND v.outcome = ?) ORDER BY e.id LIMIT ?",
            (after, collection, query is None, query or "", WAITING, start, end, VOIDED, _AT_ONCE),
        )
        return [(int(row[0]), _event(row)) for row in rows]

    def asked_once(self, collection: int, before: float, limit: int) -> list[str]:
        """Some queries that were first asked before a time, and never again."""
        rows = self._read(
            "SELECT l.query FROM learners l WHERE l.collection = ? AND l.impressions <= 1 AND l.created < ? AND "
            "(SELECT COUNT(*) FROM events e WHERE e.learner = l.id AND e.outcome = ?) <= 1 LIMIT ?",
            (collection, before, WAITING, limit),
        )
        return [str(query) for (query,) in rows]

    def remove(self, collection: int, learners: Sequence[int]) -> None:
        """Remove learners and their log; of what became of their impressions the sums stay."""
        folded: Counter[tuple[int, int, Outcome]] = Counter()
        for learner in learners:
            for event in counted(event for _, event in self.events(learner)):
                folded[collection, int(event.time) // STEP, event.outcome] += 1
        with self._transaction() as cursor:
            self._keep_last(cursor, "events")
            self._keep_last(cursor, "learners")
            self._add_counts(cursor, "folded", folded)
            for table, column in (
                ("events", "learner"),
                ("snapshots", "learner"),
                ("reports", "learner"),
                ("learners", "id"),
            ):
                delete = self._sql(f"DELETE FROM {table} WHERE {column} = ?")  # noqa: S608  (not from outside)
                cursor.executemany(delete, [(learner,) for learner in learners])

    def _keep_last(self, cursor: Any, table: str) -> None:
        """Remember the largest id in use before some are removed: none is given twice."""
        cursor.execute(
            self._sql(_SAY),
            (f"last of {table}", str(self.last(table))),
        )

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
            f"FROM learners l LEFT JOIN snapshots s ON s.learner = l.id WHERE s.waiting > 0 OR {newer}",
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
            (WAITING, VOIDED, ABANDONED, TIMED_OUT, WAITING, *learners),
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

    def folded(self, collection: int) -> list[tuple[int, Outcome, int]]:
        """What was counted of a collection that the log has no lines of any more: (step, outcome, count)."""
        rows = self._read("SELECT step, outcome, count FROM folded WHERE collection = ?", (collection,))
        return [(int(step), int(outcome), int(count)) for step, outcome, count in rows]


def _event(row: Sequence[Any]) -> Event:
    return Event(row[1], row[2], row[3], row[4], None if row[5] is None else bytes(row[5]))
