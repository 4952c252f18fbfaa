"""Start of a learner's log: a fresh learner or, if its first events are no longer kept, its base.

A base is the learner as it was after the events that have left the log. Whatever is replayed from a log starts here:
rebuilt learners, and those that `verify` compares with their snapshots.
"""

from __future__ import annotations

from collections.abc import Iterable

from zoomrank.service.learner_log import LogAudit
from zoomrank.service.query_learner import QueryLearner
from zoomrank.service.served_collection import ServedCollection
from zoomrank.service.storage.events import Event
from zoomrank.service.storage.outcomes import VOIDED
from zoomrank.service.storage.store_reader import StoreReader


def begun(store: StoreReader, served: ServedCollection, learner: int) -> QueryLearner:
    """Return a learner as it was before the first event of its log."""
    base = store.base(learner)
    edition, content = (store.begun_in(learner), None) if base is None else (base.edition, base.content)
    return QueryLearner.restored(learner, served.editions, served.settings, edition, content)


def read_log_from(begins: QueryLearner, rows: Iterable[tuple[int, Event]]) -> LogAudit:
    """Read the log of a learner from its start."""
    slots = {number: begins.shown_at(number).shown.shape[1] for number in begins.waiting}
    known = enumerate(begins.outcomes, begins.first)
    outcomes = {number: outcome for number, outcome in known if outcome != VOIDED}  # a later event may void them
    return LogAudit.read(rows, begins.ranker.made, outcomes, slots)
