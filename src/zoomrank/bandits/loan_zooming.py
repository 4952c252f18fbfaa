"""`LoanZooming`: path zooming that counts what similar queries have seen, as far as it proves right.

What is lent, and how far it is believed, is described in `state/lent_visits.py`; who lends to whom, in `queries`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.path_zooming import PARTS, PathZooming, register_paths
from zoomrank.bandits.registration import Feedback
from zoomrank.bandits.state.lent_visits import (
    LentVisits,
    believe_at,
    evidence_with_loan,
    judge,
    more_lent,
    most_entries,
    no_loan,
    reconsider,
    take,
)
from zoomrank.bandits.state.path_bounds import more_bounds, rebound_path
from zoomrank.bandits.state.visited import count_visit, more_visited, roomier
from zoomrank.compiled import Scalar, flat
from zoomrank.numbers import Array

LoanState = flat("LoanState", *PARTS, LentVisits)
ChoosyLoanState = flat("ChoosyLoanState", *PARTS, LentVisits)


class Loan(NamedTuple):
    """Visits that others lend: a row for each subtree, in the order of their numbers, every one below its parent.

    Attributes
    ----------
    node : ndarray
        The subtrees of the tree of documents; the root first.
    visits, clicks : ndarray
        [row, slot]: so many visits, and so many clicks among them.
    credit : float
        The score that the loan begins with: 0 believes half of it, more believes more.

    Examples
    --------
    >>> import numpy as np
    >>> Loan(np.array([0]), np.array([[10.0]]), np.array([[1.0]]), credit=0.0).visits.shape
    (1, 1)
    """

    node: Array
    visits: Array
    clicks: Array
    credit: float


def _evidence(state: Any, entry: Scalar, slot: Scalar) -> tuple[Scalar, Scalar]:
    return evidence_with_loan(state, entry, slot)


def _update(state: Any, slot: Scalar, feedback: Feedback, shown: Array, above: Scalar) -> None:
    judge(state, slot, feedback.pick, feedback.reward)
    entry = count_visit(state, slot, feedback.pick, feedback.reward)
    rebound_path(state, entry)
    reconsider(state, entry)


register_paths(LoanState, ChoosyLoanState, _evidence, _update)


class LoanZooming(PathZooming):
    """Path zooming that can take a loan: visits of similar queries count beside its own, as far as they prove right.

    Parameters
    ----------
    tree : DocumentTree
        Where the documents live.
    confidence, growth, optimism, borrow, prior, margin, correlated, patience, exchange, seed
        As for `PathZooming`.

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
    Our own (docs/queries.md).
    """

    def fresh_state(self, slots: int, more: int = 0) -> Any:
        """Nothing seen, and nothing lent."""
        state = super().fresh_state(slots, more)
        return LoanState(*state, *no_loan(len(state.node), slots))

    def restricted(self, state: Any, allowed: Array) -> Any:
        """A kind of its own."""
        return ChoosyLoanState(*state)._replace(eligible=allowed)

    def larger(self, state: Any) -> Any:
        """Room for more entries, to which nothing is lent."""
        lent = more_lent(state, roomier(state))
        return super().larger(state)._replace(**lent)

    def carry_over(self, state: Any, moved: Any, origin: Array, anew: Array) -> None:
        """The same loan, too, and how it has proved; what was lent of subtrees that are gone is gone with them."""
        known = np.flatnonzero(origin >= 0)
        for name in ("lent", "lent_clicks", "score", "weight", "faith"):
            getattr(moved, name)[known] = getattr(state, name)[origin[known]]
        moved.credit[:] = state.credit
        believe_at(moved, anew & (origin < 0))
        super().carry_over(state, moved, origin, anew)

    def with_loan(self, state: Any, loan: Loan) -> Any:
        """The state with another loan instead of the one that it has.

        Parameters
        ----------
        state
            The state of a ranker of this bandit; it may be changed.
        loan : Loan
            What is lent.

        Returns
        -------
        state
            To go on with.

        Examples
        --------
        >>> import numpy as np, zoomrank as zr
        >>> bandit = LoanZooming(zr.DocumentTree.exponential(depth=2))
        >>> state = bandit.with_loan(
        ...     bandit.fresh_state(1), Loan(np.array([0]), np.ones((1, 1)), np.zeros((1, 1)), credit=1.0)
        ... )
        >>> float(state.lent[0, 0])
        1.0
        """
        if not take(state, *loan):
            shape = self.tree.shape
            room = int(state.filled[0]) + most_entries(shape.parent, shape.child_start, loan.node)
            room += room // 2  # the next loan will bring more
            state = state._replace(**more_visited(state, room), **more_bounds(state, room), **more_lent(state, room))
            take(state, *loan)
        return state
