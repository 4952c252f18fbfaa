"""Reports and loans: the same as their twins, and what they are worth."""

from typing import Any

import numpy as np
import pytest

from tests.reference import lending as reference
from zoomrank import DocumentTree, Ranked, users
from zoomrank.bandits import LoanZooming
from zoomrank.lab import simulate
from zoomrank.queries import loans
from zoomrank.queries.loans import QueryReport, pool_tree, pooled_loan, report_of
from zoomrank.spaces.tree_shape import node_depths

TREES = {
    "binary": DocumentTree.exponential(depth=7),
    "wide": DocumentTree.exponential(depth=2, branching=12, epsilon=0.4),
    "flat": DocumentTree.exponential(depth=1, branching=300),
}


def learned(tree: DocumentTree, peak: int, visits: int, seed: int) -> Any:
    ranker = Ranked(LoanZooming(tree), 3, seed=seed)
    simulate(ranker, users.peaks(tree, {peak: 0.5}, background=0.05), visits, seed=seed)
    return ranker.state


def literal(report: QueryReport) -> reference.Counts:
    rows = zip(report.node.tolist(), report.visits.tolist(), report.clicks.tolist(), strict=True)
    return {u: (visits, clicks) for u, visits, clicks in rows}


@pytest.mark.parametrize("shape", TREES)
def test_reports_are_those_of_the_twin(shape: str) -> None:
    tree = TREES[shape]
    for visits in (1, 30, 1000):
        state = learned(tree, len(tree) // 2, visits, seed=visits)
        filled = int(state.filled[0])
        node, parent = state.node[:filled].tolist(), tree.shape.parent.tolist()
        plays, clicks = state.plays[:filled].tolist(), state.clicks[:filled].tolist()
        wanted = reference.told(node, parent, plays, clicks, loans.ROWS, loans.CAP)
        found = literal(report_of(state))
        assert sorted(found) == list(found) == sorted(wanted)
        for u, counts in wanted.items():
            np.testing.assert_allclose(found[u], counts, rtol=1e-5)


@pytest.mark.parametrize("shape", TREES)
def test_loans_are_those_of_the_twin(shape: str) -> None:
    """Of several levels, one of them empty; of what there is no room for, nothing is lent."""
    tree = TREES[shape]
    peaks = [[5, 5, 6], [], [5, 40, 70, 9]]
    levels = [
        [report_of(learned(tree, p, 30 * (i + 1), seed=10 * p + i)) for i, p in enumerate(level)] for level in peaks
    ]
    depth = node_depths(tree.shape.parent).tolist()
    wanted = reference.lent(
        [[literal(report) for report in level] for level in levels],
        depth,
        3,
        30.0,
        loans.PRIOR_VARIATION,
        loans.PRIOR_VARIANCE,
        loans.MOST_LENT,
    )
    loan = pooled_loan(levels, pool_tree(tree), 30.0)
    assert loan is not None
    assert loan.node[0] == 0
    assert (np.diff(loan.node.astype(int)) > 0).all()
    assert len(loan.node) > 3
    parents = set(tree.shape.parent[loan.node[1:]].tolist())
    assert parents <= set(loan.node.tolist())
    inner = [u for u in parents if u != 0]
    assert sum(int(tree.shape.child_start[u + 1] - tree.shape.child_start[u]) for u in inner) <= loans.ENTRIES
    assert set(loan.node.tolist()) == {0} | {u for u in wanted if int(tree.shape.parent[u]) in parents and u}
    for row, u in enumerate(loan.node.tolist()):
        np.testing.assert_allclose(loan.visits[row], wanted[u][0], rtol=1e-4)
        np.testing.assert_allclose(loan.clicks[row], wanted[u][1], rtol=1e-4, atol=1e-6)


def test_queries_that_differ_lend_less() -> None:
    tree = TREES["binary"]
    alike = [report_of(learned(tree, 50, 200, seed)) for seed in range(8)]
    apart = [report_of(learned(tree, 16 * seed, 200, seed)) for seed in range(8)]
    most = [float(pooled_loan([level], pool_tree(tree), 30.0).visits[1:].max()) for level in (alike, apart)]  # type: ignore[union-attr]
    assert most[0] > 2 * most[1]


def test_a_busy_query_is_not_the_pool() -> None:
    tree = TREES["binary"]
    assert report_of(learned(tree, 50, 5000, 1)).visits.sum(axis=1).max() <= loans.CAP * 1.0001
    assert pooled_loan([], pool_tree(tree), 30.0) is None
