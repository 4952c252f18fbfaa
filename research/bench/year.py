"""Cost of a shop's year for its learners, without a service: `python -m research.bench.year --visits 50`.

The shop, the tastes and the changes are those of `zoomrank year`, and learners are remapped to every version. Each
query is asked equally often. The control has the catalogue and the tastes of the last day from the first day on. A year
of 24 queries with 50 visits a day takes some minutes, so that the cost of each event can be compared query by query.
"""

from __future__ import annotations

import argparse

import numpy as np

import zoomrank as zr
from research.year.shop import Plan, Shop, Tastes, number_of
from research.year.simulation import CHANGES
from research.year.traffic import LISTS, LOST, SearchEngine
from zoomrank.documents import CollectionVersion
from zoomrank.spaces import Eligible
from zoomrank.types import Array

SLOTS, PRODUCTS, NEXT_VISITORS = 5, 12_000, 100
UNKNOWN = 100  # products that a search engine knows before the catalogue does


class World:
    """A shop on one day, and its visitors."""

    def __init__(self, plan: Plan, queries: int, seed: int) -> None:
        rng = np.random.default_rng([seed, 1])
        self.plan, self.shop, self.day = plan, Shop(PRODUCTS, rng), 0
        self.tastes = Tastes(self.shop, queries, rng)
        self.tastes.with_seasons = "seasons" in plan.happening
        self._rng = np.random.default_rng([seed, 2])
        if self.tastes.with_seasons:
            self.shop.turn(plan.season(0), rng)
        self.version = CollectionVersion.first(self.shop.collection())
        self._look()

    def next_day(self) -> None:
        """Go on to the next day."""
        shop, rng = self.shop, self._rng
        self.day += 1
        changes = []
        if "changes" in self.plan.happening:
            changes.append(shop.day(CHANGES, rng, moves="moves" in self.plan.happening))
        if self.plan.turns(self.day):
            changes.append(shop.turn(self.plan.season(self.day), rng))
        for some in changes:
            self.version = self.version.changed(self.version.placed(some))
        self._look()

    def _look(self) -> None:
        self.tree = self.version.collection.tree
        self.products = np.array([number_of(str(name)) for name in self.tree.documents])
        self._place = np.full(len(self.shop.shelf) + UNKNOWN, len(self.products))
        self._place[self.products] = np.arange(len(self.products))
        self._search = SearchEngine(self.shop, self.tastes, self._rng)

    def candidates(self, query: int) -> Eligible:
        """Return the candidates of a search engine that exist."""
        chosen = np.zeros(len(self.products) + 1, bool)
        chosen[self._place[self._search.found(query)]] = True
        return Eligible(self.tree.documents, chosen[:-1])

    def visit(self, ranker: zr.Ranked, query: int, lists: bool, rng: np.random.Generator) -> Array:
        """Simulate a visit, possibly with a list of candidates, and let the ranker learn; return the ranking."""
        season = self.plan.season(self.day)
        among = self.candidates(query) if lists and rng.random() < LISTS else None
        slots = SLOTS if among is None else min(SLOTS, len(among))
        if slots == 0:
            return self.products[:0]
        rankings = ranker.rank_arrays(1, among, slots)
        products: Array = self.products[rankings.shown[0]]
        click = self.tastes.click(query, season, self.shop, products, rng)
        lost = "silence" in self.plan.happening and rng.random() < LOST
        ranker.learn_arrays(rankings, np.array([slots if click is None or lost else click]))
        return products

    def next_visitors(self, ranker: zr.Ranked, query: int, rng: np.random.Generator) -> float:
        """Return the satisfaction of some more visitors, who teach a copy."""
        copy, season = ranker.copied(), self.plan.season(self.day)
        shown = [self.visit(copy, query, lists=False, rng=rng) for _ in range(NEXT_VISITORS)]
        return float(np.mean([self.tastes.satisfaction(query, season, self.shop, products) for products in shown]))


def ends(world: World, rankers: list[zr.Ranked], seed: int) -> Array:
    """Return the satisfaction of each query's learner."""
    rngs = (np.random.default_rng([seed, 3, query]) for query in range(len(rankers)))
    return np.array([world.next_visitors(*each) for each in zip(rankers, range(len(rankers)), rngs, strict=True)])


def fresh(world: World, queries: int, seed: int) -> list[zr.Ranked]:
    """Return new learners."""
    return [zr.ZoomRank(world.tree, SLOTS, seed=seed + query) for query in range(queries)]


def main() -> None:
    """Print the result of a year."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=24)
    parser.add_argument("--visits", type=int, default=50, help="of each query a day")
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without", default="", help="what to leave out, as in zoomrank year")
    asked = parser.parse_args()
    plan = Plan.of(asked.days, [name for name in asked.without.split(",") if name])
    world, lists = World(plan, asked.queries, asked.seed), "candidates" in plan.happening
    rngs = [np.random.default_rng([asked.seed, 4, query]) for query in range(asked.queries)]
    lived = fresh(world, asked.queries, asked.seed)
    for day in range(asked.days):
        before = world.version
        if day:
            world.next_day()
        if world.version is not before:
            movement = before.remap_to(world.version)
            for ranker in lived:
                ranker.move(world.tree, movement)
                ranker.moves = []  # all feedback has arrived
        for query, ranker in enumerate(lived):
            for _ in range(asked.visits):
                world.visit(ranker, query, lists, rngs[query])
    control = fresh(world, asked.queries, asked.seed)
    for query, ranker in enumerate(control):
        for _ in range(asked.visits * asked.days):
            world.visit(ranker, query, lists, rngs[query])
    season = plan.season(world.day)
    best = np.array([world.tastes.greedy(query, season, world.shop, SLOTS) for query in range(asked.queries)])
    year, calm = ends(world, lived, asked.seed), ends(world, control, asked.seed)
    error = np.std(year - calm, ddof=1) / np.sqrt(asked.queries) / calm.mean()
    print(
        f"{asked.visits} visits a day, without {asked.without or 'nothing'}: undisturbed {calm.sum() / best.sum():.1%} "
        f"of greedy, after the year {year.sum() / best.sum():.1%}: {year.sum() / calm.sum() - 1:+.1%} ± {error:.1%}"
    )


if __name__ == "__main__":
    main()
