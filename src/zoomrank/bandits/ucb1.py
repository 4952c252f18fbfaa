"""`UCB1`: play the arm with the highest upper confidence bound (Auer, Cesa-Bianchi and Fischer 2002).

The bound is the index of Algorithm 3, `r/n + 2 · sqrt(C / (1 + n))` with C = 4 log T or, optimistically, 1: what
zooming would use if one document said nothing about another. The paper does not print its own; with a single radius the
optimistic version learns in 300,000 visits what its Figure 1 says it does not. Ties are broken uniformly. A node of the
tree over the arms keeps the highest index below it and how many arms attain it.

`UCBBandit` is the base of all learners with such a radius, sqrt(C / (1 + n)) (Eq. 17). The paper proves its bounds for
C = 4 log T ("pessimistic") and finds C = 1 ("optimistic") far better in practice.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.arms import FAN, Arms, fresh_arms, lay_out
from zoomrank.bandits.bandit import Bandit, Strategy
from zoomrank.bandits.kernel_interface import Feedback, PhaseClock, endless_clock, register, reset_all
from zoomrank.bandits.tree_view import TreeView
from zoomrank.compiled import Scalar, flat, inlined
from zoomrank.errors import ExplorationError, HorizonError
from zoomrank.spaces import DocumentTree
from zoomrank.types import Array, Seed

Exploration = str | float


class ExplorationParameters(NamedTuple):
    """Parameters of the confidence radius."""

    constant: Array  # C of the confidence radius, per slot
    pessimistic: bool  # C follows the horizon when a learner is reset


@inlined
def follow_horizon(state: Any, slot: Scalar, horizon: Scalar) -> None:
    """Set C to the paper's value for this horizon, if there is one and the learner is pessimistic."""
    if state.pessimistic and horizon > 0:
        state.constant[slot] = 4.0 * math.log(horizon)


def exploration_constant(exploration: Exploration, horizon: int | None) -> float:
    """Return C for "optimistic", "pessimistic" (which needs a horizon T) or a positive number."""
    checked_horizon(horizon)
    if exploration == "optimistic":
        return 1.0
    if exploration == "pessimistic":
        if horizon is None:
            raise HorizonError(
                "A pessimistic learner needs a horizon, since C = 4·log(T): pass horizon=..., or wrap it in Anytime."
            )
        return 4.0 * math.log(horizon)
    if isinstance(exploration, str):
        raise ExplorationError(f'exploration must be "optimistic", "pessimistic" or a number, not {exploration!r}.')
    if not 0 < exploration < math.inf:
        raise ExplorationError(f"The exploration constant must be a positive number, not {exploration}.")
    return float(exploration)


def checked_horizon(horizon: int | None) -> int | None:
    """Return the horizon; raise `ParameterError` if it is too short."""
    if horizon is not None and horizon < 1:
        raise HorizonError(f"A horizon of {horizon} visits is too short.")
    return horizon


class UCBBandit(Bandit):
    """A bandit that explores by a confidence radius.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents.
    exploration : str or float
        C in the radius sqrt(C / (1 + n)): "optimistic" is 1, "pessimistic" is 4·log(horizon), or a positive number.
    horizon : int or None
        Number of visits to come; needed by a pessimistic learner only.
    seed : int, numpy.random.Generator or None
        Seed of a bandit used on its own.
    """

    setting_names: tuple[str, ...] = ("exploration", "horizon")

    def __init__(
        self,
        tree: DocumentTree,
        *,
        exploration: Exploration = "optimistic",
        horizon: int | None = None,
        seed: Seed = None,
    ) -> None:
        super().__init__(tree, seed)
        self.constant = exploration_constant(exploration, horizon)
        self.exploration, self.horizon = exploration, horizon

    def exploration_parameters(self, slots: int) -> ExplorationParameters:
        """Return the same radius for every slot."""
        return ExplorationParameters(np.full(slots, self.constant), self.exploration == "pessimistic")


