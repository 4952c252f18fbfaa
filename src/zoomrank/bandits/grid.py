"""`Grid`: a bandit over ever finer parts of the tree (Kleinberg 2004).

Phase i takes the subtrees of depth i as arms and runs a fresh bandit on them for (number of arms) · W^-2 counted
visits, where W is the width of those subtrees: ε^i in the ε-exponential metric with constant 1. The last phase,
whose arms are the documents, lasts for ever. Where the tree is uneven, documents above depth i stay arms of their
own, and W is the largest width.

The paper leaves some of this open. The first phase may be a finer one (`start`), phases may be longer (`stretch`), and
earlier visits may be replayed to a fresh UCB1 (`replay`): its arms begin with the plays and clicks of their documents.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.arms import Arms
from zoomrank.bandits.bandit import Bandit, Strategy
from zoomrank.bandits.exp3 import (
    EXP3,
    EXP3Parameters,
    EXP3Weights,
    arm_weight,
    chance_of_arm,
    fresh_weights,
    random_arm,
    reinforce_arm,
)
from zoomrank.bandits.kernel_interface import Feedback, PhaseClock, endless_clock, register, reset_all
from zoomrank.bandits.tree_view import TreeView
from zoomrank.bandits.ucb1 import (
    UCB1,
    ExplorationParameters,
    UCB1Counts,
    arm_bounds,
    chance_of_best,
    follow_horizon,
    index_of,
    reset_arms,
    reward_arm,
    select_best_arm,
    update_all_tops,
)
from zoomrank.compiled import Scalar, compiled, flat, inlined
from zoomrank.errors import ParameterError
from zoomrank.spaces import DocumentTree
from zoomrank.spaces.tree_shape import node_depths
from zoomrank.types import Array, Seed, whole_number

FOR_EVER = 2**62  # visits


class GridPhases(NamedTuple):
    """The grid, and the current phase of each slot."""

    depth: Array  # the depth of each slot's arms
    rounds_left: Array  # of each slot's phase
    first_node: Array  # of each depth; one past the last node at the end
    shallow: Array  # number of documents above each depth
    by_number: Array  # the leaves, ascending: those above a depth come first
    duration: Array  # of each phase
    nominal: Array  # the same, but finite for the last phase: the horizon of EXP3
    first_phase: int  # its depth


class ReplayCounts(NamedTuple):
    """Plays and clicks below each node while arms were larger than it, a row per slot; no columns without replay."""

    seen_plays: Array
    seen_clicks: Array


GridUCB1State = flat(
    "GridUCB1State", TreeView, Arms, ExplorationParameters, UCB1Counts, GridPhases, ReplayCounts, PhaseClock
)
GridEXP3State = flat("GridEXP3State", TreeView, Arms, EXP3Parameters, EXP3Weights, GridPhases, PhaseClock)


@inlined
def _arms_at(state: Any, depth: Scalar) -> Scalar:
    return state.first_node[depth + 1] - state.first_node[depth] + state.shallow[depth]


@inlined
def _arm_of(state: Any, slot: Scalar, document: Scalar) -> Scalar:
    """Find the arm that holds a document: its ancestor at the phase's depth, or the document itself above it."""
    depth = state.depth[slot]
    node = state.leaf[document]
    while node >= state.first_node[depth + 1]:
        node = state.parent[node]
    wide = state.first_node[depth + 1] - state.first_node[depth]
    if node >= state.first_node[depth]:
        arm = np.int64(node) - state.first_node[depth]
    else:
        arm = wide + np.searchsorted(state.by_number, node)
    return arm


@inlined
def _node_of(state: Any, slot: Scalar, arm: Scalar) -> Scalar:
    depth = state.depth[slot]
    wide = state.first_node[depth + 1] - state.first_node[depth]
    return state.first_node[depth] + arm if arm < wide else np.int64(state.by_number[arm - wide])


@inlined
def _one_visit_less(state: Any, slot: Scalar) -> Scalar:
    """Count a visit; return whether the next phase begins."""
    state.rounds_left[slot] -= 1
    over = state.rounds_left[slot] == 0
    if over:
        state.depth[slot] += 1
        state.rounds_left[slot] = state.duration[state.depth[slot]]
    return over


