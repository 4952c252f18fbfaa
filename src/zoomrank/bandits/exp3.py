"""`EXP3`: exponential weights for adversarial rewards (Auer, Cesa-Bianchi, Freund and Schapire 2002).

With probability γ an arm is drawn uniformly, otherwise in proportion to its weight; an arm that earns a reward has
its weight multiplied by `exp(γ · reward / (p · K))`, p being the probability it was drawn with. The tree over the
arms keeps sums.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.arms import FAN, Arms, fresh_arms, lay_out
from zoomrank.bandits.bandit import Bandit, Strategy
from zoomrank.bandits.kernel_interface import Feedback, PhaseClock, endless_clock, register, reset_all
from zoomrank.bandits.tree_view import TreeView
from zoomrank.bandits.ucb1 import checked_horizon
from zoomrank.compiled import Scalar, exp, flat, inlined
from zoomrank.errors import HorizonError
from zoomrank.spaces import DocumentTree
from zoomrank.types import Array, Seed

LARGEST_TOTAL = 1e200  # weights are scaled down before their sum could overflow


class EXP3Parameters(NamedTuple):
    """Rate of uniform exploration."""

    gamma: Array  # γ, per slot


class EXP3Weights(NamedTuple):
    """Weights of the arms, a row per slot."""

    weight: Array  # the sum of the weights below each node of the tree over the arms


EXP3State = flat("EXP3State", TreeView, Arms, EXP3Parameters, EXP3Weights, PhaseClock)


@inlined
def chance_of_arm(state: Any, slot: Scalar, arm: Scalar) -> Scalar:
    """Return the probability that an arm is drawn."""
    row = np.uint64(slot)
    gamma = state.gamma[row]
    total = state.weight[row, np.uint64(state.level_start[row, state.levels[row] - 1])]
    return (1.0 - gamma) * state.weight[row, np.uint64(arm)] / total + gamma / state.arms[row]


def random_arm(
    state: Any, slot: Scalar, shown: Array, above: Scalar, rng: np.random.Generator
) -> tuple[Scalar, Scalar]:
    """Draw an arm with one random number; return it and its probability: the registered `select`."""
    row = np.uint64(slot)
    arms, gamma = state.arms[row], state.gamma[row]
    level = state.levels[row] - 1
    total = state.weight[row, np.uint64(state.level_start[row, level])]
    r = rng.random()
    node = np.uint64(0)
    if r < gamma:
        node = np.uint64(min(np.int64(r / gamma * arms), arms - 1))
    else:
        target = (r - gamma) / (1.0 - gamma) * total
        while level > 0:
            level -= 1
            start = np.uint64(state.level_start[row, level])
            node = node * np.uint64(FAN)
            last = min(node + np.uint64(FAN), np.uint64(state.level_size[row, level])) - np.uint64(1)
            while node < last and target >= state.weight[row, start + node]:
                target -= state.weight[row, start + node]
                node += np.uint64(1)
    return np.int64(node), chance_of_arm(state, slot, node)


@inlined
def reinforce_arm(state: Any, slot: Scalar, arm: Scalar, chance: Scalar, reward: Scalar) -> None:
    """Raise the weight of an arm that earned a reward, and the sums above it."""
    row, node = np.uint64(slot), np.uint64(arm)
    if reward > 0:
        state.weight[row, node] *= exp(state.gamma[row] / (chance * state.arms[row]))
        update_weight_sums(state, slot, arm)
        root = np.uint64(state.level_start[row, state.levels[row] - 1])
        if state.weight[row, root] > LARGEST_TOTAL:
            for at in range(root + np.uint64(1)):
                state.weight[row, at] /= LARGEST_TOTAL


@inlined
def update_weight_sums(state: Any, slot: Scalar, arm: Scalar) -> None:
    """Recompute the sums above an arm."""
    row, node = np.uint64(slot), np.uint64(arm)
    for level in range(1, state.levels[row]):
        node = node // np.uint64(FAN)
        below = np.uint64(state.level_start[row, level - 1])
        child = node * np.uint64(FAN)
        end = min(child + np.uint64(FAN), np.uint64(state.level_size[row, level - 1]))
        total = 0.0
        while child < end:
            total += state.weight[row, below + child]
            child += np.uint64(1)
        state.weight[row, np.uint64(state.level_start[row, level]) + node] = total


@inlined
def fresh_weights(state: Any, slot: Scalar, arms: Scalar, horizon: Scalar) -> None:
    """Reset all weights to 1, and γ for K arms and g visits to min(1, sqrt(K ln K / ((e - 1) g)))."""
    lay_out(state, slot, arms, state.weight)
    state.gamma[slot] = min(1.0, np.sqrt(arms * math.log(arms) / ((math.e - 1.0) * horizon)))


def _odds(state: Any, slot: Scalar, shown: Array, above: Scalar, document: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    return chance_of_arm(state, slot, document), np.int64(state.leaf[document]), False


def _update(state: Any, slot: Scalar, feedback: Feedback, shown: Array, above: Scalar) -> None:
    reinforce_arm(state, slot, feedback.pick, feedback.chance, feedback.reward)


def _reset(state: Any, slot: Scalar, horizon: Scalar) -> None:
    fresh_weights(state, slot, len(state.leaf), horizon)


register(EXP3State, select=random_arm, odds=_odds, update=_update, reset=_reset)


class EXP3(Bandit):
    """EXP3 with the documents as arms: exponential weights, robust against adversarial rewards.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents; its distances are not used.
    horizon : int or None
        Number of visits to come; required unless `Grid` or `Anytime` sets it.
    seed : int, numpy.random.Generator or None
        Seed of a bandit used on its own.

    Examples
    --------
    >>> bandit = EXP3(DocumentTree.exponential(depth=2), horizon=1000, seed=0)
    >>> bandit.select().chance  # of each of four documents
    0.25

    References
    ----------
    Auer, Cesa-Bianchi, Freund and Schapire, *The nonstochastic multiarmed bandit problem*, SIAM Journal on Computing
    32 (2002), as Slivkins, Radlinski and Gollapudi use it in *Ranked bandits in metric spaces*, JMLR 14 (2013),
    Section 4.
    """

    needs_horizon = True
    setting_names = ("horizon",)

    def __init__(self, tree: DocumentTree, *, horizon: int | None = None, seed: Seed = None) -> None:
        super().__init__(tree, seed)
        self.horizon = checked_horizon(horizon)

    def arm_state(self, slots: int, most: int) -> tuple[Any, ...]:
        """Return the parts of a state with room for this many arms."""
        arms, nodes = fresh_arms(slots, most)
        return (*arms, np.zeros(slots), np.zeros((slots, nodes)))

    def strategy_of(self, state: Any, slot: int, above: Array, document: int) -> Strategy:  # noqa: ARG002
        """Return the arm of the document."""
        return arm_weight(state, slot, document, int(state.leaf[document]))

    def fresh_state(self, slots: int) -> Any:
        """Return a state in which every document is an arm of weight 1."""
        if self.horizon is None:
            raise HorizonError("EXP3 needs a horizon: pass horizon=..., or wrap it in Anytime.")
        state = EXP3State(*self.view, *self.arm_state(slots, len(self.tree)), *endless_clock(slots))
        reset_all(state, float(self.horizon))
        return state


def arm_weight(state: Any, slot: int, arm: int, node: int) -> Strategy:
    """Return an arm's strategy, with its probability as the index. EXP3 counts neither plays nor clicks."""
    total = state.weight[slot, state.level_start[slot, state.levels[slot] - 1]]
    gamma = state.gamma[slot]
    chance = (1 - gamma) * state.weight[slot, arm] / total + gamma / state.arms[slot]
    return Strategy(node, 0, 0, 0.0, float(chance))
