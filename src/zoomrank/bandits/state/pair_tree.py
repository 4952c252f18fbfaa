"""Zoom trees over pairs of a subtree and a context node, of which lower parts are shared by similar contexts only.

Children are kept in families, one for each refinement of the context that has come up, found by a hash table; a family
that never came up is not stored, all its members being fresh.

Width of a pair: `W(u) + 4 · Σ W(context nodes)`, which is ε^l (4i + 1) at level l for i documents above, times a
scale. The paper's bound is scale 1; it is a worst case, and makes the lower slots refine after every single play.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.registration import Feedback
from zoomrank.bandits.state.described_context import context_node, describe_context, width_around
from zoomrank.compiled import Scalar, compiled, inlined
from zoomrank.numbers import Array
from zoomrank.spaces.scrambling import scramble

ACTIVE = np.uint64(0xFFFFFFFFFFFFFFFF)  # no context is called so


class PairCounts(NamedTuple):
    """Zoom trees over (subtree, context node) pairs, a row per slot; entry 0 is the pair of roots."""

    pair_node: Array  # the subtree
    pair_plays: Array
    pair_clicks: Array
    known_for: Array  # ACTIVE; or, once it is refined, the context node in which its value is known, 0 if in none
    known_level: Array  # the level of that context node: the deepest that its value depends on
    pair_value: Array  # its index while it is active, else its capped value in that context node
    latest_context: Array  # of the family that was asked for last: the name of its context node
    latest_family: Array  # and the first of its children
    pair_used: Array  # entries in use, per slot
    family: Array  # hash table: the name of (entry, refined context) or 0, and the first of its children
    families: Array  # in use, per slot
    opened: Array  # hash table: the context nodes that have families, at any entry


class PairParameters(NamedTuple):
    """How wide pairs are."""

    scale: float


def fresh_pairs(slots: int, room: int, table: int) -> PairCounts:
    """Room for so many pairs and families in every slot."""
    shape = (slots, room)
    return PairCounts(
        pair_node=np.zeros(shape, np.uint32),
        pair_plays=np.zeros(shape, np.uint32),
        pair_clicks=np.zeros(shape, np.uint32),
        known_for=np.zeros(shape, np.uint64),
        known_level=np.zeros(shape, np.uint32),
        pair_value=np.zeros(shape),
        latest_context=np.zeros(shape, np.uint64),
        latest_family=np.zeros(shape, np.uint32),
        pair_used=np.zeros(slots, np.int64),
        family=np.zeros((slots, table, 2), np.uint64),
        families=np.zeros(slots, np.int64),
        opened=np.zeros((slots, table), np.uint64),
    )


@inlined
def pair_width(state: Any, node: Scalar, level: Scalar) -> Scalar:
    """Width of a pair at this level."""
    around = width_around(state, level)
    return state.scale * (state.width[np.uint64(node)] + around)


@inlined
def fresh_index(state: Any, slot: Scalar, node: Scalar, level: Scalar) -> Scalar:
    """The index of a pair that was never played: its width and a whole radius."""
    return pair_width(state, node, level) + np.sqrt(state.constant[slot])


@inlined
def fan_of(state: Any, node: Scalar) -> Scalar:
    """How many children a subtree has; a document goes on as its own only child while contexts are refined."""
    return max(np.int64(state.child_start[node + 1]) - np.int64(state.child_start[node]), 1)


@inlined
def child_at(state: Any, node: Scalar, step: Scalar) -> Scalar:
    """The child of a subtree; of a document, itself."""
    start = np.int64(state.child_start[node])
    return start + step if start != np.int64(state.child_start[node + 1]) else node


@inlined
def _family_key(state: Any, entry: Scalar, level: Scalar) -> Scalar:
    return scramble(np.uint64(entry) ^ context_node(state, level)) | np.uint64(1)  # 0 is an empty place


@inlined
def family_place(state: Any, slot: Scalar, entry: Scalar, level: Scalar) -> Scalar:
    """Find where in the table the children of an entry are, or would be, in the context at this level."""
    key = _family_key(state, entry, level)
    room = np.uint64(state.family.shape[1] - 1)
    at = key & room
    while state.family[slot, at, 0] != 0 and state.family[slot, at, 0] != key:
        at = (at + np.uint64(1)) & room
    return np.int64(at)


@inlined
def family_of(state: Any, slot: Scalar, entry: Scalar, level: Scalar) -> Scalar:
    """The first of the children of an entry in the context at this level; 0 if that never came up.

    Contexts recur, so the family that was asked for last is looked at first.
    """
    row, at = np.uint64(slot), np.uint64(entry)
    context = context_node(state, level)
    if state.latest_context[row, at] == context:
        first = np.int64(state.latest_family[row, at])
    else:
        place = np.uint64(family_place(state, slot, entry, level))
        first = np.int64(state.family[row, place, 1]) if state.family[row, place, 0] != 0 else 0
        if first != 0:
            state.latest_context[row, at] = context
            state.latest_family[row, at] = first
    return first


@inlined
def _opened_place(state: Any, slot: Scalar, level: Scalar) -> Scalar:
    """Find where in the table the context node at this level is, or would be, and its name there."""
    name = (context_node(state, level) + np.uint64(level)) | np.uint64(1)  # 0 is an empty place
    room = np.uint64(state.opened.shape[1] - 1)
    row, at = np.uint64(slot), (name >> np.uint64(1)) & room
    while state.opened[row, at] != 0 and state.opened[row, at] != name:
        at = (at + np.uint64(1)) & room
    return at, name


@inlined
def is_opened(state: Any, slot: Scalar, level: Scalar) -> Scalar:
    """Whether any entry has a family in the context at this level."""
    at, _ = _opened_place(state, slot, level)
    return state.opened[np.uint64(slot), at] != 0


@inlined
def open_family(state: Any, slot: Scalar, entry: Scalar, level: Scalar) -> Scalar:
    """Store the children of an entry in a context that has come up for the first time; returns the first of them."""
    node = np.int64(state.pair_node[slot, entry])
    first = state.pair_used[slot]
    place = family_place(state, slot, entry, level)
    state.family[slot, place, 0] = _family_key(state, entry, level)
    state.family[slot, place, 1] = first
    state.families[slot] += 1
    at, name = _opened_place(state, slot, level)
    state.opened[slot, at] = name
    for step in range(fan_of(state, node)):
        child = child_at(state, node, step)
        state.pair_node[slot, first + step] = child
        state.known_for[slot, first + step] = ACTIVE
        state.pair_plays[slot, first + step] = 0
        state.pair_clicks[slot, first + step] = 0
        state.pair_value[slot, first + step] = fresh_index(state, slot, child, level)
        state.latest_context[slot, first + step] = 0
    state.pair_used[slot] += fan_of(state, node)
    return first


@inlined
def update_pair(state: Any, slot: Scalar, feedback: Feedback, shown: Array, above: Scalar) -> None:
    """Credit the active pair that holds the document in this context, opening families on the way to it."""
    describe_context(state, shown, above)
    entry, level = np.int64(0), 0
    while state.known_for[slot, entry] != ACTIVE:
        state.known_for[slot, entry] = 0  # something below is about to change
        first = family_of(state, slot, entry, level + 1)
        entry = first if first != 0 else open_family(state, slot, entry, level + 1)
        while state.end_document[state.pair_node[slot, entry]] <= feedback.pick:
            entry += 1
        level += 1
    state.pair_plays[slot, entry] += np.uint32(1)
    state.pair_clicks[slot, entry] += np.uint32(feedback.reward)
    plays = state.pair_plays[slot, entry]
    radius = np.sqrt(state.constant[slot] / (1.0 + plays))
    width = pair_width(state, state.pair_node[slot, entry], level)
    state.pair_value[slot, entry] = width + state.pair_clicks[slot, entry] / plays + radius
    if radius < width:
        state.known_for[slot, entry] = 0


@inlined
def plant_pairs(state: Any, slot: Scalar) -> None:
    """A zoom tree that is nothing but the pair of roots, active."""
    state.pair_used[slot] = 1
    state.families[slot] = 0
    state.family[slot] = 0
    state.opened[slot] = 0
    state.pair_node[slot, 0] = 0
    state.latest_context[slot, 0] = 0
    state.known_for[slot, 0] = ACTIVE
    state.pair_plays[slot, 0] = 0
    state.pair_clicks[slot, 0] = 0
    state.pair_value[slot, 0] = np.inf  # there is nothing beside it


@compiled
def plant_all_pairs(state: Any) -> None:
    """The pair of roots in all slots."""
    for slot in range(len(state.pair_used)):
        plant_pairs(state, slot)


@compiled
def find_pair(state: Any, slot: Scalar, shown: Array, document: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """The subtree, plays, clicks and width of the active pair that holds a document in a context."""
    describe_context(state, shown, len(shown))
    entry, node, level = np.int64(0), np.int64(0), 0
    stored = True
    while stored and state.known_for[slot, entry] != ACTIVE:
        first = family_of(state, slot, entry, level + 1)
        stored = first != 0
        step = 0
        while state.end_document[child_at(state, node, step)] <= document:
            step += 1
        node = child_at(state, node, step)
        entry = first + step
        level += 1
    plays = np.int64(state.pair_plays[slot, entry]) if stored else 0
    clicks = np.int64(state.pair_clicks[slot, entry]) if stored else 0
    return node, plays, clicks, pair_width(state, node, level)


@inlined
def pairs_are_roomy(state: Any) -> Scalar:
    """Whether every slot could open a family at each level."""
    levels = state.path.shape[1]
    room = True
    for slot in range(len(state.pair_used)):
        room = room and state.pair_used[slot] + levels * max(state.widest, 1) < state.pair_node.shape[1]
        room = room and 2 * (state.families[slot] + levels) < state.family.shape[1]
    return room


def with_larger_pairs(state: Any) -> Any:
    """The same pairs with more room wherever it is short."""
    levels, widest = state.path.shape[1], max(state.widest, 1)
    slots, room = state.pair_node.shape
    table = state.family.shape[1]
    if int(state.pair_used.max()) + levels * widest >= room:
        room += max(room // 2, 2 * levels * widest)
    grow_table = 2 * (int(state.families.max()) + levels) >= table
    grown = fresh_pairs(slots, room, 2 * table if grow_table else table)
    for name in PairCounts._fields[: PairCounts._fields.index("pair_used")]:
        getattr(grown, name)[:, : state.pair_node.shape[1]] = getattr(state, name)
    grown = grown._replace(pair_used=state.pair_used, families=state.families)
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
                larger.family[slot, at] = pairs.family[slot, place]
            if name != 0:
                at = (name >> np.uint64(1)) & room
                while larger.opened[slot, at] != 0:
                    at = (at + np.uint64(1)) & room
                larger.opened[slot, at] = name
