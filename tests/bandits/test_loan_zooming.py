"""Path zooming with a loan: the same choices as its twin, and what a loan is worth."""

from typing import Any

import numpy as np
import pytest

from tests.bandits.test_twins import LIKENESS, twin_tree, visit_both
from tests.reference import learners as reference
from zoomrank import DocumentTree, Ranked, users
from zoomrank.bandits import Loan, LoanZooming
from zoomrank.types import Array


def loan_of(tree: DocumentTree, rng: np.random.Generator, slots: int, mean: Array) -> Loan:
    """Somebody has seen some families, with these means or, now and then, with others."""
    shape, opened = tree.shape, {0}
    for node in range(1, tree.nodes):
        if int(shape.parent[node]) in opened and rng.random() < 0.7:
            opened.add(node)
    rows = [0] + [u for u in range(1, tree.nodes) if int(shape.parent[u]) in opened]
    visits = np.round(rng.random((len(rows), slots)) * 30, 2)
    wrong = rng.random() < 0.4
    share = np.array([mean[shape.first_document[u] : shape.end_document[u]].max() for u in rows])
    clicks = visits * (1 - share if wrong else share)[:, None]
    return Loan(np.array(rows), visits.astype(np.float32), clicks.astype(np.float32), float(np.round(rng.normal(), 2)))


@pytest.mark.parametrize(
    ("shape", "how"),
    [
        ("binary", {}),
        ("wide", {"prior": 0.0}),
        *(pytest.param(other, {}, marks=pytest.mark.full) for other in ("wide", "uneven")),
    ],
)
def test_same_choices_as_the_literal_twin(shape: str, how: dict[str, Any]) -> None:
    """For many visits, with loans that come, go, are right and are wrong; some visitors may see some documents only."""
    tree, slots = LIKENESS[shape], 3
    plain = twin_tree(tree)
    paths = reference.LoanZooming(plain, slots, **how)
    bandit = LoanZooming(tree, **how)
    slow, fast = reference.Ranked(plain, paths.each(), False, 3), Ranked(bandit, slots, seed=3)
    rng = np.random.default_rng(5)
    mean = np.where(np.arange(len(tree)) < len(tree) // 3, 0.3 + 0.4 * rng.random(len(tree)), 0.02)
    for visit in range(800):
        if visit in (0, 1, 3, 10, 40, 150, 151, 400):
            loan = loan_of(tree, rng, slots, mean)
            fast.state = bandit.with_loan(fast.state, loan)
            paths.take(loan.node.tolist(), loan.visits, loan.clicks, loan.credit)
        visit_both(slow, fast, mean, rng)
    assert paths.reconsidered > 5
    assert float(fast.state.score[0]) == paths.score[0]


def world(tree: DocumentTree, *peaks: int) -> users.UserDistribution:
    return users.peaks(tree, dict(zip(peaks, (0.5, 0.4), strict=False)), background=0.02)


def simulate(ranker: Ranked, visitors: users.UserDistribution, visits: int, seed: int) -> float:
    """Return the share of visitors who click; visit by visit, since a kernel for all of them takes long to compile."""
    rng, clicks = np.random.default_rng(seed), 0
    for _ in range(visits):
        ranking = ranker.rank()
        click = visitors.click(ranking.documents, rng)
        ranker.learn(ranking, click)
        clicks += click is not None
    return clicks / visits


def told(tree: DocumentTree, visitors: users.UserDistribution) -> Loan:
    """What a query knows after a thousand visits, as a loan."""
    ranker = Ranked(LoanZooming(tree), 3, seed=1)
    simulate(ranker, visitors, 1000, seed=1)
    state, filled = ranker.state, int(ranker.state.filled[0])
    rows = np.argsort(state.node[:filled])
    return Loan(state.node[rows], np.minimum(state.plays[rows], 50.0), state.clicks[rows] * 0.0, 0.0)._replace(
        clicks=state.clicks[rows] * np.minimum(1.0, 50.0 / np.maximum(state.plays[rows], 1))
    )


def clicks_after(tree: DocumentTree, visitors: users.UserDistribution, loan: Loan | None, visits: int) -> float:
    found = 0.0
    for seed in range(8):
        bandit = LoanZooming(tree)
        ranker = Ranked(bandit, 3, seed=seed)
        if loan is not None:
            ranker.state = bandit.with_loan(ranker.state, loan)
        found += simulate(ranker, visitors, visits, seed=seed)
    return found / 8


def test_a_loan_helps_from_the_first_visitor_on() -> None:
    tree = DocumentTree.exponential(depth=9)
    visitors = world(tree, 100, 400)
    assert clicks_after(tree, visitors, told(tree, visitors), 50) > 2 * clicks_after(tree, visitors, None, 50)


@pytest.mark.full
def test_a_loan_that_misleads_is_soon_given_up() -> None:
    tree = DocumentTree.exponential(depth=9)
    loan, visitors = told(tree, world(tree, 100, 400)), world(tree, 250, 30)
    assert clicks_after(tree, visitors, loan, 1000) > 0.9 * clicks_after(tree, visitors, None, 1000)
    bandit = LoanZooming(tree)
    ranker = Ranked(bandit, 3, seed=0)
    ranker.state = bandit.with_loan(ranker.state, loan)
    simulate(ranker, visitors, 60, seed=0)
    assert ranker.state.faith[0] < 0.05


def test_what_nobody_has_visited_is_told_apart_without_a_visit() -> None:
    tree = DocumentTree.exponential(depth=2)
    bandit = LoanZooming(tree)
    loan = Loan(np.array([0, 1, 2]), np.full((3, 1), 5.0), np.ones((3, 1)), 0.0)
    state = bandit.with_loan(bandit.fresh_state(1), loan)
    assert state.filled[0] == 3
    assert state.total.sum() == 0
