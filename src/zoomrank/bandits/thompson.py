"""`TreeThompson`: Thompson sampling on a tree. Draw a value for each child, go to the best draw, repeat.

Every subtree of a slot has a Beta belief from the clicks and skips of all documents below it. The correlation rule of
the paper caps the draws, as it caps indices in `Zooming`. Unlike an index learner it shows different visitors different
documents even before their feedback arrives. Its propensities are products of integrals, one per branch
(`largest_draw.py`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.largest_draw import DrawScratch, add_draw, chance_of_largest, fresh_draw_scratch
from zoomrank.bandits.registration import Feedback, PhaseClock, endless_clock, register
from zoomrank.bandits.state.context_paths import (
    ContextScratch,
    farthest_from,
    fresh_context_scratch,
    random_best,
    split_mask,
    store_paths,
)
from zoomrank.bandits.state.tree_view import TreeView, size_of
from zoomrank.bandits.state.visited import VisitCounts, count_visit, fresh_visited
from zoomrank.bandits.walks.visit_counting import VisitCountingBandit, entries_fit, subtree_of_entry
from zoomrank.compiled import Scalar, flat, inlined
from zoomrank.errors import ParameterError
from zoomrank.numbers import Array, Seed
from zoomrank.spaces import DocumentTree

PRIOR = 1.0
_NEVER_ZERO = 0.02  # with a smaller prior, draws may underflow
PATIENCE = 1  # visits without a click before a subtree is split


class ThompsonParameters(NamedTuple):
    """Parameters of `TreeThompson`."""

    prior: float
    correlated: bool


ThompsonState = flat(
    "ThompsonState", TreeView, VisitCounts, ThompsonParameters, ContextScratch, DrawScratch, PhaseClock
)


def _select(state: Any, slot: Scalar, shown: Array, above: Scalar, rng: np.random.Generator) -> tuple[Scalar, Scalar]:
    if not state.correlated:
        above = 0
    store_paths(state, shown, above)
    column, at = np.uint64(slot), np.uint64(0)
    depth, mask, cap = 0, (1 << above) - 1, np.inf
    while state.child[at] != 0:
        first, node = np.uint64(state.child[at]), np.uint64(state.node[at])
        fan, start = np.uint64(state.fan[at]), np.uint64(state.child_start[node])
        if mask != 0:
            cap = state.width[node]
            split_mask(state, state.below, node, depth, mask)
        top = -1.0
        for step in range(fan):
            state.value[step] = -1.0
            if size_of(state, start + step) == 0:
                continue
            won, lost = _belief(state, first + step, column)
            limit = _limit(state, start + step, depth, mask, step, cap)
            state.value[step] = min(rng.beta(won, lost), limit)
            top = max(top, state.value[step])
        chosen = random_best(state.value, fan, top, rng)
        at = first + chosen
        depth += 1
        if mask != 0:
            mask = state.below[chosen]
    return np.int64(at), 1.0


@inlined
def _belief(state: Any, entry: Scalar, column: Scalar) -> tuple[Scalar, Scalar]:
    """Return the two parameters of the Beta belief of an entry."""
    plays, clicks = state.plays[entry, column], state.clicks[entry, column]
    return state.prior + clicks, 1.0 + (plays - clicks)


@inlined
def _limit(state: Any, child: Scalar, depth: Scalar, mask: Scalar, step: Scalar, cap: Scalar) -> Scalar:
    """Compute the cap of a child's draw: from the documents above inside it, or else the width of the parent."""
    if mask != 0 and state.below[step] != 0:
        return farthest_from(state, child, depth + 1, state.below[step])
    return cap


@inlined
def _is_sure(state: Any, above: Scalar, mask: Scalar) -> Scalar:
    """Return whether no subtree is chosen all of whose documents are shown above: such a subtree is capped at 0, and
    another one is not, at every branch on the way down.
    """
    return above == 0 or (mask != 0 and len(state.eligible) == 0 and farthest_from(state, 0, 0, mask) > 0.0)


