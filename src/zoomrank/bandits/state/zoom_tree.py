"""Zoom trees: the active subtrees of Algorithm 3, which partition the documents, and those that they replaced.

Every entry keeps the best index below it, so choosing is a walk down along the best and updating is a walk up; no array
is scanned. Ties are broken at each branch, uniformly among the branches that attain the maximum.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.compiled import Scalar, compiled, inlined
from zoomrank.numbers import Array


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
def reset_zoom_trees(state: Any) -> None:
    """Reset the zoom trees of all slots."""
    for slot in range(len(state.used)):
        reset_zoom_tree(state, slot, 2.0 * np.sqrt(state.constant[slot]))


@compiled
def find_entry(state: Any, slot: Scalar, document: Scalar) -> Scalar:
    """Return the active entry that holds a document."""
    return holder(state, slot, 0, document)