@inlined
def _first_phase(state: Any, slot: Scalar) -> None:
    state.depth[slot] = state.first_phase
    state.rounds_left[slot] = state.duration[state.first_phase]


@inlined
def _remember(state: Any, slot: Scalar, document: Scalar, reward: Scalar) -> None:
    """Keep a visit for the arms of all later phases that hold the document; documents above a depth stay arms there."""
    node = state.leaf[document]
    finer = state.first_node[state.depth[slot] + 1]
    going = True
    while going:
        state.seen_plays[slot, node] += np.uint32(1)
        state.seen_clicks[slot, node] += np.uint32(reward)
        going = node >= finer and state.parent[node] >= finer
        node = state.parent[node]


@inlined
def _replay(state: Any, slot: Scalar) -> None:
    """Give the arms of a fresh phase the past plays and clicks of their documents."""
    for arm in range(state.arms[slot]):
        node = _node_of(state, slot, arm)
        if state.seen_plays[slot, node] > 0:
            state.plays[slot, arm] = state.seen_plays[slot, node]
            state.clicks[slot, arm] = state.seen_clicks[slot, node]
            state.top[slot, arm] = index_of(state, slot, arm)
    update_all_tops(state, slot)


def _odds_ucb1(
    state: Any, slot: Scalar, shown: Array, above: Scalar, document: Scalar
) -> tuple[Scalar, Scalar, Scalar]:
    arm = _arm_of(state, slot, document)
    return chance_of_best(state, slot, arm), _node_of(state, slot, arm), False


def _odds_exp3(
    state: Any, slot: Scalar, shown: Array, above: Scalar, document: Scalar
) -> tuple[Scalar, Scalar, Scalar]:
    arm = _arm_of(state, slot, document)
    return chance_of_arm(state, slot, arm), _node_of(state, slot, arm), False


def _update_ucb1(state: Any, slot: Scalar, feedback: Feedback, shown: Array, above: Scalar) -> None:
    replaying = state.seen_plays.shape[1] > 0
    reward_arm(state, slot, _arm_of(state, slot, feedback.pick), feedback.reward)
    if replaying:
        _remember(state, slot, feedback.pick, feedback.reward)
    if _one_visit_less(state, slot):
        reset_arms(state, slot, _arms_at(state, state.depth[slot]))
        if replaying:
            _replay(state, slot)


def _update_exp3(state: Any, slot: Scalar, feedback: Feedback, shown: Array, above: Scalar) -> None:
    reinforce_arm(state, slot, _arm_of(state, slot, feedback.pick), feedback.chance, feedback.reward)
    if _one_visit_less(state, slot):
        fresh_weights(state, slot, _arms_at(state, state.depth[slot]), state.nominal[state.depth[slot]])


def _reset_ucb1(state: Any, slot: Scalar, horizon: Scalar) -> None:
    follow_horizon(state, slot, horizon)
    _first_phase(state, slot)
    reset_arms(state, slot, _arms_at(state, state.first_phase))
    state.seen_plays[slot, :] = 0
    state.seen_clicks[slot, :] = 0


def _reset_exp3(state: Any, slot: Scalar, horizon: Scalar) -> None:
    _first_phase(state, slot)
    fresh_weights(state, slot, _arms_at(state, state.first_phase), state.nominal[state.first_phase])


register(
    GridUCB1State, select=select_best_arm, odds=_odds_ucb1, update=_update_ucb1, subtree=_node_of, reset=_reset_ucb1
)
register(GridEXP3State, select=random_arm, odds=_odds_exp3, update=_update_exp3, subtree=_node_of, reset=_reset_exp3)


@compiled
def _find_arm(state: Any, slot: Scalar, document: Scalar) -> tuple[Scalar, Scalar]:
    arm = _arm_of(state, slot, document)
    return arm, _node_of(state, slot, arm)


