"""`Store`: a database that keeps everything, and all writes to its tables (`database`).

One thread writes (`write_queue`), others read (`store_reader`). A batch is one transaction: all of it is durable, or
none.
"""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from zoomrank.service.errors import StorageError
from zoomrank.service.storage.database import Database
from zoomrank.service.storage.events import (
    DAY,
    VOIDED,
    Batch,
    Outcome,
    RetiredEvents,
    Snapshot,
    StoredExperiment,
    counted,
)
from zoomrank.service.storage.ownership import Ownership, partition_in
from zoomrank.service.storage.store_reader import StoredCollection, StoredVersion, StoreReader

PIECE = 2**20  # bytes of a collection file that are written at once
_BREATH = 0.002  # seconds between two of them
_NEWER_SNAPSHOT = (
    "ON CONFLICT (learner) DO UPDATE SET "
    "edition = excluded.edition, event = excluded.event, first = excluded.first, waiting = excluded.waiting, "
    "counts = excluded.counts, "
    "content = excluded.content"
)
_ADD_COUNTS = "ON CONFLICT (collection, step, outcome, writer) DO UPDATE SET count = {0}.count + excluded.count"
_SAY = "INSERT INTO about VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_LIST = "UPDATE learners SET impressions = ?, satisfied = ?, answered = ?, recent = ? WHERE id = ?"
_ROOM = 65_536  # letters
_AT_ONCE = 64  # learners that are removed at once
_ADD_VISITS = (
    "ON CONFLICT (experiment, arm, minute, outcome, writer) DO UPDATE SET count = arm_visits.count + excluded.count"
)
_ONCE = "ON CONFLICT DO NOTHING"  # where the database keeps a visitor from being there twice
_NO_EXPERIMENT = "Nothing was changed"
_NOT_KEPT, _NOT_REMOVED = "The collection was not kept", "Not everything was removed"
_LEFT_OVER = (
    "SELECT id FROM collections WHERE home NOT IN (SELECT id FROM collections) UNION "
    "SELECT DISTINCT collection FROM editions WHERE collection NOT IN (SELECT id FROM collections) "
    "UNION SELECT DISTINCT collection FROM learners WHERE collection NOT IN (SELECT id FROM collections)"
)
_NEWER_REPORT = "ON CONFLICT (learner) DO UPDATE SET answers = excluded.answers, content = excluded.content"


