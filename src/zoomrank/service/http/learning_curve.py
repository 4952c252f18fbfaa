"""How a query has learned: of the visitors that its impressions were shown to one after the other, how many clicked.

Impressions are counted in windows that grow as learning slows down: the first have fifty each, later ones an eighth of
all that were before them. Of a very long window two thousand are looked at, so that a query that was asked a million
times is read as quickly as one that was asked often.

The first twenty stand for what a random ranking earns, unless they came with the click log of another ranker. Where an
order of the caller led them they stand for that order: the log does not say so, and it is not guessed.
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

FEWEST = 50  # impressions of a window
_GROWTH = 8  # later ones have one for so many before them
_MOST_READ = 2_000  # impressions of a window
FIRST = 100
UNLEARNED = 20  # impressions, before which hardly anything can have been learned
_REMEMBERED = 256  # curves

Lines = Iterable[tuple[int, Outcome]]  # of the log: the number of an impression, and what became of it


class LearningCurves:
    """Curves of queries, read from the log when somebody looks, and remembered until there is more of it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: OrderedDict[int, tuple[Any, dict[str, Any]]] = OrderedDict()

    async def curve(self, served: ServedCollection, query: str) -> dict[str, Any]:
        """The curve of a query that somebody has asked."""
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
        begins_alone = served.neighbours is None  # else its first rankings were made of what others had seen
        return {"query": query, **found[1], "unlearned": found[1]["unlearned"] if begins_alone else None}


def windows(impressions: int) -> Iterator[range]:
    """The windows of so many impressions, which hold each of them once.

    >>> [(len(window), window.stop) for window in windows(590)][-3:]
    [(50, 450), (56, 506), (84, 590)]
    """
    start = 0
    while start < impressions:
        end = start + max(FEWEST, start // _GROWTH)
        left = impressions - end
        if left < max(FEWEST, end // _GROWTH) / 2:  # too few for one of their own
            end = impressions
        yield range(start, end)
        start = end


def counted(lines: Lines) -> dict[str, int]:
    """How many impressions were answered, by a click or by leaving, and how many of them by a click."""
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
