"""Traffic: many queries that are asked as in search logs, few often and most rarely, and learn at the same time.

The frequency of queries follows Zipf's law. Compared are: every query alone, queries that borrow from each other, one
learner for each group (which knows which queries are similar), one for all, and the paper's contextual zooming over the
trees of queries and of documents. Two worlds can be made from the user's own files: the leaves of a taxonomy, asked for
by visitors who take neighbouring leaves as well; and topics whose documents were judged by people.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from zoomrank.lab.catalogue import TREES
from zoomrank.lab.kept_worlds import kept_tree, kept_users
from zoomrank.lab.studies.query_zooming import QueryZooming
from zoomrank.numbers import Array
from zoomrank.queries import QueryRank, QueryTree
from zoomrank.spaces import DocumentTree
from zoomrank.users import UserDistribution, peaks

QUERIES, GROUPS, VISITS = 1_000, 50, 100_000
EDGES = (1, 10, 30, 100, 300, 1_000, 3_000)  # frequency of a query: lower edges of bins
SLOTS = 5
LEARNERS = ("alone", "lent", "a learner for each group", "one learner for all", "contextual zooming")
_VALUES = (0.5, 0.4, 0.3)


@dataclass(frozen=True)
class QueryCrowd:
    """Queries, their groups as the tree of queries has them, and their visitors."""

    tree: DocumentTree
    users: Sequence[UserDistribution]
    groups: Sequence[str]
    alike: Sequence[str]  # the true group of each query, whose visitors want the same


@dataclass(frozen=True)
class TrafficKind:
    """A kind of traffic."""

    name: str
    title: str
    shared: int = 0  # of three peaks, by all queries of a group
    permuted: bool = False
    file: str | tuple[str, ...] = ()

    def crowd(self, rng: np.random.Generator, queries: int) -> QueryCrowd:
        """Draw the queries."""
        if self.name == "taxonomy":
            return _leaves(TREES["taxonomy"](file=self.file), rng, queries)
        if self.name == "judged":
            return _topics(self.file)
        return _grouped(rng, queries, self.shared, self.permuted)


KINDS = (
    TrafficKind("shared", "queries of a group want the same", 3),
    TrafficKind("half-shared", "two of three peaks are those of the group", 2),
    TrafficKind("permuted", "queries of a group want the same, but the tree of queries is shuffled", 3, permuted=True),
    TrafficKind("unrelated", "every query wants something of its own"),
)


@lru_cache(1)
def _tree() -> DocumentTree:
    return DocumentTree.exponential(depth=12)


def _peaks(tree: DocumentTree, places: Iterable[int]) -> UserDistribution:
    chosen = tree.documents.at([int(place) for place in places])
    return peaks(tree, dict(zip(chosen, _VALUES, strict=True)), background=0.02)


def _grouped(rng: np.random.Generator, queries: int, shared: int, permuted: bool) -> QueryCrowd:
    tree, count = _tree(), max(1, queries * GROUPS // QUERIES)
    common = [rng.choice(len(tree), 3, replace=False) for _ in range(count)]
    same = [_peaks(tree, places) for places in common] if shared == 3 else []
    members = [query % count for query in range(queries)]
    users = []
    for group in members:
        own = rng.choice(len(tree), 3, replace=False)
        users.append(same[group] if same else _peaks(tree, [*common[group][:shared], *own[shared:]]))
    places = rng.permutation(members) if permuted else members
    alike = [str(group) if shared else str(query) for query, group in enumerate(members)]
    return QueryCrowd(tree, users, [str(place) for place in places], alike)


def _leaves(tree: DocumentTree, rng: np.random.Generator, queries: int) -> QueryCrowd:
    """Draw queries for leaves: visitors want the leaf, and two popular neighbouring leaves even more."""
    shape = tree.shape
    above = shape.parent[shape.leaf]
    fit = [int(node) for node in np.unique(above) if np.count_nonzero(above == node) >= 4]
    popular = {node: rng.choice(np.flatnonzero(above == node), 2, replace=False) for node in fit}
    asked = [int(place) for node in rng.permutation(fit) for place in np.flatnonzero(above == node)]
    asked = [place for place in asked if place not in popular[int(above[place])]][:queries]
    groups = [tree.name(int(above[place])) for place in asked]
    users = [_peaks(tree, [*popular[int(above[place])].tolist(), place]) for place in asked]
    return QueryCrowd(tree, users, groups, groups)


def _topics(files: str | tuple[str, ...]) -> QueryCrowd:
    """Return topics that share nothing, all in one group."""
    return QueryCrowd(
        kept_tree(file=files[0]),
        [kept_users(kept_tree(file=file), file=file, seed=None) for file in files],
        ["all"] * len(files),
        [str(number) for number in range(len(files))],
    )


def simulate_traffic(kind: TrafficKind, instance: int, seed: int, queries: int, visits: int) -> dict[str, Any]:
    """Simulate traffic; return, for each learner and bin, the number of clicks, and what greedy would collect."""
    rng = np.random.default_rng([seed, instance, 7])
    crowd = kind.crowd(rng, queries)
    count = len(crowd.users)
    share = 1 / (1 + rng.permutation(count))
    asked = rng.choice(count, size=visits, p=share / share.sum())
    often = np.bincount(asked, minlength=count)
    best = {
        id(users): users.greedy(SLOTS).satisfaction for users in {id(users): users for users in crowd.users}.values()
    }
    worth = np.array([best[id(users)] for users in crowd.users])
    bins = np.digitize(often, EDGES) - 1
    found = {learner: _by_bin(bins[asked], _clicks(learner, crowd, asked, [seed, instance])) for learner in LEARNERS}
    return {
        "visits": _by_bin(bins[asked], np.ones(visits)),
        "queries": _by_bin(bins[often > 0], np.ones(int((often > 0).sum()))),
        "greedy": _by_bin(bins[asked], worth[asked]),
        "clicks": found,
    }


def _by_bin(bins: Array, values: Array) -> list[float]:
    return [float(value) for value in np.bincount(bins, weights=values, minlength=len(EDGES))]


def _clicks(learner: str, crowd: QueryCrowd, asked: Array, seed: list[int]) -> Array:
    """Return which visits had a click."""
    visitors = np.random.default_rng([*seed, 8])
    if learner == "contextual zooming":
        zooming = QueryZooming(crowd.tree, SLOTS, seed=seed[1])
        return np.array(list(_visited(zooming, crowd, range(len(crowd.users)), asked, visitors)))
    names = list(range(len(crowd.users))) if learner in ("alone", "lent") else crowd.alike
    if learner == "one learner for all":
        names = ["all"] * len(crowd.users)
    queries = QueryTree.by_paths(dict(zip(names, crowd.groups, strict=True)))
    ranker = QueryRank(crowd.tree, queries, SLOTS, lend=learner == "lent", live=10_000, seed=seed[1])
    return np.array(list(_visited(ranker, crowd, names, asked, visitors)))


def _visited(
    ranker: Any, crowd: QueryCrowd, names: Sequence[Any], asked: Array, visitors: np.random.Generator
) -> Iterator[bool]:
    for query in asked.tolist():
        ranking = ranker.rank(names[query], crowd.groups[query])
        click = crowd.users[query].click(ranking.documents, visitors)
        ranker.learn(ranking, click)
        yield click is not None
