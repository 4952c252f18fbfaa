"""Build a loan from reports: the pooled visits of similar queries, and how many visits they are worth to another.

Lenders are ordered by level: the borrower's own group first, then the group around it, and so on. The pool of a group
is the sum of the visits and clicks of its queries. The nearest pool lends first, the next ones fill up. The worth of a
pool depends on how much its queries differ beyond luck. If the click probability varies from query to query by the
share ρ of p(1 - p), the pool is worth 1/ρ - 1 visits of one's own to another query, however large the pool is. ρ is
estimated for each depth of the document tree, from all subtrees there that two queries or more have visited; the
estimate of the depth above is the prior.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from zoomrank.bandits import Loan
from zoomrank.compiled import allocating, compiled, separate
from zoomrank.numbers import Array
from zoomrank.queries.reports import QueryReport, counts_of
from zoomrank.spaces import DocumentTree
from zoomrank.spaces.trees.shape import node_depths

MOST_LENT = 200.0  # visits
ENTRIES = 256  # most subtrees in a loan
PRIOR_VARIATION = 1 / 11  # prior of ρ: worth ten visits
PRIOR_VARIANCE = 10.0  # variance at which the reports weigh as much as the prior
MOST_CREDIT = 2.0
PSEUDO_LENDERS = 4  # pseudo-lenders with a score of 0


class PoolTree(NamedTuple):
    """Arrays of the document tree that pooling needs."""

    parent: Array
    child_start: Array
    depth: Array
    place: Array  # scratch space, all zeros


def pool_tree(tree: DocumentTree) -> PoolTree:
    """Return the arrays of a document tree for pooling."""
    depth = node_depths(tree.shape.parent).astype(np.int64)
    return PoolTree(tree.shape.parent, tree.shape.child_start, depth, np.zeros(tree.nodes, np.int32))


def pooled_loan(levels: Sequence[Sequence[QueryReport]], tree: PoolTree, borrow: float) -> Loan | None:
    """Build the loan of the queries, the nearest level first; None if there are none."""
    reports = [report for level in levels for report in level]
    if not reports:
        return None
    rows, scores = zip(*reports, strict=True)
    ends = np.cumsum([sum(len(report.rows) for report in level) for level in levels if level])
    lent = _lend(np.concatenate(rows), ends, tree, borrow)
    credit = sum(scores) / (len(scores) + PSEUDO_LENDERS)
    return Loan(*lent, max(-MOST_CREDIT, min(MOST_CREDIT, credit)))


class _Pool(NamedTuple):
    """Summed visits and clicks for each node in any report; parents before children."""

    node: Array
    above: Array  # the place of its parent
    depth: Array
    counts: Array  # [node, column]: visits and then clicks, slot by slot
    total: Array  # visits in all slots
    gained: Array  # clicks in all slots


@compiled
def _lend(rows: Array, ends: Array, tree: PoolTree, borrow: float) -> tuple[Array, Array, Array]:
    """Lend from the nearest pool, and fill up from the next ones. Wider pools contain the narrower ones: the difference
    between near and far queries determines the worth of a far one.
    """
    which, pool = _empty_pool(rows, tree)
    slots = rows.shape[1] // 2
    lent, clicks = np.zeros((len(pool.node), slots)), np.zeros((len(pool.node), slots))
    seen = np.zeros((len(rows), 2))
    start = 0
    for end in ends:
        _add(pool, rows, which, seen, start, end)
        _lend_remaining(pool, _worth(pool, which[:end], seen), borrow, lent, clicks)
        start = end
    kept = _chosen(pool, tree.child_start)
    return pool.node[kept].astype(np.uint32), lent[kept].astype(np.float32), clicks[kept].astype(np.float32)


@allocating
def _empty_pool(rows: Array, tree: PoolTree) -> tuple[Array, _Pool]:
    """Return the place of each row in the pool, and an empty pool with these places. Rows list parents first."""
    place, size = tree.place, 0
    which, nodes = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    above = np.zeros(len(rows), np.int64)
    for row in range(len(rows)):
        node = np.int64(rows[row, 0])
        if place[node] == 0:
            nodes[size] = node
            above[size] = place[tree.parent[node]] - 1 if node != 0 else 0
            size += 1
            place[node] = size
        which[row] = place[node] - 1
    nodes, above = nodes[:size].copy(), above[:size].copy()
    for node in nodes:
        place[node] = 0
    counts = np.zeros((size, rows.shape[1] - 1))
    return which, _Pool(nodes, above, tree.depth[nodes], counts, np.zeros(size), np.zeros(size))


@allocating
def _add(pool: _Pool, rows: Array, which: Array, seen: Array, start: int, end: int) -> None:
    """Add rows to the pool; `seen` stores the visits and clicks of each in all slots."""
    columns, counts = rows.shape[1] - 1, counts_of(rows)
    for row in range(start, end):
        at, visits, clicks = which[row], 0.0, 0.0
        for column in range(columns // 2):
            visits += counts[row, 1 + column]
            clicks += counts[row, 1 + columns // 2 + column]
        for column in range(columns):
            pool.counts[at, column] += counts[row, 1 + column]
        pool.total[at] += visits
        pool.gained[at] += clicks
        seen[row, 0], seen[row, 1] = visits, clicks


@separate
def _lend_remaining(pool: _Pool, worth: Array, borrow: float, lent: Array, clicks: Array) -> None:
    """Lend the evidence of the pool beyond what nearer pools lent, up to its worth."""
    slots = lent.shape[1]
    for at in range(len(pool.node)):
        total, gained, most = pool.total[at], pool.gained[at], worth[pool.depth[at]]
        for slot in range(slots if total > 0.0 and most > 0.0 else 0):
            plays, found = pool.counts[at, slot], pool.counts[at, slots + slot]
            others = total - plays
            share = min(borrow, others) / others if others > 0.0 else 0.0  # like the sharing between slots
            seen = plays + share * others
            more = min(most, min(seen, MOST_LENT) - lent[at, slot])
            if more > 0.0:
                lent[at, slot] += more
                clicks[at, slot] += more * (found + share * (gained - found)) / seen


@allocating
def _worth(pool: _Pool, which: Array, seen: Array) -> Array:
    """Compute the worth of a pool in visits, for each depth of the document tree.

    The estimate is an analysis of variance: the squared deviations of the queries' click rates from the pooled one,
    weighted by visits, less the part explained by luck.
    """
    size, levels = len(pool.node), pool.depth.max() + 1
    queries, squares, spread = np.zeros(size), np.zeros(size), np.zeros(size)
    for row in range(len(which)):
        at, visits, clicks = which[row], seen[row, 0], seen[row, 1]
        if visits > 0.0:
            queries[at] += 1
            squares[at] += visits * visits
            spread[at] += (clicks - visits * pool.gained[at] / pool.total[at]) ** 2 / visits
    between, luck = np.zeros(levels), np.zeros(levels)
    for at in range(size):
        if queries[at] > 1.0:
            total, mean = pool.total[at], pool.gained[at] / pool.total[at]
            between[pool.depth[at]] += spread[at] - (queries[at] - 1.0) * mean * (1.0 - mean)
            luck[pool.depth[at]] += (total - squares[at] / total) * mean * (1.0 - mean)
    worth, share = np.empty(levels), PRIOR_VARIATION
    for level in range(levels):
        share = (max(between[level], 0.0) + PRIOR_VARIANCE * share) / (luck[level] + PRIOR_VARIANCE)
        worth[level] = min(MOST_LENT, max(0.0, 1.0 / max(share, 1e-9) - 1.0))
    return worth


@allocating
def _chosen(pool: _Pool, child_start: Array) -> Array:
    """Choose the places that a loan has room for, in the order of nodes: whole families, those with the most clicks
    first.
    """
    size = len(pool.node)
    key, is_parent = pool.gained.copy(), np.zeros(size, np.bool_)
    for back in range(1, size):
        above = pool.above[size - back]
        key[above] = max(key[above], key[size - back])
        is_parent[above] = True
    parents = np.flatnonzero(is_parent & (key > 0.0))
    parents = parents[np.argsort(pool.node[parents])]  # ties go to the lower node
    opened, room = np.zeros(size, np.bool_), np.int64(ENTRIES)
    for at in parents[np.argsort(-key[parents], kind="mergesort")]:
        if at == 0 or opened[pool.above[at]]:
            fan = np.int64(child_start[pool.node[at] + 1]) - np.int64(child_start[pool.node[at]])
            opened[at] = at == 0 or fan <= room  # the root is split at the first visit anyway
            room -= fan if opened[at] and at > 0 else np.int64(0)
    kept = opened[pool.above]
    kept[0] = True
    places = np.flatnonzero(kept)
    return places[np.argsort(pool.node[places])]