class Grid(Bandit):
    """Grid version of a bandit that ignores distances: its arms are ever finer parts of the tree.

    Parameters
    ----------
    bandit : UCB1 or EXP3
        Bandit of each phase; phases set the horizon of EXP3.
    start : int
        Depth of the first phase, at least 0.
    stretch : float
        Factor on the phase lengths of the paper, above 0; a phase lasts at least one visit.
    replay : bool
        Replay the visits of earlier phases to the bandit of a new phase; UCB1 only.
    seed : int, numpy.random.Generator or None
        Seed of a bandit used on its own.

    Examples
    --------
    >>> bandit = Grid(UCB1(DocumentTree.exponential(depth=3)), seed=0)
    >>> [bandit.select().strategy for _ in range(3)]  # at first the whole tree is one arm
    [0, 0, 0]

    References
    ----------
    Kleinberg, *Nearly tight bounds for the continuum-armed bandit problem*, NIPS 2004, as Slivkins, Radlinski and
    Gollapudi use it in *Ranked bandits in metric spaces*, JMLR 14 (2013), Section 4.
    """

    setting_names = ("bandit", "start", "stretch", "replay")

    def __init__(
        self,
        bandit: Bandit,
        *,
        start: int = 0,
        stretch: float = 1.0,
        replay: bool = False,
        seed: Seed = None,
    ) -> None:
        if not isinstance(bandit, UCB1 | EXP3):
            raise ParameterError(f"Grid takes UCB1 or EXP3, not a {type(bandit).__name__}.")
        if replay and isinstance(bandit, EXP3):
            raise ParameterError(
                "EXP3 cannot replay earlier visits, since it learns from the probabilities of its own arms: "
                "pass replay=False, or use UCB1."
            )
        if not 0 < stretch < math.inf:
            raise ParameterError(f"stretch must be a positive number, not {stretch}.")
        super().__init__(bandit.tree, seed)
        self.bandit = bandit
        self.start, self.stretch, self.replay = whole_number(start, "start"), float(stretch), bool(replay)
        deepest = int(self.view.leaf_depth.max())
        if not 0 <= self.start <= deepest:
            raise ParameterError(f"start must be a depth of this tree, from 0 to {deepest}, not {start}.")

    def strategy_of(self, state: Any, slot: int, above: Array, document: int) -> Strategy:  # noqa: ARG002
        """Return the subtree of the phase's depth that holds the document."""
        arm, node = _find_arm(state, slot, document)
        describe = arm_bounds if isinstance(self.bandit, UCB1) else arm_weight
        return describe(state, slot, int(arm), int(node))

    def fresh_state(self, slots: int) -> Any:
        """Return the state of the first phase: at depth 0 the whole tree is one arm."""
        phases = _phases(self.tree, slots, self.start, self.stretch)
        most = int((np.diff(phases.first_node) + phases.shallow).max())
        parts = (*self.view, *self.bandit.arm_state(slots, most), *phases)
        if isinstance(self.bandit, UCB1):
            nodes = self.tree.nodes if self.replay else 0
            seen = ReplayCounts(*(np.zeros((slots, nodes), np.uint32) for _ in ReplayCounts._fields))
            state = GridUCB1State(*parts, *seen, *endless_clock(slots))
        else:
            state = GridEXP3State(*parts, *endless_clock(slots))
        reset_all(state, 0.0)
        return state


def _phases(tree: DocumentTree, slots: int, start: int, stretch: float) -> GridPhases:
    depths = node_depths(tree.shape.parent)
    nodes = np.bincount(depths)
    first = np.concatenate([[0], np.cumsum(nodes)]).astype(np.int64)
    leaves = np.sort(tree.shape.leaf)
    shallow = np.searchsorted(leaves, first[:-1]).astype(np.int64)
    widest = np.maximum.reduceat(tree.width, first[:-1])
    duration, nominal = [], []
    for depth, width in enumerate(widest):
        arms = int(nodes[depth] + shallow[depth])
        scale = width if width > 0 else widest[max(depth - 1, 0)]  # a document has no width: use its parent's
        visits = arms / scale**2 if scale > 0 else float(arms)
        nominal.append(float(math.ceil(min(stretch * visits, FOR_EVER))))
        last = width == 0 or depth == len(widest) - 1
        duration.append(FOR_EVER if last else int(nominal[-1]))
    zeros = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
    return GridPhases(*zeros, first, shallow, leaves, np.array(duration, np.int64), np.array(nominal), start)
