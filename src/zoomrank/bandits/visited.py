"""The part of a tree that was visited, counted along paths: a visit counts for all subtrees that hold the document.

All slots share one such tree, each with counts of its own. The children of a node are told apart only once two visits
were below it; until then the node remembers the single visit that it had. So memory follows what was visited, however
large the collection is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.compiled import Scalar, compiled, inlined
from zoomrank.spaces import DocumentTree
from zoomrank.spaces.topology import Array


class Visited(NamedTuple):
    """Entries, one per subtree that is told apart; entry 0 is the root, children stand side by side."""

    node: Array  # of the tree of documents
    up: Array  # the entry of its parent
    child: Array  # the entry of its first child; 0 while they are not told apart
    fan: Array  # how many children it has
    total: Array  # [entry]: N(u), visits in all slots
    gains: Array  # [entry]: R(u), clicks in all slots
    plays: Array  # [entry, slot]: n(u)
    clicks: Array  # [entry, slot]: r(u)
    memory: Array  # [entry]: the document, slot and reward of the only visit, while there was but one
    filled: Array  # entries in use
    widest: int  # the largest number of children of any node


def fresh_visited(tree: DocumentTree, slots: int) -> Visited:
    """Nothing seen but that there is a root."""
    widest = max(int(np.diff(tree.shape.child_start).max()), 1)
    room = 1 + 2 * slots * (tree.depth + 1) * widest
    node, up, child, fan, total, gains = (np.zeros(room, np.uint32) for _ in range(6))
    plays, clicks = (np.zeros((room, slots), np.uint32) for _ in range(2))
    memory, filled = np.zeros((room, 3), np.uint32), np.ones(1, np.int64)
    fan[0] = tree.shape.child_start[1] - tree.shape.child_start[0]
    return Visited(node, up, child, fan, total, gains, plays, clicks, memory, filled, widest)


def roomier(state: Any, tree: DocumentTree) -> int:
    """How many entries to make room for: a third more, and enough for a round."""
    room, slots = state.plays.shape
    return int(room + max(room // 3, 2 * slots * (tree.depth + 1) * state.widest))


def with_room(array: Array, room: int, fresh: float = 0) -> Array:
    """The same array with room for more entries."""
    grown = np.full((room, *array.shape[1:]), fresh, array.dtype)
    grown[: len(array)] = array
    return grown


def more_visited(state: Any, room: int) -> dict[str, Array]:
    """All that has an entry's length, longer."""
    return {name: with_room(getattr(state, name), room) for name in Visited._fields if name not in ("filled", "widest")}


@inlined
def is_roomy(state: Any) -> Scalar:
    """Whether another round fits, whatever it visits."""
    return state.filled[0] + state.plays.shape[1] * state.path.shape[1] * state.widest <= len(state.node)


@inlined
def _count(state: Any, entry: Scalar, slot: Scalar, reward: Scalar) -> None:
    at, column = np.uint64(entry), np.uint64(slot)
    state.total[at] += np.uint32(1)
    state.gains[at] += np.uint32(reward)
    state.plays[at, column] += np.uint32(1)
    state.clicks[at, column] += np.uint32(reward)


@inlined
def _tell_apart(state: Any, entry: Scalar) -> None:
    """Make entries of an entry's children; the one that holds the remembered document inherits that visit."""
    at = np.uint64(entry)
    start = np.uint64(state.child_start[np.uint64(state.node[at])])
    fan = np.uint64(state.fan[at])
    first = np.uint64(state.filled[0])
    document = state.memory[at, 0]
    for step in range(fan):
        child = first + step
        state.node[child] = start + step
        state.up[child] = at
        state.fan[child] = state.child_start[start + step + np.uint64(1)] - state.child_start[start + step]
        if state.first_document[start + step] <= document < state.end_document[start + step]:
            for part in range(3):
                state.memory[child, part] = state.memory[at, part]
            _count(state, child, state.memory[at, 1], state.memory[at, 2])
    state.filled[0] += fan
    state.child[at] = first


@inlined
def count_visit(state: Any, slot: Scalar, document: Scalar, reward: Scalar) -> Scalar:
    """Count a visit for all subtrees that hold the document; returns the entry of the smallest."""
    at = np.uint64(0)
    going = True
    while going:
        leaf = state.fan[at] == 0
        seen = state.total[at] > 0
        if seen and not leaf and state.child[at] == 0:
            _tell_apart(state, at)
        _count(state, at, slot, reward)
        going = seen and not leaf
        if going:
            at = np.uint64(state.child[at])
            while state.end_document[state.node[at]] <= document:
                at += np.uint64(1)
        else:
            state.memory[at, 0], state.memory[at, 1], state.memory[at, 2] = document, slot, reward
    return np.int64(at)


@compiled
def entry_of(state: Any, document: Scalar) -> Scalar:
    """The smallest subtree that is told apart and holds a document."""
    at = np.uint64(0)
    while state.child[at] != 0:
        at = np.uint64(state.child[at])
        while state.end_document[state.node[at]] <= document:
            at += np.uint64(1)
    return np.int64(at)