class UCB1Counts(NamedTuple):
    """Counts and indices of the arms, a row per slot."""

    plays: Array  # n, per arm
    clicks: Array  # r, per arm
    top: Array  # the highest index below each node of the tree over the arms
    ties: Array  # number of arms that attain it


UCB1State = flat("UCB1State", TreeView, Arms, ExplorationParameters, UCB1Counts, PhaseClock)


@inlined
def best_arm(state: Any, slot: Scalar, rng: np.random.Generator) -> Scalar:
    """Return an arm with the highest index, uniformly among ties."""
    row = np.uint64(slot)
    level = state.levels[row] - 1
    at = np.uint64(state.level_start[row, level])
    top, ties = state.top[row, at], np.int64(state.ties[row, at])
    skip = np.int64(rng.random() * ties) if ties > 1 else np.int64(0)
    node = np.uint64(0)
    while level > 0:
        level -= 1
        start = np.uint64(state.level_start[row, level])
        node = node * np.uint64(FAN)
        found: Scalar = False
        while not found:
            if state.top[row, start + node] == top:
                here = np.int64(state.ties[row, start + node]) if level > 0 else np.int64(1)
                found = skip < here
                if not found:
                    skip -= here
            if not found:
                node += np.uint64(1)
    return np.int64(node)


@inlined
def chance_of_best(state: Any, slot: Scalar, arm: Scalar) -> Scalar:
    """Return the probability that `best_arm` returns this arm."""
    row = np.uint64(slot)
    root = np.uint64(state.level_start[row, state.levels[row] - 1])
    best = state.top[row, np.uint64(arm)] == state.top[row, root]
    return 1.0 / np.float64(state.ties[row, root]) if best else 0.0


@inlined
def set_index(state: Any, slot: Scalar, arm: Scalar, index: Scalar) -> None:
    """Set the index of an arm, and update the nodes above it as far as they change."""
    row, node = np.uint64(slot), np.uint64(arm)
    state.top[row, node] = index
    changed = True
    level = 1
    while changed and level < state.levels[row]:
        node = node // np.uint64(FAN)
        changed = update_top(state, row, level, node)
        level += 1


@inlined
def update_top(state: Any, row: Scalar, level: Scalar, node: Scalar) -> Scalar:
    """Recompute the highest index below a node, and how many arms attain it; return whether that changed."""
    below = np.uint64(state.level_start[row, level - 1])
    child = node * np.uint64(FAN)
    end = min(child + np.uint64(FAN), np.uint64(state.level_size[row, level - 1]))
    top, ties = -1.0, np.uint32(0)
    while child < end:
        value = state.top[row, below + child]
        if value >= top:
            here = state.ties[row, below + child] if level > 1 else np.uint32(1)
            ties = here if value > top else ties + here
            top = value
        child += np.uint64(1)
    at = np.uint64(state.level_start[row, level]) + node
    changed = state.top[row, at] != top or state.ties[row, at] != ties
    state.top[row, at] = top
    state.ties[row, at] = ties
    return changed


@inlined
def reward_arm(state: Any, slot: Scalar, arm: Scalar, reward: Scalar) -> None:
    """Count a play."""
    row, node = np.uint64(slot), np.uint64(arm)
    state.plays[row, node] += np.uint32(1)
    state.clicks[row, node] += np.uint32(reward)
    set_index(state, row, node, index_of(state, row, node))


@inlined
def index_of(state: Any, row: Scalar, arm: Scalar) -> Scalar:
    """Return the index of an arm with plays."""
    plays = state.plays[row, arm]
    return state.clicks[row, arm] / plays + 2.0 * np.sqrt(state.constant[row] / (1.0 + plays))


@inlined
def fresh_indices(state: Any, slot: Scalar, arms: Scalar, fresh: Scalar) -> None:
    """Reset all indices, so that all arms tie."""
    lay_out(state, slot, arms, state.ties)
    for arm in range(arms):
        state.plays[slot, arm] = 0
        state.clicks[slot, arm] = 0
    for node in range(state.level_start[slot, state.levels[slot] - 1] + 1):
        state.top[slot, node] = fresh


