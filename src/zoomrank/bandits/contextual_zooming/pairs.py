"""Zoom trees over pairs of a subtree and a context node; lower parts are shared by similar contexts only.

The context of a slot is described level by level. A *context node* is an unordered tuple of nodes, one above each
document of the context, all of one level. Its name is a hash that does not depend on the order of the documents.

Children are kept in families, one for each refinement of the context that occurred, found by a hash table; a family
that never occurred is not stored, since all its members are fresh.

Width of a pair: `W(u) + 4 · Σ W(context nodes)`, which is ε^l (4i + 1) at level l for i documents above, times a scale.
The paper's bound is scale 1; it is a worst case, and makes the lower slots refine after every single play.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.kernel_interface import Feedback
from zoomrank.bandits.tree_view import store_paths
from zoomrank.compiled import Scalar, compiled, inlined
from zoomrank.spaces.contexts import hash64
from zoomrank.types import Array


class ContextDescription(NamedTuple):
    """The context level by level, as far as it is computed."""

    context_sum: Array  # [i, l]: sum of the hashed nodes at level l above the first i documents; independent of order
    context_hash: Array  # [i, l]: hash of that sum: the name of the context node
    context_width: Array  # [i, l]: 4 · the sum of the widths of its nodes
    described: Array  # number of documents for which that is computed, and number of documents above now


def fresh_context_description(levels: int, documents: int) -> ContextDescription:
    """Allocate scratch space for contexts of this many documents."""
    shape = (documents + 1, levels)
    return ContextDescription(
        np.ones(shape, np.uint64), np.zeros(shape, np.uint64), np.zeros(shape), np.zeros(2, np.int64)
    )


@inlined
def describe_context(state: Any, shown: Array, above: Scalar) -> None:
    """Compute, level by level, the context node of the documents above and its width.

    The slots of a ranking ask one after the other, each with one document more, so the rows that are still valid are
    kept.
    """
    size = np.uint64(above)
    known: Scalar = np.uint64(state.described[0])
    for row in range(size):
        if row < known and state.path_leaf[row] != state.leaf[np.uint64(shown[row])]:
            known = row
    store_paths(state, shown, above)
    for row in range(known, size):
        for level in range(np.uint64(state.path.shape[1])):
            node = state.path[row, level]
            total = state.context_sum[row, level] + hash64(node)
            state.context_sum[row + np.uint64(1), level] = total
            state.context_hash[row + np.uint64(1), level] = hash64(total)
            state.context_width[row + np.uint64(1), level] = state.context_width[row, level] + 4.0 * state.width[node]
    state.described[0] = max(known, size)
    state.described[1] = size


@inlined
def context_node(state: Any, level: Scalar) -> Scalar:
    """Return the name of the context node at a level; at the last level, of the context itself."""
    return state.context_hash[np.uint64(state.described[1]), np.uint64(level)]


@inlined
def context_name(state: Any) -> Scalar:
    """Return the name of the context itself."""
    return context_node(state, state.context_hash.shape[1] - 1)


@inlined
def width_around(state: Any, level: Scalar) -> Scalar:
    """Return 4 · the sum of the widths of the nodes of the context node at a level."""
    return state.context_width[np.uint64(state.described[1]), np.uint64(level)]


# The pairs.

ACTIVE = np.uint64(0xFFFFFFFFFFFFFFFF)  # not the name of any context


# The fields that a walk reads are adjacent: two children fill one cache line.
PAIR = np.dtype(
    [
        ("value", np.float64),  # its index while it is active, else its capped value in the context node below
        ("known_for", np.uint64),  # ACTIVE; or, once refined, the context node in which its value is known, 0 if none
        ("latest_context", np.uint64),  # of the family used last: the name of its context node,
        ("latest_family", np.uint32),  # and the first of its children
        ("known_level", np.uint32),  # of the context node in which its value is known: the deepest that it depends on
    ]
)


class PairCounts(NamedTuple):
    """Zoom trees over (subtree, context node) pairs, a row per slot; entry 0 is the pair of roots."""

    pair: Array  # PAIR
    pair_plays: Array
    pair_clicks: Array
    pair_used: Array  # entries in use, per slot
    family: Array  # hash table: the name of (entry, refined context) or 0, and the first of its children
    families: Array  # in use, per slot
    opened: Array  # hash table: the context nodes that have families, at any entry
    opened_at: Array  # how many of them there are at each level, per slot


class PairParameters(NamedTuple):
    """Parameters of pair widths."""

    scale: float


def fresh_pairs(slots: int, levels: int, room: int, table: int) -> PairCounts:
    """Allocate room for this many pairs and families in every slot."""
    plays, clicks = (np.zeros((slots, room), np.uint32) for _ in range(2))
    used, families = (np.zeros(slots, np.int64) for _ in range(2))
    family, opened = np.zeros((slots, table, 2), np.uint64), np.zeros((slots, table), np.uint64)
    levels_opened = np.zeros((slots, levels), np.int64)
    return PairCounts(np.zeros((slots, room), PAIR), plays, clicks, used, family, families, opened, levels_opened)


@inlined
def pair_width(state: Any, node: Scalar, level: Scalar) -> Scalar:
    """Return the width of a pair at this level."""
    return state.scale * (state.width[np.uint64(node)] + width_around(state, level))


@inlined
def fresh_index(state: Any, slot: Scalar, node: Scalar, level: Scalar) -> Scalar:
    """Return the index of an unplayed pair: its width and a whole radius."""
    return pair_width(state, node, level) + np.sqrt(state.constant[slot])


@inlined
def fan_of(state: Any, node: Scalar) -> Scalar:
    """Count the children of a subtree; a document is its own only child while contexts are refined."""
    at = np.uint64(node)
    return max(np.int64(state.child_start[at + np.uint64(1)]) - np.int64(state.child_start[at]), 1)


@inlined
def is_inner(state: Any, node: Scalar) -> Scalar:
    """Return whether a subtree has children, so is not a document."""
    at = np.uint64(node)
    return state.child_start[at] != state.child_start[at + np.uint64(1)]


@inlined
def child_at(state: Any, node: Scalar, step: Scalar) -> Scalar:
    """Return the child of a subtree; of a document, itself."""
    return np.int64(state.child_start[np.uint64(node)]) + step if is_inner(state, node) else node


@inlined
def _family_key(state: Any, entry: Scalar, level: Scalar) -> Scalar:
    return hash64(np.uint64(entry) ^ context_node(state, level)) | np.uint64(1)  # 0 marks an empty place


@inlined
def family_place(state: Any, slot: Scalar, entry: Scalar, level: Scalar) -> Scalar:
    """Find the place in the table of an entry's children in the context at this level, stored or not."""
    key = _family_key(state, entry, level)
    room = np.uint64(state.family.shape[1] - 1)
    row, at = np.uint64(slot), key & room
    while state.family[row, at, np.uint64(0)] != 0 and state.family[row, at, np.uint64(0)] != key:
        at = (at + np.uint64(1)) & room
    return at


