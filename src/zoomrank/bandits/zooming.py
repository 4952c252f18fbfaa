"""`Zooming`: Algorithm 3 of the paper, and the correlation rule that makes it the slot learner of RankCorrZoom.

A set of active subtrees partitions the documents. Each round plays the one with the highest index, an upper
confidence bound on the click probability of its documents; one that is known more precisely than it is wide is
replaced by its children.

Active subtrees and those they replaced form a tree, the *zoom tree*. Every entry keeps the best index below it, so
choosing is a walk down along the best and updating is a walk up: nothing is ever scanned. Ties are broken at each
branch, uniformly among the branches that attain the maximum.

The correlation rule caps an index by `max over x in u of D(x, S)`, with S the documents shown above: nobody who
skipped S likes anything close to it much. The cap is one number for every subtree that hangs off the root paths of
S, namely the width of the node where it does, so the walk stays a walk; only entries on those paths need a look of
their own, and few of them, since nothing below an entry can be worth more than its best index and its width.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.exploration import Exploration, exploration_constant
from zoomrank.bandits.interface import (
    LARGEST_CONTEXT,
    Bandit,
    Clock,
    Feedback,
    Strategy,
    endless,
    on_reset,
    on_roomy,
    on_select,
    on_subtree,
    on_update,
)
from zoomrank.bandits.state.tree_view import Grove
from zoomrank.compiled import Scalar, compiled, flat, inlined
from zoomrank.numbers import Array, Seed
from zoomrank.spaces import DocumentTree


class Pool(NamedTuple):
    """Zoom trees, a row per slot; entry 0 is the root, children stand side by side."""

    node: Array  # of the tree of documents
    up: Array  # the entry that this one refines
    child: Array  # the first of its children; 0 while it is active
    fan: Array  # how many children it has
    plays: Array  # n(u)
    clicks: Array  # r(u)
    best: Array  # the highest index at or below this entry
    used: Array  # entries in use, per slot


class Rule(NamedTuple):
    """How to explore."""

    constant: Array  # C of the confidence radius, per slot
    pessimistic: bool  # C follows the horizon when a learner is made afresh
    correlated: bool  # whether the correlation rule is used
    widest: int  # the largest number of children of any node


class Paths(NamedTuple):
    """Scratch: root paths of the documents above, and a stack to look along them."""

    path: Array  # path[j, d] is the ancestor of document j at depth d
    path_leaf: Array  # the leaf that row j was made for
    value: Array  # of each child of an entry
    below: Array  # which documents are below each child of an entry
    inner: Array  # the same, for an entry further down
    stack_entry: Array  # entries yet to be looked at,
    stack_depth: Array  # their depth,
    stack_mask: Array  # and which documents are below them


ZoomState = flat("ZoomState", Grove, Pool, Rule, Paths, Clock)


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
            if ties == fan:  # nothing to look for: under a cap, this is the rule
                at = first + chosen
            else:
                at = first
                while min(state.best[row, at], cap) != top or chosen > 0:
                    if min(state.best[row, at], cap) == top:
                        chosen -= np.uint32(1)
                    at += np.uint32(1)
    return np.int64(at)


@inlined
def remember_paths(state: Any, shown: Array, above: Scalar) -> None:
    """Write down the root path of each document above, unless it is there already."""
    for row in range(np.uint64(above)):
        document = np.uint64(shown[row])
        node = state.leaf[document]
        if state.path_leaf[row] != node:
            state.path_leaf[row] = node
            depth = np.uint64(state.leaf_depth[document])
            for below in range(depth + np.uint64(1), np.uint64(state.path.shape[1])):
                state.path[row, below] = node  # a leaf stays itself however deep others go
            while depth > 0:
                state.path[row, depth] = node
                node = state.parent[node]
                depth -= np.uint64(1)
            state.path[row, 0] = 0


@inlined
def documents_below(state: Any, node: Scalar, depth: Scalar, mask: Scalar) -> Scalar:
    """Which of the documents in the mask lie below a node of this depth."""
    below = 0
    row = 0
    while mask >> row:
        if (mask >> row) & 1 and state.path[row, depth] == node:
            below |= 1 << row
        row += 1
    return below


@inlined
def share_out(state: Any, below: Array, node: Scalar, depth: Scalar, mask: Scalar) -> None:
    """Write down which of the documents in the mask lie below each child of a node of this depth."""
    place = np.uint64(node)
    start = np.uint64(state.child_start[place])
    for step in range(np.uint64(state.child_start[place + np.uint64(1)]) - start):
        below[step] = 0
    row, level = np.uint64(0), np.uint64(depth + 1)
    left = mask
    while left:
        if left & 1:
            below[np.uint64(state.path[row, level]) - start] |= 1 << np.int64(row)
        left >>= 1
        row += np.uint64(1)


@inlined
def farthest_from(state: Any, node: Scalar, depth: Scalar, mask: Scalar) -> Scalar:
    """Compute max over x below the node of D(x, S), where the documents of S in the mask lie below it.

    That is the width of the widest node on their paths that has a child without any of them.
    """
    farthest = 0.0
    row = 0
    while mask >> row:
        if (mask >> row) & 1:
            at, level = np.int64(node), depth
            while state.child_start[at] != state.child_start[at + 1]:
                here = documents_below(state, at, level, mask)
                held = 0
                for child in range(state.child_start[at], state.child_start[at + 1]):
                    if documents_below(state, child, level + 1, here) != 0:
                        held += 1
                if held < np.int64(state.child_start[at + 1]) - np.int64(state.child_start[at]):
                    farthest = max(farthest, state.width[at])
                    break
                level += 1
                at = np.int64(state.path[row, level])
        row += 1
    return farthest


@inlined
def _capped_best(state: Any, slot: Scalar, entry: Scalar, depth: Scalar, mask: Scalar, threshold: Scalar) -> Scalar:
    """The best capped index below an entry that holds documents of S; if below the threshold, anything below it."""
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
                share_out(state, state.inner, node, level, here)
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
def one_of_the_best(value: Array, fan: Scalar, top: Scalar, rng: np.random.Generator) -> Scalar:
    """The place of a value that attains the top among the first few, uniformly where several do."""
    ties = 0
    for step in range(np.uint64(fan)):
        if value[step] == top:
            ties += 1
    skip: Scalar = np.int64(rng.random() * ties) if ties > 1 else np.int64(0)
    chosen = np.uint64(0)
    while value[chosen] != top or skip > 0:
        if value[chosen] == top:
            skip -= 1
        chosen += np.uint64(1)
    return chosen


@inlined
def _walk_capped(state: Any, slot: Scalar, shown: Array, above: Scalar, rng: np.random.Generator) -> Scalar:
    """Walk down along the best capped index; off the paths of S the cap is one number, and there the walk is plain."""
    remember_paths(state, shown, above)
    row, at = np.uint64(slot), np.uint64(0)
    depth, mask, cap = 0, (1 << above) - 1, np.inf
    while mask != 0 and state.child[row, at] != 0:
        first, fan = np.uint64(state.child[row, at]), np.uint64(state.fan[row, at])
        node = np.uint64(state.node[row, at])
        cap = state.width[node]
        share_out(state, state.below, node, depth, mask)
        top = -1.0
        for step in range(fan):  # first the children off the paths: what they are worth spares looks at the others
            if state.below[step] == 0:
                state.value[step] = min(state.best[row, first + step], cap)
                top = max(top, state.value[step])
        start = np.uint64(state.child_start[node])
        for step in range(fan):
            if state.below[step] != 0:
                state.value[step] = -1.0
                if min(state.best[row, first + step], state.width[start + step]) >= top:
                    state.value[step] = _capped_best(state, slot, first + step, depth + 1, state.below[step], top)
                    top = max(top, state.value[step])
        chosen = one_of_the_best(state.value, fan, top, rng)
        at = first + chosen
        depth += 1
        mask = state.below[chosen]
    return walk_best(state, slot, at, cap, rng)


@on_select(ZoomState)
def _select(state: Any, slot: Scalar, shown: Array, above: Scalar, rng: np.random.Generator) -> tuple[Scalar, Scalar]:
    return _walk_capped(state, slot, shown, above if state.correlated else 0, rng), 1.0


@on_subtree(ZoomState)
def _subtree(state: Any, slot: Scalar, strategy: Scalar) -> Scalar:
    return np.int64(state.node[slot, strategy])


@inlined
def holder(state: Any, slot: Scalar, strategy: Scalar, document: Scalar) -> Scalar:
    """The active entry that holds a document: the strategy that picked it or, if that was refined since, one below
    it.
    """
    row = np.uint64(slot)
    at = np.uint32(strategy if 0 <= strategy < state.used[row] else 0)
    node = state.node[row, at]
    if not state.first_document[node] <= document < state.end_document[node]:
        at = np.uint32(0)  # a strategy of a learner that was made afresh since: ask from the root
    while state.child[row, at] != 0:
        at = state.child[row, at]
        while state.end_document[state.node[row, at]] <= document:
            at += np.uint32(1)
    return np.int64(at)


@inlined
def refine(state: Any, slot: Scalar, entry: Scalar, fresh: Scalar) -> None:
    """Deactivate an entry and activate its children, about whom nothing is known."""
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
    """Set the best index of an entry, and of all above it as far as that changes anything."""
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
    """Credit the active entry that holds a document, and refine it once it is known better than it is wide."""
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


@on_update(ZoomState)
def _update(state: Any, slot: Scalar, feedback: Feedback, shown: Array, above: Scalar) -> None:
    update_zoom(state, slot, feedback.strategy, feedback.pick, feedback.reward)


@on_reset(ZoomState)
def _reset(state: Any, slot: Scalar, horizon: Scalar) -> None:
    if state.pessimistic:
        state.constant[slot] = 4.0 * np.log(horizon)
    plant(state, slot, 2.0 * np.sqrt(state.constant[slot]))


@inlined
def plant(state: Any, slot: Scalar, fresh: Scalar) -> None:
    """A zoom tree that is nothing but its root, active."""
    state.node[slot, 0] = 0
    state.up[slot, 0] = 0
    state.child[slot, 0] = 0
    state.plays[slot, 0] = 0
    state.clicks[slot, 0] = 0
    state.best[slot, 0] = fresh
    state.used[slot] = 1


@compiled
def plant_all(state: Any) -> None:
    """Fresh zoom trees in all slots."""
    for slot in range(len(state.used)):
        plant(state, slot, 2.0 * np.sqrt(state.constant[slot]))


@compiled
def find_entry(state: Any, slot: Scalar, document: Scalar) -> Scalar:
    """The active entry that holds a document."""
    return holder(state, slot, 0, document)


@on_roomy(ZoomState)
def _roomy(state: Any) -> Scalar:
    return pool_is_roomy(state)


@inlined
def pool_is_roomy(state: Any) -> Scalar:
    """Whether every slot could refine one more entry."""
    room = True
    for slot in range(len(state.used)):
        room = room and state.used[slot] + state.widest <= state.node.shape[1]
    return room


class Zooming(Bandit):
    """The zooming algorithm on any tree of documents; `correlated` adds the correlation rule.

    `exploration` is "optimistic" (C = 1), "pessimistic" (C = 4·log T, needs the horizon T) or a number C.

    >>> bandit = Zooming(DocumentTree.exponential(depth=4), seed=0)
    >>> for _ in range(300):
    ...     choice = bandit.select()
    ...     bandit.update(choice, reward=int(choice.document == 5))
    >>> bandit.select().document
    5
    """

    def __init__(
        self,
        tree: DocumentTree,
        *,
        exploration: Exploration = "optimistic",
        horizon: int | None = None,
        correlated: bool = False,
        seed: Seed = None,
    ) -> None:
        super().__init__(tree, seed)
        self.constant = exploration_constant(exploration, horizon)
        self.exploration, self.horizon, self.correlated = exploration, horizon, correlated

    not_saved = Bandit.not_saved | set(Paths._fields)

    @property
    def settings(self) -> dict[str, Any]:
        """What rebuilds this bandit."""
        return {"exploration": self.exploration, "horizon": self.horizon, "correlated": self.correlated}

    def fresh_state(self, slots: int) -> Any:
        """A root per slot."""
        widest = int(np.diff(self.tree.shape.child_start).max())
        state = ZoomState(
            *self.grove,
            *fresh_pool(slots, 1 + 2 * widest),
            *Rule(np.full(slots, self.constant), self.exploration == "pessimistic", self.correlated, widest),
            *fresh_paths(self.tree, LARGEST_CONTEXT if slots == 1 else slots, widest),
            *endless(slots),
        )
        plant_all(state)
        return state

    def larger(self, state: Any) -> Any:
        """A third as much room again, and enough for a round."""
        return with_larger_pool(state)

    def strategy_of(self, state: Any, slot: int, above: Array, document: int) -> Strategy:
        """The active entry that holds the document."""
        return zoom_strategy(self.tree, state, slot, above if self.correlated else above[:0], document)


def zoom_strategy(tree: DocumentTree, state: Any, slot: int, above: Array, document: int) -> Strategy:
    """What is known of the active entry that holds a document, capped by the distance to the documents above."""
    entry = int(find_entry(state, slot, document))
    node, plays, clicks = (int(array[slot, entry]) for array in (state.node, state.plays, state.clicks))
    radius = float(np.sqrt(state.constant[slot] / (1 + plays)))
    index = (clicks / plays if plays else 0.0) + 2 * radius
    return Strategy(node, plays, clicks, radius, index, correlation_cap(tree, node, above))


def correlation_cap(tree: DocumentTree, node: int, above: Array) -> float:
    """Compute max over x below the node of D(x, S) by its definition; infinite for an empty S."""
    if len(above) == 0:
        return float("inf")
    below = slice(int(tree.shape.first_document[node]), int(tree.shape.end_document[node]))
    nearest = np.min([tree.distances(tree.documents[int(y)])[below] for y in above], axis=0)
    return float(nearest.max())


def fresh_pool(slots: int, room: int) -> Pool:
    """Empty zoom trees."""
    node, up, child, fan, plays, clicks = (np.zeros((slots, room), np.uint32) for _ in range(6))
    return Pool(node, up, child, fan, plays, clicks, best=np.zeros((slots, room)), used=np.zeros(slots, np.int64))


def with_larger_pool(state: Any) -> Any:
    """The same zoom trees with more room."""
    slots, room = state.node.shape
    grown = fresh_pool(slots, room + max(room // 3, 2 * state.widest))
    for name in Pool._fields[:-1]:
        getattr(grown, name)[:, :room] = getattr(state, name)
    return state._replace(**{**grown._asdict(), "used": state.used})


def fresh_paths(tree: DocumentTree, slots: int, widest: int) -> Paths:
    """Scratch space for contexts of fewer than this many documents."""
    stack = slots * (tree.depth + 2)
    return Paths(
        path=np.zeros((slots, tree.depth + 1), np.uint32),
        path_leaf=np.full(slots, tree.nodes, np.int64),
        value=np.zeros(max(widest, 1)),
        below=np.zeros(max(widest, 1), np.int64),
        inner=np.zeros(max(widest, 1), np.int64),
        stack_entry=np.zeros(stack, np.int64),
        stack_depth=np.zeros(stack, np.int64),
        stack_mask=np.zeros(stack, np.int64),
    )
