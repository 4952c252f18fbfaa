"""`Retention`: events older than the retention time leave the log; what they taught stays.

The oldest events of a learner are replayed onto its base; the new base is stored and the events deleted in one write.
The learner is unaffected: replaying the rest of the log from the base gives the same result, bit for bit. A base omits
voided impressions for ever, so impressions must not become void while it is built; if the log has changed meanwhile,
the learner is left for another time.

Building a base takes about as long for one event as for hundreds. So events wait until they are an eighth older than
necessary and are then removed together. Activity counts per ten seconds are merged into daily counts once they are too
old to be queried in detail.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time as clock
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import NamedTuple

from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.errors import StorageError
from zoomrank.service.learners.log_audit import begun
from zoomrank.service.storage.events import STEP, VOIDED, WAITING, Event, RetiredEvents, Snapshot, counted, is_end
from zoomrank.service.storage.ownership import partition_in
from zoomrank.service.storage.store import EngineContext

PASS_EVERY = 3600.0  # seconds between two passes over the old end of the log
FINE_FOR = 92 * 86_400  # seconds for which counts per ten seconds are kept: longer than any query reaches back
_LATE = 1 / 8  # fraction of the retention time by which events overstay before they are removed together
_A_TURN = 0.1  # seconds
_IMPRESSIONS_AT_ONCE = 2048
_LINES_AT_ONCE = 4096

_log = logging.getLogger(__name__)


class _Due(NamedTuple):
    """A learner with events beyond the retention time."""

    place: int  # of its oldest event
    served: ServedCollection
    learner: int
    until: float  # older events are removed


class Retention:
    """Removes old events from the log, a little per turn."""

    def __init__(self, context: EngineContext, collections: Mapping[int, ServedCollection], busy: asyncio.Lock) -> None:
        self._store, self._ownership, self._now, self._steady = context
        self._collections = collections
        self._busy = busy  # held while impressions are voided
        self._after = 0  # place in the log up to which this pass has come
        self._next = self._steady()  # start of the next pass

    async def turn(self) -> None:
        """Continue for a moment."""
        until = clock.monotonic() + _A_TURN
        while self._steady() >= self._next and clock.monotonic() < until:
            if self._after == 0:
                await asyncio.to_thread(self._coarsen)
            due = await asyncio.to_thread(self._find)
            if due is None:
                continue
            try:
                is_done = await self._retire(due)
            except StorageError:
                raise
            except Exception:  # noqa: BLE001  (a log that cannot be replayed is reported by `verify`; continue with other learners)
                _log.exception("The log of learner %d cannot be replayed, so its events are kept.", due.learner)
                is_done = False
            self._after = due.place - 1 if is_done else due.place  # it may have more old events

    def _coarsen(self) -> None:
        before = int(self._now() - FINE_FOR) // STEP
        if before > 0 and self._ownership.is_coordinator:
            self._store.coarsen(before)

    def _find(self) -> _Due | None:
        """Return the next learner with old events; None at the young end of the log, where the pass ends."""
        youngest = max((due for one in self._collections.values() if (due := self._due(one)) is not None), default=None)
        rows = [] if youngest is None else self._store.read.oldest(self._after, _LINES_AT_ONCE)
        for place, collection, learner, time in rows:
            served = self._collections.get(collection)
            due = None if served is None else self._due(served)
            self._after = place
            is_owned = partition_in(learner) in self._ownership  # otherwise its owner removes them
            if served is not None and due is not None and time < due and is_owned:
                return _Due(place, served, learner, self._now() - (served.settings.keep_events or 0.0))
            if youngest is not None and time >= youngest:
                rows = []
                break
        if len(rows) < _LINES_AT_ONCE:
            self._after, self._next = 0, self._steady() + PASS_EVERY
        return None

    def _due(self, served: ServedCollection) -> float | None:
        """Return the time before which an event makes its learner due."""
        keep = served.settings.keep_events
        return None if keep is None else self._now() - keep - _LATE * keep

    async def _retire(self, due: _Due) -> bool:
        made = await asyncio.to_thread(self._made, due)
        if made is None:
            return False
        async with self._busy:
            return await asyncio.to_thread(self._store.retire, due.served.id, *made)

    def _made(self, due: _Due) -> tuple[Snapshot, RetiredEvents] | None:
        """Build the new base of a learner, with the events that it replaces."""
        learner = begun(self._store.read, due.served, due.learner)
        last = learner.ranker.made + _IMPRESSIONS_AT_ONCE
        log = self._store.read.early_events(due.learner, last)
        old = _expired_events(log, last, due.until, self._store.read.created(due.learner))
        if not old:
            return None
        void = {event.number for _, event in log if event.outcome == VOIDED}
        learner.replay([event for _, event in old], void)
        counts = Counter((event.step, event.outcome) for event in counted((event for _, event in old), void))
        first = next(iter(learner.waiting), learner.ranker.made)
        about = json.dumps(asdict(learner.counts))
        content = learner.snapshot()
        base = Snapshot(due.learner, learner.version.number, old[-1][0], first, len(learner.waiting), about, content)
        return base, RetiredEvents(last, due.until, len(void), learner.counts.impressions, counts)


def _expired_events(log: list[tuple[int, Event]], last: int, until: float, created: float) -> list[tuple[int, Event]]:
    """Return the events before the first one to keep: a young one, or one of an impression that ended late. Imported
    events are as old as the learner.
    """

    def is_old(event: Event) -> bool:
        return max(event.time, created) < until

    ended = {event.number for _, event in log if is_end(event.outcome) and is_old(event) and event.number < last}
    for index, (_, event) in enumerate(log):
        if not is_old(event) or (event.outcome == WAITING and event.number not in ended):
            return log[:index]
    return log