@inlined
def family_of(state: Any, slot: Scalar, entry: Scalar, level: Scalar) -> Scalar:
    """Return the first of an entry's children in the context at this level; 0 if there are none.

    Contexts recur, so the family used last is checked first.
    """
    row, at = np.uint64(slot), np.uint64(entry)
    context = context_node(state, level)
    pair = state.pair[row, at]
    if pair["latest_context"] == context:
        first = np.int64(pair["latest_family"])
    else:
        place = family_place(state, slot, entry, level)
        found = state.family[row, place, np.uint64(0)] != 0
        first = np.int64(state.family[row, place, np.uint64(1)]) if found else np.int64(0)
        if first != 0:
            pair["latest_context"] = context
            pair["latest_family"] = first
    return first


@inlined
def _opened_place(state: Any, slot: Scalar, level: Scalar) -> Scalar:
    """Find the place in the table of the context node at this level, stored or not, and its name there."""
    name = (context_node(state, level) + np.uint64(level)) | np.uint64(1)  # 0 marks an empty place
    room = np.uint64(state.opened.shape[1] - 1)
    row, at = np.uint64(slot), (name >> np.uint64(1)) & room
    while state.opened[row, at] != 0 and state.opened[row, at] != name:
        at = (at + np.uint64(1)) & room
    return at, name


@inlined
def is_opened(state: Any, slot: Scalar, level: Scalar) -> Scalar:
    """Return whether any entry has a family in the context at this level."""
    opened = state.opened_at[np.uint64(slot), np.uint64(level)] > 0  # otherwise skip the lookup
    if opened:
        at, _ = _opened_place(state, slot, level)
        opened = state.opened[np.uint64(slot), at] != 0
    return opened


@inlined
def _activate(state: Any, slot: Scalar, entry: Scalar, index: Scalar) -> None:
    """Make an entry an active pair without plays."""
    pair = state.pair[slot, entry]
    pair["value"] = index
    pair["known_for"] = ACTIVE
    pair["latest_context"] = 0
    pair["known_level"] = 0
    state.pair_plays[slot, entry] = 0
    state.pair_clicks[slot, entry] = 0


@inlined
def open_family(state: Any, slot: Scalar, entry: Scalar, node: Scalar, level: Scalar) -> Scalar:
    """Store the children of an entry in a context that occurs for the first time; return the first child."""
    first = state.pair_used[slot]
    place = family_place(state, slot, entry, level)
    state.family[slot, place, 0] = _family_key(state, entry, level)
    state.family[slot, place, 1] = first
    state.families[slot] += 1
    at, name = _opened_place(state, slot, level)
    state.opened_at[slot, level] += 1 if state.opened[slot, at] == 0 else 0
    state.opened[slot, at] = name
    for step in range(fan_of(state, node)):
        _activate(state, slot, first + step, fresh_index(state, slot, child_at(state, node, step), level))
    state.pair_used[slot] += fan_of(state, node)
    return first


