"""`KLUCB`: the KL-UCB index (Garivier and Cappé 2011) over documents; one learner per slot, or one for all slots.

The index of a document with mean p over n visits is the largest q with `n · kl(p, q) ≤ C · (log t + 3 log log t)`;
unseen documents come first. With `shared=True` all slots share their counts and slot i shows the i-th best document:
this is CascadeKL-UCB (Kveton, Szepesvári, Wen and Ashkan 2015), which finds the most clicked documents without
diversity.

The index of every document changes with t. Here t is updated each time it has grown by an eighth, so that in between
only one index changes per visit and the best is found by a walk, as for UCB1.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.arms import Arms, fresh_arms
from zoomrank.bandits.bandit import Bandit, Strategy
from zoomrank.bandits.kernel_interface import Feedback, PhaseClock, endless_clock, register
from zoomrank.bandits.tree_view import TreeView, largest_context
from zoomrank.bandits.ucb1 import best_arm, chance_of_best, fresh_indices, set_index, update_all_tops
from zoomrank.compiled import Scalar, compiled, flat, inlined
from zoomrank.errors import ParameterError
from zoomrank.spaces import DocumentTree
from zoomrank.types import Array, Seed

EXPLORATION = 1.0
_HALVINGS = 40  # bisection steps of `kl_bound`


class KLUCBParameters(NamedTuple):
    """Parameters of `KLUCB`."""

    shared: bool
    scale: float  # C


class KLUCBCounts(NamedTuple):
    """Counts and indices of KL-UCB: a row per slot, or one row if slots share them."""

    rounds: Array  # t
    due: Array  # the t at which all indices are computed again
    budget: Array  # C (log t + 3 log log t), at the last such t
    plays: Array  # n, per arm
    clicks: Array  # r, per arm
    top: Array  # the highest index below each node of the tree over the arms
    ties: Array  # number of arms that attain it


class KLUCBScratch(NamedTuple):
    """Scratch space for indices that are set aside."""

    set_aside: Array  # of the documents above


KLUCBState = flat("KLUCBState", TreeView, Arms, KLUCBParameters, KLUCBCounts, KLUCBScratch, PhaseClock)


@inlined
def kl(p: Scalar, q: Scalar) -> Scalar:
    """Compute the Kullback-Leibler divergence of two click probabilities; q is neither 0 nor 1."""
    divergence = 0.0
    if p > 0.0:
        divergence += p * math.log(p / q)
    if p < 1.0:
        divergence += (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
    return divergence


@inlined
def kl_bound(mean: Scalar, plays: Scalar, budget: Scalar) -> Scalar:
    """Find the largest probability whose divergence from the mean is within the budget."""
    low, high = mean, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if middle < 1.0 and plays * kl(mean, middle) <= budget:
            low = middle
        else:
            high = middle
    return low


@inlined
def _refresh(state: Any, row: Scalar) -> None:
    """Compute all indices for the current t."""
    t = np.float64(state.rounds[row])
    state.budget[row] = state.scale * (math.log(t) + 3.0 * math.log(max(math.log(t), 1.0)))
    state.due[row] = state.rounds[row] + (state.rounds[row] >> 3) + 1
    for arm in range(np.uint64(len(state.leaf))):
        plays = state.plays[row, arm]
        if plays > 0:
            state.top[row, arm] = kl_bound(state.clicks[row, arm] / plays, plays, state.budget[row])
    update_all_tops(state, row)


def _update(state: Any, slot: Scalar, feedback: Feedback, shown: Array, above: Scalar) -> None:
    row, arm = np.uint64(0 if state.shared else slot), np.uint64(feedback.pick)
    state.plays[row, arm] += np.uint32(1)
    state.clicks[row, arm] += np.uint32(feedback.reward)
    if slot == 0 or not state.shared:
        state.rounds[row] += 1
        if state.rounds[row] >= state.due[row]:
            _refresh(state, row)
    plays = state.plays[row, arm]
    set_index(state, row, arm, kl_bound(state.clicks[row, arm] / plays, plays, state.budget[row]))


@inlined
def _set_aside(state: Any, shown: Array, above: Scalar) -> None:
    """Exclude the documents above from this choice."""
    for place in range(above):
        state.set_aside[place] = state.top[0, shown[place]]
        set_index(state, 0, shown[place], -1.0)


@inlined
def _take_back(state: Any, shown: Array, above: Scalar) -> None:
    for place in range(above - 1, -1, -1):
        set_index(state, 0, shown[place], state.set_aside[place])


def _select(state: Any, slot: Scalar, shown: Array, above: Scalar, rng: np.random.Generator) -> tuple[Scalar, Scalar]:
    if not state.shared:
        return best_arm(state, slot, rng), 1.0
    _set_aside(state, shown, above)
    chosen = best_arm(state, 0, rng)
    _take_back(state, shown, above)
    return chosen, 1.0


def _odds(state: Any, slot: Scalar, shown: Array, above: Scalar, document: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    leaf = np.int64(state.leaf[document])
    if not state.shared:
        return chance_of_best(state, slot, document), leaf, False
    _set_aside(state, shown, above)
    chance = chance_of_best(state, 0, document)
    _take_back(state, shown, above)
    return chance, leaf, True


register(KLUCBState, select=_select, odds=_odds, update=_update)


@compiled
def _start(state: Any) -> None:
    for row in range(len(state.arms)):
        fresh_indices(state, row, len(state.leaf), np.inf)


class KLUCB(Bandit):
    """KL-UCB with the documents as arms: one learner per slot, or one for all slots.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents; its distances are not used.
    exploration : float
        C, which multiplies log t + 3 log log t; above 0.
    shared : bool
        Share counts between all slots; slot i shows the i-th best document (CascadeKL-UCB).
    seed : int, numpy.random.Generator or None
        Seed of a bandit used on its own.

    Examples
    --------
    >>> bandit = KLUCB(DocumentTree.exponential(depth=3), seed=0)
    >>> seen = bandit.select()
    >>> bandit.update(seen, reward=1)
    >>> bandit.select().document == seen.document  # unseen documents come first
    False

    References
    ----------
    Garivier and Cappé, *The KL-UCB algorithm for bounded stochastic bandits and beyond*, COLT 2011; with `shared`,
    Kveton, Szepesvári, Wen and Ashkan, *Cascading bandits*, ICML 2015.
    """

    anytime = True
    not_saved = Bandit.not_saved | frozenset(KLUCBScratch._fields)
    setting_names = ("exploration", "shared")

    def __init__(
        self, tree: DocumentTree, *, exploration: float = EXPLORATION, shared: bool = False, seed: Seed = None
    ) -> None:
        super().__init__(tree, seed)
        if not 0 < exploration < np.inf:
            raise ParameterError(f"exploration must be a positive number, not {exploration}.")
        self.exploration, self.shared = float(exploration), bool(shared)

    def fresh_state(self, slots: int) -> Any:
        """Return a state in which every document is an arm without plays."""
        rows, most = 1 if self.shared else slots, len(self.tree)
        arms, nodes = fresh_arms(rows, most)
        rounds, due, budget = np.zeros(rows, np.int64), np.ones(rows, np.int64), np.zeros(rows)
        plays, clicks = (np.zeros((rows, most), np.uint32) for _ in range(2))
        top, ties = np.zeros((rows, nodes)), np.zeros((rows, nodes), np.uint32)
        counts = KLUCBCounts(rounds, due, budget, plays, clicks, top, ties)
        scratch = KLUCBScratch(np.zeros(largest_context(slots)))
        state = KLUCBState(*self.view, *arms, self.shared, self.exploration, *counts, *scratch, *endless_clock(slots))
        _start(state)
        return state

    def strategy_of(self, state: Any, slot: int, above: Array, document: int) -> Strategy:  # noqa: ARG002
        """Return the arm of the document."""
        row = 0 if self.shared else slot
        plays, clicks = int(state.plays[row, document]), int(state.clicks[row, document])
        index = float(state.top[row, document])
        return Strategy(int(state.leaf[document]), plays, clicks, index - (clicks / plays if plays else 0.0), index)
