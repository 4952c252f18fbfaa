"""`Zooming`: Algorithm 3 of the paper, and the correlation rule that makes it the slot learner of RankCorrZoom.

A set of active subtrees partitions the documents. Each visit plays the one with the highest index, an upper confidence
bound on the click probability of its documents; one whose radius is below its width is replaced by its children.

The active subtrees and those that they replaced form a *zoom tree*. Every entry keeps the best index below it, so
choosing is a walk down along the best and updating is a walk up; no array is scanned. Ties are broken at each branch,
uniformly among the branches that attain the maximum.

Off the root paths of the documents above, the correlation rule caps all indices below a node by one number, so the walk
down the zoom tree stays a walk; only entries on those paths need a cap of their own, and few of them, since no entry
below can be worth more than the best index and the width.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.bandit import Bandit, Strategy
from zoomrank.bandits.kernel_interface import Feedback, PhaseClock, endless_clock, register, reset_all
from zoomrank.bandits.tree_view import (
    ContextScratch,
    TreeView,
    chance_of_best_place,
    correlation_cap,
    farthest_from,
    fresh_context_scratch,
    random_best,
    split_mask,
    store_paths,
)
from zoomrank.bandits.ucb1 import Exploration, ExplorationParameters, UCBBandit, follow_horizon
from zoomrank.compiled import Scalar, compiled, flat, inlined
from zoomrank.spaces import DocumentTree
from zoomrank.types import Array, Seed


class ZoomCounts(NamedTuple):
    """Zoom trees, a row per slot; entry 0 is the root, children are adjacent."""

    node: Array  # of the tree of documents
    up: Array  # the entry that this one refines
    child: Array  # the first of its children; 0 while it is active
    fan: Array  # number of children
    plays: Array  # n(u)
    clicks: Array  # r(u)
    best: Array  # the highest index at or below this entry
    used: Array  # entries in use, per slot


def fresh_zoom_trees(slots: int, room: int) -> ZoomCounts:
    """Return empty zoom trees."""
    node, up, child, fan, plays, clicks = (np.zeros((slots, room), np.uint32) for _ in range(6))
    return ZoomCounts(node, up, child, fan, plays, clicks, best=np.zeros((slots, room)), used=np.zeros(slots, np.int64))


def with_larger_zoom_trees(state: Any) -> Any:
    """Return the same zoom trees with more room."""
    slots, room = state.node.shape
    grown = fresh_zoom_trees(slots, room + max(room // 3, 2 * state.widest))
    for name in ZoomCounts._fields[:-1]:
        getattr(grown, name)[:, :room] = getattr(state, name)
    return state._replace(**{**grown._asdict(), "used": state.used})


@inlined
def zoom_trees_are_roomy(state: Any) -> Scalar:
    """Return whether every slot could refine one more entry."""
    room = True
    for slot in range(len(state.used)):
        room = room and state.used[slot] + state.widest <= state.node.shape[1]
    return room


@inlined
def walk_best(state: Any, slot: Scalar, entry: Scalar, cap: Scalar, rng: np.random.Generator) -> Scalar:
    """Walk down along the best index, capped by one number, to an active entry."""
    row = np.uint64(slot)
    at = np.uint32(entry)
    while state.child[row, at] != 0:
        first, fan = state.child[row, at], state.fan[row, at]
        top = min(state.best[row, first], cap)
        ties = 1
        at = first
        for step in range(1, fan):
            value = min(state.best[row, first + np.uint32(step)], cap)
            if value > top:
                top, ties = value, 1
                at = first + np.uint32(step)
            elif value == top:
                ties += 1
        if ties > 1:
            chosen = np.uint32(rng.random() * ties)
            if ties == fan:  # all tie: the usual case under a cap
                at = first + chosen
            else:
                at = first
                while min(state.best[row, at], cap) != top or chosen > 0:
                    if min(state.best[row, at], cap) == top:
                        chosen -= np.uint32(1)
                    at += np.uint32(1)
    return np.int64(at)


@inlined
def chance_of_walk(state: Any, slot: Scalar, entry: Scalar, cap: Scalar, document: Scalar) -> tuple[Scalar, Scalar]:
    """Return the probability that `walk_best` reaches the active entry that holds a document, and that entry."""
    row, at, chance = np.uint64(slot), np.uint32(entry), 1.0
    while chance > 0.0 and state.child[row, at] != 0:
        first, fan = state.child[row, at], state.fan[row, at]
        top, ties, inner = -1.0, 0, first
        for step in range(fan):
            child = first + np.uint32(step)
            value = min(state.best[row, child], cap)
            ties = 1 if value > top else ties + (value == top)
            top = max(top, value)
            inner = child if state.first_document[state.node[row, child]] <= document else inner
        at = inner
        chance = chance / ties if min(state.best[row, at], cap) == top else 0.0
    return chance, np.int64(at)


@inlined
def holder(state: Any, slot: Scalar, strategy: Scalar, document: Scalar) -> Scalar:
    """Return the active entry that holds a document: the strategy that picked it or, if that was refined since, one
    below it.
    """
    row = np.uint64(slot)
    at = np.uint32(strategy if 0 <= strategy < state.used[row] else 0)
    node = state.node[row, at]
    if not state.first_document[node] <= document < state.end_document[node]:
        at = np.uint32(0)  # the learner was reset since: start from the root
    while state.child[row, at] != 0:
        at = state.child[row, at]
        while state.end_document[state.node[row, at]] <= document:
            at += np.uint32(1)
    return np.int64(at)


@inlined
def refine(state: Any, slot: Scalar, entry: Scalar, fresh: Scalar) -> None:
    """Deactivate an entry and activate its children, which start without plays."""
    row, at = np.uint64(slot), np.uint32(entry)
    node = state.node[row, at]
    start = state.child_start[node]
    fan = state.child_start[node + np.uint32(1)] - start
    first = np.uint32(state.used[row])
    for step in range(fan):
        child = first + np.uint32(step)
        state.node[row, child] = start + np.uint32(step)
        state.up[row, child] = at
        state.child[row, child] = 0
        state.plays[row, child] = 0
        state.clicks[row, child] = 0
        state.best[row, child] = fresh
    state.used[row] += fan
    state.child[row, at] = first
    state.fan[row, at] = fan


@inlined
def raise_best(state: Any, slot: Scalar, entry: Scalar, value: Scalar) -> None:
    """Set the best index of an entry and update its ancestors as far as they change."""
    row, at = np.uint64(slot), np.uint32(entry)
    state.best[row, at] = value
    changed = True
    while changed and at != 0:
        above = state.up[row, at]
        first = state.child[row, above]
        top = state.best[row, first]
        for step in range(1, state.fan[row, above]):
            top = max(top, state.best[row, first + np.uint32(step)])
        changed = top != state.best[row, above]
        state.best[row, above] = top
        at = above


@inlined
def update_zoom(state: Any, slot: Scalar, strategy: Scalar, pick: Scalar, reward: Scalar) -> None:
    """Credit the active entry that holds a document, and refine it once its radius is below its width."""
    at = np.uint32(holder(state, slot, strategy, pick))
    row = np.uint64(slot)
    state.plays[row, at] += np.uint32(1)
    state.clicks[row, at] += np.uint32(reward)
    plays, clicks, constant = state.plays[row, at], state.clicks[row, at], state.constant[row]
    radius = np.sqrt(constant / (1.0 + plays))
    value = clicks / plays + 2.0 * radius  # index(u)
    if radius < state.width[state.node[row, at]]:
        value = 2.0 * np.sqrt(constant)
        refine(state, slot, at, value)
    raise_best(state, slot, at, value)


@inlined
def reset_zoom_tree(state: Any, slot: Scalar, fresh: Scalar) -> None:
    """Reset a zoom tree to its root, active."""
    state.node[slot, 0] = 0
    state.up[slot, 0] = 0
    state.child[slot, 0] = 0
    state.plays[slot, 0] = 0
    state.clicks[slot, 0] = 0
    state.best[slot, 0] = fresh
    state.used[slot] = 1


@compiled
def find_entry(state: Any, slot: Scalar, document: Scalar) -> Scalar:
    """Return the active entry that holds a document."""
    return holder(state, slot, 0, document)


# The walk under the correlation rule, and the bandit.


class ZoomParameters(NamedTuple):
    """Parameters of zooming beside the radius."""

    correlated: bool  # use the correlation rule
    widest: int  # the largest number of children of any node


ZoomState = flat("ZoomState", TreeView, ZoomCounts, ExplorationParameters, ZoomParameters, ContextScratch, PhaseClock)


@inlined
def _capped_best(state: Any, slot: Scalar, entry: Scalar, depth: Scalar, mask: Scalar, threshold: Scalar) -> Scalar:
    """Find the best capped index below an entry that holds documents of S; inexact if below the threshold."""
    found = -1.0
    row, size = np.uint64(slot), np.uint64(1)
    state.stack_entry[0], state.stack_depth[0], state.stack_mask[0] = entry, depth, mask
    while size > 0:
        size -= np.uint64(1)
        at = np.uint64(state.stack_entry[size])
        level, here = state.stack_depth[size], state.stack_mask[size]
        node = np.uint64(state.node[row, at])
        width, best = state.width[node], state.best[row, at]
        bound = min(best, width)
        if bound >= threshold and bound > found:
            first = np.uint64(state.child[row, at])
            if first == 0:
                found = max(found, min(best, farthest_from(state, node, level, here)))
            else:
                split_mask(state, state.inner, node, level, here)
                for step in range(np.uint64(state.fan[row, at])):
                    if state.inner[step] == 0:
                        found = max(found, min(state.best[row, first + step], width))
                    else:
                        state.stack_entry[size] = first + step
                        state.stack_depth[size] = level + 1
                        state.stack_mask[size] = state.inner[step]
                        size += np.uint64(1)
    return found


@inlined
def _value_children(state: Any, slot: Scalar, entry: Scalar, depth: Scalar, mask: Scalar) -> Scalar:
    """Value the children of an entry that holds documents of S, exactly if they attain the best; return the best."""
    row, at, top = np.uint64(slot), np.uint64(entry), -1.0
    first, fan, node = np.uint64(state.child[row, at]), np.uint64(state.fan[row, at]), np.uint64(state.node[row, at])
    split_mask(state, state.below, node, depth, mask)
    for step in range(fan):  # first the children off the paths: their values prune the others
        if state.below[step] == 0:
            state.value[step] = min(state.best[row, first + step], state.width[node])
            top = max(top, state.value[step])
    start = np.uint64(state.child_start[node])
    for step in range(fan):
        if state.below[step] != 0:
            state.value[step] = -1.0
            if min(state.best[row, first + step], state.width[start + step]) >= top:
                state.value[step] = _capped_best(state, slot, first + step, depth + 1, state.below[step], top)
                top = max(top, state.value[step])
    return top


@inlined
def _walk_capped(state: Any, slot: Scalar, shown: Array, above: Scalar, rng: np.random.Generator) -> Scalar:
    """Walk down along the best capped index; off the paths of S the cap is one number, and the walk is plain."""
    store_paths(state, shown, above)
    row, at = np.uint64(slot), np.uint64(0)
    depth, mask, cap = 0, (1 << above) - 1, np.inf
    while mask != 0 and state.child[row, at] != 0:
        first, fan = np.uint64(state.child[row, at]), np.uint64(state.fan[row, at])
        cap = state.width[np.uint64(state.node[row, at])]
        top = _value_children(state, slot, at, depth, mask)
        chosen = random_best(state.value, fan, top, rng)
        at = first + chosen
        depth += 1
        mask = state.below[chosen]
    return walk_best(state, slot, at, cap, rng)


def _odds(state: Any, slot: Scalar, shown: Array, above: Scalar, document: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """Walk to the entry that holds a document, multiplying the probability of each tie-break."""
    capping = above if state.correlated else 0
    store_paths(state, shown, capping)
    row, at, chance, hopeful = np.uint64(slot), np.uint64(0), 1.0, False
    depth, mask, cap = 0, (1 << capping) - 1, np.inf
    while chance > 0.0 and mask != 0 and state.child[row, at] != 0:
        first, step = np.uint64(state.child[row, at]), np.uint64(0)
        cap = state.width[np.uint64(state.node[row, at])]
        top = _value_children(state, slot, at, depth, mask)
        hopeful = top > 0.0  # a subtree without documents left is capped at 0
        while state.end_document[np.uint64(state.node[row, first + step])] <= document:
            step += np.uint64(1)
        chance *= chance_of_best_place(state.value, np.uint64(state.fan[row, at]), top, step)
        at = first + step
        depth += 1
        mask = state.below[step]
    more, entry = chance_of_walk(state, slot, at, cap, document)
    return chance * more, np.int64(state.node[row, np.uint64(entry)]), hopeful


def _select(state: Any, slot: Scalar, shown: Array, above: Scalar, rng: np.random.Generator) -> tuple[Scalar, Scalar]:
    return _walk_capped(state, slot, shown, above if state.correlated else 0, rng), 1.0


def _subtree(state: Any, slot: Scalar, strategy: Scalar) -> Scalar:
    return np.int64(state.node[slot, strategy])


def _update(state: Any, slot: Scalar, feedback: Feedback, shown: Array, above: Scalar) -> None:
    update_zoom(state, slot, feedback.strategy, feedback.pick, feedback.reward)


def _reset(state: Any, slot: Scalar, horizon: Scalar) -> None:
    follow_horizon(state, slot, horizon)
    reset_zoom_tree(state, slot, 2.0 * np.sqrt(state.constant[slot]))


register(
    ZoomState, select=_select, odds=_odds, update=_update, subtree=_subtree, reset=_reset, roomy=zoom_trees_are_roomy
)


class Zooming(UCBBandit):
    """The zooming algorithm: learn about whole subtrees, and refine those that visitors click.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents, of any shape.
    exploration : str or float
        C in the radius sqrt(C / (1 + n)): "optimistic" is 1, "pessimistic" is 4·log(horizon), or a positive number.
    horizon : int or None
        Number of visits to come; needed by a pessimistic learner only.
    correlated : bool
        Cap indices by the distance to the documents shown above (the correlation rule).
    seed : int, numpy.random.Generator or None
        Seed of a bandit used on its own.

    Examples
    --------
    >>> bandit = Zooming(DocumentTree.exponential(depth=4), seed=0)
    >>> for _ in range(300):
    ...     choice = bandit.select()
    ...     bandit.update(choice, reward=int(choice.document == 5))
    >>> bandit.select().document
    5

    References
    ----------
    Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*, JMLR 14 (2013), Section 4: Algorithm 3; Eq.
    17 is the radius, Eq. 23 the correlation rule.
    """

    not_saved = Bandit.not_saved | frozenset(ContextScratch._fields)
    setting_names: tuple[str, ...] = ("exploration", "horizon", "correlated")

    def __init__(
        self,
        tree: DocumentTree,
        *,
        exploration: Exploration = "optimistic",
        horizon: int | None = None,
        correlated: bool = False,
        seed: Seed = None,
    ) -> None:
        super().__init__(tree, exploration=exploration, horizon=horizon, seed=seed)
        self.correlated = correlated

    def fresh_state(self, slots: int) -> Any:
        """Return a state with an active root per slot."""
        state = ZoomState(*self.zoom_parts(slots), *endless_clock(slots))
        reset_all(state, 0.0)
        return state

    def zoom_parts(self, slots: int) -> tuple[Any, ...]:
        """Return the parts of a state with a zoom tree per slot."""
        widest = int(np.diff(self.tree.shape.child_start).max())
        return (
            *self.view,
            *fresh_zoom_trees(slots, 1 + 2 * widest),
            *self.exploration_parameters(slots),
            *ZoomParameters(self.correlated, widest),
            *fresh_context_scratch(self.tree, slots, widest),
        )

    def larger(self, state: Any) -> Any:
        """Add a third more room, and enough for a visit."""
        return with_larger_zoom_trees(state)

    def strategy_of(self, state: Any, slot: int, above: Array, document: int) -> Strategy:
        """Return the active entry that holds the document, capped by the distance to the documents above."""
        entry = int(find_entry(state, slot, document))
        node, plays, clicks = (int(array[slot, entry]) for array in (state.node, state.plays, state.clicks))
        radius = float(np.sqrt(state.constant[slot] / (1 + plays)))
        index = (clicks / plays if plays else 0.0) + 2 * radius
        return Strategy(node, plays, clicks, radius, index, self.cap_of(node, above))

    def cap_of(self, node: int, above: Array) -> float:
        """Return the cap of a node under the documents above."""
        return correlation_cap(self.tree, node, above if self.correlated else above[:0])
