"""`StoreReader`: all reads from a store. Any thread may read, and several at once."""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from zoomrank.service.errors import DamagedError
from zoomrank.service.storage.events import (
    ABANDONED,
    LONG_AGO,
    MOVED,
    STEP,
    TIMED_OUT,
    VOIDED,
    WAITING,
    Event,
    Outcome,
    Snapshot,
    StoredExperiment,
    StoredReport,
)
from zoomrank.service.storage.ownership import PARTITIONS

_AT_ONCE = 4096  # lines of the log
_EVENTS = "SELECT id, learner, number, time, outcome, shown FROM events"
_SHOWN_IN = (  # the plus keeps SQLite from going through all that the collection's learners have, for each page
    "JOIN learners l ON l.id = e.learner "
    "WHERE +l.collection = ? AND e.outcome = ? AND e.time >= ? AND e.time < ? AND e.id > ? AND e.id <= ?"
)
SORTS = {
    "asked": "impressions DESC",  # there is an index of these
    # One visitor who left says little.
    "worst": "CASE WHEN answered > 0 THEN 0 ELSE 1 END, (satisfied + 1.0) / (answered + 2.0)",
    "newest": "created DESC",
    # Those that fall first.
    "trend": "CASE WHEN recent IS NULL THEN 1 ELSE 0 END, recent - satisfied / (answered + 0.0001)",
}


class StoredCollection(NamedTuple):
    """A collection without its content."""

    id: int
    name: str
    created: float
    settings: str  # JSON of `Settings`
    home: int | None = None  # the collection whose documents these are, of an arm of an experiment
    server: int | None = None  # the arm that serves it now, if one was promoted

    @property
    def documents(self) -> int:
        """The collection that has the documents."""
        return self.id if self.home is None else self.home


class StoredVersion(NamedTuple):
    """A version of a collection, after a change of its documents."""

    number: int
    created: float
    changes: bytes | None  # since the version before, packed; None: its file says everything
    digest: str | None  # of its file, if that is kept


class StoredQuery(NamedTuple):
    """A query in a list; its counts are those of the newest snapshot."""

    id: int
    query: str
    created: float
    counts: dict[str, Any] | None


