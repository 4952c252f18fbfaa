"""`LoanZooming`: path zooming that also counts visits borrowed from similar queries, as far as they prove right.

A loan states for some subtrees, slot by slot, how many visits of other queries brought how many clicks; `queries`
decides which queries lend. They count beside the learner's own, weighted by its *trust* in them (the field `faith`),
which follows from a score. Before feedback is counted, two models predict the click on the document: one from the
learner's own visits, the other from the borrowed visits as well. The log-likelihood ratio of the second over the first
is added to the score of every subtree that holds the document. The weight of a subtree is its own score and a share of
the scores around it. So a loan that is wrong everywhere is soon given up, and one that is wrong in some subtrees is
given up there. A new loan is scored by all earlier visits and starts with a share of the scores of earlier loans: a
learner that was misled repeatedly becomes careful.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from zoomrank.bandits.kernel_interface import Feedback
from zoomrank.bandits.path_zooming.bounds import own_evidence, refresh_path, refresh_subtree
from zoomrank.bandits.path_zooming.learner import PARTS, PathZooming, register_paths
from zoomrank.bandits.path_zooming.state import count_visit, split_entry
from zoomrank.bandits.path_zooming.walk import STALE, forget_walks
from zoomrank.compiled import Scalar, compiled, exp, flat, inlined
from zoomrank.types import Array

UNKNOWN = 0.1  # click probability of a document without any evidence
LARGEST_SCORE_CHANGE = 2.0  # most that one visit can change a score by
LARGEST_SCORE = 6.0  # bound on scores, so that trust can be lost and regained
NEIGHBOUR_SHARE = 0.9  # share of the score around a subtree that counts, per level
PAST_LOANS_SHARE = 0.75  # share of the score of earlier loans that a new one starts with
LARGEST_PAST_SCORE = 5.0
MOVED = 0.5  # change of a subtree's score after which all within it is recomputed


class BorrowedVisits(NamedTuple):
    """Borrowed visits, beside the counts of `VisitCounts`."""

    lent: Array  # [entry, slot]: visits
    lent_clicks: Array  # [entry, slot]: clicks among them
    score: Array  # [entry]: log-likelihood ratio of the predictions with and without the loan
    weight: Array  # [entry]: the score with a share of those around it, when last computed
    faith: Array  # [entry]: trust: the share of the loan that counts, from 0 to 1
    credit: Array  # initial score of a loan; and the part of it from this learner's earlier loans


def no_loan(room: int, slots: int) -> BorrowedVisits:
    """Return an empty loan."""
    lent, clicks = (np.zeros((room, slots), np.float32) for _ in range(2))
    score, weight, trust = (np.zeros(room, np.float32) for _ in range(3))
    return BorrowedVisits(lent, clicks, score, weight, trust, np.zeros(2))


@inlined
def evidence_with_loan(
    state: Any, entry: Scalar, slot: Scalar, without: Scalar, share: Scalar
) -> tuple[Scalar, Scalar]:
    """Return the visits and clicks that count in a slot: the learner's own, and the trusted share of the loan."""
    at, column = np.uint64(entry), np.uint64(slot)
    plays, clicks = own_evidence(state, at, column, without, share)
    lent, clicked = np.float64(state.lent[at, column]), np.float64(state.lent_clicks[at, column])
    row = np.uint64(0)
    while without:
        document = np.uint64(state.own_entry[row])
        if without & 1 and document != 0:
            lent -= np.float64(state.lent[document, column])
            clicked -= np.float64(state.lent_clicks[document, column])
        without >>= 1
        row += np.uint64(1)
    trust = np.float64(state.faith[at])
    return plays + trust * max(lent, 0.0), clicks + trust * max(clicked, 0.0)


@inlined
def _weigh(state: Any, entry: Scalar) -> Scalar:
    """Compute the weight of an entry: a mean of its own score and the weight of its parent."""
    at = np.uint64(entry)
    own = np.float64(state.score[at])
    if at == 0:
        return own + state.credit[0]
    return own + NEIGHBOUR_SHARE * (np.float64(state.weight[np.uint64(state.up[at])]) - own)


