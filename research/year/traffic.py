"""`ShopTraffic`: visitors of a shop ask, look, and click; some of that is reported, some late, some never.

They come in batches, so that simultaneous requests share a write. Feedback waits for its time. `SearchEngine` is an
external one that sends candidates, from an index that differs from the catalogue.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from research.year.service_handle import ServiceHandle
from research.year.shop import DAY, GONE, Plan, Shop, Tastes, name_of, number_of
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.engine import Engine
from zoomrank.service.errors import ExpiredError, NotFoundError, StoppingError, VoidedError
from zoomrank.service.rank_options import RankOptions
from zoomrank.types import Array

_FEWEST, _MOST = 200, 3000  # candidates
_FOUND = 0.8  # share of the products on the shelves of a query that it finds
_UNKNOWN = 0.02  # share of candidates that the catalogue lacks
_NARROW, _FEW = 0.05, 8  # this share of lists has fewer candidates than this


class SearchEngine:
    """Index of the search engine on one day."""

    def __init__(self, shop: Shop, tastes: Tastes, rng: np.random.Generator) -> None:
        self._shop, self._tastes, self._rng = shop, tastes, rng
        self._there = rng.permutation(shop.there)
        gone = np.flatnonzero(shop.shelf == GONE)
        unknown = np.concatenate([rng.permutation(gone)[:500], len(shop.shelf) + np.arange(100)])
        self._unknown = rng.permutation(unknown)
        self._near: dict[int, Array] = {}

    def candidates(self, query: int) -> list[str]:
        """Return the ids of some matching products, a few of them unknown to the service."""
        return [name_of(number) for number in self.found(query)]

    def found(self, query: int) -> list[int]:
        """Return the same products by their numbers."""
        rng = self._rng
        near = self._of(query)
        found = near[rng.random(len(near)) < _FOUND]
        if rng.random() < _NARROW:
            chosen = rng.permutation(found)[: rng.integers(1, _FEW)]
        else:
            size = int(np.exp(rng.uniform(np.log(_FEWEST), np.log(_MOST))))
            begin = int(rng.integers(len(self._there)))
            chosen = np.concatenate([found, self._there[begin : begin + max(0, size - len(found))]])
        more = int(np.ceil(_UNKNOWN * len(chosen)))
        strange = self._unknown[rng.integers(len(self._unknown), size=more)]
        return list(dict.fromkeys([*chosen.tolist(), *strange.tolist()]))

    def _of(self, query: int) -> Array:
        """Return the products on the shelves that a query is about."""
        if query not in self._near:
            shelves = self._tastes.likes(query)
            self._near[query] = self._there[np.isin(self._shop.shelf[self._there], shelves)]
        return self._near[query]


FEEDBACK_DEADLINE = 4 * 3600.0  # feedback deadline, in seconds
_AT_ONCE = 32  # visitors per batch
_A_WHILE = 600.0  # seconds: feedback within such a span is sent in one batch
_LOOKING = 900.0  # mean seconds until feedback
LISTS = 1 / 3  # share of visits with a list of candidates
_SAYS_NO = 0.5  # share of visits without a click that are reported as such; the others are not reported
LOST, _LATE = 0.02, 0.01  # shares of clicks


@dataclass
class SimulatedClock:
    """Simulated clock, advanced by the simulation."""

    time: float

    def __call__(self) -> float:
        """Return the simulated time."""
        return self.time


class PendingFeedback(NamedTuple):
    """Feedback that is on its way."""

    time: float
    order: int
    impression: str
    clicked: str | None


@dataclass
class Tally:
    """Counts of visits by outcome, and the quality of the rankings."""

    counts: Counter[str] = field(default_factory=Counter)
    quality: float = 0.0  # sum of the satisfaction of rankings without a list of candidates
    rankings: int = 0


class ShopTraffic:
    """All visitors of a shop."""

    def __init__(self, plan: Plan, tastes: Tastes, shop: Shop, clock: SimulatedClock, rng: np.random.Generator) -> None:
        self.shop, self.clock = shop, clock
        self.tally = Tally()
        self._plan, self._tastes, self._rng = plan, tastes, rng
        self._answers: list[PendingFeedback] = []
        self._order = 0

    async def day(
        self, engine: Engine, served: ServedCollection, queries: Array, season: int, nonsense: str | None = None
    ) -> None:
        """Simulate a day on which these queries are asked."""
        await self.hours(engine, served, queries, season, self.clock.time + DAY, nonsense)

    async def hours(
        self,
        engine: Engine,
        served: ServedCollection,
        queries: Array,
        season: int,
        until: float,
        nonsense: str | None = None,
    ) -> None:
        """Simulate some hours of a day."""
        search = SearchEngine(self.shop, self._tastes, self._rng)
        groups = np.array_split(queries, max(1, len(queries) // _AT_ONCE))
        begin = self.clock.time
        for number, group in enumerate(groups):
            await self.wait_until(engine, begin + number * (until - begin) / len(groups))
            visits = [self._visit(engine, served, int(query), season, search, nonsense) for query in group]
            if await self._all_known(engine, served, group):
                await asyncio.gather(*visits)
            else:  # one after the other, so that new learners get the same ids for the same seed
                for visit in visits:
                    await visit
        await self.wait_until(engine, until)

    async def die(self, kept: ServiceHandle, queries: Array, season: int) -> None:
        """Kill the service while it stores the rankings of the second half of these visitors."""
        search = SearchEngine(self.shop, self._tastes, self._rng)
        visits = [self._visit(kept.engine, kept.shop, int(query), season, search, None) for query in queries]
        await asyncio.gather(*visits[::2])
        others = [asyncio.create_task(visit) for visit in visits[1::2]]
        await asyncio.sleep(0)
        await kept.kill()
        await asyncio.gather(*others)

    async def _all_known(self, engine: Engine, served: ServedCollection, group: Array) -> bool:
        """Return whether all queries of a group were asked before, so that their learners are in memory."""
        for query in np.unique(group).tolist():
            if await engine.learners.find(served, self._tastes.queries[query]) is None:
                return False
        return True

    async def wait_until(self, engine: Engine, time: float) -> None:
        """Advance the time: send feedback that is due, and let impressions without any expire."""
        while self._answers and self._answers[0].time <= time:
            together = self._due(min(time, self._answers[0].time + _A_WHILE))
            self.clock.time = max(self.clock.time, together[-1].time)
            await asyncio.gather(*(self._answer(engine, one) for one in together))
        self.clock.time = time
        await engine.housekeep()

    def _due(self, time: float) -> list[PendingFeedback]:
        """Return the next batch of feedback due by then."""
        due: list[PendingFeedback] = []
        while self._answers and self._answers[0].time <= time and len(due) < _AT_ONCE:
            due.append(heapq.heappop(self._answers))
        return due

    def break_off(self, time: float) -> None:
        """Drop the feedback that is due by then, as during an outage."""
        kept = [answer for answer in self._answers if answer.time > time]
        self.tally.counts["answers during an outage"] += len(self._answers) - len(kept)
        heapq.heapify(kept)
        self._answers = kept
        self.clock.time = time

    async def _answer(self, engine: Engine, answer: PendingFeedback) -> None:
        try:
            self.tally.counts[await engine.feedback(answer.impression, answer.clicked)] += 1
        except ExpiredError:
            self.tally.counts["expired"] += 1
        except (VoidedError, NotFoundError) as error:
            self.tally.counts[error.code] += 1

    async def _visit(
        self,
        engine: Engine,
        served: ServedCollection,
        query: int,
        season: int,
        search: SearchEngine,
        nonsense: str | None,
    ) -> None:
        rng = np.random.default_rng(
            self._rng.integers(2**62)
        )  # one per visitor, so that the order of feedback does not matter
        listed = "candidates" in self._plan.happening and rng.random() < LISTS
        among = search.candidates(query) if listed else None
        try:
            impression, documents = await engine.rank(
                served, self._tastes.queries[query], RankOptions(eligible=among, unknown="skip", fewer=True)
            )
        except StoppingError:
            self.tally.counts["visits during an outage"] += 1
            return
        self.tally.counts["visits"] += 1
        self.tally.counts["with candidates"] += listed
        if not impression:
            self.tally.counts["nothing to show"] += 1
            return
        products = np.array([number_of(document["id"]) for document in documents])
        if not listed:
            self.tally.quality += self._tastes.satisfaction(query, season, self.shop, products)
            self.tally.rankings += 1
        slot = self._tastes.click(query, season, self.shop, products, rng)
        clicked = documents[0]["id"] if nonsense else None if slot is None else documents[slot]["id"]
        self._report(impression, clicked, nonsense, rng)

    def _report(self, impression: str, clicked: str | None, nonsense: str | None, rng: np.random.Generator) -> None:
        """Schedule the feedback of a visit, if there is any."""
        wait, chance = rng.exponential(_LOOKING), rng.random()
        silence = "silence" in self._plan.happening and clicked is not None and not nonsense
        if nonsense == "clicks lost" or (silence and chance < LOST) or (clicked is None and chance > _SAYS_NO):
            return
        if silence and chance < LOST + _LATE:
            wait += FEEDBACK_DEADLINE
        self._order += 1
        heapq.heappush(self._answers, PendingFeedback(self.clock.time + wait, self._order, impression, clicked))
