"""The visited part of the tree, counted along paths: a visit counts for all subtrees that hold the document.

All slots share one such tree, each with its own counts. A node is split into its children at the first visit after a
click, or after `patience` visits without one: without clicks there is little to distinguish. A subtree with fewer
documents than that is split after one visit per document, so that documents already seen are not mixed up. On a split,
the child that holds the clicked document (or the last one) starts with that visit, the others with none. So memory
follows the documents that visitors liked, whatever the size of the collection.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.compiled import Scalar, compiled, inlined
from zoomrank.numbers import Array
from zoomrank.spaces import DocumentTree


class VisitCounts(NamedTuple):
    """Entries, one per subtree with counts of its own; entry 0 is the root, children are adjacent."""

    node: Array  # of the tree of documents
    up: Array  # the entry of its parent
    child: Array  # the entry of its first child; 0 until it is split
    fan: Array  # number of children
    total: Array  # [entry]: N(u), visits in all slots
    gains: Array  # [entry]: R(u), clicks in all slots
    plays: Array  # [entry, slot]: n(u)
    clicks: Array  # [entry, slot]: r(u)
    last: (
        Array  # [entry]: the last clicked document, or last visited if none was, while its children are one; as many as
    )
    # there are documents if that one is gone
    last_slot: Array  # [entry]: the slot of that visit
    filled: Array  # entries in use
    widest: int  # the largest number of children of any node
    patience: int  # visits without a click after which an entry is split, if it has more documents


def fresh_visited(tree: DocumentTree, slots: int, patience: int, more: int = 0) -> VisitCounts:
    """Return counts with only the root, room for a visit, and `more` entries."""
    widest = tree.widest
    room = 1 + slots * widest + more
    node, up, child, fan, total, gains, last = (np.zeros(room, np.uint32) for _ in range(7))
    plays, clicks = (np.zeros((room, slots), np.uint32) for _ in range(2))
    last_slot, filled = np.zeros(room, np.uint8), np.ones(1, np.int64)
    fan[0] = tree.shape.child_start[1] - tree.shape.child_start[0]
    return VisitCounts(node, up, child, fan, total, gains, plays, clicks, last, last_slot, filled, widest, patience)


def larger_capacity(state: Any) -> int:
    """Return the enlarged number of entries: an eighth more, and enough for a visit."""
    room, slots = state.plays.shape
    return int(room + max(room // 8, slots * state.widest))


def enlarged(array: Array, room: int, fresh: float = 0) -> Array:
    """Return the same array with room for more entries."""
    grown = np.zeros((room, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    if fresh != 0:
        grown[len(array) :] = fresh
    return grown


def enlarged_visits(state: Any, room: int) -> dict[str, Array]:
    """Return all arrays with one element per entry, enlarged."""
    kept = ("filled", "widest", "patience")
    return {name: enlarged(getattr(state, name), room) for name in VisitCounts._fields if name not in kept}


@inlined
def _count(state: Any, entry: Scalar, slot: Scalar, reward: Scalar) -> None:
    at, column = np.uint64(entry), np.uint64(slot)
    state.total[at] += np.uint32(1)
    state.gains[at] += np.uint32(reward)
    state.plays[at, column] += np.uint32(1)
    state.clicks[at, column] += np.uint32(reward)


@inlined
def split_entry(state: Any, entry: Scalar) -> None:
    """Split an entry into its children; the child with the remembered document, if any, inherits that visit."""
    at = np.uint64(entry)
    start = np.uint64(state.child_start[np.uint64(state.node[at])])
    fan = np.uint64(state.fan[at])
    first = np.uint64(state.filled[0])
    document, visited = state.last[at], state.total[at] > 0  # a loan may split an entry without visits
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
def _should_split(state: Any, entry: Scalar) -> Scalar:
    """Return whether an entry should be split."""
    visits, node = state.total[entry], np.uint64(state.node[entry])
    documents = state.end_document[node] - state.first_document[node]
    return state.gains[entry] > 0 or visits >= state.patience or visits >= documents


@inlined
def count_visit(state: Any, slot: Scalar, document: Scalar, reward: Scalar) -> Scalar:
    """Count a visit for all subtrees that hold the document; return the entry of the smallest.

    A visit splits at most one node, so the room that a ranking needs is known.
    """
    at, settled = np.uint64(0), False
    while True:
        if not settled and state.child[at] == 0 and state.fan[at] > 0 and _should_split(state, at):
            split_entry(state, at)
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
    """Return the entry of the smallest subtree that holds a document."""
    at = np.uint64(0)
    while state.child[at] != 0:
        at = np.uint64(state.child[at])
        while state.end_document[state.node[at]] <= document:
            at += np.uint64(1)
    return np.int64(at)
