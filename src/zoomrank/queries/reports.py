"""What a query tells others: visits and clicks of the subtrees in which it has found something.

A report is small, whatever the query has learned, and no subtree counts for more than some visits: a busy query must
not be all that its neighbours hear of.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.compiled import allocating, compiled
from zoomrank.numbers import Array

ROWS = 128  # the most subtrees that a report tells of
CAP = 100.0  # the most visits that a subtree counts for


class Report(NamedTuple):
    """A row for each subtree, in the order of their numbers; the root first, every other below its parent."""

    rows: (
        Array  # its number, then the bits of its visits and then of its clicks, slot by slot: one array of 4 bytes each
    )
    score: float  # how well its own loan has predicted its answers

    @property
    def node(self) -> Array:
        """The numbers of the subtrees."""
        return self.rows[:, 0]

    @property
    def visits(self) -> Array:
        """[row, slot]"""
        return counts_of(self.rows)[:, 1 : 1 + self.rows.shape[1] // 2]

    @property
    def clicks(self) -> Array:
        """[row, slot]"""
        return counts_of(self.rows)[:, 1 + self.rows.shape[1] // 2 :]


@compiled
def counts_of(rows: Array) -> Array:
    """Rows as fractions, where they are not the numbers of subtrees."""
    return rows.view(np.float32)


def report_with(node: Array, visits: Array, clicks: Array, score: float) -> Report:
    """The report that tells this."""
    rows = np.empty((len(node), 1 + 2 * visits.shape[1]), np.uint32)
    rows[:, 0] = node
    counts_of(rows)[:, 1:] = np.hstack((visits, clicks))
    return Report(rows, score)


def with_nodes(report: Report, node: Array) -> Report:
    """The same report of subtrees that have other numbers."""
    rows = report.rows.copy()
    rows[:, 0] = node
    return Report(rows, report.score)


def below_their_parents(report: Report, node: Array, parent: Array) -> Report:
    """The same report in another tree, where its subtrees are these nodes (-1: gone); the root first, in their order,
    without those whose parents it does not tell of.
    """
    rows = with_nodes(report, node).rows[node >= 0]
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    told: set[int] = set()
    kept = []
    for row, at in enumerate(rows[:, 0].tolist()):
        if at == 0 or int(parent[at]) in told:
            told.add(at)
            kept.append(row)
    return Report(np.ascontiguousarray(rows[kept]), report.score)


def report_of(state: Any) -> Report:
    """What a learner has to tell.

    It tells of what has the most clicks or, among equals, the most visits. No parent has fewer of either than its
    children, and parents stand before them: so nothing is told of without its parent.
    """
    rows = _rows(int(state.filled[0]), state.node, state.total, state.gains, state.plays, state.clicks)
    return Report(rows, float(state.score[0]))


@compiled
def _rows(filled: int, node: Array, total: Array, gains: Array, plays: Array, clicks: Array) -> Array:
    told = _told(filled, total, gains)
    told = told[np.argsort(node[told])]
    slots = plays.shape[1]
    rows = np.empty((len(told), 1 + 2 * slots), np.uint32)
    counts = counts_of(rows)
    for row in range(len(told)):
        at = told[row]
        share = np.float64(np.float32(min(1.0, CAP / total[at])))
        rows[row, 0] = node[at]
        for slot in range(slots):
            counts[row, 1 + slot] = share * plays[at, slot]
            counts[row, 1 + slots + slot] = share * clicks[at, slot]
    return rows


@allocating
def _told(filled: int, total: Array, gains: Array) -> Array:
    """The entries that there is something to tell of; those with the most clicks and visits, if there are too many.

    Of those that are as good as the last that there is room for, the first.
    """
    seen = np.flatnonzero(total[:filled])
    if len(seen) > ROWS:
        key = np.empty(len(seen), np.int64)
        for place in range(len(seen)):
            key[place] = np.int64(gains[seen[place]]) << 32 | np.int64(total[seen[place]])
        last = np.partition(key, len(key) - ROWS)[len(key) - ROWS]
        chosen = key > last
        room = ROWS - np.count_nonzero(chosen)
        chosen[np.flatnonzero(key == last)[:room]] = True
        seen = seen[chosen]
    return seen