class Store:
    """A database with a reader of its tables (`read`); the methods of the store itself write."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.read = StoreReader(database)

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def write(self, batch: Batch) -> None:
        """Write a batch in one transaction."""
        with self.database.transaction(touching=lambda: batch.partitions) as cursor:
            self.database.insert(cursor, "learners (id, collection, query, created, about, edition)", batch.learners)
            self.database.insert(cursor, "events", [(place, *event) for place, event in batch.events])
            self._add_counts(cursor, "activity", batch.activity)
            self.database.insert(cursor, "arm_visits", self._counted(batch.arm_visits), _ADD_VISITS)
            self.database.insert(cursor, "visitors", batch.visitors, _ONCE)
            for snapshot in batch.snapshots:
                packed = zlib.compress(snapshot.content or b"", 1)  # most of a new learner is zeros
                self.database.insert(cursor, "snapshots", [snapshot._replace(content=packed)], _NEWER_SNAPSHOT)
            self.database.insert(cursor, "reports", list(batch.reports.values()), _NEWER_REPORT)
            for fact in batch.said.items():
                cursor.execute(self.database.sql(_SAY), fact)
            if batch.listed:
                self.database.many(cursor, _LIST, [(*listed, learner) for learner, listed in batch.listed.items()])

    def probe(self) -> None:
        """Write something that needs room, to find out whether the store can be written."""
        with self.database.transaction(touching=None) as cursor:
            cursor.execute(self.database.sql(_SAY), ("room", "." * _ROOM))
            cursor.execute("DELETE FROM about WHERE name = 'room'")
        self.database.away = False

    def _add_counts(self, cursor: Any, table: str, counts: Mapping[tuple[int, int, Outcome], int]) -> None:
        self.database.insert(cursor, table, self._counted(counts), _ADD_COUNTS.format(table))

    def _counted(self, counts: Mapping[Any, int]) -> list[tuple[Any, ...]]:
        """Return rows of counts, sorted by their keys."""
        return [(*key, count, self.database.writer_id) for key, count in sorted(counts.items()) if count]

    # Collections and their versions.

    def add_collection(self, stored: StoredCollection, digest: str, pieces: Iterable[bytes]) -> None:
        """Write a new collection: piece by piece, so that other writes need not wait for all of it, and its row last,
        so that it is there when all of it is.
        """
        self._add_content(stored.id, 0, pieces)
        with self.database.transaction(_NOT_KEPT) as cursor:
            self.database.insert(cursor, "editions", [(stored.id, 0, stored.created, None, digest)])
            self.database.insert(cursor, "collections", [tuple(stored)])

    def add_version(self, collection: int, version: StoredVersion, pieces: Iterable[bytes] | None = None) -> None:
        """Write a version of a collection: its row last, after its file if that is to be kept."""
        if pieces is not None:
            self._add_content(collection, version.number, pieces)
        with self.database.transaction(_NOT_KEPT) as cursor:
            self.database.insert(cursor, "editions", [(collection, *version)])

    def keep_whole(self, collection: int, number: int, digest: str, pieces: Iterable[bytes]) -> None:
        """Write the file of an existing version, so that reading it need not begin with earlier ones."""
        self._add_content(collection, number, pieces)
        where = "WHERE collection = ? AND number = ?"
        self._change(f"UPDATE editions SET digest = ? {where}", (digest, collection, number))  # noqa: S608

    def _add_content(self, collection: int, version: int, pieces: Iterable[bytes]) -> None:
        try:
            for part, piece in enumerate(pieces):
                self._change("INSERT INTO contents VALUES (?, ?, ?, ?)", (collection, version, part, piece))
                time.sleep(_BREATH)  # a thread that waits for the lock gets it now: locks are not granted in order
        except BaseException:
            with suppress(StorageError):  # then the next start removes it
                self.drop_content(collection, version)
            raise

    def _change(self, statement: str, parameters: Sequence[Any]) -> None:
        """Execute one statement in a transaction of its own."""
        with self.database.transaction(_NOT_KEPT) as cursor:
            cursor.execute(self.database.sql(statement), tuple(parameters))

    def drop_content(self, collection: int, version: int) -> None:
        """Remove the pieces of a file that will never be complete."""
        self._change("DELETE FROM contents WHERE collection = ? AND edition = ?", (collection, version))

    def drop_unfinished(self) -> None:
        """Remove incomplete files, and the rest of removed collections; no collection may be in the making."""
        self.drop_unfinished_files()
        self.drop_left_over()

    def drop_unfinished_files(self) -> None:
        """Remove incomplete files; no collection may be in the making."""
        self._change(
            "DELETE FROM contents WHERE NOT EXISTS (SELECT 1 FROM editions e WHERE e.collection = contents.collection "
            "AND e.number = contents.edition AND e.digest IS NOT NULL)",
            (),
        )

    def drop_left_over(self) -> None:
        """Remove the rest of collections whose row was removed."""
        for (collection,) in self.database.query(_LEFT_OVER):
            self.drop_collection(int(collection))
        for experiment in self.read.experiments():
            if not self.database.query("SELECT 1 FROM collections WHERE id = ?", (experiment.collection,)):
                self.drop_experiment(experiment.id)

    def drop_collection(self, collection: int) -> None:
        """Remove a collection: its row first, so that it is gone at once, and then the rest, some at a time."""
        self.hide_collection(collection)
        some = "SELECT id FROM learners WHERE collection = ? LIMIT ?"
        while learners := [number for (number,) in self.database.query(some, (collection, _AT_ONCE))]:
            with self.database.transaction(_NOT_REMOVED) as cursor:
                self._remove(cursor, learners)
            time.sleep(_BREATH)
        with self.database.transaction(_NOT_REMOVED) as cursor:
            for table in ("activity", "folded", "contents", "editions"):
                cursor.execute(self.database.sql(f"DELETE FROM {table} WHERE collection = ?"), (collection,))  # noqa: S608

    def hide_collection(self, collection: int) -> None:
        """Remove the row of a collection; the rest is removed later."""
        with self.database.transaction(_NOT_REMOVED) as cursor:
            self._keep_last(cursor, "collections")
            cursor.execute(self.database.sql("DELETE FROM collections WHERE id = ?"), (collection,))

    # Experiments.

    def add_experiment(self, stored: StoredExperiment, arms: Sequence[StoredCollection]) -> None:
        """Write a new experiment, with its new arms."""
        with self.database.transaction(_NO_EXPERIMENT) as cursor:
            self.database.insert(cursor, "collections", [tuple(arm) for arm in arms])
            self.database.insert(cursor, "experiments", [tuple(stored)])

    def change_experiment(self, stored: StoredExperiment, server: int | None = None) -> None:
        """Write the new state of an experiment; and, if one was promoted, the arm that serves its collection now."""
        with self.database.transaction(_NO_EXPERIMENT) as cursor:
            change = self.database.sql("UPDATE experiments SET ended = ?, content = ? WHERE id = ?")
            cursor.execute(change, (stored.ended, stored.content, stored.id))
            if server is not None:
                promote = self.database.sql("UPDATE collections SET server = ? WHERE id = ?")
                cursor.execute(promote, (server, stored.collection))

    def claim_visitor(self, experiment: int, visitor: bytes) -> bool:
        """Count a visitor in an experiment from now on; returns whether no replica has counted this visitor before."""
        with self.database.transaction(_NO_EXPERIMENT, touching=None) as cursor:
            self.database.insert(cursor, "visitors", [(experiment, visitor)], _ONCE)
            return bool(cursor.rowcount)

    def drop_experiment(self, experiment: int) -> None:
        """Remove an experiment and its counts."""
        with self.database.transaction(_NOT_REMOVED) as cursor:
            self._keep_last(cursor, "experiments")
            cursor.execute(self.database.sql("DELETE FROM experiments WHERE id = ?"), (experiment,))
            for table in ("arm_visits", "visitors"):
                cursor.execute(self.database.sql(f"DELETE FROM {table} WHERE experiment = ?"), (experiment,))  # noqa: S608

    def remove(self, collection: int, learners: Sequence[int]) -> None:
        """Remove learners and their log; the sums of outcomes of their impressions stay."""
        folded: Counter[tuple[int, int, Outcome]] = Counter()
        for learner in learners:
            for event in counted(event for _, event in self.read.events(learner)):
                folded[collection, event.step, event.outcome] += 1
        with self.database.transaction(touching=lambda: {partition_in(learner) for learner in learners}) as cursor:
            self._add_counts(cursor, "folded", folded)
            self._remove(cursor, learners)

    def _remove(self, cursor: Any, learners: Sequence[int]) -> None:
        self._keep_last(cursor, "events")
        self._keep_last(cursor, "learners")
        for table in ("events", "snapshots", "bases", "reports", "learners"):
            column = "id" if table == "learners" else "learner"
            delete = f"DELETE FROM {table} WHERE {column} = ?"  # noqa: S608  (not from outside)
            self.database.many(cursor, delete, [(learner,) for learner in learners])

    # Retention.

    def retire(self, collection: int, base: Snapshot, log: RetiredEvents) -> bool:
        """Remove the beginning of a learner's log, and keep the learner as it was at the end of that; returns False if
        nothing was done, since more impressions are void than were known.
        """
        packed = base._replace(content=zlib.compress(base.content or b"", 1))
        with self.database.transaction(touching=lambda: {partition_in(base.learner)}) as cursor:
            if self._retirable(cursor, base.learner, log) is False:
                return False
            self._keep_last(cursor, "events")
            self.database.insert(cursor, "bases", [packed], _NEWER_SNAPSHOT)
            newer = f"{_NEWER_SNAPSHOT} WHERE snapshots.event < excluded.event"
            self.database.insert(cursor, "snapshots", [packed], newer)
            self._add_counts(cursor, "folded", {(collection, *key): count for key, count in log.counted.items()})
            delete = "DELETE FROM events WHERE learner = ? AND number <= ? AND id <= ?"
            cursor.execute(self.database.sql(delete), (base.learner, log.last, base.event))
            shown = (log.impressions, base.learner, log.impressions)
            update = "UPDATE learners SET impressions = ? WHERE id = ? AND impressions < ?"
            cursor.execute(self.database.sql(update), shown)
            since = max(log.until, self.read.whole_since(collection))
            cursor.execute(self.database.sql(_SAY), (f"whole since, of {collection}", repr(since)))
        return True

    def _retirable(self, cursor: Any, learner: int, log: RetiredEvents) -> bool:
        """Return whether a learner still exists, and its void impressions are those that were known."""
        void = (
            "SELECT COUNT(e.id) FROM learners l LEFT JOIN events e ON e.learner = l.id AND e.number <= ? "
            "AND e.outcome = ? WHERE l.id = ? GROUP BY l.id"
        )
        cursor.execute(self.database.sql(void), (log.last, VOIDED, learner))
        found = cursor.fetchone()
        return found is not None and int(found[0]) == log.void

    def coarsen(self, before: int) -> None:
        """Sum counts before a step by the day."""
        before = before // DAY * DAY
        with self.database.transaction() as cursor:
            for table in ("activity", "folded"):
                fine = f"FROM {table} WHERE step < ? AND step <> step / {DAY} * {DAY}"
                merge = (
                    f"INSERT INTO {table} SELECT collection, step / {DAY} * {DAY}, outcome, SUM(count), 0 {fine} "
                    f"GROUP BY 1, 2, 3 {_ADD_COUNTS.format(table)}"
                )
                cursor.execute(self.database.sql(merge), (before,))
                cursor.execute(self.database.sql(f"DELETE {fine}"), (before,))
            cursor.execute(self.database.sql(_SAY), ("coarse before", str(before)))

    def _keep_last(self, cursor: Any, table: str) -> None:
        """Write the largest id in use before some are removed: none is assigned twice."""
        whole = self.database.types["whole"]  # another replica may know a larger one
        say = self.database.sql(f"{_SAY} WHERE CAST(about.value AS {whole}) < CAST(excluded.value AS {whole})")
        cursor.execute(say, (f"last of {table}", str(self.read.last(table))))


class EngineContext(NamedTuple):
    """Store, ownership and clocks, which all parts of an engine share."""

    store: Store
    ownership: Ownership
    now: Callable[[], float]
    steady: Callable[[], float]  # a clock that cannot be set