@inlined
def _prior(state: Any) -> Scalar:
    """Return the number of pseudo-visits behind the prediction for unseen documents: one visit proves little."""
    return max(state.prior, 1.0)


@inlined
def score_loan(state: Any, slot: Scalar, document: Scalar, reward: Scalar) -> None:
    """Score the loan's prediction for a document before the feedback is counted.

    A document without an entry is scored at the smallest subtree that holds it. Both models predict an unseen document
    from the learner's own visits around it; otherwise the loan would be blamed for that prior.
    """
    at, column, going, alone, prior = np.uint64(0), np.uint64(slot), True, UNKNOWN, _prior(state)
    around = alone
    while going:
        plays, clicks = own_evidence(state, at, column, 0, 1.0)
        around, alone = alone, (clicks + prior * alone) / (plays + prior)
        going = state.child[at] != 0
        if going:
            at = np.uint64(state.child[at])
            while state.end_document[state.node[at]] <= document:
                at += np.uint64(1)
    plays, clicks = own_evidence(state, at, column, 0, 1.0)
    seen = plays + np.float64(state.lent[at, column])
    together = (clicks + np.float64(state.lent_clicks[at, column]) + prior * around) / (seen + prior)
    news = math.log(together / alone) if reward == 1 else math.log((1.0 - together) / (1.0 - alone))
    news = max(-LARGEST_SCORE_CHANGE, min(LARGEST_SCORE_CHANGE, news))
    if news != 0.0:
        going = True
        while going:
            state.score[at] = max(-LARGEST_SCORE, min(LARGEST_SCORE, np.float64(state.score[at]) + news))
            going = at != 0
            at = np.uint64(state.up[at])


@inlined
def _update_trust(state: Any, entry: Scalar) -> None:
    at = np.uint64(entry)
    weight = _weigh(state, at)
    state.weight[at] = weight
    state.faith[at] = 1.0 / (1.0 + exp(-weight))


@inlined
def refresh_trust(state: Any, entry: Scalar) -> Scalar:
    """Recompute trust below the largest subtree that holds an entry and whose score has changed enough; return whether
    there is one.
    """
    at, moved, some, going = np.uint64(entry), np.uint64(0), False, True
    while going:
        if abs(_weigh(state, at) - np.float64(state.weight[at])) >= MOVED:
            moved, some = at, True
        going = at != 0
        at = np.uint64(state.up[at])
    if some:
        _refresh_trust_below(state, moved)
        refresh_subtree(state, moved)
    return some


@inlined
def _refresh_trust_below(state: Any, entry: Scalar) -> None:
    """Recompute trust in a subtree."""
    size = np.uint64(1)
    state.search_entry[0] = entry
    while size > 0:
        size -= np.uint64(1)
        at = np.uint64(state.search_entry[size])
        _update_trust(state, at)
        first = np.uint64(state.child[at])
        if first != 0:
            for child in range(first, first + np.uint64(state.fan[at])):
                state.search_entry[size] = np.int64(child)
                size += np.uint64(1)


@compiled
def refresh_trust_at(state: Any, anew: Array) -> None:
    """Recompute trust at some entries, parents before children."""
    for entry in range(state.filled[0]):
        if anew[entry]:
            _update_trust(state, entry)


@inlined
def _log_likelihood(plays: Scalar, clicks: Scalar, strength: Scalar, mean: Scalar) -> Scalar:
    """Compute the log-likelihood of the clicks, given a prior of `strength` visits with this mean."""
    found, seen = 0.0, strength
    for times, share in ((clicks, mean), (plays - clicks, 1.0 - mean)):
        expected = strength * share
        for _ in range(np.int64(times)):
            found += math.log(expected / seen)
            expected += 1.0
            seen += 1.0
    return found


