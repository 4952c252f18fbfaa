"""Where the log of a learner begins: with a fresh one or, if the first events are no longer kept, with its base.

A base is the learner as it was when it had noted what has left the log since. All that is made of a log is made from
here on: learners that are made anew, and those that are compared with what is kept of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from zoomrank.service.learner_log import LearnerLog
from zoomrank.service.query_learner import QueryLearner
from zoomrank.service.served_collection import ServedCollection
from zoomrank.service.storage.events import Event
from zoomrank.service.storage.outcomes import VOIDED
from zoomrank.service.storage.store_reader import StoreReader


def begun(store: StoreReader, served: ServedCollection, learner: int) -> QueryLearner:
    """A learner as it was before everything that its log has."""
    base = store.base(learner)
    edition, content = (store.begun_in(learner), None) if base is None else (base.edition, base.content)
    return QueryLearner.restored(learner, served.editions, served.settings, edition, content)


def log_from(begins: QueryLearner, rows: Iterable[tuple[int, Event]]) -> LearnerLog:
    """The log of a learner from where it begins."""
    slots = {number: begins.shown_at(number).shown.shape[1] for number in begins.waiting}
    known = enumerate(begins.outcomes, begins.first)
    outcomes = {number: outcome for number, outcome in known if outcome != VOIDED}  # which may be said later
    return LearnerLog.read(rows, begins.ranker.made, outcomes, slots)
