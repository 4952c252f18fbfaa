"""Visit counts along root paths, and `VisitCountingBandit`, the base of the bandits that learn from them.

*Counting.* A visit counts for all subtrees that hold the document. All slots share one tree of such *entries*, each
with its own counts. An entry is split into its children at the first visit after a click, or after `patience` visits
without one: without clicks there is little to distinguish. A subtree with fewer documents than that is split after one
visit per document, so that documents already seen are not mixed up. On a split, the child that holds the clicked
document (or the last one) starts with that visit, the others with none. So memory follows the documents that visitors
liked, whatever the size of the collection.

*Remapping to another tree.* Counts follow the subtrees that they were counted for. The *own* visits of a subtree are
those that none of its children has: visits from before it was split, and visits of removed documents. They go to the
same subtree in the other tree, or to its successor, and are added up from there to the root. So a category that moves
takes its counts along: its old ancestors lose them, its new ancestors gain them. The counts of a removed document stay
with its category. A document that moves to another category may be liked there as before or not: its new neighbours
say as much about that as its past. So it takes along a few visits, and the others stay with the category in which they
were made. A subtree is split after the move if it was split before, or if it contains an entry that is split or has own
visits.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from zoomrank.bandits.bandit import Bandit, Strategy
from zoomrank.bandits.tree_view import ContextScratch, correlation_cap
from zoomrank.compiled import Scalar, allocating, compiled, inlined, separate
from zoomrank.spaces import DocumentTree, Remap
from zoomrank.types import Array


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
    # [entry]: the last clicked document, or last visited if none was, while its children are one; as many as there are
    # documents if that one is gone
    last: Array
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


def enlarged(array: Array, room: int, fresh: float) -> Array:
    """Return the same array with room for more entries."""
    grown = np.zeros((room, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    if fresh != 0:
        grown[len(array) :] = fresh
    return grown


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


# Remapping to another tree.

TAKEN_ALONG = 30  # visits of a document that leaves its category; as many as slots share


@allocating
def _all_counts(state: Any) -> Array:
    """Return a row per entry: visits and clicks in all slots, then the visits, then the clicks of each slot."""
    filled, slots = state.filled[0], state.plays.shape[1]
    counts = np.empty((filled, 2 + 2 * slots), np.int64)
    counts[:, 0], counts[:, 1] = state.total[:filled], state.gains[:filled]
    counts[:, 2 : 2 + slots], counts[:, 2 + slots :] = state.plays[:filled], state.clicks[:filled]
    return counts


@compiled
def own_visits(old: Any, parent: Array, moved: Remap) -> Array:
    """Return the own visits of each entry, in the columns of `_all_counts`."""
    counts = _all_counts(old)
    own, slots = counts.copy(), old.plays.shape[1]
    for entry in range(1, len(own)):
        own[old.up[entry]] -= counts[entry]
    for entry in range(1, len(own)):
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
    filled, slots = new.filled[0], new.plays.shape[1]
    counts = np.zeros((filled, own.shape[1]), np.int64)
    for entry in range(len(own)):
        if own[entry, 0] > 0:
            counts[_entry(new, moved.node[old.node[entry]])] += own[entry]
    for entry in range(filled - 1, 0, -1):
        counts[new.up[entry]] += counts[entry]
    new.total[:filled], new.gains[:filled] = counts[:, 0], counts[:, 1]
    new.plays[:filled], new.clicks[:filled] = counts[:, 2 : 2 + slots], counts[:, 2 + slots :]
    _remember(old, new, moved)
    return origin, _entries_to_refresh(old, new, origin, counts)


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
def _entries_to_refresh(old: Any, new: Any, origin: Array, counts: Array) -> Array:
    """Return a mask of the entries to recompute: their visits or their parent changed, or they are new and have visits
    or a parent to recompute. Other new entries keep their infinite bound.
    """
    before, anew = _all_counts(old), np.zeros(len(origin), np.bool_)
    for entry in range(new.filled[0]):
        was = origin[entry]
        if was < 0:
            anew[entry] = new.total[entry] > 0 or anew[new.up[entry]]
        else:
            elsewhere = entry > 0 and origin[new.up[entry]] != np.int64(old.up[was])
            anew[entry] = elsewhere or (counts[entry] != before[was]).any()
    return anew


# The bandit. A strategy is an entry: the smallest subtree with its own counts.


def subtree_of_entry(state: Any, slot: Scalar, strategy: Scalar) -> Scalar:
    """Return the node of an entry: the registered `subtree`."""
    return np.int64(state.node[strategy])


def entries_fit(state: Any) -> Scalar:
    """Return whether any further visit fits: the registered `roomy`."""
    return state.filled[0] + state.plays.shape[1] * state.widest <= len(state.node)


class VisitCountingBandit(Bandit):
    """Bandit whose state contains `VisitCounts`. It needs no horizon, can be restricted to eligible documents, and
    moves to other trees as documents are added and removed.
    """

    anytime = True
    restrictable = True
    growable = True
    counts_visits = True
    not_saved = Bandit.not_saved | frozenset(ContextScratch._fields)
    correlated: bool
    # Arrays of the state with one element per entry, and the value of a new entry.
    per_entry: ClassVar[dict[str, float]] = dict.fromkeys(VisitCounts._fields[: VisitCounts._fields.index("filled")], 0)

    @abstractmethod
    def fresh_state(self, slots: int, more: int = 0) -> Any:
        """Return a state with only the root, and room for `more` entries."""

    @abstractmethod
    def belief(self, state: Any, entry: int, slot: int) -> tuple[float, float]:
        """Return the uncertainty of an entry's mean, and its index."""

    def carry_over(self, state: Any, moved: Any, origin: Array, anew: Array) -> None:
        """Carry over the state beside counts; `origin` has the old entry of each new one, and `anew` marks those whose
        visits changed.
        """

    def adopted(self, state: Any, movement: Remap) -> Any:
        """Remap counts with their subtrees; new documents count in the subtrees that they join."""
        shape = self.tree.shape
        own = own_visits(state, shape.parent, movement)
        apart, children = split_after_move(state, own, shape.parent, shape.child_start, movement)
        moved = self.fresh_state(state.plays.shape[1], children)
        self.carry_over(state, moved, *move_visits(state, own, moved, movement, apart))
        return moved

    def larger(self, state: Any) -> Any:
        """Make room for an eighth more entries, and enough for a visit."""
        room, slots = state.plays.shape
        return self.with_room(state, room + max(room // 8, slots * state.widest))

    def with_room(self, state: Any, room: int) -> Any:
        """Return the same state with room for this many entries."""
        return state._replace(
            **{name: enlarged(getattr(state, name), room, new) for name, new in self.per_entry.items()}
        )

    def strategy_of(self, state: Any, slot: int, above: Array, document: int) -> Strategy:
        """Return the smallest entry that holds the document, with the visits of this slot."""
        entry = int(entry_of(state, document))
        node, plays, clicks = int(state.node[entry]), int(state.plays[entry, slot]), int(state.clicks[entry, slot])
        radius, index = self.belief(state, entry, slot)
        cap = correlation_cap(self.tree, node, above if self.correlated else above[:0])
        return Strategy(node, plays, clicks, radius, index, cap)