@inlined
def reset_arms(state: Any, slot: Scalar, arms: Scalar) -> None:
    """Reset the counts and indices of a slot."""
    fresh_indices(state, slot, arms, 2.0 * np.sqrt(state.constant[slot]))


@inlined
def update_all_tops(state: Any, slot: Scalar) -> None:
    """Recompute all nodes of the tree over the arms, from the arms up, after many indices have changed at once."""
    row = np.uint64(slot)
    for level in range(1, state.levels[row]):
        for node in range(state.level_size[row, level]):
            update_top(state, row, level, np.uint64(node))


def select_best_arm(
    state: Any, slot: Scalar, shown: Array, above: Scalar, rng: np.random.Generator
) -> tuple[Scalar, Scalar]:
    """Choose a best arm: the registered `select`."""
    return best_arm(state, slot, rng), 1.0


def _odds(state: Any, slot: Scalar, shown: Array, above: Scalar, document: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    return chance_of_best(state, slot, document), np.int64(state.leaf[document]), False


def _update(state: Any, slot: Scalar, feedback: Feedback, shown: Array, above: Scalar) -> None:
    reward_arm(state, slot, feedback.pick, feedback.reward)


def _reset(state: Any, slot: Scalar, horizon: Scalar) -> None:
    follow_horizon(state, slot, horizon)
    reset_arms(state, slot, len(state.leaf))


register(UCB1State, select=select_best_arm, odds=_odds, update=_update, reset=_reset)


class UCB1(UCBBandit):
    """UCB1 with the documents as arms, ignoring distances.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents; its distances are not used.
    exploration : str or float
        C in the radius sqrt(C / (1 + n)): "optimistic" is 1, "pessimistic" is 4·log(horizon), or a positive number.
    horizon : int or None
        Number of visits to come; needed by a pessimistic learner only.
    seed : int, numpy.random.Generator or None
        Seed of a bandit used on its own.

    Examples
    --------
    >>> from zoomrank import DocumentTree
    >>> bandit = UCB1(DocumentTree.exponential(depth=3), exploration=0.01, seed=0)
    >>> choice = bandit.select()
    >>> bandit.update(choice, reward=1)
    >>> bandit.select().document == choice.document
    True

    References
    ----------
    Auer, Cesa-Bianchi and Fischer, *Finite-time analysis of the multiarmed bandit problem*, Machine Learning 47
    (2002), as Slivkins, Radlinski and Gollapudi use it in *Ranked bandits in metric spaces*, JMLR 14 (2013), Section
    4; the radius is their Eq. 17.
    """

    def arm_state(self, slots: int, most: int) -> tuple[Any, ...]:
        """Return the parts of a state with room for this many arms."""
        arms, nodes = fresh_arms(slots, most)
        plays, clicks = (np.zeros((slots, most), np.uint32) for _ in range(2))
        counts = UCB1Counts(plays, clicks, np.zeros((slots, nodes)), np.zeros((slots, nodes), np.uint32))
        return (*arms, *self.exploration_parameters(slots), *counts)

    def strategy_of(self, state: Any, slot: int, above: Array, document: int) -> Strategy:  # noqa: ARG002
        """Return the arm of the document."""
        return arm_bounds(state, slot, document, int(state.leaf[document]))

    def fresh_state(self, slots: int) -> Any:
        """Return a state in which every document is an arm without plays."""
        state = UCB1State(*self.view, *self.arm_state(slots, len(self.tree)), *endless_clock(slots))
        reset_all(state, 0.0)
        return state


def arm_bounds(state: Any, slot: int, arm: int, node: int) -> Strategy:
    """Return the strategy of an arm."""
    plays, clicks = int(state.plays[slot, arm]), int(state.clicks[slot, arm])
    radius = float(np.sqrt(state.constant[slot] / (1 + plays)))
    return Strategy(node, plays, clicks, radius, float(state.top[slot, arm]))
