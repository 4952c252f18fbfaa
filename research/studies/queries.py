"""Queries that learn from each other: traffic of many queries, and one query among siblings.

In traffic many queries are asked as in search logs, few often and most rarely, and learn at the same time. The
frequency of queries follows Zipf's law. Compared are: every query alone, queries that borrow from each other, one
learner for each group (which knows which queries are similar), one for all, and the paper's contextual zooming over the
trees of queries and of documents. Two worlds can be made from the user's own files: the leaves of a taxonomy, asked for
by visitors who take neighbouring leaves as well; and topics whose documents were judged by people. `carry_out`
simulates traffic, a world per process, and stores the results in a small file each, so that a study can be resumed.

Siblings are queries with three peaks, of which some are shared. Each sibling has learned alone for some visits. Then
the query is asked for the first time, and one of several learners begins.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from research.studies.query_zooming import QueryZooming
from zoomrank.bandits import LoanZooming
from zoomrank.errors import ParameterError
from zoomrank.files import atomic_file
from zoomrank.lab.registry import TREES, kept_tree, kept_users
from zoomrank.lab.simulator import simulate
from zoomrank.queries import QueryRank, QueryTree
from zoomrank.queries.loans import report_of
from zoomrank.rankers import Ranked, Ranking, ZoomRank
from zoomrank.spaces import DocumentTree
from zoomrank.types import Array
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


INSTANCES = 3


def kinds_of(manifest: Mapping[str, Any], folder: Path) -> list[TrafficKind]:
    """Return all kinds of traffic of a study, including those of the user's own files."""
    kinds = [*KINDS]
    if manifest.get("taxonomy"):
        file = str(folder / manifest["taxonomy"])
        kinds.append(TrafficKind("taxonomy", "leaves of the taxonomy; neighbours share two of three peaks", file=file))
    if manifest.get("judged"):
        files = tuple(str(folder / file) for file in manifest["judged"]["all"])
        kinds.append(TrafficKind("judged", "judged topics, which share nothing", file=files))
    return kinds


def carry_out(manifest: Mapping[str, Any], folder: Path, workers: int) -> Iterator[str]:
    """Carry out what is missing; yield the name of each finished part."""
    visits = VISITS if manifest["visits"] is None else min(VISITS, 10 * manifest["visits"])
    queries = max(10, QUERIES * visits // VISITS)
    missing = [
        (kind, instance)
        for instance in range(min(INSTANCES, manifest["instances"]))
        for kind in kinds_of(manifest, folder)
        if not _file(folder, kind, instance).exists()
    ]
    with ProcessPoolExecutor(workers) as pool:
        coming = {
            pool.submit(simulate_traffic, kind, instance, manifest["seed"], queries, visits): (kind, instance)
            for kind, instance in missing
        }
        for done in as_completed(coming):
            kind, instance = coming[done]
            with atomic_file(_file(folder, kind, instance)) as file:
                file.write(json.dumps(done.result()).encode())
            yield f"{kind.name}/{instance}"


def results_so_far(manifest: Mapping[str, Any], folder: Path) -> list[tuple[TrafficKind, Sequence[dict[str, Any]]]]:
    """Return the results so far."""
    results: list[tuple[TrafficKind, Sequence[dict[str, Any]]]] = []
    for kind in kinds_of(manifest, folder):
        files = [_file(folder, kind, instance) for instance in range(INSTANCES)]
        done = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]
        if done:
            results.append((kind, done))
    return results


def _file(folder: Path, kind: TrafficKind, instance: int) -> Path:
    (folder / "traffic").mkdir(exist_ok=True)
    return folder / "traffic" / f"{kind.name}-{instance}.json"
