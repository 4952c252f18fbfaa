"""`verify`: whether all that a store has agrees with its log, since learners and counts are made of nothing else.

Every learner is made again of its whole log, and every snapshot compared with what the log made of the learner at that
place, bit for bit. Nothing is changed.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from pydantic import ValidationError

from zoomrank.documents.edition_file import load_edition
from zoomrank.documents.editions import Edition
from zoomrank.errors import ZoomrankError
from zoomrank.queries.lending import report_from
from zoomrank.service.bases import begun, log_from
from zoomrank.service.edition_history import EditionHistory, unpacked_changes
from zoomrank.service.learner_log import LearnerLog, few
from zoomrank.service.nameless_files import filled, nameless_file
from zoomrank.service.query_learner import QueryCounts, QueryLearner
from zoomrank.service.refusals import DamagedError, StorageError
from zoomrank.service.served_collection import ServedCollection
from zoomrank.service.settings import Settings
from zoomrank.service.storage.arm_outcomes import ArmOutcome
from zoomrank.service.storage.batch import ArmVisit, Snapshot, StoredReport
from zoomrank.service.storage.events import DAY
from zoomrank.service.storage.outcomes import VOIDED, Outcome, word_of
from zoomrank.service.storage.partitions import count_in
from zoomrank.service.storage.store_reader import StoredCollection
from zoomrank.service.storage.store_snapshot import StoreSnapshot

Tell = Callable[[int, int], None]  # how many events were looked at, and of how many
Counts = Counter[tuple[int, Outcome]]  # of a step of time, in one collection

_ORPHANS = {
    "learners": "queries of collections that are not there",
    "events": "events of learners that are not there",
    "snapshots": "snapshots of learners that are not there",
    "bases": "bases of learners that are not there",
    "reports": "reports of learners that are not there",
}


@dataclass
class Verdict:
    """What was looked at, how much of it, and what is wrong, in words."""

    checked: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)


def verify(view: StoreSnapshot, tell: Tell = lambda _, __: None) -> Verdict:
    """Look at everything that a store has."""
    verdict = Verdict()
    damage = view.damage()
    verdict.findings += [f"The file of the store is damaged: {said}." for said in damage]
    try:
        _check_owners(view, verdict)
        _check_collections(view, verdict, tell)
    except StorageError as error:
        if not damage:  # a connection that was lost says nothing about the store
            raise
        verdict.findings.append(f"Not everything could be looked at: {error}")
    return verdict


def _check_owners(view: StoreSnapshot, verdict: Verdict) -> None:
    """Look for what belongs to nobody."""
    for table, words in _ORPHANS.items():
        own, others = ("collection", "collections") if table == "learners" else ("learner", "learners")
        found = view.rows(f"SELECT DISTINCT {own} FROM {table} WHERE {own} NOT IN (SELECT id FROM {others})")  # noqa: S608
        numbers = [number for (number,) in found]
        if numbers:
            verdict.findings.append(f"There are {words}: {few(sorted(numbers))}.")


# Collections.


def _check_collections(view: StoreSnapshot, verdict: Verdict, tell: Tell) -> None:
    with TemporaryDirectory(prefix="zoomrank-verify-") as folder:
        visits: Counter[ArmVisit] = Counter()
        for stored in view.read.collections():
            served = _read_collection(view, stored, Path(folder), verdict)
            counted = _check_learners(view, stored, served, visits, verdict, tell)
            _check_activity(view, stored, counted, verdict)
        _check_experiments(view, visits, verdict)


def _read_collection(
    view: StoreSnapshot, stored: StoredCollection, folder: Path, verdict: Verdict
) -> ServedCollection | None:
    """A collection as it is served, if it can be."""
    verdict.checked["collections"] += 1
    try:
        if stored.home is None:  # arms of its experiments have the same
            _check_editions(view, stored, folder, verdict)
        settings = Settings.model_validate_json(stored.settings)
        return ServedCollection(stored, settings, EditionHistory.kept(view.read, stored, settings, folder))
    except (ZoomrankError, ValidationError, OSError, ValueError, KeyError, zlib.error) as error:
        said = str(error).rstrip(".")
        verdict.findings.append(f"Collection “{stored.name}” cannot be served, so nothing was replayed: {said}.")
        return None


def _check_editions(view: StoreSnapshot, stored: StoredCollection, folder: Path, verdict: Verdict) -> None:
    """Look at all editions of a collection: each that is kept whole is what the changes since the one before make."""
    made: Edition | None = None
    first = view.read.first_edition(stored.id)
    for row in view.read.changes(stored.id, first - 1, view.read.last_edition(stored.id)):
        verdict.checked["editions"] += 1
        if made is not None and row.changes is not None:
            made = made.changed(unpacked_changes(row.changes))
        if row.digest is None:
            continue
        with nameless_file(folder) as file:
            if filled(file, view.read.content(stored.id, row.number)) != row.digest:
                verdict.findings.append(
                    f"Collection “{stored.name}”: edition {row.number} is not what it was when it was made."
                )
                made = None
                continue
            whole = load_edition(file, verify=True)
        if made is not None and row.changes is not None and not _same(made, whole):
            verdict.findings.append(f"Collection “{stored.name}”: edition {row.number} is not what its changes make.")
        made = whole


def _same(one: Edition, other: Edition) -> bool:
    trees = one.collection.tree.fingerprint, other.collection.tree.fingerprint
    return (
        trees[0] == trees[1]
        and np.array_equal(one.documents, other.documents)
        and np.array_equal(one.nodes, other.nodes)
    )


def _check_activity(view: StoreSnapshot, stored: StoredCollection, counted: Counts, verdict: Verdict) -> None:
    """Compare what was counted with what the log says, or said of what it has no more."""
    coarse = view.read.coarse_before
    counted = _by_day(counted, coarse)
    for step, outcome, count in view.read.folded(stored.id):
        counted[_day(step, coarse), outcome] += count
    kept: Counts = Counter()
    for step, outcome, count in view.read.activity([stored.id], 0):
        kept[_day(step, coarse), outcome] += count
    verdict.checked["counts"] += len(kept)
    wrong = [
        f"{word_of(key[1])} ({key[1]}) in step {key[0]}: {kept[key]:,} counted, {counted[key]:,} in the log"
        for key in sorted(kept.keys() | counted.keys())
        if kept[key] != counted[key]
    ]
    if wrong:
        verdict.findings.append(f"Collection “{stored.name}”: activity is not what the log says: {few(wrong)}.")


def _check_experiments(view: StoreSnapshot, visits: Counter[ArmVisit], verdict: Verdict) -> None:
    """Compare what counts in experiments with what the log says: it has no more than was counted, and of queries that
    were removed, or that were asked long ago, less.
    """
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
            wrong.append(f"{came:,} came, and of more it is known what became of them")
        if wrong:
            verdict.findings.append(f"Experiment “{stored.name}”: visitors are not those of the log: {few(wrong)}.")


def _by_day(counts: Counts, coarse: int) -> Counts:
    found: Counts = Counter()
    for (step, outcome), count in counts.items():
        found[_day(step, coarse), outcome] += count
    return found


def _day(step: int, coarse: int) -> int:
    """The step that an event counts in, where those before one are by the day."""
    return step // DAY * DAY if step < coarse else step


# Learners.


def _check_learners(
    view: StoreSnapshot,
    stored: StoredCollection,
    served: ServedCollection | None,
    visits: Counter[ArmVisit],
    verdict: Verdict,
    tell: Tell,
) -> Counts:
    """Look at all learners of a collection; returns what is to be counted of them, and adds what counts in arms."""
    [(total,)] = view.rows("SELECT COUNT(*) FROM events")
    last = view.read.last("events")
    reports = {report.learner: report for report in view.read.reports(stored.id)}
    counted: Counts = Counter()
    for number, query, _ in view.read.learners(stored.id):
        begins, wrong = _begun(view, served, number, verdict)
        log = (
            LearnerLog.read(view.read.events(number)) if begins is None else log_from(begins, view.read.events(number))
        )
        early = QueryCounts() if begins is None else replace(begins.counts)  # before it is replayed any further
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
            wrong.append(f"its snapshot knows event {snapshot.event}, and the log ends at {last}")
        if begins is not None and not wrong:
            wrong += _check_learner(begins, log, snapshot, reports.get(number), verdict)
        wrong += _check_listed(view, number, log, early)
        verdict.findings += [f"Query “{query}” of “{stored.name}” (learner {number}): {said}." for said in wrong]
        tell(verdict.checked["events"], int(total))
    return counted


def _begun(
    view: StoreSnapshot, served: ServedCollection | None, number: int, verdict: Verdict
) -> tuple[QueryLearner | None, list[str]]:
    """A learner where its log begins, if that can be known; and what is wrong with it."""
    if served is None:
        return None, []
    try:
        base = view.read.base(number)
        begins = begun(view.read, served, number)
    except Exception as error:  # noqa: BLE001  (whatever the bytes are)
        return None, [f"where its log begins cannot be read: {error!r}"]
    if base is None:
        return begins, []
    verdict.checked["bases"] += 1
    return begins, [*_check_snapshot(begins, base, "base"), *_check_place(view, base)]


def _check_place(view: StoreSnapshot, base: Snapshot) -> list[str]:
    """Look whether the log of a learner goes on behind its base."""
    early = view.rows(f"SELECT COUNT(*) FROM events WHERE learner = {base.learner:d} AND id <= {base.event:d}")  # noqa: S608
    [(count,)] = early
    return [f"the log has {count:,} events that are in its base already"] if count else []


def _check_learner(
    learner: QueryLearner, log: LearnerLog, snapshot: Snapshot | None, report: StoredReport | None, verdict: Verdict
) -> list[str]:
    """Let a learner note its log from where that begins; says where what is kept of it is something else."""
    wrong: list[str] = []
    known = 0 if snapshot is None else snapshot.event
    try:
        learner.replay(event for place, event in log.events if place <= known)
        if snapshot is not None and snapshot.content is not None:
            verdict.checked["snapshots"] += 1
            wrong += _check_snapshot(learner, snapshot)
        later = [event for place, event in log.events if place > known]
        if any(event.outcome == VOIDED for event in later):
            return [*wrong, "impressions were made void, and its snapshot is older than that"]
        learner.replay(later)
    except Exception as error:  # noqa: BLE001  (whatever it is, the log is not one that a learner wrote)
        return [*wrong, f"its log cannot be replayed: {error!r}"]
    if report is not None:
        verdict.checked["reports"] += 1
        wrong += _check_report(learner, report)
    return wrong


def _check_snapshot(learner: QueryLearner, snapshot: Snapshot, kind: str = "snapshot") -> list[str]:
    """Compare a snapshot with what the log made of the learner at that place."""
    wrong = []
    if snapshot.edition != learner.edition.number:
        return [f"its {kind} is of edition {snapshot.edition}, and the log left it in {learner.edition.number}"]
    if snapshot.content != learner.snapshot():
        wrong.append(f"its {kind} is not what its log makes of it")
    counts = None
    with suppress(ValueError):
        counts = json.loads(snapshot.counts or "")
    if counts != asdict(learner.counts):
        wrong.append(f"the counts beside its {kind} are not those of its log")
    if snapshot.first != next(iter(learner.waiting), learner.ranker.made):
        wrong.append(f"its {kind} says that impression {snapshot.first} is the first that may still end")
    return wrong


def _check_listed(view: StoreSnapshot, number: int, log: LearnerLog, early: QueryCounts) -> list[str]:
    """Look at what lists of queries are sorted by: it can be old, and not more than the log has."""
    [listed] = view.rows(f"SELECT impressions, satisfied, answered FROM learners WHERE id = {number:d}")  # noqa: S608
    satisfied, answered = log.answers
    before = early.impressions, early.satisfied, early.satisfied + early.abandoned
    known = [one + more for one, more in zip(before, (log.shown, satisfied, answered), strict=True)]
    there = zip(("impressions", "satisfied", "answers"), listed, known, strict=True)
    return [f"{some:,} {what} are listed, and the log has {known:,}" for what, some, known in there if some > known]


def _check_report(learner: QueryLearner, report: StoredReport) -> list[str]:
    """Look at what a learner has told its neighbours: it can be old, and not newer than the log."""
    if report.answers > learner.answers:
        return [f"it told its neighbours of {report.answers:,} answers, and has had {learner.answers:,}"]
    try:
        report_from(report.content)
    except Exception as error:  # noqa: BLE001  (whatever the bytes are)
        return [f"what it told its neighbours cannot be read: {error!r}"]
    return []