class Source(Protocol):
    """A database, or a snapshot of one, that answers statements."""

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Return all rows that a statement finds."""

    def settle(self) -> None:
        """Wait until a write on a lost connection is committed or not."""


class StoreReader:
    """Queries over the tables of a store."""

    def __init__(self, source: Source) -> None:
        self._read = source.query
        self._settle = source.settle

    def _number(self, statement: str, *parameters: Any) -> int:
        """Return the number that a statement finds."""
        return int(self._read(statement, parameters)[0][0])

    def about(self, name: str) -> str:
        """Return a fact about the store that is always there."""
        return str(self._read("SELECT value FROM about WHERE name = ?", (name,))[0][0])

    def said(self, name: str) -> str | None:
        """Return a fact about the store, if it is there."""
        rows = self._read("SELECT value FROM about WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else None

    def collections(self) -> list[StoredCollection]:
        """Return all collections, arms of experiments included."""
        rows = self._read("SELECT id, name, created, settings, home, server FROM collections ORDER BY id")
        return [StoredCollection(*row) for row in rows]

    def last_version(self, collection: int) -> int:
        """Return the number of the newest version of a collection."""
        return self._number("SELECT COALESCE(MAX(number), 0) FROM editions WHERE collection = ?", collection)

    def newest_versions(self) -> dict[int, int]:
        """Return the number of the newest version of each collection."""
        return dict(self._read("SELECT collection, MAX(number) FROM editions GROUP BY collection"))

    def first_version(self, collection: int) -> int:
        """Return the number of the oldest version of a collection that is kept."""
        return self._number("SELECT COALESCE(MIN(number), 0) FROM editions WHERE collection = ?", collection)

    def whole_version(self, collection: int, number: int) -> StoredVersion | None:
        """Return the newest version up to a number whose file is kept, without its changes."""
        rows = self._read(
            "SELECT number, created, digest FROM editions WHERE collection = ? AND number <= ? AND digest IS NOT NULL "
            "ORDER BY number DESC LIMIT 1",
            (collection, number),
        )
        return StoredVersion(int(rows[0][0]), float(rows[0][1]), None, str(rows[0][2])) if rows else None

    def sizes(self, collection: int, whole: int) -> tuple[int, int]:
        """Return the bytes of the changes after a version, and of the file of that version."""
        changes = "SELECT COALESCE(SUM(LENGTH(changes)), 0) FROM editions WHERE collection = ? AND number > ?"
        file = "SELECT COALESCE(SUM(LENGTH(bytes)), 0) FROM contents WHERE collection = ? AND edition = ?"
        return self._number(changes, collection, whole), self._number(file, collection, whole)

    def changes(self, collection: int, after: int, number: int) -> Iterator[StoredVersion]:
        """Yield the versions of a collection after one, up to another, in order."""
        for each in range(after + 1, number + 1):
            rows = self._read(
                "SELECT number, created, changes, digest FROM editions WHERE collection = ? AND number = ?",
                (collection, each),
            )
            for at, created, changes, digest in rows:
                yield StoredVersion(int(at), float(created), None if changes is None else bytes(changes), digest)

    def content(self, collection: int, version: int) -> Iterator[bytes]:
        """Yield the file of a version, piece by piece."""
        wanted = "SELECT bytes FROM contents WHERE collection = ? AND edition = ? AND part = ?"
        part = 0
        while rows := self._read(wanted, (collection, version, part)):
            yield bytes(rows[0][0])
            part += 1

    def last(self, table: str) -> int:
        """Return the largest id that was ever in use."""
        largest = self._number(f"SELECT COALESCE(MAX(id), 0) FROM {table}")  # noqa: S608  (not from outside)
        return max(largest, int(self.said(f"last of {table}") or 0))

    def last_place(self) -> int:
        """Return the last place in the log that was assigned, also to refused events: a snapshot may refer to it."""
        return max(self._number("SELECT COALESCE(MAX(event), 0) FROM snapshots"), self.last("events"))

    def find(self, collection: int, query: str) -> Snapshot | None:
        """Return the learner of a query, with its snapshot."""
        self._settle()
        rows = self._read(
            "SELECT l.id, COALESCE(s.edition, l.edition), COALESCE(s.event, 0), COALESCE(s.first, 0), "
            "COALESCE(s.waiting, 0), s.counts, s.content "
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

    def base(self, learner: int) -> Snapshot | None:
        """Return a learner as it was where its log begins, if the beginning of the log was removed."""
        rows = self._read(
            "SELECT learner, edition, event, first, waiting, counts, content FROM bases WHERE learner = ?", (learner,)
        )
        try:
            return Snapshot(*rows[0])._replace(content=zlib.decompress(rows[0][6])) if rows else None
        except zlib.error as error:
            raise DamagedError(f"The base of learner {learner} is damaged: restore a backup.") from error

    def has_base(self, learner: int) -> bool:
        """Return whether the beginning of a learner's log was removed."""
        return bool(self._read("SELECT 1 FROM bases WHERE learner = ?", (learner,)))

    def early_events(self, learner: int, last: int) -> list[tuple[int, Event]]:
        """Return the log of a learner's impressions up to one of them, in order, with places."""
        rows = self._read(f"{_EVENTS} WHERE learner = ? AND number <= ? ORDER BY id", (learner, last))
        return [(int(row[0]), _event(row)) for row in rows]

    def oldest(self, after: int, limit: int) -> list[tuple[int, int, int, float]]:
        """Return some lines of the log after a place, the oldest first: (place, collection, learner, time); imported
        impressions are as old as the learner.
        """
        rows = self._read(
            "SELECT e.id, l.collection, e.learner, CASE WHEN e.time > ? THEN e.time ELSE l.created END "
            "FROM events e JOIN learners l ON l.id = e.learner WHERE e.id > ? ORDER BY e.id LIMIT ?",
            (LONG_AGO, after, limit),
        )
        return [(int(place), int(collection), int(learner), float(time)) for place, collection, learner, time in rows]

    def whole_since(self, collection: int) -> float:
        """Return the time since which the log of a collection is complete (seconds since 1970; 0 if it always was)."""
        return float(self.said(f"whole since, of {collection}") or 0)

    @property
    def coarse_before(self) -> int:
        """The step before which counts are by the day."""
        return int(self.said("coarse before") or 0)

    def query_of(self, learner: int) -> tuple[int, str] | None:
        """Return the collection and the query of a learner."""
        rows = self._read("SELECT collection, query FROM learners WHERE id = ?", (learner,))
        return (int(rows[0][0]), str(rows[0][1])) if rows else None

    def begun_in(self, learner: int) -> int:
        """Return the version of its collection in which a learner began."""
        rows = self._read("SELECT edition FROM learners WHERE id = ?", (learner,))
        return int(rows[0][0]) if rows else 0

    def created(self, learner: int) -> float:
        """Return the time at which a learner was made."""
        rows = self._read("SELECT created FROM learners WHERE id = ?", (learner,))
        return float(rows[0][0]) if rows else LONG_AGO

    def learners(self, collection: int) -> Iterator[tuple[int, str, str | None]]:
        """Yield all learners of a collection in the order of their ids: the id, the query, its description."""
        rows = self._read("SELECT id, query, about FROM learners WHERE collection = ? ORDER BY id", (collection,))
        return ((int(learner), str(query), about) for learner, query, about in rows)

    def reports(self, collection: int) -> Iterator[StoredReport]:
        """Yield the last reports of the learners of a collection."""
        rows = self._read(
            "SELECT r.learner, r.answers, r.content FROM reports r JOIN learners l ON l.id = r.learner "
            "WHERE l.collection = ? ORDER BY r.learner",
            (collection,),
        )
        return (StoredReport(int(learner), int(answers), bytes(content)) for learner, answers, content in rows)

    def news(
        self, collection: int, known: Mapping[int, int]
    ) -> tuple[list[tuple[int, str, str | None]], list[StoredReport]]:
        """Return the learners of a collection that are not known, and reports newer than the known answers of each."""
        told = "SELECT r.learner, r.answers FROM reports r JOIN learners l ON l.id = r.learner WHERE l.collection = ?"
        newer = {int(one) for one, answers in self._read(told, (collection,)) if answers != known.get(int(one), 0)}
        learners = [learner for learner in self.learners(collection) if learner[0] not in known]
        return learners, [report for report in self.reports(collection) if report.learner in newer] if newer else []

    def asked(self, learners: Sequence[int]) -> dict[int, tuple[str, int]]:
        """Return the query of some learners, and about how often it was asked."""
        if not learners:
            return {}
        among = ", ".join("?" * len(learners))
        rows = self._read(f"SELECT id, query, impressions FROM learners WHERE id IN ({among})", learners)  # noqa: S608
        return {int(learner): (str(query), int(impressions)) for learner, query, impressions in rows}

    def events(self, learner: int, after: int = 0, first: int = 0) -> Iterator[tuple[int, Event]]:
        """Yield the log of a learner after a place, in order, with places; only that of impressions from one on."""
        rows = self._read(
            f"{_EVENTS} WHERE learner = ? AND number >= ? AND id > ? ORDER BY id", (learner, first, after)
        )
        return ((int(row[0]), _event(row)) for row in rows)

    def ends(self, learner: int, start: int, end: int) -> list[tuple[int, Outcome]]:
        """Return the outcomes of some impressions of a learner, as the log has them: (number, outcome)."""
        rows = self._read(
            "SELECT number, outcome FROM events WHERE learner = ? AND number >= ? AND number < ? AND outcome <> ?",
            (learner, start, end, WAITING),
        )
        return [(int(number), int(outcome)) for number, outcome in rows]

    def has_imported(self, learner: int, end: int) -> bool:
        """Return whether any impression of a learner before one was imported."""
        rows = self._read(
            "SELECT 1 FROM events WHERE learner = ? AND number < ? AND outcome = ? AND time = ? LIMIT 1",
            (learner, end, WAITING, LONG_AGO),
        )
        return bool(rows)

    def recent(self, seconds: float, partitions: Collection[int]) -> Iterator[Event]:
        """Yield impressions of some partitions in the last seconds of the log, the newest first; where several replicas
        write at once, the order may differ by a moment.
        """
        self._settle()
        since, end = None, self.last("events") + 1
        while True:
            among = f"{_EVENTS} WHERE id < ?{_of('learner', partitions)} ORDER BY id DESC LIMIT ?"
            rows = self._read(among, (end, _AT_ONCE))
            shown = [event for event in map(_event, rows) if event.outcome == WAITING and event.time > LONG_AGO]
            if shown and since is None:
                since = max(event.time for event in shown) - seconds
            yield from (event for event in shown if since is None or event.time >= since)
            if len(rows) < _AT_ONCE or (shown and since is not None and max(event.time for event in shown) < since):
                return
            end = int(rows[-1][0])

    def shown_in(
        self, collection: int, query: str | None, start: float, end: float, after: int
    ) -> list[tuple[int, Event]]:
        """Return some impressions of a collection, or of one of its queries, that were shown in a time and are not
        void, with their places in the log, from one on.
        """
        rows = self._read(
            "SELECT e.id, e.learner, e.number, e.time, e.outcome, e.shown FROM events e "
            "JOIN learners l ON l.id = e.learner WHERE e.id > ? AND +l.collection = ? AND (? OR l.query = ?) "
            "AND e.outcome = ? AND e.time >= ? AND e.time < ? AND NOT EXISTS (SELECT 1 FROM events v "
            "WHERE v.learner = e.learner AND v.number = e.number AND v.outcome = ?) ORDER BY e.id LIMIT ?",
            (after, collection, query is None, query or "", WAITING, start, end, VOIDED, _AT_ONCE),
        )
        return [(int(row[0]), _event(row)) for row in rows]

    def showings(
        self, collection: int, start: float, end: float, after: int, last: int
    ) -> list[tuple[int, str, Event]]:
        """Return some impressions of a collection that were shown in a time, with their places in the log (after one,
        up to another) and their queries.
        """
        rows = self._read(
            "SELECT e.id, e.learner, e.number, e.time, e.outcome, e.shown, l.query FROM events e "  # noqa: S608  (nothing from outside)
            + _SHOWN_IN
            + " ORDER BY e.id LIMIT ?",
            (collection, WAITING, start, end, after, last, _AT_ONCE),
        )
        return [(int(row[0]), str(row[6]), _event(row)) for row in rows]

    def beside_showings(self, collection: int, start: float, end: float, after: int, last: int) -> list[Event]:
        """Return the other log lines of the same impressions, in order."""
        rows = self._read(
            "SELECT o.id, o.learner, o.number, o.time, o.outcome, o.shown FROM events e "  # noqa: S608
            "JOIN events o ON o.learner = e.learner AND o.number = e.number AND o.outcome <> e.outcome "
            + _SHOWN_IN
            + " ORDER BY o.id",
            (collection, WAITING, start, end, after, last),
        )
        return [_event(row) for row in rows]

    def asked_once(self, collection: int, before: float, limit: int) -> list[str]:
        """Return some queries that were first asked before a time, and never again."""
        rows = self._read(
            "SELECT l.query FROM learners l WHERE l.collection = ? AND l.impressions <= 1 AND l.created < ? AND "
            "(SELECT COUNT(*) FROM events e WHERE e.learner = l.id AND e.outcome = ?) <= 1 "
            "ORDER BY l.created LIMIT ?",
            (collection, before, WAITING, limit),
        )
        return [str(query) for (query,) in rows]

    def unfinished(self, partitions: Collection[int]) -> dict[tuple[int, str], float]:
        """Return the collection and query of learners of some partitions of which impressions may wait, with since
        when: 0 if it is not known, as after a crash.
        """
        newer = (
            "EXISTS (SELECT 1 FROM events e "
            "WHERE e.learner = l.id AND e.number >= COALESCE(s.first, 0) AND e.id > COALESCE(s.event, 0))"
        )
        rows = self._read(
            f"SELECT l.collection, l.query, CASE WHEN {newer} THEN 0 ELSE (SELECT e.time FROM events e "  # noqa: S608
            "WHERE e.learner = l.id AND e.number = s.first AND e.outcome = ?) END "
            "FROM learners l LEFT JOIN snapshots s ON s.learner = l.id "
            f"WHERE (s.waiting > 0 OR {newer}){_of('l.id', partitions)}",
            (WAITING,),
        )
        return {(int(collection), str(query)): float(since or 0) for collection, query, since in rows}

    def impression(self, learner: int, number: int) -> list[Event]:
        """Return all log lines of an impression."""
        rows = self._read(f"{_EVENTS} WHERE learner = ? AND number = ? ORDER BY id", (learner, number))
        return [_event(row) for row in rows]

    def queries(
        self, collection: int, offset: int, limit: int, search: str = "", sort: str = "asked"
    ) -> tuple[list[StoredQuery], int]:
        """Return queries of a collection that contain a text, in one of the orders of `SORTS`, and their number."""
        where, parameters = "collection = ?", list[Any]([collection])
        if search:
            where, pattern = f"{where} AND LOWER(query) LIKE ? ESCAPE '!'", re.sub("([!%_])", r"!\1", search.lower())
            parameters.append(f"%{pattern}%")
        rows = self._read(
            f"SELECT id, query, created FROM learners WHERE {where} "  # noqa: S608  (not from outside)
            f"ORDER BY {SORTS[sort]}, id DESC LIMIT ? OFFSET ?",
            (*parameters, limit, offset),
        )
        total = self._read(f"SELECT COUNT(*) FROM learners WHERE {where}", parameters)[0][0]  # noqa: S608
        counts = self._counts([row[0] for row in rows])
        return [StoredQuery(row[0], row[1], row[2], counts.get(row[0])) for row in rows], int(total)

    def _counts(self, learners: Sequence[int]) -> dict[int, dict[str, Any]]:
        """Return the counts in the snapshots of some learners."""
        if not learners:
            return {}
        among = ", ".join("?" * len(learners))
        rows = self._read(f"SELECT learner, counts FROM snapshots WHERE learner IN ({among})", learners)  # noqa: S608
        return {int(learner): json.loads(counts) for learner, counts in rows}

    def since_snapshots(self, learners: Sequence[int]) -> dict[int, tuple[int, int, int, float]]:
        """Return the counts of learners since their snapshots: (shown, satisfied, abandoned, last shown)."""
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
            (WAITING, MOVED, ABANDONED, TIMED_OUT, WAITING, *learners),
        )
        return {int(row[0]): (int(row[1]), int(row[2]), int(row[3]), float(row[4])) for row in rows}

    def count_queries(self) -> dict[int, int]:
        """Return the number of queries of each collection."""
        rows = self._read("SELECT collection, COUNT(*) FROM learners GROUP BY collection")
        return {int(collection): int(count) for collection, count in rows}

    def outcomes(self) -> dict[int, Counter[Outcome]]:
        """Return the outcome counts per collection."""
        found: dict[int, Counter[Outcome]] = defaultdict(Counter)
        for row in self._read("SELECT collection, outcome, SUM(count) FROM activity GROUP BY collection, outcome"):
            collection, outcome, count = map(int, row)
            found[collection][outcome] = count
        return found

    def activity(
        self, collections: Sequence[int] | None, start: int, every: int = 1, end: int = 2**62
    ) -> list[tuple[int, Outcome, int]]:
        """Return counts of steps in a range: (step, outcome, count); every few steps may be summed as their first."""
        where = "" if collections is None else f"AND collection IN ({', '.join('?' * len(collections))})"
        whose = tuple(collections or ())
        first = f"{start:d} + (step - {start:d}) / {every:d} * {every:d}"
        rows = self._read(
            f"SELECT {first} AS first, outcome, SUM(count) FROM activity "  # noqa: S608  (not from outside)
            f"WHERE step >= ? AND step < ? {where} GROUP BY 1, 2",
            (start, end, *whose),
        )
        return [(int(step), int(outcome), int(count)) for step, outcome, count in rows]

    def folded_shown(self, collection: int, start: float, end: float) -> int:
        """Return how many impressions of a collection were shown in a time whose log lines were removed."""
        shown = (
            "SELECT COALESCE(SUM(count), 0) FROM folded WHERE collection = ? AND outcome = ? "
            "AND step >= ? AND step * ? < ?"
        )
        return self._number(shown, collection, WAITING, int(start) // STEP, STEP, min(end, 1e12))

    def folded(self, collection: int) -> list[tuple[int, Outcome, int]]:
        """Return the counts of a collection whose log lines were removed: (step, outcome, count)."""
        rows = self._read(
            "SELECT step, outcome, SUM(count) FROM folded WHERE collection = ? GROUP BY step, outcome", (collection,)
        )
        return [(int(step), int(outcome), int(count)) for step, outcome, count in rows]

    # Experiments.

    def experiments(self) -> list[StoredExperiment]:
        """Return all experiments, the oldest first."""
        rows = self._read("SELECT id, collection, name, created, ended, content FROM experiments ORDER BY id")
        return [StoredExperiment(*row) for row in rows]

    def arm_visits(self, experiment: int) -> list[tuple[int, int, int, int]]:
        """Return the outcomes of an experiment's visitors: (minute, arm, outcome, count), the oldest first."""
        rows = self._read(
            "SELECT minute, arm, outcome, SUM(count) FROM arm_visits WHERE experiment = ? "
            "GROUP BY minute, arm, outcome ORDER BY minute",
            (experiment,),
        )
        return [(int(minute), int(arm), int(outcome), int(count)) for minute, arm, outcome, count in rows]

    def visitors(self, experiment: int) -> list[bytes]:
        """Return the digests of visitors that count in an experiment."""
        rows = self._read("SELECT visitor FROM visitors WHERE experiment = ?", (experiment,))
        return [bytes(visitor) for (visitor,) in rows]


def _of(learner: str, partitions: Collection[int]) -> str:
    """Return the condition that a learner is of one of some partitions, to append to others."""
    if len(partitions) == PARTITIONS:
        return ""
    numbers = ", ".join(map(str, sorted(partitions))) or "NULL"
    return f" AND ({learner} & {PARTITIONS - 1}) IN ({numbers})"  # which is a power of two


def _event(row: Sequence[Any]) -> Event:
    return Event(row[1], row[2], row[3], row[4], None if row[5] is None else bytes(row[5]))
