"""`YearSimulation`: the simulation of a shop and its service, day by day.

Learners learn only from visitors. Everything else reaches the service as a shop would send it: new and removed products
as changes of the catalogue, a bad deploy as a span of time to void.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from research.year.service_handle import COLLECTION, ServiceHandle, StorePlace
from research.year.shop import BAD_DAYS, DAY, Change, Plan, Shop, Tastes, number_of
from research.year.traffic import FEEDBACK_DEADLINE, ShopTraffic, SimulatedClock
from zoomrank.service.catalogue.settings import Settings
from zoomrank.service.copies import Copies
from zoomrank.service.feedback import ImpressionFeedback
from zoomrank.service.learners.void import ImpressionFilter
from zoomrank.types import Array

START = 1_767_225_600.0  # the first of January 2026
CHANGES = 0.02  # share of products that change every day
_OUTAGE = 5 * 3600.0  # seconds
_NEXT_VISITORS = 100  # visitors of each query, for measuring its learner

Tell = Callable[[int, int], None]


@dataclass
class Timings:
    """Durations, in seconds."""

    changes: list[float] = field(default_factory=list)  # to build and store another version of the catalogue
    moves: list[float] = field(default_factory=list)  # to remap all learners
    voids: list[float] = field(default_factory=list)
    restore: float = 0.0
    all: float = 0.0


@dataclass
class YearRecord:
    """Record of a simulated year."""

    weeks: list[float] = field(default_factory=list)  # satisfaction of the rankings shown, by week
    best: list[float] = field(default_factory=list)  # satisfaction of the greedy rankings, from full information
    asked: list[Array] = field(default_factory=list)  # the queries of each day
    voided: int = 0
    timings: Timings = field(default_factory=Timings)
    end: Array = field(default_factory=lambda: np.zeros(0))  # satisfaction of each query at the end


_KEPT = 60 * 86_400.0  # retention of events, in seconds


class YearSimulation:
    """The simulated shop, its visitors and its plan; the same seed gives the same year."""

    def __init__(self, plan: Plan, products: int, queries: int, visits: int, slots: int, seed: int) -> None:
        worlds, self._days, self._asking, visitors, control, self._last = np.random.SeedSequence(seed).spawn(6)
        rng = np.random.default_rng(worlds)
        self.plan, self.visits, self.slots = plan, visits, slots
        self.shop = Shop(products, rng)
        self.tastes = Tastes(self.shop, queries, rng)
        self.tastes.with_seasons = "seasons" in plan.happening
        if self.tastes.with_seasons:
            self.shop.turn(plan.season(0), rng)
        self._visitors, self._control = visitors, control

    # The year itself.

    async def live(
        self, kept: ServiceHandle, clock: SimulatedClock, elsewhere: StorePlace, backup: Path, tell: Tell
    ) -> YearRecord:
        """Simulate a year with everything that happens in it."""
        lived = YearRecord()
        began = time.perf_counter()
        days, asking = np.random.default_rng(self._days), np.random.default_rng(self._asking)
        self.traffic = traffic = ShopTraffic(
            self.plan, self.tastes, self.shop, clock, np.random.default_rng(self._visitors)
        )
        await self._open(kept)
        for day in range(self.plan.days):
            season = self.plan.season(day)
            await self._change(kept, traffic, lived, self._changes_of(day, days))
            await self._notice(kept, day, lived)
            if "restored elsewhere" in self.plan.on(day):
                moved = time.perf_counter()
                await kept.move(elsewhere, backup)
                lived.timings.restore = time.perf_counter() - moved
                await self._bring_back(kept)
            lived.asked.append(asking.choice(len(self.tastes.queries), self.visits, p=self.tastes.asked(season)))
            await self._day(kept, traffic, day, lived.asked[-1])
            if _note_week(traffic, lived, day, self.plan.days):
                lived.best.append(float(self.tastes.asked(season) @ self.knowing(day)))
            tell(day + 1, self.plan.days)
        lived.end = await self._measure(kept)
        lived.timings.all = time.perf_counter() - began
        return lived

    async def _open(self, kept: ServiceHandle) -> None:
        await kept.start()
        settings = Settings(slots=self.slots, feedback_within=FEEDBACK_DEADLINE, keep_events=_KEPT)
        await kept.engine.collections.add(COLLECTION, self.shop.collection, settings)

    def _changes_of(self, day: int, rng: np.random.Generator) -> list[list[Change]]:
        """Return the changes of the shop before a day begins, in the order in which the service receives them."""
        changes = []
        if day and "changes" in self.plan.happening:
            changes.append(self.shop.day(CHANGES, rng, moves="moves" in self.plan.happening))
        if self.plan.turns(day):
            changes.append(self.shop.turn(self.plan.season(day), rng))
        if "category moved" in self.plan.on(day):
            changes.append(self.shop.move_category(rng))
        if "category renamed" in self.plan.on(day):
            changes.append(self.shop.rename_category(rng))
        return changes

    async def _change(
        self, kept: ServiceHandle, traffic: ShopTraffic, lived: YearRecord, changes: list[list[Change]]
    ) -> None:
        """Send the changes, and remap learners at once, to measure the time."""
        for some in changes:
            began = time.perf_counter()
            await kept.engine.updates.change(kept.shop, some)
            made = time.perf_counter()
            await kept.engine.housekeep()
            lived.timings.changes.append(made - began)
            lived.timings.moves.append(time.perf_counter() - made)
            traffic.tally.counts["changes"] += len(some)

    async def _notice(self, kept: ServiceHandle, day: int, lived: YearRecord) -> None:
        """Void the feedback of a bad deploy, if it is noticed on this day."""
        found = self.plan.noticed(day)
        if found is not None:
            began = time.perf_counter()
            since = START + found[1] * DAY
            voided, _ = await kept.engine.void(kept.shop, ImpressionFilter(since=since, until=since + BAD_DAYS * DAY))
            lived.voided += voided
            lived.timings.voids.append(time.perf_counter() - began)

    async def _day(self, kept: ServiceHandle, traffic: ShopTraffic, day: int, asked: Array) -> None:
        """Simulate the visits of a day; on the day of an outage, of its hours before and after."""
        await kept.tidy()
        season, nonsense = self.plan.season(day), self.plan.nonsense(day)
        if not any("outage" in name for name in self.plan.on(day)):
            await traffic.day(kept.engine, kept.shop, asked, season, nonsense)
            return
        begin = traffic.clock.time
        hours = np.array_split(asked, 24)
        await traffic.hours(kept.engine, kept.shop, np.concatenate(hours[:10]), season, until=begin + 10 * 3600.0)
        await traffic.die(kept, hours[10], season)
        traffic.break_off(begin + 10 * 3600.0 + _OUTAGE)
        await kept.start()
        await self._bring_back(kept)
        await traffic.hours(kept.engine, kept.shop, np.concatenate(hours[15:]), season, until=begin + DAY)

    async def _bring_back(self, kept: ServiceHandle) -> None:
        """Load all learners in order: the result must not depend on the speed of the machine."""
        for query in self.tastes.queries:
            await kept.engine.learners.find(kept.shop, query)

    # The undisturbed service it is compared with.

    async def undisturbed(
        self, kept: ServiceHandle, clock: SimulatedClock, lived: YearRecord, tell: Tell
    ) -> YearRecord:
        """Simulate a new service on the catalogue of the last day, with the same number of visits of each query."""
        control = YearRecord(asked=lived.asked)
        season = self.plan.season(self.last_day)
        plan = self.plan.undisturbed()
        traffic = ShopTraffic(plan, self.tastes, self.shop, clock, np.random.default_rng(self._control))
        await self._open(kept)
        for day, asked in enumerate(lived.asked):
            await kept.tidy()
            await traffic.day(kept.engine, kept.shop, asked, season)
            _note_week(traffic, control, day, plan.days)
            tell(day + 1, plan.days)
        control.end = await self._measure(kept)
        return control

    async def _measure(self, kept: ServiceHandle) -> Array:
        """Return the exact satisfaction of the next visitors of each query, who teach a copy of its learner."""
        season, rng = self.plan.season(self.last_day), np.random.default_rng(self._last)
        copies, found = Copies(kept.engine), []
        for number, query in enumerate(self.tastes.queries):
            copy = await copies.make(kept.shop, query)
            found.append(np.mean([self._next(copies, copy.name, number, season, rng) for _ in range(_NEXT_VISITORS)]))
        return np.array(found)

    def _next(self, copies: Copies, name: str, query: int, season: int, rng: np.random.Generator) -> float:
        copy = copies.find(name)
        impression, documents = copies.rank(copy)
        products = np.array([number_of(document["id"]) for document in documents])
        slot = self.tastes.click(query, season, self.shop, products, rng)
        clicked = ImpressionFeedback.of_click(None if slot is None else documents[slot]["id"])
        copies.feedback(copy, [(impression, clicked)])
        return self.tastes.satisfaction(query, season, self.shop, products)

    @property
    def last_day(self) -> int:
        """Day on which learners are compared."""
        return self.plan.days - 1

    def knowing(self, day: int) -> Array:
        """Return the satisfaction of each query on a day with greedy rankings, from full information."""
        season = self.plan.season(day)
        queries = range(len(self.tastes.queries))
        return np.array([self.tastes.greedy(query, season, self.shop, self.slots) for query in queries])

    def by_chance(self) -> Array:
        """Return the satisfaction of each query on the last day with random rankings."""
        season, rng = self.plan.season(self.last_day), np.random.default_rng(self._last)
        queries = range(len(self.tastes.queries))
        return np.array([self.tastes.random(query, season, self.shop, self.slots, rng) for query in queries])


def _note_week(traffic: ShopTraffic, lived: YearRecord, day: int, days: int) -> bool:
    """Record the quality of the rankings of a week, if it ends on this day."""
    ends = day % 7 == 6 or day == days - 1
    if ends:
        lived.weeks.append(traffic.tally.quality / max(traffic.tally.rankings, 1))
        traffic.tally.quality, traffic.tally.rankings = 0.0, 0
    return ends
