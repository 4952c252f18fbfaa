"""`Copies`: throwaway learners to experiment with. A copy starts with what a query has learned and learns by itself.

Copies live in memory only. They are not stored, counted or reported to neighbours, and the original query is
unaffected. A copy keeps borrowing what the query itself would borrow.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.engine import NO_LEARNER, Engine
from zoomrank.service.errors import ContradictionError, NotFoundError, ServiceError
from zoomrank.service.feedback import ImpressionFeedback
from zoomrank.service.learners.query_learner import QueryLearner
from zoomrank.service.storage.events import UNSEEN, WAITING
from zoomrank.service.storage.ownership import partition_of

MOST = 32  # copies
IDLE = 15 * 60.0  # seconds without use after which one is dropped
MOST_WAITING = 10_000  # impressions of a copy
_NAME = re.compile("[0-9a-f]{18}")


@dataclass
class Copy:
    """A private learner of one query."""

    name: str
    served: ServedCollection
    query: str
    learner: QueryLearner
    used: float  # time of last use


def copy_name(partition: int) -> str:
    """Return a new name that cannot be guessed and contains the partition, hence the owner, of the copy."""
    return f"{partition:02x}{secrets.token_hex(8)}"


def partition_of_copy(name: str) -> int | None:
    """Return the partition in the name of a copy; None if it is no such name."""
    return int(name[:2], 16) if _NAME.fullmatch(name) else None


class Copies:
    """Copies of this process, most recently used last."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._here: OrderedDict[str, Copy] = OrderedDict()

    def __len__(self) -> int:
        return len(self._here)

    async def make(self, served: ServedCollection, query: str) -> Copy:
        """Copy what a query has learned; an unknown query is copied as an empty learner and stays unknown."""
        known = await self._engine.learners.find(served, query)
        number, content = (NO_LEARNER, None) if known is None else (known.number, known.snapshot())
        version = served.version if known is None else known.version
        learner = QueryLearner.restored(number, served.versions, served.settings, version.number, content)
        name = copy_name(partition_of(served.home.id, query))
        copy = Copy(name, served, query, learner, self._engine.now())
        self._drop_idle()
        while len(self._here) >= MOST:
            self._here.popitem(last=False)
        self._here[copy.name] = copy
        asyncio.get_running_loop().call_later(IDLE + 1, self._drop_idle)  # frees its memory even if no call follows
        return copy

    def find(self, name: str) -> Copy:
        """Return a copy by name, and mark it as used."""
        self._drop_idle()
        copy = self._here.get(name)
        if copy is None:
            raise NotFoundError(
                f"There is no copy “{name}”: {MOST} are kept, each for {IDLE / 60:g} minutes after its last use. Make "
                "a new one."
            )
        copy.used = self._engine.now()
        self._here.move_to_end(name)
        return copy

    def learner_of(self, name: str, served: ServedCollection, query: str) -> QueryLearner:
        """Return the learner of a copy of this query."""
        copy = self.find(name)
        if copy.served is not served or copy.query != query:
            raise NotFoundError(f"Copy “{name}” belongs to query “{copy.query}” of “{copy.served.name}”.")
        return copy.learner

    def rank(self, copy: Copy) -> tuple[str, list[dict[str, Any]]]:
        """Rank for one visitor; the impression's name is valid for this copy only."""
        learner, served = copy.learner, copy.served
        now = round(self._engine.now(), 3)
        if learner.version is not served.version:
            learner.move(served.version, now)
        loan = self._engine.next_loan(served, learner)
        event, ranking = learner.show(now, served.settings.slots, None, loan)
        if len(learner.waiting) > MOST_WAITING:
            learner.close(next(iter(learner.waiting)), UNSEEN, event.time)
        return str(event.number), learner.version.describe(ranking.shown[0])

    def feedback(self, copy: Copy, told: Sequence[tuple[str, ImpressionFeedback]]) -> list[dict[str, Any]]:
        """Learn from feedback; each item succeeds or fails by itself."""
        results: list[dict[str, Any]] = []
        for impression, answer in told:
            try:
                results.append({"impression": impression, "status": self._learn(copy, impression, answer)})
            except ServiceError as error:
                results.append({"impression": impression, "error": error.code, "message": str(error)})
        return results

    def _learn(self, copy: Copy, impression: str, answer: ImpressionFeedback) -> str:
        learner = copy.learner
        number = int(impression) if impression.isascii() and impression.isdecimal() else learner.ranker.made
        if number >= learner.ranker.made:
            raise NotFoundError("Unknown impression: send the name that the copy's ranking came with.")
        if learner.outcome_of(number) != WAITING:
            raise ContradictionError("This impression already has feedback.")
        ranking = learner.shown_at(number)
        acts = answer.acts(copy.served.version.ids(ranking.shown[0]))
        learner.answer(number, acts, answer.left, self._engine.now(), ranking)
        return "noted" if number in learner.waiting else "learned"

    def _drop_idle(self) -> None:
        until = self._engine.now() - IDLE
        for copy in [copy for copy in self._here.values() if copy.used < until]:
            del self._here[copy.name]
