"""`LoanZooming`: path zooming that also counts borrowed visits of similar queries, as far as they prove right.

`state/lent_visits.py` describes the loan and the trust in it; `queries` decides which queries lend.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.path_zooming import PARTS, PathZooming, register_paths
from zoomrank.bandits.registration import Feedback
from zoomrank.bandits.state.lent_visits import (
    BorrowedVisits,
    enlarged_loan,
    evidence_with_loan,
    loan_entries,
    no_loan,
    refresh_trust,
    refresh_trust_at,
    score_loan,
    take_loan,
)
from zoomrank.bandits.state.path_bounds import enlarged_bounds, refresh_path
from zoomrank.bandits.state.visited import count_visit, enlarged_visits, larger_capacity
from zoomrank.compiled import Scalar, flat
from zoomrank.numbers import Array

LoanState = flat("LoanState", *PARTS, BorrowedVisits)
ChoosyLoanState = flat("ChoosyLoanState", *PARTS, BorrowedVisits)


class Loan(NamedTuple):
    """Visits borrowed from other queries: a row per subtree, ordered by node, each with its parent.

    Attributes
    ----------
    node : ndarray
        Subtrees of the document tree; the root first.
    visits, clicks : ndarray
        [row, slot]: number of visits, and of clicks among them.
    credit : float
        Initial score of the loan: at 0 half of it counts, at a higher score more.
    """

    node: Array
    visits: Array
    clicks: Array
    credit: float


def _evidence(state: Any, entry: Scalar, slot: Scalar) -> tuple[Scalar, Scalar]:
    return evidence_with_loan(state, entry, slot)


def _update(state: Any, slot: Scalar, feedback: Feedback, shown: Array, above: Scalar) -> None:
    score_loan(state, slot, feedback.pick, feedback.reward)
    entry = count_visit(state, slot, feedback.pick, feedback.reward)
    refresh_path(state, entry)
    refresh_trust(state, entry)


register_paths(LoanState, ChoosyLoanState, _evidence, _update)


class LoanZooming(PathZooming):
    """Path zooming that can take a loan: visits of similar queries count beside its own, as far as they prove right.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents.
    confidence, growth, optimism, borrow, prior, margin, correlated, patience, exchange, seed
        See `PathZooming`.

    Examples
    --------
    >>> import numpy as np, zoomrank as zr
    >>> tree = zr.DocumentTree.exponential(depth=2)
    >>> bandit = LoanZooming(tree)
    >>> ranker = zr.Ranked(bandit, slots=1, seed=0)
    >>> rows = np.array([0, 1, 2, 5, 6])  # the root, both halves, and the documents of the second
    >>> visits, clicks = np.full((5, 1), 20.0), np.array([[6.0], [0], [8], [1], [16]])
    >>> ranker.state = bandit.with_loan(ranker.state, Loan(rows, visits, clicks, credit=0.0))
    >>> ranker.rank().documents
    [3]

    References
    ----------
    Our own (docs/explanation/similar-queries.md).
    """

    def fresh_state(self, slots: int, more: int = 0) -> Any:
        """Return a state without visits and without a loan."""
        state = super().fresh_state(slots, more)
        return LoanState(*state, *no_loan(len(state.node), slots))

    def restricted(self, state: Any, allowed: Array) -> Any:
        """Return the state for rankings of eligible documents, a type with kernels of its own."""
        return ChoosyLoanState(*state)._replace(eligible=allowed)

    def larger(self, state: Any) -> Any:
        """Make room for more entries, without borrowed visits."""
        lent = enlarged_loan(state, larger_capacity(state))
        return super().larger(state)._replace(**lent)

    def carry_over(self, state: Any, moved: Any, origin: Array, anew: Array) -> None:
        """Carry over records, bounds, and the loan with its scores; loans to removed subtrees are dropped."""
        known = np.flatnonzero(origin >= 0)
        for name in ("lent", "lent_clicks", "score", "weight", "faith"):
            getattr(moved, name)[known] = getattr(state, name)[origin[known]]
        moved.credit[:] = state.credit
        refresh_trust_at(moved, anew & (origin < 0))
        super().carry_over(state, moved, origin, anew)

    def with_loan(self, state: Any, loan: Loan) -> Any:
        """Replace the loan of a state.

        Parameters
        ----------
        state
            State of a ranker of this bandit; modified in place.
        loan : Loan
            New loan.

        Returns
        -------
        state
            The state to use from now on.
        """
        if not take_loan(state, *loan):
            shape = self.tree.shape
            room = int(state.filled[0]) + loan_entries(shape.parent, shape.child_start, loan.node)
            room += room // 2  # the next loan will be larger
            state = state._replace(
                **enlarged_visits(state, room), **enlarged_bounds(state, room), **enlarged_loan(state, room)
            )
            take_loan(state, *loan)
        return state
