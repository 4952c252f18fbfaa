"""From reports to a loan: what similar queries have seen together, and how many visits that is worth to one more.

Queries that lend belong to levels: those of the borrower's own group first, then those of the group around it, and so
on. Visits and clicks of all queries of a group are added up: its pool. The nearest pool lends first, the next ones what
is still missing. How many visits a pool is worth depends on how much its queries differ beyond luck. If the chance of a
click varies from query to query by the share ρ of p(1 - p), one more query knows as much from the
pool as from 1/ρ - 1 visits of its own, however large the pool is. ρ is estimated for each depth of the tree of
documents, from all subtrees there that two queries or more have visited; the depth above says what to expect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from zoomrank.bandits import Loan
from zoomrank.compiled import compiled
from zoomrank.numbers import Array
from zoomrank.queries.reports import Report
from zoomrank.spaces import DocumentTree
from zoomrank.spaces.trees.shape import node_depths

MOST_LENT = 200.0  # visits
ENTRIES = 256  # the most subtrees that a loan tells apart
FIRST_GUESS = 1 / 11  # of ρ: worth ten visits
DOUBT = 10.0  # as much variance as it takes to believe the reports as much as the guess
MOST_CREDIT = 2.0
HESITATION = 4  # lenders who have said nothing about lending, as it were


class PoolTree(NamedTuple):
    """What pooling needs to know of the tree of documents."""

    parent: Array
    child_start: Array
    depth: Array
    place: Array  # zeros, to work with


def pool_tree(tree: DocumentTree) -> PoolTree:
    """Lay out a tree of documents for pooling."""
    depth = node_depths(tree.shape.parent).astype(np.int64)
    return PoolTree(tree.shape.parent, tree.shape.child_start, depth, np.zeros(tree.nodes, np.int32))


def pooled(levels: Sequence[Sequence[Report]], tree: PoolTree, borrow: float) -> Loan | None:
    """The loan that queries make together, those of the nearest level first; None if there are none."""
    levels = [level for level in levels if level]
    reports = [report for level in levels for report in level]
    if not reports:
        return None
    node, visits, clicks, scores = zip(*reports, strict=True)
    ends, rows = [], 0
    for level in levels:
        rows += sum(len(report.node) for report in level)
        ends.append(rows)
    lent = _lend(np.concatenate(node), np.concatenate(visits), np.concatenate(clicks), np.array(ends), tree, borrow)
    credit = sum(scores) / (len(scores) + HESITATION)
    return Loan(*lent, max(-MOST_CREDIT, min(MOST_CREDIT, credit)))


@compiled
def _lend(
    node: Array, visits: Array, clicks: Array, ends: Array, tree: PoolTree, borrow: float
) -> tuple[Array, Array, Array]:
    """Lend what the nearest pool has, and of the next ones what is still missing. Wider pools hold the narrower ones:
    how much near and far queries differ says how much a far one is worth.
    """
    rows, slots = visits.shape
    which, nodes = _numbered(node, tree.place)
    size = len(nodes)
    lent, clicked = np.zeros((size, slots)), np.zeros((size, slots))
    plays, found = np.zeros((size, slots)), np.zeros((size, slots))
    total, gained = np.zeros(size), np.zeros(size)
    row_visits, row_clicks = np.zeros(rows), np.zeros(rows)
    start = 0
    for end in ends:
        for row in range(start, end):
            at = which[row]
            for slot in range(slots):
                row_visits[row] += visits[row, slot]
                row_clicks[row] += clicks[row, slot]
                plays[at, slot] += visits[row, slot]
                found[at, slot] += clicks[row, slot]
            total[at] += row_visits[row]
            gained[at] += row_clicks[row]
        start = end
        worth = _worth(which[:end], nodes, row_visits, row_clicks, total, gained, tree.depth)
        for at in range(size):
            most = worth[tree.depth[nodes[at]]]
            for slot in range(slots if total[at] > 0.0 else 0):
                others = total[at] - plays[at, slot]
                share = min(borrow, others) / others if others > 0.0 else 0.0  # as slots lend each other
                seen = plays[at, slot] + share * others
                more = min(most, min(seen, MOST_LENT) - lent[at, slot])
                if seen > 0.0 and more > 0.0:
                    lent[at, slot] += more
                    clicked[at, slot] += more * (found[at, slot] + share * (gained[at] - found[at, slot])) / seen
    order = np.argsort(nodes)
    kept = order[_chosen(nodes[order], gained[order], tree.parent, tree.child_start)]
    return nodes[kept].astype(np.uint32), lent[kept].astype(np.float32), clicked[kept].astype(np.float32)


@compiled
def _numbered(node: Array, place: Array) -> tuple[Array, Array]:
    """Number the nodes of all rows: which is that of each row, and which node has which number."""
    which, nodes, size = np.empty(len(node), np.int64), np.empty(len(node), np.int64), 0
    for row in range(len(node)):
        if place[node[row]] == 0:
            nodes[size] = node[row]
            size += 1
            place[node[row]] = size
        which[row] = place[node[row]] - 1
    for number in range(size):
        place[nodes[number]] = 0
    return which, nodes[:size]


@compiled
def _worth(
    which: Array, nodes: Array, visits: Array, clicks: Array, total: Array, gained: Array, depth: Array
) -> Array:
    """How many visits a pool is worth to one more query, for each depth of the tree of documents.

    The estimate is that of an analysis of variance: what the queries' shares of clicks differ from that of all, squared
    and weighted by visits, less what luck explains.
    """
    size = len(nodes)
    queries, squares, spread = np.zeros(size), np.zeros(size), np.zeros(size)
    for row in range(len(which)):
        at, seen, clicked = which[row], visits[row], clicks[row]
        if seen > 0.0:
            queries[at] += 1
            squares[at] += seen * seen
            spread[at] += (clicked - seen * gained[at] / total[at]) ** 2 / seen
    deepest = 0
    for at in range(size):
        deepest = max(deepest, depth[nodes[at]])
    between, luck = np.zeros(deepest + 1), np.zeros(deepest + 1)
    for at in range(size):
        if queries[at] > 1.0:
            mean = gained[at] / total[at]
            between[depth[nodes[at]]] += spread[at] - (queries[at] - 1.0) * mean * (1.0 - mean)
            luck[depth[nodes[at]]] += (total[at] - squares[at] / total[at]) * mean * (1.0 - mean)
    worth, share = np.empty(deepest + 1), FIRST_GUESS
    for level in range(deepest + 1):
        share = (max(between[level], 0.0) + DOUBT * share) / (luck[level] + DOUBT)
        worth[level] = min(MOST_LENT, max(0.0, 1.0 / max(share, 1e-9) - 1.0))
    return worth


@compiled
def _chosen(node: Array, gains: Array, parent: Array, child_start: Array) -> Array:
    """Which rows a loan has room for: whole families, those of parents with the most clicks first."""
    size = len(node)
    above, key, is_parent = np.zeros(size, np.int64), gains.copy(), np.zeros(size, np.bool_)
    at = 0
    for row in range(1, size):
        while node[at] < parent[node[row]]:  # parents ascend as their children do
            at += 1
        above[row] = at
    for back in range(1, size):
        row = size - back
        key[above[row]] = max(key[above[row]], key[row])
        is_parent[above[row]] = True
    opened, room = np.zeros(size, np.bool_), np.int64(ENTRIES)
    for row in np.argsort(-key, kind="mergesort"):
        if is_parent[row] and key[row] > 0.0 and (row == 0 or opened[above[row]]):
            fan = np.int64(child_start[node[row] + 1]) - np.int64(child_start[node[row]])
            opened[row] = row == 0 or fan <= room  # the root's children are told apart at the first visit anyway
            room -= fan if opened[row] and row > 0 else np.int64(0)
    kept = np.zeros(size, np.bool_)
    kept[0] = True
    for row in range(1, size):
        kept[row] = opened[above[row]]
    return kept
