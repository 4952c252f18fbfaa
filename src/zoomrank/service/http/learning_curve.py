"""Learning curve of a query: the share of satisfied visitors in successive windows of its impressions.

Windows grow as learning slows down: the first have 50 impressions each, later ones an eighth of all before them. At
most 2,000 impressions of a window are read, so a query with a million impressions is read quickly, too.

The first 20 impressions estimate what a random ranking earns, unless they were imported. If the query began with a
caller's order they estimate that order instead; the log does not say which.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from zoomrank.service.engine import Engine
from zoomrank.service.served_collection import ServedCollection
from zoomrank.service.storage.outcomes import ABANDONED, TIMED_OUT, VOIDED, Outcome, is_satisfied
from zoomrank.service.storage.store import Store

FEWEST = 50  # impressions per window
_GROWTH = 8  # later windows have 1/8 of the impressions before them
_MOST_READ = 2_000  # impressions read per window
FIRST = 100
UNLEARNED = 20  # impressions before which hardly anything was learned
_REMEMBERED = 256  # cached curves

LoggedOutcomes = Iterable[tuple[int, Outcome]]  # (impression, outcome) of the log


class LearningCurves:
    """Learning curves, read from the log on demand and cached until it grows."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: OrderedDict[int, tuple[Any, dict[str, Any]]] = OrderedDict()

    async def curve(self, served: ServedCollection, query: str) -> dict[str, Any]:
        """Return the curve of a known query."""
        learner = await self._engine.known(served, query)
        made, counts = learner.ranker.made, learner.counts
        state = (made, counts.satisfied, counts.abandoned, counts.voided)
        found = self._known.get(learner.number)
        if found is None or found[0] != state:
            await self._engine.journal.flush()
            content = await asyncio.to_thread(_read, self._engine.store, learner.number, made)
            found = self._known[learner.number] = (state, content)
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        self._known.move_to_end(learner.number)
        begins_alone = served.neighbours is None  # otherwise it began with borrowed knowledge
        return {"query": query, **found[1], "unlearned": found[1]["unlearned"] if begins_alone else None}


def windows(impressions: int) -> Iterator[range]:
    """Yield the windows that partition a number of impressions.

    >>> [(len(window), window.stop) for window in windows(590)][-3:]
    [(50, 450), (56, 506), (84, 590)]
    """
    start = 0
    while start < impressions:
        end = start + max(FEWEST, start // _GROWTH)
        left = impressions - end
        if left < max(FEWEST, end // _GROWTH) / 2:  # too few for a window
            end = impressions
        yield range(start, end)
        start = end


def counted(lines: LoggedOutcomes) -> dict[str, int]:
    """Count answered impressions (clicked or left) and satisfied ones."""
    ends: dict[int, bool] = {}
    void = set()
    for number, outcome in lines:
        if outcome == VOIDED:
            void.add(number)
        elif is_satisfied(outcome) or outcome in (ABANDONED, TIMED_OUT):
            ends[number] = is_satisfied(outcome)
    answers = [clicked for number, clicked in ends.items() if number not in void]
    return {"answered": len(answers), "satisfied": sum(answers)}


def _read(store: Store, learner: int, impressions: int) -> dict[str, Any]:
    points = []
    for window in windows(impressions):
        read = window[:_MOST_READ]
        points.append(
            {"start": window.start, "end": window.stop, **counted(store.read.ends(learner, read.start, read.stop))}
        )
    first = list(store.read.ends(learner, 0, FIRST))
    early = counted((number, outcome) for number, outcome in first if number < UNLEARNED)
    unlearned = None if store.read.has_imported(learner, UNLEARNED) else _if_any(early)
    return {"points": points, "first": _if_any(counted(first)), "unlearned": unlearned}


def _if_any(counts: dict[str, int]) -> dict[str, int] | None:
    return counts if counts["answered"] else None
