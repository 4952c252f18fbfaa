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


def fresh_visited(tree: DocumentTree, slots: int, more: int = 0) -> Visited:
    """Nothing seen but that there is a root; room for a round, and more."""
    widest = max(int(np.diff(tree.shape.child_start).max()), 1)
    room = 1 + 2 * slots * (tree.depth + 1) * widest + more
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


class Growth(NamedTuple):
    """Where everything of a tree stands in one that has grown from it."""

    node: Array  # the new number of each node
    document: Array  # the new number of each document


def growth(tree: DocumentTree) -> Growth:
    """How a tree that has grown numbers what the tree before had."""
    before, order = tree.grown_from, tree.given_numbers
    assert before is not None  # noqa: S101  (checked by the ranker)
    assert order is not None  # noqa: S101
    node = np.empty(tree.nodes, np.int64)
    node[order] = np.arange(tree.nodes)
    return Growth(node[: before.nodes], tree.shape.first_document[node[before.shape.leaf]].astype(np.int64))


@compiled
def transplant(old: Any, new: Any, moved: Growth) -> Array:
    """Copy the entries of one state to another that is fresh and roomy, and says which old entry each new one was (-1:
    none). New documents are the last children of their parents.
    """
    origin = np.full(len(new.node), -1, np.int64)
    origin[0] = 0
    entry = 0
    while entry < new.filled[0]:
        node, was = np.int64(new.node[entry]), origin[entry]
        new.fan[entry] = new.child_start[node + 1] - new.child_start[node]
        if was >= 0:
            new.total[entry], new.gains[entry] = old.total[was], old.gains[was]
            for slot in range(old.plays.shape[1]):
                new.plays[entry, slot], new.clicks[entry, slot] = old.plays[was, slot], old.clicks[was, slot]
            new.memory[entry] = old.memory[was]
            new.memory[entry, 0] = moved.document[old.memory[was, 0]]
            if old.child[was] != 0:
                first = new.filled[0]
                new.child[entry] = first
                new.filled[0] += new.fan[entry]
                for step in range(new.fan[entry]):
                    new.node[first + step] = new.child_start[node] + step
                    new.up[first + step] = entry
                    if step < old.fan[was]:
                        origin[first + step] = np.int64(old.child[was]) + step
        entry += 1
    return origin
