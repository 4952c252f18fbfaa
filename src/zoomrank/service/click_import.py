"""`LogImporter`: learning from the click log of another ranker, as if its rankings had been shown here long ago.

Each impression becomes two events, shown and ended, in the log of its query's learner, so it is durable and can be
verified and voided like any other. Progress is stored in the same write as the events: after an interruption the same
upload resumes there, and nothing is learned twice. Imported impressions have the time `LONG_AGO`, so they do not count
as activity of today.

The result says what the import was worth. The last tenth of the log is held out: before anything is learned, and again
after the rest is, the learners predict those visits. Then these are learned, too.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, closing
from dataclasses import dataclass, field
from itertools import islice
from typing import IO, Any

import numpy as np

from zoomrank.compiled import Scalar, compiled, inlined
from zoomrank.documents.click_log import impressions_of
from zoomrank.errors import ZoomrankError
from zoomrank.rankers.feedback import LoggedVisit, VisitReader, visit_arrays
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.errors import KeyReusedError, StoppingError, UnprocessableError
from zoomrank.service.learners.learner_events import LearnerEvents, NewLearner
from zoomrank.service.learners.query_learner import QueryLearner
from zoomrank.service.storage.events import ABANDONED, LONG_AGO, EventTags
from zoomrank.service.storage.store import Store
from zoomrank.types import Array

# The uploaded log: checked, counted, and read visit by visit.

HELD_OUT = 10  # the last 1 in 10 visits
_PIECE = 2**20


@dataclass
class ImportedLog:
    """An open upload and what it contains."""

    served: ServedCollection
    file: IO[bytes]
    kind: str  # file extension
    unknown: str  # how to treat documents that the collection lacks
    digest: str = ""
    impressions: int = 0
    clicks: int = 0
    left_out: int = 0  # occurrences of unknown documents
    queries: set[str] = field(default_factory=set)
    looks_by_slot: list[int] = field(default_factory=list)
    clicks_by_slot: list[int] = field(default_factory=list)

    def check(self) -> None:
        """Read the whole log, so that errors are raised before anything is learned."""
        self.digest = self._digest()
        slots = self.served.settings.slots
        looks, clicks = [0] * slots, [0] * slots
        self.impressions = sum(1 for _ in self.visits())
        for visit in islice(self.visits(), self.first_held_out):
            for slot in range(len(visit.shown) if visit.click is None else visit.click + 1):
                looks[slot] += 1
            if visit.click is not None:
                clicks[visit.click] += 1
        for visit in self.visits():
            self.queries.add(visit.query)
            self.clicks += visit.click is not None
            self.left_out += visit.shown.count(-1)
        self.looks_by_slot, self.clicks_by_slot = looks, clicks
        if not self.impressions:
            raise UnprocessableError("The log contains no impressions.")

    @property
    def first_held_out(self) -> int:
        """Index of the first visit that is held out for evaluation."""
        return self.impressions - self.impressions // HELD_OUT

    @property
    def usual(self) -> Array:
        """Click rate per slot among visitors who look at it, before the held-out visits."""
        return (np.array(self.clicks_by_slot) + 0.5) / (np.array(self.looks_by_slot) + 1.0)

    def visits(self) -> Generator[LoggedVisit, None, None]:
        """Yield the visits in order, with normalized queries and document numbers."""
        version = self.served.version
        reader = VisitReader(version.tree.documents, self.served.settings.slots, self.unknown)
        try:
            for visit in reader.visits(impressions_of(self.file, kind=self.kind)):
                yield visit._replace(query=self.served.query(visit.query), shown=version.numbers(visit.shown))
        except ZoomrankError as error:
            if isinstance(error, UnprocessableError):
                raise
            raise UnprocessableError(str(error)) from error

    def _digest(self) -> str:
        digest = hashlib.blake2b(digest_size=16)
        self.file.seek(0)
        while piece := self.file.read(_PIECE):
            digest.update(piece)
        return digest.hexdigest()


# Log loss of a learner on visits that it has not learned from. The predicted click rate of a document in a slot comes
# from its visits there and from those of the subtrees that hold it, from the root down: each counts beside four
# pseudo-visits at the rate of the one around it. Without visits the prediction is the slot's overall click rate, so an
# untrained learner predicts as well as that rate alone.

_AROUND = 4.0  # pseudo-visits


@compiled
def log_loss(state: Any, shown: Array, clicks: Array, usual: Array) -> Scalar:
    """Compute the log loss in bits over all examined documents.

    Rows are visits, columns slots, below 0 for unknown documents; `usual` is the click rate of each slot.
    """
    found = 0.0
    for row in range(len(shown)):
        for slot in range(min(clicks[row] + 1, shown.shape[1])):
            if shown[row, slot] >= 0:
                chance = _expected(state, shown[row, slot], slot, usual[slot])
                found -= math.log2(chance if slot == clicks[row] else 1.0 - chance)
    return found


@inlined
def _expected(state: Any, document: Scalar, slot: Scalar, usual: Scalar) -> Scalar:
    """Predict the click probability of a document in a slot."""
    at, chance, going = np.uint64(0), usual, True
    while going:
        plays, clicks = np.float64(state.plays[at, slot]), np.float64(state.clicks[at, slot])
        chance = (clicks + _AROUND * chance) / (plays + _AROUND)
        going = state.child[at] != 0
        if going:
            at = np.uint64(state.child[at])
            while state.end_document[state.node[at]] <= document:
                at += np.uint64(1)
    return chance


_AT_ONCE = 64  # visits between two awaits, so that requests get their turn
ImportRecord = dict[str, Any]  # progress of an import, as stored


class LogImporter:
    """Running imports, one at a time, and results of completed ones."""

    def __init__(self, store: Store, learner_events: LearnerEvents) -> None:
        self._store = store
        self._learner_events = learner_events
        self._one_at_a_time = asyncio.Lock()
        self._tasks: dict[str, asyncio.Task[ImportRecord]] = {}
        self._stopped = False
        self.progress: dict[int, tuple[int, int]] = {}  # collection: (impressions done, total)

    async def learn(self, log: ImportedLog, once: str | None = None, caller: bytes | None = None) -> ImportRecord:
        """Learn from a log and return what it was worth; a log learned before, under its key or with the same content,
        is not learned again.

        An import runs to its end even if the caller disconnects, and then closes the file.
        """
        try:
            _check_able(log)
            await asyncio.to_thread(log.check)
        except BaseException:
            log.file.close()
            raise
        key = log.digest if once is None else hashlib.blake2b(once.encode(), digest_size=16).hexdigest()
        name = f"import {log.served.id}/{key}"
        if name in self._tasks:
            log.file.close()
        else:
            self._tasks[name] = asyncio.create_task(self._learn(name, log, caller))
        task = self._tasks[name]
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise StoppingError() from None
            raise

    async def stop(self) -> None:
        """Cancel running imports; sending the same log again resumes them."""
        self._stopped = True
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _learn(self, name: str, log: ImportedLog, caller: bytes | None) -> ImportRecord:
        try:
            if self._stopped:
                raise StoppingError()
            async with self._one_at_a_time:
                record = await self._begun(name, log)
                if "result" not in record:
                    await self._go_on(name, log, record, EventTags(caller=caller))
                    return {"status": "learned", **record["result"]}
                return {"status": "repeated", **record["result"]}
        finally:
            self.progress.pop(log.served.id, None)
            del self._tasks[name]
            log.file.close()

    async def _begun(self, name: str, log: ImportedLog) -> ImportRecord:
        """Read the stored progress of an import."""
        kept = await asyncio.to_thread(self._store.read.said, name)
        record: ImportRecord = {"content": log.digest, "done": 0} if kept is None else json.loads(kept)
        if record["content"] != log.digest:
            raise KeyReusedError("This Idempotency-Key was used with another click log: use a new key for each log.")
        return record

    async def _go_on(self, name: str, log: ImportedLog, record: ImportRecord, tags: EventTags) -> None:
        if "before" not in record:
            record["before"] = await self._expected(log)
        await self._take_in(name, log, record, log.first_held_out, tags)
        if "after" not in record:
            record["after"] = await self._expected(log)
        await self._take_in(name, log, record, log.impressions, tags)
        record["result"] = _result(log, record)
        self._learner_events.write_queue.batch.said[name] = json.dumps(record)
        await self._learner_events.write_queue.wait_durable()

    async def _take_in(self, name: str, log: ImportedLog, record: ImportRecord, end: int, tags: EventTags) -> None:
        """Learn visits up to `end`, from where the import stands."""
        async with aclosing(_read(log, record["done"], end)) as parts:
            async for some in parts:
                for visit in some:
                    if max(visit.shown) >= 0:  # otherwise no document of it is known
                        await self._take(log, visit, tags)
                    record["done"] += 1
                    # In the same write as what was learned.
                    self._learner_events.write_queue.batch.said[name] = json.dumps(record)
                self.progress[log.served.id] = (record["done"], log.impressions)
                await self._learner_events.write_queue.wait_durable()

    async def _take(self, log: ImportedLog, visit: LoggedVisit, tags: EventTags) -> None:
        learner = await self._learner_events.learners.find(log.served, visit.query, NewLearner(admitted=True))
        assert learner is not None  # noqa: S101
        # To the version in which all documents of the log are known.
        self._learner_events.move_to_newest(log.served, learner, LONG_AGO)
        ranking, _ = visit_arrays([visit], len(visit.shown))
        outcome = ABANDONED if visit.click is None else visit.click
        for event in learner.import_visit(ranking, outcome, LONG_AGO, tags):
            self._learner_events.append(log.served, learner, event)

    async def _expected(self, log: ImportedLog) -> ImportRecord:
        """Evaluate the learners on the held-out visits: bits of surprise, and clicked documents that they would
        show.
        """
        version = log.served.version
        nobody = QueryLearner(0, log.served.versions, log.served.settings)
        usual = log.usual
        none = np.zeros((0, 1), np.int64)
        await asyncio.to_thread(log_loss, nobody.ranker.state, none, none[:, 0], usual)  # compile off the event loop
        found: ImportRecord = {"looks": 0, "clicks": 0, "bits": 0.0, "usual_bits": 0.0, "found": 0}
        shown: dict[str, set[int]] = {}  # documents that each query would show
        async with aclosing(_read(log, log.first_held_out, log.impressions)) as parts:
            async for some in parts:
                for visit in some:
                    learner = await self._learner_events.learners.find(log.served, visit.query) or nobody
                    learner = learner.seen_from(version)
                    rankings, clicks = visit_arrays([visit], len(visit.shown))
                    rankings = version.placed(rankings)
                    found["looks"] += int(np.count_nonzero(rankings.shown[0, : clicks[0] + 1] >= 0))
                    found["bits"] += float(log_loss(learner.ranker.state, rankings.shown, clicks, usual))
                    found["usual_bits"] += float(log_loss(nobody.ranker.state, rankings.shown, clicks, usual))
                    if visit.click is not None and visit.shown[visit.click] >= 0:
                        if visit.query not in shown:
                            ranking = learner.ranker.copied().rank_arrays(1)  # a copy: it learns nothing here
                            shown[visit.query] = set(version.numbers(ranking.shown[0].tolist()))
                        found["clicks"] += 1
                        found["found"] += visit.shown[visit.click] in shown[visit.query]
        return found


def _check_able(log: ImportedLog) -> None:
    if not log.served.bandit.counts_visits:
        raise UnprocessableError(
            f"{log.served.settings.algorithm} cannot learn from rankings of another ranker: use a collection with "
            "ZoomRank or RankThompson."
        )


async def _read(log: ImportedLog, start: int, end: int) -> AsyncGenerator[list[LoggedVisit], None]:
    """Yield visits `start` to `end` of a log in chunks."""
    with closing(log.visits()) as all_of_them:  # a caller that breaks off closes the file next
        visits = islice(all_of_them, start, end)
        while some := await asyncio.to_thread(list, islice(visits, _AT_ONCE)):
            yield some


def _result(log: ImportedLog, record: ImportRecord) -> ImportRecord:
    """Return the result of a completed import."""
    before, after = record["before"], record["after"]
    looks, clicks = max(after["looks"], 1), max(after["clicks"], 1)
    worth = {
        "visits": log.impressions - log.first_held_out,
        "clicks": after["clicks"],
        "found_before": before["found"] / clicks,
        "found_after": after["found"] / clicks,
        "surprise_usual": after["usual_bits"] / looks,
        "surprise_before": before["bits"] / looks,
        "surprise_after": after["bits"] / looks,
    }
    result = {
        "impressions": log.impressions,
        "clicks": log.clicks,
        "queries": len(log.queries),
        "left_out": log.left_out,
        "held_out": worth,
    }
    return {**result, "words": in_words(result)}


def in_words(result: ImportRecord) -> str:
    """Summarize an import in a few sentences."""
    worth = result["held_out"]
    told = (
        f"{result['impressions']:,} impressions with {result['clicks']:,} clicks on {result['queries']:,} queries "
        "were learned."
    )
    if result["left_out"]:
        told += f" Documents that the collection lacks were left out {result['left_out']:,} times."
    if not worth["clicks"]:
        return f"{told} Too few of them were clicked to evaluate the import."
    return (
        f"{told} Evaluation on the last {worth['visits']:,} visits, before these were learned: "
        f"{worth['found_after']:.0%} of {worth['clicks']:,} clicked documents were in the learned ranking, and "
        f"{worth['found_before']:.0%} in the ranking before the import. The surprise was "
        f"{worth['surprise_after']:.3f} bits per document, {worth['surprise_before']:.3f} before the import, and "
        f"{worth['surprise_usual']:.3f} for a model that knows only the click rate of each slot."
    )