def _odds(state: Any, slot: Scalar, shown: Array, above: Scalar, document: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """Walk to the document like `_select`, multiplying the probability of every step."""
    shown_above = above
    if not state.correlated:
        above = 0
    store_paths(state, shown, above)
    column, at = np.uint64(slot), np.uint64(0)
    depth, mask, cap, chance = 0, (1 << above) - 1, np.inf, 1.0
    sure = _is_sure(state, shown_above, mask) and state.prior >= _NEVER_ZERO
    while chance > 0.0 and state.child[at] != 0:
        first, node = np.uint64(state.child[at]), np.uint64(state.node[at])
        fan, start = np.uint64(state.fan[at]), np.uint64(state.child_start[node])
        if mask != 0:
            cap = state.width[node]
            split_mask(state, state.below, node, depth, mask)
        kinds, own = 0, 0
        chosen: Scalar = np.uint64(0)
        for step in range(fan):
            if size_of(state, start + step) == 0:
                continue
            won, lost = _belief(state, first + step, column)
            limit = _limit(state, start + step, depth, mask, step, cap)
            kinds, kind = add_draw(state, kinds, won, lost, limit)
            if state.first_document[start + step] <= document < state.end_document[start + step]:
                own, chosen = kind, step
        chance *= chance_of_largest(state, kinds, own)
        at = first + chosen
        depth += 1
        if mask != 0:
            mask = state.below[chosen]
    return chance, np.int64(state.node[at]), sure


def _update(state: Any, slot: Scalar, feedback: Feedback, shown: Array, above: Scalar) -> None:
    count_visit(state, slot, feedback.pick, feedback.reward)


register(ThompsonState, select=_select, odds=_odds, update=_update, subtree=subtree_of_entry, roomy=entries_fit)


class TreeThompson(VisitCountingBandit):
    """Thompson sampling on a tree: at each branch, go where a draw from the belief is best.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents, of any shape.
    prior : float
        Beliefs start as Beta(`prior`, 1): the smaller, the lower the expected value of unseen documents. Above 0.
    correlated : bool
        Cap draws by the distance to the documents shown above (the correlation rule).
    seed : int, numpy.random.Generator or None
        Seed of a bandit used on its own.

    Examples
    --------
    >>> bandit = TreeThompson(DocumentTree.exponential(depth=3), seed=0)
    >>> len({bandit.select().document for _ in range(50)})  # of eight: a new draw for every visitor
    8

    References
    ----------
    Thompson, *On the likelihood that one unknown probability exceeds another*, Biometrika 25 (1933), here along a
    tree; the correlation rule is Eq. 23 of Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*, JMLR
    14 (2013).
    """

    weighs = False  # computing propensities takes 50 times as long as choosing
    not_saved = VisitCountingBandit.not_saved | frozenset(DrawScratch._fields)

    def __init__(self, tree: DocumentTree, *, prior: float = PRIOR, correlated: bool = True, seed: Seed = None) -> None:
        super().__init__(tree, seed)
        if not 0 < prior < np.inf:
            raise ParameterError(f"prior must be a positive number, not {prior}.")
        self.prior, self.correlated = float(prior), bool(correlated)

    @property
    def settings(self) -> dict[str, Any]:
        """Parameters that rebuild this bandit."""
        return {"prior": self.prior, "correlated": self.correlated}

    def fresh_state(self, slots: int, more: int = 0) -> Any:
        """Return a state with only the root, and room for `more` entries."""
        visited = fresh_visited(self.tree, slots, PATIENCE, more)
        scratch, draws = fresh_context_scratch(self.tree, slots, visited.widest), fresh_draw_scratch(visited.widest)
        return ThompsonState(*self.view, *visited, self.prior, self.correlated, *scratch, *draws, *endless_clock(slots))

    def belief(self, state: Any, entry: int, slot: int) -> tuple[float, float]:
        """Return the standard deviation of the belief, and its mean."""
        plays, clicks = int(state.plays[entry, slot]), int(state.clicks[entry, slot])
        a, b = self.prior + clicks, 1.0 + plays - clicks
        return float(np.sqrt(a * b / (a + b + 1.0)) / (a + b)), a / (a + b)
