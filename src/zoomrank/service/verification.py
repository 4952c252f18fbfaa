"""`verify`: check that learners, snapshots and counts in a store agree with its log, from which all are derived.

Every learner is rebuilt from its whole log, and every snapshot is compared bit for bit with the learner at that place
of the log. Nothing is changed.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from pydantic import ValidationError

from zoomrank.documents.collection_file import load_version
from zoomrank.documents.versions import CollectionVersion, unpack_changes
from zoomrank.errors import ZoomrankError
from zoomrank.queries.loans import report_from_bytes
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.catalogue.settings import Settings
from zoomrank.service.catalogue.version_history import VersionHistory, filled, temp_file
from zoomrank.service.errors import DamagedError, StorageError
from zoomrank.service.learners.log_audit import LogAudit, begun, few, read_log_from
from zoomrank.service.learners.query_learner import QueryCounts, QueryLearner
from zoomrank.service.storage.events import DAY, VOIDED, ArmOutcome, ArmVisit, Outcome, Snapshot, StoredReport, word_of
from zoomrank.service.storage.ownership import count_in
from zoomrank.service.storage.store_reader import StoredCollection
from zoomrank.service.storage.store_snapshot import StoreSnapshot

Progress = Callable[[int, int], None]  # progress: (events checked, total)
Counts = Counter[tuple[int, Outcome]]  # by time step and outcome, in one collection

_ORPHANS = {
    "learners": "queries of missing collections",
    "events": "events of missing learners",
    "snapshots": "snapshots of missing learners",
    "bases": "bases of missing learners",
    "reports": "reports of missing learners",
}


@dataclass
class VerifyReport:
    """Numbers of items checked, and findings in words."""

    checked: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)


def verify(view: StoreSnapshot, tell: Progress = lambda _, __: None) -> VerifyReport:
    """Check everything in a store."""
    verdict = VerifyReport()
    damage = view.damage()
    verdict.findings += [f"The file of the store is damaged: {said}." for said in damage]
    try:
        _check_owners(view, verdict)
        _check_collections(view, verdict, tell)
    except StorageError as error:
        if not damage:  # a lost connection says nothing about the store
            raise
        verdict.findings.append(f"Not everything could be checked: {error}")
    return verdict


def _check_owners(view: StoreSnapshot, verdict: VerifyReport) -> None:
    """Look for orphaned rows."""
    for table, words in _ORPHANS.items():
        own, others = ("collection", "collections") if table == "learners" else ("learner", "learners")
        found = view.rows(f"SELECT DISTINCT {own} FROM {table} WHERE {own} NOT IN (SELECT id FROM {others})")  # noqa: S608
        numbers = [number for (number,) in found]
        if numbers:
            verdict.findings.append(f"There are {words}: {few(sorted(numbers))}.")


# Collections.


def _check_collections(view: StoreSnapshot, verdict: VerifyReport, tell: Progress) -> None:
    with TemporaryDirectory(prefix="zoomrank-verify-") as folder:
        visits: Counter[ArmVisit] = Counter()
        for stored in view.read.collections():
            served = _read_collection(view, stored, Path(folder), verdict)
            counted = _check_learners(view, stored, served, visits, verdict, tell)
            _check_activity(view, stored, counted, verdict)
        _check_experiments(view, visits, verdict)


def _read_collection(
    view: StoreSnapshot, stored: StoredCollection, folder: Path, verdict: VerifyReport
) -> ServedCollection | None:
    """Load a collection as the service would; None if that fails."""
    verdict.checked["collections"] += 1
    try:
        if stored.home is None:  # arms of its experiments share these
            _check_versions(view, stored, folder, verdict)
        settings = Settings.model_validate_json(stored.settings)
        return ServedCollection(stored, settings, VersionHistory.kept(view.read, stored, settings, folder))
    except (ZoomrankError, ValidationError, OSError, ValueError, KeyError, zlib.error) as error:
        said = str(error).rstrip(".")
        verdict.findings.append(f"Collection “{stored.name}” cannot be served, so nothing was replayed: {said}.")
        return None


def _check_versions(view: StoreSnapshot, stored: StoredCollection, folder: Path, verdict: VerifyReport) -> None:
    """Check that each complete version of the catalogue equals the previous one with its changes applied."""
    made: CollectionVersion | None = None
    first = view.read.first_version(stored.id)
    for row in view.read.changes(stored.id, first - 1, view.read.last_version(stored.id)):
        verdict.checked["editions"] += 1
        if made is not None and row.changes is not None:
            made = made.changed(unpack_changes(row.changes))
        if row.digest is None:
            continue
        with temp_file(folder) as file:
            if filled(file, view.read.content(stored.id, row.number)) != row.digest:
                verdict.findings.append(
                    f"Collection “{stored.name}”: version {row.number} of the catalogue differs from what was stored "
                    "(wrong digest)."
                )
                made = None
                continue
            whole = load_version(file, verify=True)
        if made is not None and row.changes is not None and not _same(made, whole):
            verdict.findings.append(
                f"Collection “{stored.name}”: version {row.number} of the catalogue is not the result of its changes."
            )
        made = whole


def _same(one: CollectionVersion, other: CollectionVersion) -> bool:
    return (
        one.collection.tree.fingerprint == other.collection.tree.fingerprint
        and np.array_equal(one.documents, other.documents)
        and np.array_equal(one.nodes, other.nodes)
    )


def _check_activity(view: StoreSnapshot, stored: StoredCollection, counted: Counts, verdict: VerifyReport) -> None:
    """Compare activity counts with the log, including what has left the log."""
    coarse = view.read.coarse_before
    in_log = [(step, outcome, count) for (step, outcome), count in counted.items()]
    counted = _by_day([*in_log, *view.read.folded(stored.id)], coarse)
    kept = _by_day(view.read.activity([stored.id], 0), coarse)
    verdict.checked["counts"] += len(kept)
    wrong = [
        f"{word_of(key[1])} ({key[1]}) in step {key[0]}: {kept[key]:,} counted, {counted[key]:,} in the log"
        for key in sorted(kept.keys() | counted.keys())
        if kept[key] != counted[key]
    ]
    if wrong:
        verdict.findings.append(f"Collection “{stored.name}”: activity counts differ from the log: {few(wrong)}.")


def _check_experiments(view: StoreSnapshot, visits: Counter[ArmVisit], verdict: VerifyReport) -> None:
    """Compare visitor counts with the log, which may have fewer (queries are removed, events expire) but never more."""
    for stored in view.read.experiments():
        verdict.checked["experiments"] += 1
        kept = Counter(
            {ArmVisit(stored.id, arm, minute, kind): n for minute, arm, kind, n in view.read.arm_visits(stored.id)}
        )
        in_log = {visit: count for visit, count in visits.items() if visit.experiment == stored.id}
        wrong = [
            f"{ArmOutcome(visit.outcome).name.lower()} in minute {visit.minute} of arm {visit.arm}: "
            f"{kept[visit]:,} counted, {count:,} in the log"
            for visit, count in sorted(in_log.items())
            if count > kept[visit]
        ]
        came = sum(count for visit, count in kept.items() if visit.outcome == ArmOutcome.CAME)
        if 2 * came < sum(kept.values()):
            wrong.append(f"more outcomes than visitors ({came:,} visitors)")
        if wrong:
            verdict.findings.append(f"Experiment “{stored.name}”: visitor counts differ from the log: {few(wrong)}.")


def _by_day(rows: Iterable[tuple[int, Outcome, int]], coarse: int) -> Counts:
    """Return the counts by the step in which an event is counted: steps before `coarse` are merged by day."""
    found: Counts = Counter()
    for step, outcome, count in rows:
        found[step // DAY * DAY if step < coarse else step, outcome] += count
    return found


# Learners.


def _check_learners(
    view: StoreSnapshot,
    stored: StoredCollection,
    served: ServedCollection | None,
    visits: Counter[ArmVisit],
    verdict: VerifyReport,
    tell: Progress,
) -> Counts:
    """Check all learners of a collection; return their expected counts and add their visits to arms."""
    [(total,)] = view.rows("SELECT COUNT(*) FROM events")
    last = view.read.last("events")
    reports = {report.learner: report for report in view.read.reports(stored.id)}
    counted: Counts = Counter()
    for number, query, _ in view.read.learners(stored.id):
        begins, wrong = _begun(view, served, number, verdict)
        events = view.read.events(number)
        log = LogAudit.read(events) if begins is None else read_log_from(begins, events)
        early = QueryCounts() if begins is None else replace(begins.counts)  # before it is replayed further
        counted.update(log.counted)
        visits.update(log.arm_visits)
        snapshot = None
        wrong += log.findings if begins is not None or not view.read.has_base(number) else []
        try:
            snapshot = view.read.find(stored.id, query)
        except DamagedError:
            wrong.append("its snapshot cannot be read")
        verdict.checked.update(queries=1, events=len(log.events), impressions=log.shown)
        if snapshot is not None and count_in(snapshot.event) > count_in(last):
            wrong.append(f"its snapshot includes event {snapshot.event}, but the log ends at {last}")
        if begins is not None and not wrong:
            wrong += _check_learner(begins, log, snapshot, reports.get(number), verdict)
        wrong += _check_listed(view, number, log, early)
        verdict.findings += [f"Query “{query}” of “{stored.name}” (learner {number}): {said}." for said in wrong]
        tell(verdict.checked["events"], int(total))
    return counted


def _begun(
    view: StoreSnapshot, served: ServedCollection | None, number: int, verdict: VerifyReport
) -> tuple[QueryLearner | None, list[str]]:
    """Return a learner at the start of its log, or None, and the findings about it."""
    if served is None:
        return None, []
    try:
        base = view.read.base(number)
        begins = begun(view.read, served, number)
    except Exception as error:  # noqa: BLE001  (whatever the bytes are)
        return None, [f"the start of its log cannot be read: {error!r}"]
    if base is None:
        return begins, []
    verdict.checked["bases"] += 1
    early = view.rows(f"SELECT COUNT(*) FROM events WHERE learner = {base.learner:d} AND id <= {base.event:d}")  # noqa: S608
    [(count,)] = early
    said = [f"the log has {count:,} events that are already in its base"] if count else []
    return begins, [*_check_snapshot(begins, base, "base"), *said]


def _check_learner(
    learner: QueryLearner, log: LogAudit, snapshot: Snapshot | None, report: StoredReport | None, verdict: VerifyReport
) -> list[str]:
    """Replay the log of a learner; return how stored data differs from it."""
    wrong: list[str] = []
    known = 0 if snapshot is None else snapshot.event
    try:
        learner.replay(event for place, event in log.events if place <= known)
        if snapshot is not None and snapshot.content is not None:
            verdict.checked["snapshots"] += 1
            wrong += _check_snapshot(learner, snapshot)
        later = [event for place, event in log.events if place > known]
        if any(event.outcome == VOIDED for event in later):
            return [*wrong, "impressions were voided, but its snapshot is older than that"]
        learner.replay(later)
    except Exception as error:  # noqa: BLE001  (whatever it is, no learner wrote this log)
        return [*wrong, f"its log cannot be replayed: {error!r}"]
    if report is not None:
        verdict.checked["reports"] += 1
        wrong += _check_report(learner, report)
    return wrong


def _check_snapshot(learner: QueryLearner, snapshot: Snapshot, kind: str = "snapshot") -> list[str]:
    """Compare a snapshot with the learner that the log gives at that place."""
    wrong = []
    if not learner.is_in(snapshot.version):
        return [
            f"its {kind} is of catalogue version {snapshot.version}, but the log ends in version "
            f"{learner.version.number}"
        ]
    if snapshot.content is None or not learner.agrees_with(snapshot.content):
        wrong.append(f"its {kind} differs from what its log gives")
    counts = None
    with suppress(ValueError):
        counts = json.loads(snapshot.counts or "")
    if counts != asdict(learner.counts):
        wrong.append(f"the counts beside its {kind} differ from its log")
    if snapshot.first != next(iter(learner.waiting), learner.ranker.made):
        wrong.append(f"its {kind} names impression {snapshot.first} as the first that may still end")
    return wrong


def _check_listed(view: StoreSnapshot, number: int, log: LogAudit, early: QueryCounts) -> list[str]:
    """Check the counts by which queries are listed: they may lag behind the log, but not exceed it."""
    [listed] = view.rows(f"SELECT impressions, satisfied, answered FROM learners WHERE id = {number:d}")  # noqa: S608
    satisfied, answered = log.answers
    before = early.impressions, early.satisfied, early.satisfied + early.abandoned
    known = [one + more for one, more in zip(before, (log.shown, satisfied, answered), strict=True)]
    there = zip(("impressions", "satisfied", "answers"), listed, known, strict=True)
    return [f"{some:,} {what} are listed, but the log has {known:,}" for what, some, known in there if some > known]


def _check_report(learner: QueryLearner, report: StoredReport) -> list[str]:
    """Check a learner's report to its neighbours: it may lag behind the log, but not be ahead."""
    if report.answers > learner.answers:
        return [f"its report to neighbours counts {report.answers:,} answers, but it has had {learner.answers:,}"]
    try:
        report_from_bytes(report.content)
    except Exception as error:  # noqa: BLE001  (whatever the bytes are)
        return [f"its report to neighbours cannot be read: {error!r}"]
    return []
