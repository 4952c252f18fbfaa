"""The part of a tree that was visited, counted along paths: a visit counts for all subtrees that hold the document.

All slots share one such tree, each with counts of its own. The children of a node are told apart at the first visit
after a click, or after `patience` visits without one: where nobody clicks there is little to tell. A subtree that has
fewer documents than that waits for one visit each: who has seen all of them should not go on to mix them up. Then the
child that holds the clicked document (or the last one) starts with that visit, the others with none. So memory follows
what visitors liked, however large the collection is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.compiled import Scalar, compiled, inlined
from zoomrank.numbers import Array
from zoomrank.spaces import DocumentTree


class VisitCounts(NamedTuple):
    """Entries, one per subtree that is told apart; entry 0 is the root, children stand side by side."""

    node: Array  # of the tree of documents
    up: Array  # the entry of its parent
    child: Array  # the entry of its first child; 0 while they are not told apart
    fan: Array  # how many children it has
    total: Array  # [entry]: N(u), visits in all slots
    gains: Array  # [entry]: R(u), clicks in all slots
    plays: Array  # [entry, slot]: n(u)
    clicks: Array  # [entry, slot]: r(u)
    last: (
        Array  # [entry]: the last clicked document, or last visited if none was, while its children are one; as many as
    )
    # there are documents if that one is gone
    last_slot: Array  # [entry]: where that was
    filled: Array  # entries in use
    widest: int  # the largest number of children of any node
    patience: int  # visits without a click after which children are told apart, if there are more documents than that


def fresh_visited(tree: DocumentTree, slots: int, patience: int, more: int = 0) -> VisitCounts:
    """Nothing seen but that there is a root; room for a visit, and more."""
    widest = tree.widest
    room = 1 + slots * widest + more
    node, up, child, fan, total, gains, last = (np.zeros(room, np.uint32) for _ in range(7))
    plays, clicks = (np.zeros((room, slots), np.uint32) for _ in range(2))
    last_slot, filled = np.zeros(room, np.uint8), np.ones(1, np.int64)
    fan[0] = tree.shape.child_start[1] - tree.shape.child_start[0]
    return VisitCounts(node, up, child, fan, total, gains, plays, clicks, last, last_slot, filled, widest, patience)


def roomier(state: Any) -> int:
    """How many entries to make room for: an eighth more, and enough for a visit."""
    room, slots = state.plays.shape
    return int(room + max(room // 8, slots * state.widest))


def with_room(array: Array, room: int, fresh: float = 0) -> Array:
    """The same array with room for more entries."""
    grown = np.zeros((room, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    if fresh != 0:
        grown[len(array) :] = fresh
    return grown


def more_visited(state: Any, room: int) -> dict[str, Array]:
    """All that has an entry's length, longer."""
    kept = ("filled", "widest", "patience")
    return {name: with_room(getattr(state, name), room) for name in VisitCounts._fields if name not in kept}


@inlined
def _count(state: Any, entry: Scalar, slot: Scalar, reward: Scalar) -> None:
    at, column = np.uint64(entry), np.uint64(slot)
    state.total[at] += np.uint32(1)
    state.gains[at] += np.uint32(reward)
    state.plays[at, column] += np.uint32(1)
    state.clicks[at, column] += np.uint32(reward)


@inlined
def tell_apart(state: Any, entry: Scalar) -> None:
    """Make entries of an entry's children; the one that holds the remembered document, if any, inherits that visit."""
    at = np.uint64(entry)
    start = np.uint64(state.child_start[np.uint64(state.node[at])])
    fan = np.uint64(state.fan[at])
    first = np.uint64(state.filled[0])
    document, visited = state.last[at], state.total[at] > 0  # a loan tells apart what nobody has visited
    for step in range(fan):
        child = first + step
        state.node[child] = start + step
        state.up[child] = at
        state.fan[child] = state.child_start[start + step + np.uint64(1)] - state.child_start[start + step]
        if visited and state.first_document[start + step] <= document < state.end_document[start + step]:
            state.last[child], state.last_slot[child] = document, state.last_slot[at]
            _count(state, child, np.int64(state.last_slot[at]), np.int64(state.gains[at] > 0))
    state.filled[0] += fan
    state.child[at] = first


@inlined
def _is_ripe(state: Any, entry: Scalar) -> Scalar:
    """Whether it is time to tell the children of an entry apart."""
    visits, node = state.total[entry], np.uint64(state.node[entry])
    documents = state.end_document[node] - state.first_document[node]
    return state.gains[entry] > 0 or visits >= state.patience or visits >= documents


@inlined
def count_visit(state: Any, slot: Scalar, document: Scalar, reward: Scalar) -> Scalar:
    """Count a visit for all subtrees that hold the document; returns the entry of the smallest.

    One visit tells the children of one node apart at most, so that the room that a ranking needs is known.
    """
    at, settled = np.uint64(0), False
    while True:
        if not settled and state.child[at] == 0 and state.fan[at] > 0 and _is_ripe(state, at):
            tell_apart(state, at)
            settled = True
        _count(state, at, slot, reward)
        if state.child[at] == 0:
            break
        at = np.uint64(state.child[at])
        while state.end_document[state.node[at]] <= document:
            at += np.uint64(1)
    if reward == 1 or state.gains[at] == 0:
        state.last[at], state.last_slot[at] = document, slot
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
