"""Queries that borrow from each other: their cost compared with queries that learn alone, and their memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from research.bench.measure import Row, in_fresh_process
from research.studies.query_zooming import QueryZooming
from zoomrank import DocumentTree, QueryRank, QueryTree, users

QUERIES, VISITS, GROUPS = 1_000, 100_000, 50
TIMES = 3
MANY = 100_000  # queries whose memory is measured

_MEMORY = """
from research.bench.measure import peak_memory
from research.bench.queries import MANY, each_twice
from zoomrank import DocumentTree, QueryRank, QueryTree
tree = DocumentTree.exponential(depth=4, branching=10, epsilon=0.5)
before = peak_memory()
ranker = QueryRank(tree, QueryTree.by_paths(), 5, seed=1)
each_twice(ranker, MANY)
print(before, peak_memory(), len(ranker.queries))
"""


def each_twice(ranker: QueryRank, queries: int) -> None:
    """Ask every query twice, in groups of twenty that want the same."""
    rng = np.random.default_rng(1)
    wanted = [_visitors(ranker.tree, rng) for _ in range(GROUPS)]
    for query in range(queries):
        for _ in range(2):
            ranking = ranker.rank(query, f"{query % 7} > {query // 20}")
            ranker.learn(ranking, wanted[query // 20 % GROUPS].click(ranking.documents, rng))


def traffic(ranker: Any, queries: int, visits: int, seed: int) -> Iterator[float]:
    """Simulate visitors by Zipf's law; yield the seconds of each ranking together with its feedback."""
    rng = np.random.default_rng(seed)
    share = 1 / (1 + rng.permutation(queries))
    wanted = [_visitors(ranker.tree, rng) for _ in range(GROUPS)]
    for query in rng.choice(queries, size=visits, p=share / share.sum()).tolist():
        begun = time.perf_counter()
        ranking = ranker.rank(query, f"{query % 7} > {query % GROUPS}")
        asked = time.perf_counter()
        click = wanted[query % GROUPS].click(ranking.documents, rng)
        clicked = time.perf_counter()
        ranker.learn(ranking, click)
        yield asked - begun + time.perf_counter() - clicked


def _visitors(tree: DocumentTree, rng: np.random.Generator) -> users.UserDistribution:
    places = tree.documents.at(rng.choice(len(tree), 3, replace=False).tolist())
    return users.peaks(tree, dict(zip(places, (0.5, 0.4, 0.3), strict=True)), background=0.02)


def _taken() -> list[float]:
    """Return the seconds of a visit alone, with borrowing, and by the paper's contextual zooming; in turns, the best of
    each.
    """
    tree = DocumentTree.exponential(depth=12)
    kinds: list[Callable[[], Any]] = [
        lambda: QueryRank(tree, QueryTree.by_paths(), 5, lend=False, live=10_000, seed=1),
        lambda: QueryRank(tree, QueryTree.by_paths(), 5, live=10_000, seed=1),
        lambda: QueryZooming(tree, 5, seed=1),
    ]
    best = [np.inf] * len(kinds)
    for _ in range(TIMES):
        for place, made in enumerate(kinds):
            seconds = list(traffic(made(), QUERIES, VISITS, seed=1))
            best[place] = min(best[place], sum(seconds[VISITS // 100 :]) / (VISITS - VISITS // 100))
    return best


def queries() -> Iterator[Row]:
    """Measure time and memory of `QueryRank`."""
    alone, lent, zooming = _taken()
    what = f"rank() + learn(), {QUERIES:,} queries, {VISITS:,} visits, best of {TIMES}"
    yield Row(f"{what}: every query alone", f"{1e6 * alone:.0f} µs", "")
    yield Row(f"{what}: queries that lend", f"{1e6 * lent:.0f} µs, {lent / alone:.2f} ×", "1.5 ×")
    yield Row(f"{what}: contextual zooming over both trees", f"{1e6 * zooming:.0f} µs, {zooming / alone:.2f} ×", "")
    before, after, asked = in_fresh_process(_MEMORY)
    yield Row(
        f"memory of {asked:,.0f} queries over 10,000 documents, each asked twice",
        f"{after:,.0f} MB, {before:,.0f} MB of them before the first",
        "2,000 MB",
    )
