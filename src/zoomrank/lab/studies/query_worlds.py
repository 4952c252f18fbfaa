"""A query and its siblings, which have learned before it: how similar they are, and which learn from which.

All queries have three peaks; worlds differ in how many of them are shared. Each sibling has learned alone for some
visits. Then the query is asked for the first time, and one of several learners begins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from zoomrank.bandits import LoanZooming
from zoomrank.errors import ParameterError
from zoomrank.lab.simulator import simulate
from zoomrank.queries import QueryRank, QueryTree
from zoomrank.queries.reports import report_of
from zoomrank.rankers import Ranked, Ranking, ZoomRank
from zoomrank.spaces import DocumentTree
from zoomrank.users import UserDistribution, peaks

VALUES = (0.5, 0.4, 0.3)  # of the peaks
BACKGROUND = 0.02
LEARNED = 300  # visits of each sibling


@dataclass(frozen=True)
class Relation:
    """Relation of siblings to the query, and to each other."""

    title: str
    shared: int  # number of the query's peaks that are in the pool
    agreeing: float = 1.0  # the share of siblings that have the pool's peaks; each other has peaks of its own
    negative: bool = False  # negative control: nothing can be gained, only lost


RELATIONS = {
    "alike": Relation("all siblings want the same", 3),
    "half-alike": Relation("every second sibling wants the same, the others something of their own", 3, 0.5),
    "partly": Relation("all siblings agree, and share the best of three peaks with the query", 1),
    "unrelated": Relation("every query wants something of its own", 0, 0.0, negative=True),
    "misleading": Relation("all siblings agree, and the query wants nothing of it", 0, negative=True),
}


@dataclass(frozen=True)
class QueryWorld:
    """The visitors of a query, those of its siblings, and which siblings want the same."""

    users: UserDistribution
    siblings: list[UserDistribution]
    alike: list[bool]


def draw_world(tree: DocumentTree, rng: np.random.Generator, relation: str, siblings: int) -> QueryWorld:
    """Draw a world; the query is the same for any number of siblings."""
    if relation not in RELATIONS:
        raise ParameterError(f"Unknown relation {relation!r}; choose one of {', '.join(RELATIONS)}.")
    how = RELATIONS[relation]
    pool, own = _places(tree, rng), _places(tree, rng)
    agrees = [(sibling + 1) * how.agreeing % 1 < how.agreeing for sibling in range(siblings)]
    others = [_visitors(tree, pool if agreeing else _places(tree, rng)) for agreeing in agrees]
    wanted = [*pool[: how.shared], *own[how.shared :]]
    return QueryWorld(_visitors(tree, wanted), others, [agreeing and how.shared == len(VALUES) for agreeing in agrees])


def _places(tree: DocumentTree, rng: np.random.Generator) -> list[int]:
    return [int(place) for place in rng.choice(len(tree), len(VALUES), replace=False)]


def _visitors(tree: DocumentTree, places: list[int]) -> UserDistribution:
    values = dict(zip(tree.documents.at(places), VALUES, strict=True))
    return peaks(tree, values, background=BACKGROUND)


def query_users(tree: DocumentTree, *, seed: np.random.Generator, relation: str) -> UserDistribution:
    """Return the visitors of the query."""
    return draw_world(tree, seed, relation, 0).users


def _learned(tree: DocumentTree, slots: int, users: UserDistribution, rng: np.random.Generator) -> Ranked:
    ranker = Ranked(LoanZooming(tree), slots, seed=rng)
    simulate(ranker, users, LEARNED, seed=rng)
    return ranker


class Lent:
    """A query of a `QueryRank` whose siblings have learned before."""

    meets_others = True

    def __init__(
        self, tree: DocumentTree, slots: int, *, seed: Any, world: np.random.Generator, relation: str, siblings: int
    ) -> None:
        queries = QueryTree.by_paths(dict.fromkeys(range(siblings + 1), "all"))
        self.ranker = QueryRank(tree, queries, slots, seed=int(seed.integers(2**31)))
        self.query = siblings
        for number, users in enumerate(draw_world(tree, world, relation, siblings).siblings):
            report = report_of(_learned(tree, slots, users, world).state)
            self.ranker.lending.tell(number, report, LEARNED)

    def rank(self) -> Ranking:
        """Return the ranking for the next visitor."""
        return self.ranker.rank(self.query)

    def learn(self, ranking: Ranking, click: int | None) -> None:
        """Learn from the visitor's feedback."""
        self.ranker.learn(ranking, click)


def _one_learner(choose: Callable[[QueryWorld], list[UserDistribution]]) -> Callable[..., Ranked]:
    """Return a factory of learners trained on the visitors of some siblings, as if all had asked the same query."""

    def made(
        tree: DocumentTree, slots: int, *, seed: Any, world: np.random.Generator, relation: str, siblings: int
    ) -> Ranked:
        ranker = ZoomRank(tree, slots, seed=seed)
        for users in choose(draw_world(tree, world, relation, siblings)):
            simulate(ranker, users, LEARNED, seed=world)
        return ranker

    return made


def one_for_all(tree: DocumentTree, slots: int, **how: Any) -> Ranked:
    """Return one learner for all queries."""
    return _one_learner(lambda world: world.siblings)(tree, slots, **how)


def copied(tree: DocumentTree, slots: int, **how: Any) -> Ranked:
    """Return a copy of the last sibling's learner, which then continues alone."""
    return _one_learner(lambda world: world.siblings[-1:])(tree, slots, **how)


def oracle(tree: DocumentTree, slots: int, **how: Any) -> Ranked:
    """Return one learner for the queries that want the same, given which those are."""
    alike = _one_learner(lambda world: [users for users, same in zip(world.siblings, world.alike, strict=True) if same])
    return alike(tree, slots, **how)


for _maker in (one_for_all, copied, oracle):
    _maker.meets_others = True  # type: ignore[attr-defined]
