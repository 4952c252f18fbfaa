"""`VoidService`: impressions are voided and queries removed, as if they had never been.

After bots, a broken page or a bad deployment, what they taught is undone by rebuilding the learner from its log without
them. Nothing is deleted from the log: an additional event marks each impression as void. These events and the rebuilt
learner are written together. Queries that borrowed from the learner meanwhile keep what they borrowed, which fades as
they learn; new loans come from the rebuilt learner.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Collection
from typing import NamedTuple

from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.learners.learner_events import LearnerEvents
from zoomrank.service.learners.log_audit import begun
from zoomrank.service.learners.query_learner import QueryLearner
from zoomrank.service.storage.events import VOIDED, WAITING, Event, bounds, counted, unpack_parts
from zoomrank.service.storage.store import EngineContext


class ImpressionFilter(NamedTuple):
    """Filter of impressions by query, time and API key; all given conditions must hold."""

    query: str | None = None
    since: float | None = None  # seconds since 1970
    until: float | None = None
    caller: bytes | None = None


class VoidService:
    """Voids impressions and removes queries."""

    def __init__(self, context: EngineContext, learner_events: LearnerEvents) -> None:
        self._store, self._now = context.store, context.now
        self._learner_events = learner_events
        self.busy = asyncio.Lock()  # held until voided impressions are durable

    async def find(self, served: ServedCollection, span: ImpressionFilter) -> dict[int, list[int]]:
        """Return the impressions of a span that are not void, by learner."""
        await self._learner_events.write_queue.wait_durable()
        found: dict[int, list[int]] = defaultdict(list)
        after = 0
        while rows := await asyncio.to_thread(
            self._store.read.shown_in, served.id, span.query, *bounds(span.since, span.until), after
        ):
            after = rows[-1][0]
            for _, event in rows:
                if span.caller is None or unpack_parts(event.shown or b"").tags.caller == span.caller:
                    found[event.learner].append(event.number)
        return found

    async def retired(self, served: ServedCollection, span: ImpressionFilter) -> int:
        """Return an upper bound of the impressions in a span that have left the log and cannot be voided."""
        count = await asyncio.to_thread(self._store.read.folded_shown, served.id, *bounds(span.since, span.until))
        if count and span.query is not None:
            learner = await self._learner_events.learners.find(served, span.query)
            base = None if learner is None else await asyncio.to_thread(self._store.read.base, learner.number)
            return min(count, 0 if base is None else int(json.loads(base.counts or "{}")["impressions"]))
        return count

    async def void(self, served: ServedCollection, learner: int, numbers: Collection[int]) -> None:
        """Void some impressions of a learner."""
        key = await self._learner_events.learners.key_of(learner)
        if key is None:  # removed meanwhile
            return

        async def make_anew() -> bool:
            log = [event for _, event in await asyncio.to_thread(self._store.read.events, learner)]
            known = {event.number for event in log if event.outcome == VOIDED}
            shown = {event.number: event for event in log if event.outcome == WAITING}
            new, now = (set(numbers) & shown.keys()) - known, round(self._now(), 3)
            void = [Event(learner, number, now, VOIDED, None) for number in sorted(new)]
            anew = await asyncio.to_thread(self._made_of, served, learner, [*log, *void])
            self._learner_events.learners.keep(key, anew)
            for event in void:
                self._learner_events.write(served, event)
            for event in counted(log):
                if event.number in new:
                    self._learner_events.discount(served, event, shown[event.number])
            # After the void events, so that reading this snapshot needs none of them.
            self._learner_events.learners.write(anew)
            self._learner_events.tell(served, anew)
            return True

        async with self.busy:
            await self._learner_events.learners.alone(key, make_anew)
            await self._learner_events.write_queue.wait_durable()

    def _made_of(self, served: ServedCollection, learner: int, log: list[Event]) -> QueryLearner:
        made = begun(self._store.read, served, learner)
        made.replay(log)
        return made

    async def remove(self, served: ServedCollection, query: str, most: int | None = None) -> bool:
        """Remove a query with its learner and log, if it has at most `most` impressions; return whether it was
        removed.
        """
        key, removed = (served.id, query), False

        async def take_away() -> bool:
            nonlocal removed
            found = await asyncio.to_thread(self._store.read.find, served.id, query)
            if found is not None and (most is None or await self._shown(found.learner) <= most):
                await asyncio.to_thread(self._store.remove, served.id, [found.learner])
                self._learner_events.learners.removed(key, found.learner)
                removed = True
            return False

        await self._learner_events.learners.alone(key, take_away)
        return removed

    async def _shown(self, learner: int) -> int:
        log = await asyncio.to_thread(self._store.read.events, learner)
        return sum(event.outcome == WAITING for _, event in log)