@inlined
def step_to(state: Any, node: Scalar, document: Scalar) -> Scalar:
    """Return the position of the child of a node that holds a document."""
    step = 0
    while state.end_document[np.uint64(child_at(state, node, step))] <= document:
        step += 1
    return step


@inlined
def update_pair(state: Any, slot: Scalar, feedback: Feedback, shown: Array, above: Scalar) -> None:
    """Credit the active pair that holds the document in this context, opening families on the way to it."""
    describe_context(state, shown, above)
    row = np.uint64(slot)
    entry, node, level = np.int64(0), np.int64(0), 0
    while state.pair[row, np.uint64(entry)]["known_for"] != ACTIVE:
        state.pair[row, np.uint64(entry)]["known_for"] = 0  # a value below is about to change
        first = family_of(state, slot, entry, level + 1)
        if first == 0:
            first = open_family(state, slot, entry, node, level + 1)
        step = step_to(state, node, feedback.pick)
        entry = first + step
        node = child_at(state, node, step)
        level += 1
    at = np.uint64(entry)
    state.pair_plays[row, at] += np.uint32(1)
    state.pair_clicks[row, at] += np.uint32(feedback.reward)
    plays = state.pair_plays[row, at]
    radius = np.sqrt(state.constant[row] / (1.0 + plays))
    width = pair_width(state, node, level)
    state.pair[row, at]["value"] = width + state.pair_clicks[row, at] / plays + radius
    if radius < width:
        state.pair[row, at]["known_for"] = 0


@inlined
def reset_pairs(state: Any, slot: Scalar) -> None:
    """Reset the zoom tree to the pair of roots, active."""
    state.pair_used[slot] = 1
    state.families[slot] = 0
    state.family[slot, :, 0] = 0
    state.opened[slot, :] = 0
    state.opened_at[slot, :] = 0
    _activate(state, slot, 0, np.inf)  # it has no competitors


@compiled
def find_pair(state: Any, slot: Scalar, shown: Array, document: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """Return the subtree, plays, clicks and width of the active pair that holds a document in a context."""
    describe_context(state, shown, len(shown))
    entry, node, level = np.int64(0), np.int64(0), 0
    stored = True
    while stored and state.pair[slot, entry]["known_for"] != ACTIVE:
        first = family_of(state, slot, entry, level + 1)
        stored = first != 0
        step = step_to(state, node, document)
        node = child_at(state, node, step)
        entry = first + step
        level += 1
    plays = np.int64(state.pair_plays[slot, entry]) if stored else 0
    clicks = np.int64(state.pair_clicks[slot, entry]) if stored else 0
    return node, plays, clicks, pair_width(state, node, level)


@inlined
def pairs_are_roomy(state: Any) -> Scalar:
    """Return whether every slot could open a family at each level."""
    levels = state.path.shape[1]
    room = True
    for slot in range(len(state.pair_used)):
        room = room and state.pair_used[slot] + levels * max(state.widest, 1) < state.pair.shape[1]
        room = room and 2 * (state.families[slot] + levels) < state.family.shape[1]
    return room


def with_larger_pairs(state: Any) -> Any:
    """Return the same pairs with more room where it is short."""
    levels, widest = state.path.shape[1], max(state.widest, 1)
    slots, room = state.pair.shape
    table = state.family.shape[1]
    if int(state.pair_used.max()) + levels * widest >= room:
        room += max(room, 2 * levels * widest)  # double it, since growing copies everything
    grow_table = 2 * (int(state.families.max()) + levels) >= table
    grown = fresh_pairs(slots, levels, room, 2 * table if grow_table else table)
    for name in PairCounts._fields[: PairCounts._fields.index("pair_used")]:
        getattr(grown, name)[:, : state.pair.shape[1]] = getattr(state, name)
    grown = grown._replace(pair_used=state.pair_used, families=state.families, opened_at=state.opened_at)
    if grow_table:
        _rehash(PairCounts(*(getattr(state, name) for name in PairCounts._fields)), grown)
    else:
        grown = grown._replace(family=state.family, opened=state.opened)
    return state._replace(**grown._asdict())


@compiled
def _rehash(pairs: Any, larger: Any) -> None:
    room = np.uint64(larger.opened.shape[1] - 1)
    for slot in range(len(pairs.families)):
        for place in range(pairs.opened.shape[1]):
            key, name = pairs.family[slot, place, 0], pairs.opened[slot, place]
            if key != 0:
                at = key & room
                while larger.family[slot, at, 0] != 0:
                    at = (at + np.uint64(1)) & room
                larger.family[slot, at, 0] = key
                larger.family[slot, at, 1] = pairs.family[slot, place, 1]
            if name != 0:
                at = (name >> np.uint64(1)) & room
                while larger.opened[slot, at] != 0:
                    at = (at + np.uint64(1)) & room
                larger.opened[slot, at] = name
