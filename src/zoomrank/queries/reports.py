"""Reports between queries: visits and clicks of the subtrees in which a query was clicked.

A report is small, whatever the query has learned, and caps the visits of each subtree: a busy query must not drown out
its neighbours' other lenders.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.compiled import allocating, compiled
from zoomrank.numbers import Array

ROWS = 128  # most subtrees in a report
CAP = 100.0  # most visits that a subtree counts for


class QueryReport(NamedTuple):
    """A row for each subtree, ordered by node; the root first, every other with its parent."""

    rows: (
        Array  # its number, then the bits of its visits and then of its clicks, slot by slot: one array of 4 bytes each
    )
    score: float  # score of the query's own loan

    @property
    def node(self) -> Array:
        """Numbers of the subtrees."""
        return self.rows[:, 0]

    @property
    def visits(self) -> Array:
        """Visits, [row, slot]."""
        return counts_of(self.rows)[:, 1 : 1 + self.rows.shape[1] // 2]

    @property
    def clicks(self) -> Array:
        """Clicks, [row, slot]."""
        return counts_of(self.rows)[:, 1 + self.rows.shape[1] // 2 :]


@compiled
def counts_of(rows: Array) -> Array:
    """Return the count columns of rows as fractions."""
    return rows.view(np.float32)


def make_report(node: Array, visits: Array, clicks: Array, score: float) -> QueryReport:
    """Build a report from arrays."""
    rows = np.empty((len(node), 1 + 2 * visits.shape[1]), np.uint32)
    rows[:, 0] = node
    counts_of(rows)[:, 1:] = np.hstack((visits, clicks))
    return QueryReport(rows, score)


def with_nodes(report: QueryReport, node: Array) -> QueryReport:
    """Return the same report with renumbered subtrees."""
    rows = report.rows.copy()
    rows[:, 0] = node
    return QueryReport(rows, report.score)


def remapped_report(report: QueryReport, node: Array, parent: Array) -> QueryReport:
    """Return the report in another tree, where its subtrees are these nodes (-1: gone): the root first, in node order,
    without rows whose parent is missing.
    """
    rows = with_nodes(report, node).rows[node >= 0]
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    told: set[int] = set()
    kept = []
    for row, at in enumerate(rows[:, 0].tolist()):
        if at == 0 or int(parent[at]) in told:
            told.add(at)
            kept.append(row)
    return QueryReport(np.ascontiguousarray(rows[kept]), report.score)


def report_of(state: Any) -> QueryReport:
    """Build the report of a learner.

    It has the subtrees with the most clicks or, among equals, the most visits. No parent has fewer of either than its
    children, and parents come first, so no subtree is reported without its parent.
    """
    rows = _rows(int(state.filled[0]), state.node, state.total, state.gains, state.plays, state.clicks)
    return QueryReport(rows, float(state.score[0]))


@compiled
def _rows(filled: int, node: Array, total: Array, gains: Array, plays: Array, clicks: Array) -> Array:
    told = _reported_entries(filled, total, gains)
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
def _reported_entries(filled: int, total: Array, gains: Array) -> Array:
    """Choose the entries to report: those with the most clicks and visits, if there are too many.

    Ties for the last place go to the first entry.
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