@inlined
def _score_past_visits(state: Any) -> None:
    """Score a new loan by all visits before it."""
    prior = _prior(state)
    overall = (np.float64(state.gains[0]) + prior * UNKNOWN) / (np.float64(state.total[0]) + prior)
    for entry in range(state.filled[0]):
        state.score[entry] = 0.0
    for entry in range(state.filled[0]):
        if state.child[entry] == 0 and state.total[entry] > 0:
            news = 0.0
            for slot in range(state.lent.shape[1]):
                plays, lent = np.float64(state.plays[entry, slot]), np.float64(state.lent[entry, slot])
                if plays > 0.0 and lent > 0.0:
                    clicks = np.float64(state.clicks[entry, slot])
                    mean = (np.float64(state.lent_clicks[entry, slot]) + prior * overall) / (lent + prior)
                    news += _log_likelihood(plays, clicks, lent + prior, mean) - _log_likelihood(
                        plays, clicks, prior, overall
                    )
            at, going = np.uint64(entry), news != 0.0
            while going:
                state.score[at] = np.float64(state.score[at]) + news  # in plain Python also not as float32
                going = at != 0
                at = np.uint64(state.up[at])
    for entry in range(state.filled[0]):
        state.score[entry] = max(-LARGEST_SCORE, min(LARGEST_SCORE, np.float64(state.score[entry])))


@compiled
def take_loan(state: Any, node: Array, lent: Array, clicks: Array, credit: Scalar) -> Scalar:
    """Replace the loan: nodes in ascending order, with the root, each with its parent.

    Return whether there was room; if not, enlarge the state and call again.
    """
    state.lent[: state.filled[0]], state.lent_clicks[: state.filled[0]] = 0.0, 0.0
    entry_of_node = np.zeros(len(node), np.uint64)
    above = 0
    for place in range(len(node)):
        entry: Scalar = np.uint64(0)
        if place > 0:
            parent = state.parent[node[place]]
            while node[above] < parent:  # parents are in ascending order, like their children
                above += 1
            over = entry_of_node[above]
            if state.child[over] == 0:
                if state.filled[0] + np.int64(state.fan[over]) > len(state.node):
                    return False
                split_entry(state, over)
            entry = np.uint64(state.child[over]) + np.uint64(node[place]) - np.uint64(state.child_start[parent])
        entry_of_node[place] = entry
        state.lent[entry], state.lent_clicks[entry] = lent[place], clicks[place]
    habit = PAST_LOANS_SHARE * (state.credit[1] + np.float64(state.score[0]))
    state.credit[1] = max(-LARGEST_PAST_SCORE, min(LARGEST_PAST_SCORE, habit))
    state.credit[0] = credit + state.credit[1]
    _score_past_visits(state)
    _refresh_trust_below(state, 0)
    refresh_subtree(state, 0)
    state.givens[:] = STALE
    return True


LoanState = flat("LoanState", *PARTS, BorrowedVisits)
EligibleLoanState = flat("EligibleLoanState", *PARTS, BorrowedVisits)


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


def _update(state: Any, slot: Scalar, feedback: Feedback, shown: Array, above: Scalar) -> None:
    score_loan(state, slot, feedback.pick, feedback.reward)
    entry = count_visit(state, slot, feedback.pick, feedback.reward)
    refreshed = refresh_path(state, entry)
    forget_walks(state, slot, feedback.pick, entry, refresh_trust(state, entry) or refreshed)


register_paths(LoanState, EligibleLoanState, evidence_with_loan, _update)


class LoanZooming(PathZooming):
    """Path zooming that can take a loan: visits of similar queries count beside its own, as far as they prove right.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents.
    confidence, growth, optimism, borrow, prior, correlated, patience, seed
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

    per_entry: ClassVar[dict[str, float]] = {
        **PathZooming.per_entry,
        **dict.fromkeys(("lent", "lent_clicks", "score", "weight", "faith"), 0),
    }

    def fresh_state(self, slots: int, more: int = 0) -> Any:
        """Return a state without visits and without a loan."""
        state = super().fresh_state(slots, more)
        return LoanState(*state, *no_loan(len(state.node), slots))

    def restricted(self, state: Any, allowed: Array) -> Any:
        """Return the state for rankings of eligible documents, a type with kernels of its own."""
        return EligibleLoanState(*state)._replace(eligible=allowed)

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
            parents, start = np.unique(self.tree.shape.parent[loan.node[1:]]), self.tree.shape.child_start
            room = int(state.filled[0]) + int((start[parents + 1] - start[parents]).sum())  # all their children
            room += room // 2  # the next loan will be larger
            state = self.with_room(state, room)
            take_loan(state, *loan)
        return state
