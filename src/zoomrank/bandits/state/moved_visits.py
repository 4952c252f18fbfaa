"""Remap visit counts to another tree: counts follow the subtrees that they were counted for.

The *own* visits of a subtree are those that none of its children has: visits from before it was split, and visits of
removed documents. They go to the same subtree in the other tree, or to its successor, and are added up from there to
the root. So a category that moves takes its counts along: its old ancestors lose them, its new ancestors gain them. The
counts of a removed document stay with its category.

A document that moves to another category may be liked there as before or not: its new neighbours say as much about that
as its past. So it takes along a few visits, and the others stay with the category in which they were made.

A subtree is split after the move if it was split before, or if it contains an entry that is split or has own visits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zoomrank.compiled import Scalar, allocating, compiled, inlined, separate
from zoomrank.numbers import Array
from zoomrank.spaces.movement import Remap

TAKEN_ALONG = 30  # visits of a document that leaves its category; as many as slots share


@compiled
def own_visits(old: Any, parent: Array, moved: Remap) -> Array:
    """Return the own visits of each entry: visits and clicks in all slots, then visits, then clicks of each slot."""
    filled, slots = old.filled[0], old.plays.shape[1]
    own = np.zeros((filled, 2 + 2 * slots), np.int64)
    for entry in range(filled - 1, -1, -1):
        own[entry, 0] += np.int64(old.total[entry])
        own[entry, 1] += np.int64(old.gains[entry])
        for slot in range(slots):
            own[entry, 2 + slot] += np.int64(old.plays[entry, slot])
            own[entry, 2 + slots + slot] += np.int64(old.clicks[entry, slot])
        if entry > 0:
            own[old.up[entry], 0] -= np.int64(old.total[entry])
            own[old.up[entry], 1] -= np.int64(old.gains[entry])
            for slot in range(slots):
                own[old.up[entry], 2 + slot] -= np.int64(old.plays[entry, slot])
                own[old.up[entry], 2 + slots + slot] -= np.int64(old.clicks[entry, slot])
    for entry in range(1, filled):
        if own[entry, 0] > TAKEN_ALONG and _leaves(old, parent, moved, entry):
            _leave_behind(own[old.up[entry]], own[entry], slots)
    return own


@inlined
def _leaves(old: Any, parent: Array, moved: Remap, entry: int) -> bool:
    """Return whether an entry is a document that leaves a category which stays."""
    node, category = np.int64(old.node[entry]), np.int64(old.node[old.up[entry]])
    if old.fan[entry] > 0 or not moved.stays[node] or not moved.stays[category]:
        return False
    at, home = np.int64(moved.node[node]), np.int64(moved.node[category])
    while at != 0 and at != home:
        at = np.int64(parent[at])
    return bool(at != home)


@allocating
def _leave_behind(category: Array, document: Array, slots: int) -> None:
    """Let a document take along a few of its visits, proportionally in each slot, at the same click rate."""
    visits = document[0]
    category += document
    document[:2] = 0
    for slot in range(slots):
        plays = document[2 + slot]
        taken = plays * TAKEN_ALONG // visits
        document[2 + slot] = taken
        document[2 + slots + slot] = (2 * document[2 + slots + slot] * taken + plays) // max(2 * plays, 1)
        document[0] += taken
        document[1] += document[2 + slots + slot]
    category -= document


@compiled
def split_after_move(old: Any, own: Array, parent: Array, child_start: Array, moved: Remap) -> tuple[Array, Scalar]:
    """Return whether each node of the other tree will be split, and the total number of children."""
    apart, children = np.zeros(len(parent), np.bool_), np.int64(0)
    for entry in range(old.filled[0]):
        node = np.int64(moved.node[old.node[entry]])
        was = old.child[entry] != 0 and child_start[node] != child_start[node + 1]
        if was or own[entry, 0] > 0:
            if not was and node != 0:
                node = np.int64(parent[node])
                was = True
            while was and not apart[node]:
                apart[node] = True
                children += np.int64(child_start[node + 1]) - np.int64(child_start[node])
                node = np.int64(parent[node])
    return apart, children


@compiled
def move_visits(old: Any, own: Array, new: Any, moved: Remap, apart: Array) -> tuple[Array, Array]:
    """Fill a fresh state with enough room; return the old entry of each new one (-1: none), and a mask of the entries
    whose visits changed.
    """
    _create_entries(new, apart)
    origin = _origins(old, new, moved)
    _move_own(old, own, new, moved)
    for entry in range(new.filled[0] - 1, 0, -1):
        above = new.up[entry]
        new.total[above] += new.total[entry]
        new.gains[above] += new.gains[entry]
        for slot in range(new.plays.shape[1]):
            new.plays[above, slot] += new.plays[entry, slot]
            new.clicks[above, slot] += new.clicks[entry, slot]
    _remember(old, new, moved)
    return origin, _entries_to_refresh(old, new, origin)


@separate
def _create_entries(new: Any, apart: Array) -> None:
    """Create the entries from the top down, in the order of their nodes."""
    entry = 0
    while entry < new.filled[0]:
        node = np.int64(new.node[entry])
        start = np.int64(new.child_start[node])
        fan = np.int64(new.child_start[node + 1]) - start
        new.fan[entry] = fan
        if apart[node]:
            first = new.filled[0]
            new.child[entry] = first
            for step in range(fan):
                new.node[first + step] = start + step
                new.up[first + step] = entry
            new.filled[0] += fan
        entry += 1


@separate
def _entry(new: Any, node: int) -> int:
    """Return the entry of a node, -1 if it has none."""
    filled = new.filled[0]
    at = int(np.searchsorted(new.node[:filled], np.uint32(node)))
    return at if at < filled and new.node[at] == node else -1


@allocating
def _origins(old: Any, new: Any, moved: Remap) -> Array:
    origin = np.full(len(new.node), -1, np.int64)
    for entry in range(old.filled[0]):
        node = np.int64(old.node[entry])
        if moved.stays[node]:
            at = _entry(new, moved.node[node])
            if at >= 0:
                origin[at] = entry
    return origin


@separate
def _move_own(old: Any, own: Array, new: Any, moved: Remap) -> None:
    """Move the own visits of each entry to its subtree in the other tree."""
    slots = old.plays.shape[1]
    for entry in range(len(own)):
        if own[entry, 0] > 0:
            at = _entry(new, moved.node[old.node[entry]])
            new.total[at] += np.uint32(own[entry, 0])
            new.gains[at] += np.uint32(own[entry, 1])
            for slot in range(slots):
                new.plays[at, slot] += np.uint32(own[entry, 2 + slot])
                new.clicks[at, slot] += np.uint32(own[entry, 2 + slots + slot])


@allocating
def _remember(old: Any, new: Any, moved: Remap) -> None:
    """Choose the remembered document of each entry among those of its old entries: one with a click if any has one, the
    subtree's own old entry before others, then the first. A removed document is forgotten.
    """
    documents = len(new.leaf)
    rank = np.zeros(new.filled[0], np.int64)
    for entry in range(old.filled[0]):
        node = np.int64(old.node[entry])
        at = _entry(new, moved.node[node])
        if at >= 0 and old.total[entry] > 0:
            if rank[at] == 0:
                new.last[at] = documents
            last = np.int64(old.last[entry])
            document = np.int64(moved.document[last]) if last < len(moved.document) else -1
            inside = new.first_document[new.node[at]] <= document < new.end_document[new.node[at]]
            clicked = old.gains[entry] > 0
            worth = 1 + (2 + np.int64(moved.stays[node]) if inside and clicked == (new.gains[at] > 0) else 0)
            if worth > rank[at]:
                rank[at] = worth
                if worth > 1:
                    new.last[at], new.last_slot[at] = document, old.last_slot[entry]


@allocating
def _entries_to_refresh(old: Any, new: Any, origin: Array) -> Array:
    """Return a mask of the entries to recompute: their visits or their parent changed, or they are new and have visits
    or a parent to recompute. Other new entries keep their infinite bound.
    """
    anew = np.zeros(len(origin), np.bool_)
    for entry in range(new.filled[0]):
        was = origin[entry]
        if was < 0:
            anew[entry] = new.total[entry] > 0 or anew[new.up[entry]]
        else:
            elsewhere = entry > 0 and origin[new.up[entry]] != np.int64(old.up[was])
            anew[entry] = elsewhere or new.total[entry] != old.total[was] or new.gains[entry] != old.gains[was]
            for slot in range(new.plays.shape[1]):
                if new.plays[entry, slot] != old.plays[was, slot] or new.clicks[entry, slot] != old.clicks[was, slot]:
                    anew[entry] = True
    return anew
