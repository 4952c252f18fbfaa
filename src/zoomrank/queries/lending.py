"""`LoanRegistry`: which queries lend to which, and when.

A query exchanges reports with its neighbours when it is asked for the first time, and whenever its feedback has grown
by half. Then it reports its visits, and when it is asked next it takes a new loan in place of the old one. So both cost
little, however often it is asked, and its state depends only on its own visits and a few loans.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from zoomrank.bandits import Loan
from zoomrank.queries.pooling import pool_tree, pooled_loan
from zoomrank.queries.query_tree import QueryTree
from zoomrank.queries.reports import QueryReport, make_report, remapped_report
from zoomrank.spaces import DocumentTree, Remap

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
    return make_report(*loan_from_bytes(content).loan)


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
