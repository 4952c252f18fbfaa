"""Loans between similar queries: `LoanRegistry` decides which queries lend to which, and when.

A query exchanges reports with its neighbours when it is asked for the first time, and whenever its feedback has grown
by half. Then it reports its visits, and when it is asked next it takes a new loan in place of the old one. So both cost
little, however often it is asked, and its state depends only on its own visits and a few loans.

A *report* has the visits and clicks of the subtrees in which a query was clicked. It is small, whatever the query has
learned, and caps the visits of each subtree: a busy query must not drown out its neighbours' other lenders.

A *loan* is made from the pooled reports of similar queries. Lenders are ordered by level: the borrower's own group
first, then the group around it, and so on. The pool of a group is the sum of the visits and clicks of its queries. The
nearest pool lends first, the next ones fill up. The worth of a pool depends on how much its queries differ beyond luck.
If the click probability varies from query to query by the share ρ of p(1 - p), the pool is worth 1/ρ - 1 visits of
one's own to another query, however large the pool is. ρ is estimated for each depth of the document tree, from all
subtrees there that two queries or more have visited; the estimate of the depth above is the prior.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits import Loan
from zoomrank.compiled import allocating, compiled, separate
from zoomrank.queries.query_tree import QueryTree
from zoomrank.spaces import DocumentTree, Remap
from zoomrank.spaces.tree_shape import node_depths
from zoomrank.types import Array

# Reports.

ROWS = 128  # most subtrees in a report
CAP = 100.0  # most visits that a subtree counts for


class QueryReport(NamedTuple):
    """A row for each subtree, ordered by node; the root first, every other with its parent."""

    # its number, then the bits of its visits and then of its clicks, slot by slot: one array of 4 bytes each
    rows: Array
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


@allocating
def counts_of(rows: Array) -> Array:
    """Return the count columns of rows as fractions."""
    return rows.view(np.float32)


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
    reported: set[int] = set()
    kept = []
    for row, at in enumerate(rows[:, 0].tolist()):
        if at == 0 or int(parent[at]) in reported:
            reported.add(at)
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
    reported = _reported_entries(filled, total, gains)
    reported = reported[np.argsort(node[reported])]
    slots = plays.shape[1]
    rows = np.empty((len(reported), 1 + 2 * slots), np.uint32)
    counts = counts_of(rows)
    for row in range(len(reported)):
        at = reported[row]
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


# Loans from pooled reports.

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
            visits += np.float64(counts[row, 1 + column])
            clicks += np.float64(counts[row, 1 + columns // 2 + column])
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


# The registry.

MOST_LENDERS = 32  # most lenders to one query, and most remembered per group
_HEAD = struct.Struct("<IIId")


class GrantedLoan(NamedTuple):
    """A loan, and the numbers of the queries that lend it."""

    loan: Loan
    lenders: tuple[int, ...]


def next_exchange_at(answers: int) -> int:
    """Return the feedback count at which a query next exchanges reports with its neighbours."""
    return answers + answers // 2 + 1


class LoanRegistry:
    """Reports of all queries, and the loans made from them."""

    def __init__(self, queries: QueryTree, tree: DocumentTree, borrow: float) -> None:
        self.queries = queries
        self.reports: dict[int, QueryReport] = {}
        self._borrow = borrow
        self._tree = pool_tree(tree)
        self.known: dict[int, dict[int, int]] = {}  # per group, the queries that reported, and their feedback counts

    def tell(self, query: int, report: QueryReport, answers: int) -> None:
        """Store a report in place of the one before. Groups remember the queries with the most feedback."""
        self.reports[query] = report
        for group in self.queries.groups.around(self.queries.group[query]):
            known = self.known.setdefault(group, {})
            if query not in known and len(known) == MOST_LENDERS:
                least = min(known, key=known.__getitem__)
                if known[least] >= answers:
                    continue
                del known[least]
            known[query] = answers

    def grant(self, query: int) -> GrantedLoan | None:
        """Return the loan for a query; None if no query near it has reported."""
        levels = list(self._levels(query))
        loan = pooled_loan([[self.reports[lender] for lender in level] for level in levels], self._tree, self._borrow)
        return None if loan is None else GrantedLoan(loan, tuple(lender for level in levels for lender in level))

    def _levels(self, query: int) -> Iterator[list[int]]:
        """List the possible lenders, the nearest first."""
        asked = {query}
        for group in self.queries.groups.around(self.queries.group[query]):
            level = [lender for lender in self.known.get(group, ()) if lender not in asked]
            level = level[: MOST_LENDERS + 1 - len(asked)]
            asked.update(level)
            yield level

    def move(self, tree: DocumentTree, movement: Remap) -> None:
        """Remap all reports to another tree of the documents."""
        moved = {}
        for query, report in self.reports.items():
            node = np.where(movement.stays[report.node], movement.node[report.node], -1)
            moved[query] = remapped_report(report, node, tree.shape.parent)
        self.move_to(tree, moved)

    def move_to(self, tree: DocumentTree, moved: Mapping[int, QueryReport]) -> None:
        """Switch to another tree of the documents with these remapped reports; empty ones are dropped."""
        self._tree = pool_tree(tree)
        self.reports = {query: report for query, report in moved.items() if len(report.node)}
        for known in self.known.values():
            for query in [query for query in known if query not in self.reports]:
                del known[query]


def report_to_bytes(report: QueryReport) -> bytes:
    """Serialise a report compactly."""
    return loan_to_bytes(GrantedLoan(Loan(report.node, report.visits, report.clicks, report.score), ()))


def report_from_bytes(content: bytes) -> QueryReport:
    """Deserialise a report."""
    node, visits, clicks, score = loan_from_bytes(content).loan
    rows = np.empty((len(node), 1 + 2 * visits.shape[1]), np.uint32)
    rows[:, 0] = node
    counts_of(rows)[:, 1:] = np.hstack((visits, clicks))
    return QueryReport(rows, score)


def loan_to_bytes(granted: GrantedLoan) -> bytes:
    """Serialise a loan compactly."""
    loan = granted.loan
    head = _HEAD.pack(len(loan.node), loan.visits.shape[1], len(granted.lenders), loan.credit)
    arrays = (loan.node.astype("<u4"), loan.visits.astype("<f4"), loan.clicks.astype("<f4"))
    lenders = np.array(granted.lenders, "<u4")
    return head + zlib.compress(b"".join(array.tobytes() for array in (*arrays, lenders)), 1)


def loan_from_bytes(content: bytes) -> GrantedLoan:
    """Deserialise a loan."""
    rows, slots, lenders, credit = _HEAD.unpack_from(content)
    body = zlib.decompress(content[_HEAD.size :])
    node = np.frombuffer(body, "<u4", rows)
    visits = np.frombuffer(body, "<f4", rows * slots, 4 * rows).reshape(rows, slots)
    clicks = np.frombuffer(body, "<f4", rows * slots, 4 * rows * (1 + slots)).reshape(rows, slots)
    by = np.frombuffer(body, "<u4", lenders, 4 * rows * (1 + 2 * slots))
    return GrantedLoan(Loan(node, visits, clicks, credit), tuple(by.tolist()))
