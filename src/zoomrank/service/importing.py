"""`Importing`: the click log of another ranker is learned, as if its rankings had been shown here long ago.

Each impression becomes a showing and an end in the log of its query's learner, so it is durable, verified and taken
back like any other. How far an import has come stands in the same write as the events: whoever was interrupted sends
the same again, and it goes on from there; what was learned is not learned twice. Impressions have no time but
`LONG_AGO`: they are nobody's activity of today.

What it was worth is told. The last tenth of the log is held out: before anything is learned, and again when the rest
is, each learner says what it expects of those visits. Then they are learned, too.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, closing
from itertools import islice
from typing import Any

import numpy as np

from zoomrank.rankers.held_out import surprise
from zoomrank.rankers.logged_visits import LoggedVisit, visit_arrays
from zoomrank.service.imported_log import ImportedLog
from zoomrank.service.learner_cache import Wanted
from zoomrank.service.ledger import Ledger
from zoomrank.service.query_learner import QueryLearner
from zoomrank.service.refusals import KeyReusedError, StoppingError, UnusableError
from zoomrank.service.storage.events import LONG_AGO, Marks
from zoomrank.service.storage.outcomes import ABANDONED
from zoomrank.service.storage.store import Store

_AT_ONCE = 64  # visits; then others have their turn
Record = dict[str, Any]  # how far an import has come, as it is kept


class Importing:
    """Imports that are going on, one at a time, and those that were."""

    def __init__(self, store: Store, ledger: Ledger) -> None:
        self._store = store
        self._ledger = ledger
        self._one_at_a_time = asyncio.Lock()
        self._tasks: dict[str, asyncio.Task[Record]] = {}
        self._stopped = False
        self.progress: dict[int, tuple[int, int]] = {}  # of a collection: so many impressions, of how many

    async def learn(self, log: ImportedLog, once: str | None = None, asker: bytes | None = None) -> Record:
        """Learn a log, unless it was learned before, under its key or as it is; says what it was worth.

        Once begun it is ended, whether or not somebody still waits. The file of the log is closed then.
        """
        try:
            _check_able(log)
            await asyncio.to_thread(log.check)
        except BaseException:
            log.file.close()
            raise
        name = _name(log, once)
        if name in self._tasks:
            log.file.close()
        else:
            self._tasks[name] = asyncio.create_task(self._learn(name, log, asker))
        task = self._tasks[name]
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise StoppingError() from None
            raise

    async def stop(self) -> None:
        """Give up what is going on; whoever sends it again goes on from there."""
        self._stopped = True
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _learn(self, name: str, log: ImportedLog, asker: bytes | None) -> Record:
        try:
            if self._stopped:
                raise StoppingError()
            async with self._one_at_a_time:
                record = await self._begun(name, log)
                if "result" not in record:
                    await self._go_on(name, log, record, Marks(asker=asker))
                    return {"status": "learned", **record["result"]}
                return {"status": "repeated", **record["result"]}
        finally:
            self.progress.pop(log.served.id, None)
            del self._tasks[name]
            log.file.close()

    async def _begun(self, name: str, log: ImportedLog) -> Record:
        """How far an import has come, by what is kept."""
        kept = await asyncio.to_thread(self._store.read.said, name)
        record: Record = {"content": log.digest, "done": 0} if kept is None else json.loads(kept)
        if record["content"] != log.digest:
            raise KeyReusedError("This Idempotency-Key came with another click log before: take a new key for each.")
        return record

    async def _go_on(self, name: str, log: ImportedLog, record: Record, marks: Marks) -> None:
        if "before" not in record:
            record["before"] = await self._expected(log)
        await self._take_in(name, log, record, log.first_held_out, marks)
        if "after" not in record:
            record["after"] = await self._expected(log)
        await self._take_in(name, log, record, log.impressions, marks)
        record["result"] = _result(log, record)
        self._ledger.journal.say(name, json.dumps(record))
        await self._ledger.journal.written()

    async def _take_in(self, name: str, log: ImportedLog, record: Record, end: int, marks: Marks) -> None:
        """Learn visits up to one, from where the import has come to."""
        async with aclosing(_read(log, record["done"], end)) as parts:
            async for some in parts:
                for visit in some:
                    if max(visit.shown) >= 0:  # or nothing is known of it
                        await self._take(log, visit, marks)
                    record["done"] += 1
                    self._ledger.journal.say(name, json.dumps(record))  # in the same write as what was learned
                self.progress[log.served.id] = (record["done"], log.impressions)
                await self._ledger.journal.written()

    async def _take(self, log: ImportedLog, visit: LoggedVisit, marks: Marks) -> None:
        learner = await self._ledger.learners.find(log.served, visit.query, Wanted(admitted=True))
        assert learner is not None  # noqa: S101
        self._ledger.move_on(log.served, learner, LONG_AGO)  # where all documents of the log are known
        ranking, _ = visit_arrays([visit], len(visit.shown))
        outcome = ABANDONED if visit.click is None else visit.click
        for event in learner.take_in(ranking, outcome, LONG_AGO, marks):
            self._ledger.append(log.served, learner, event)

    async def _expected(self, log: ImportedLog) -> Record:
        """What learners say of the visits that are held out: bits of surprise, and how many clicks they would get."""
        edition = log.served.edition
        nobody = QueryLearner(0, log.served.editions, log.served.settings)
        usual = log.usual
        none = np.zeros((0, 1), np.int64)
        await asyncio.to_thread(surprise, nobody.ranker.state, none, none[:, 0], usual)  # compiled, where nobody waits
        found: Record = {"looks": 0, "clicks": 0, "bits": 0.0, "usual_bits": 0.0, "found": 0}
        shown: dict[str, set[int]] = {}  # what each query would show
        async with aclosing(_read(log, log.first_held_out, log.impressions)) as parts:
            async for some in parts:
                for visit in some:
                    learner = await self._ledger.learners.find(log.served, visit.query) or nobody
                    learner = learner.seen_from(edition)
                    rankings, clicks = visit_arrays([visit], len(visit.shown))
                    rankings = edition.placed(rankings)
                    found["looks"] += int(np.count_nonzero(rankings.shown[0, : clicks[0] + 1] >= 0))
                    found["bits"] += float(surprise(learner.ranker.state, rankings.shown, clicks, usual))
                    found["usual_bits"] += float(surprise(nobody.ranker.state, rankings.shown, clicks, usual))
                    if visit.click is not None and visit.shown[visit.click] >= 0:
                        if visit.query not in shown:
                            shown[visit.query] = _would_show(learner)
                        found["clicks"] += 1
                        found["found"] += visit.shown[visit.click] in shown[visit.query]
        return found


def _would_show(learner: QueryLearner) -> set[int]:
    """The documents that a learner would show next; asking changes nothing."""
    ranker = learner.ranker.copied()
    return set(learner.edition.numbers(ranker.rank_arrays(1).shown[0].tolist()))


def _check_able(log: ImportedLog) -> None:
    if not log.served.bandit.counts_visits:
        raise UnusableError(
            f"{log.served.settings.algorithm} cannot learn from what another ranker showed: that takes a collection "
            "of ZoomRank or RankThompson."
        )


def _name(log: ImportedLog, once: str | None) -> str:
    """Under which name it is kept how far an import has come."""
    key = log.digest if once is None else hashlib.blake2b(once.encode(), digest_size=16).hexdigest()
    return f"import {log.served.id}/{key}"


async def _read(log: ImportedLog, start: int, end: int) -> AsyncGenerator[list[LoggedVisit], None]:
    """Some visits of a log after the other, from one on and up to another."""
    with closing(log.visits()) as all_of_them:  # whoever breaks off closes the file next
        visits = islice(all_of_them, start, end)
        while some := await asyncio.to_thread(list, islice(visits, _AT_ONCE)):
            yield some


def _result(log: ImportedLog, record: Record) -> Record:
    """What is told of an import that is done."""
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


def in_words(result: Record) -> str:
    """What an import was worth, in a few sentences."""
    worth = result["held_out"]
    told = (
        f"{result['impressions']:,} impressions with {result['clicks']:,} clicks were learned, of "
        f"{result['queries']:,} queries."
    )
    if result["left_out"]:
        told += f" Documents that the collection lacks were left out {result['left_out']:,} times."
    if not worth["clicks"]:
        return f"{told} Too few of them were clicked to say what that was worth."
    return (
        f"{told} Of the last {worth['visits']:,} visits, before these were learned: {worth['found_after']:.0%} of "
        f"{worth['clicks']:,} clicked documents stood in the ranking that the rest of the log taught, and "
        f"{worth['found_before']:.0%} in that before it. What visitors looked at surprised the learners by "
        f"{worth['surprise_after']:.3f} bits a document, by {worth['surprise_before']:.3f} before, and would surprise "
        f"whoever knows only how often each slot is clicked by {worth['surprise_usual']:.3f}."
    )
