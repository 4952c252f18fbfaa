"""Choice of contextual zooming: the value of a pair in a context, and the walk down along the best value.

The value of a refined pair depends on the context; it is cached for all contexts that agree down to the deepest level
that was searched, and dropped when a value below it changes. So while contexts recur, as they do once the slots above
have settled, choosing is a walk. In a new context, no pair is refined below the level at which it is new; pairs above
that level are wide and mostly reach their cap, so they need no search.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.contextual_zooming.pairs import (
    ACTIVE,
    child_at,
    context_name,
    context_node,
    describe_context,
    family_of,
    fan_of,
    fresh_index,
    is_inner,
    is_opened,
    step_to,
    width_around,
)
from zoomrank.bandits.tree_view import (
    best_places,
    chance_of_best_place,
    documents_below,
    farthest_from,
    random_best,
    split_mask,
)
from zoomrank.compiled import Scalar, inlined
from zoomrank.spaces import DocumentTree
from zoomrank.spaces.tree_shape import node_depths
from zoomrank.types import Array


class PairScratch(NamedTuple):
    """Stack of the pairs that are being valued, one inside the other."""

    look_entry: Array
    look_node: Array  # its subtree
    look_mask: Array  # documents of the context below the subtree
    look_cap: Array  # for what hangs off the paths of the context
    look_first: Array  # the first child in this context
    look_step: Array  # the next child
    look_value: Array  # the best so far
    look_level: Array  # the deepest level of the context that it depends on
    fresh_value: Array  # the values of children that were never played
    least_width: Array  # of any subtree at this level or above it
    sure: Array  # every pair of this context reaches a cap of sure[0]; unknown beyond sure[1]
    sure_level: Array  # per slot, the deepest level at which pairs are wide enough for that: start of the search
    settled_for: Array  # per slot, the context in which the last walk was deterministic, 0 if it was not
    settled_on: Array  # the node where that walk ended


def fresh_pair_scratch(tree: DocumentTree, slots: int, widest: int) -> PairScratch:
    """Allocate scratch space as deep as pairs go."""
    levels = tree.depth + 1
    least = np.full(levels, np.inf)
    np.minimum.at(least, node_depths(tree.shape.parent), tree.width)
    return PairScratch(
        **{name: np.zeros(levels + 2, np.int64) for name in PairScratch._fields if name.startswith("look")}
        | {name: np.zeros(levels + 2) for name in ("look_cap", "look_value")},
        fresh_value=np.zeros(max(widest, 1)),
        least_width=np.minimum.accumulate(least),
        sure=np.zeros(2),
        sure_level=np.zeros(slots, np.int64),
        settled_for=np.zeros(slots, np.uint64),
        settled_on=np.zeros(slots, np.int64),
    )


@inlined
def _value_floor(state: Any, slot: Scalar, level: Scalar) -> Scalar:
    """Return a lower bound on the value of every active pair if none is deeper than this level.

    A pair that was played and is still active has a radius of at least its width, any other a whole one; and deeper
    pairs are narrower.
    """
    width = state.scale * (state.least_width[np.uint64(level)] + width_around(state, level))
    # rounded down, so that the order of the sum does not matter
    return min(2.0 * width, width + np.sqrt(state.constant[np.uint64(slot)])) * (1.0 - 1e-9)


@inlined
def _is_sure(state: Any, slot: Scalar, cap: Scalar) -> Scalar:
    """Return whether every pair reaches its cap without a search: the context is new below a level where pairs are that
    wide.
    """
    if state.sure[0] < cap < state.sure[1]:
        last = state.path.shape[1] - 1
        level = state.sure_level[np.uint64(slot)]
        while level < last and _value_floor(state, slot, level + 1) >= cap:
            level += 1
        while level > 0 and _value_floor(state, slot, level) < cap:
            level -= 1
        state.sure_level[np.uint64(slot)] = level
        if level > 0 and (level == last or not is_opened(state, slot, level)):
            state.sure[0] = cap
        else:
            state.sure[1] = cap
    return cap <= state.sure[0]


@inlined
def _cap(state: Any, node: Scalar, level: Scalar, mask: Scalar, cap: Scalar) -> Scalar:
    """Compute the cap of an active pair: one number off the paths of S, else the largest distance of its documents to
    S.
    """
    return farthest_from(state, node, level, mask) if mask != 0 else cap


@inlined
def _held_by(state: Any, node: Scalar, step: Scalar, level: Scalar, mask: Scalar) -> Scalar:
    """Return the mask of the documents below this child."""
    held = mask
    if mask != 0 and is_inner(state, node):
        held = documents_below(state, child_at(state, node, step), level + 1, mask)
    return held


@inlined
def _share_out(state: Any, below: Array, node: Scalar, level: Scalar, mask: Scalar) -> None:
    """Store the mask of the documents below each child."""
    if is_inner(state, node):
        split_mask(state, below, node, level, mask)
    else:
        below[0] = mask


@inlined
def _fresh_value(state: Any, slot: Scalar, node: Scalar, level: Scalar, mask: Scalar, cap: Scalar) -> Scalar:
    """Compute the best capped index among children of which none was ever played in this context."""
    _share_out(state, state.below, node, level, mask)
    around = cap if mask == 0 else state.width[np.uint64(node)]
    top = -1.0
    for step in range(np.uint64(fan_of(state, node))):
        child = child_at(state, node, np.int64(step))
        capped = _cap(state, child, level + 1, state.below[step], around)
        value = min(fresh_index(state, slot, child, level + 1), capped)
        state.fresh_value[step] = value
        top = max(top, value)
    return top


@inlined
def _quick_value(
    state: Any, slot: Scalar, entry: Scalar, node: Scalar, level: Scalar, mask: Scalar, cap: Scalar
) -> tuple[Scalar, Scalar, Scalar]:
    """Return the capped value of a pair if it takes no search (it is active, cached, sure, or its children are fresh),
    else -1; its first child; and the deepest level of the context that the value depends on.
    """
    pair = state.pair[np.uint64(slot), np.uint64(entry)]
    last = state.path.shape[1] - 1
    value, first, deepest = -1.0, np.int64(0), np.int64(level if mask == 0 else last)
    if pair["known_for"] == ACTIVE:
        value = min(pair["value"], _cap(state, node, level, mask, cap))
    elif pair["known_for"] == context_node(state, pair["known_level"]):
        value, deepest = pair["value"], np.int64(pair["known_level"])
    elif mask == 0 and _is_sure(state, slot, cap):
        value, deepest = cap, np.int64(last)  # only for pairs on the paths of S, whose values depend on all levels
    else:
        first = family_of(state, slot, entry, level + 1)
        deepest = max(deepest, np.int64(level + 1))
        if first == 0:
            value = _fresh_value(state, slot, node, level, mask, cap)
    return value, first, deepest


@inlined
def _push(
    state: Any, depth: Scalar, entry: Scalar, node: Scalar, first: Scalar, mask: Scalar, cap: Scalar, deepest: Scalar
) -> None:
    at = np.uint64(depth)
    state.look_entry[at] = entry
    state.look_node[at] = node
    state.look_first[at] = first
    state.look_mask[at] = mask
    state.look_cap[at] = cap
    state.look_step[at] = 0
    state.look_value[at] = -1.0
    state.look_level[at] = deepest


@inlined
def _remember(state: Any, slot: Scalar, depth: Scalar) -> Scalar:
    """Store the value of a pair after its search, for itself and for the pair above it; return it."""
    at = np.uint64(depth)
    value, deepest = state.look_value[at], state.look_level[at]
    pair = state.pair[np.uint64(slot), np.uint64(state.look_entry[at])]
    pair["known_for"] = context_node(state, deepest)
    pair["known_level"] = deepest
    pair["value"] = value
    if depth > 0:
        above = np.uint64(depth - 1)
        state.look_value[above] = max(state.look_value[above], value)
        state.look_level[above] = max(state.look_level[above], deepest)
    return value


@inlined
def _value(state: Any, slot: Scalar, entry: Scalar, node: Scalar, level: Scalar, mask: Scalar, cap: Scalar) -> Scalar:
    """Compute the highest capped index at or below a pair in this context, and cache it.

    A search ends early where the cap is reached. Children off the paths of S come first; the others are worth at most
    their width, so most need no search.
    """
    value, first, deepest = _quick_value(state, slot, entry, node, level, mask, cap)
    depth = -1
    if value < 0.0:
        depth = 0
        _push(state, 0, entry, node, first, mask, cap, deepest)
    while depth >= 0:
        top = np.uint64(depth)
        here = state.look_node[top]
        held = state.look_mask[top]
        around = state.look_cap[top] if held == 0 else state.width[np.uint64(here)]
        step = state.look_step[top]
        fan = fan_of(state, here)
        steps = fan if held == 0 else 2 * fan
        if step == steps or state.look_value[top] >= around:
            value = _remember(state, slot, depth)
            depth -= 1
        else:
            state.look_step[top] += 1
            late = step >= fan
            step -= fan if late else 0
            inner = level + depth + 1
            below = _held_by(state, here, step, inner - 1, held)
            child = child_at(state, here, step)
            bound = around if below == 0 else state.width[np.uint64(child)]
            if (below != 0) == late and bound > state.look_value[top]:
                at = state.look_first[top] + step
                quick, first, deepest = _quick_value(state, slot, at, child, inner, below, around)
                if quick >= 0.0:
                    state.look_value[top] = max(state.look_value[top], quick)
                    state.look_level[top] = max(state.look_level[top], deepest)
                else:
                    depth += 1
                    _push(state, depth, at, child, first, below, around, deepest)
    return value


@inlined
def _best_child(
    state: Any, slot: Scalar, node: Scalar, first: Scalar, level: Scalar, mask: Scalar, around: Scalar
) -> Scalar:
    """Return the highest value among the children of a pair; store their values in `state.value` and their masks in
    `state.inner`.
    """
    _share_out(state, state.inner, node, level, mask)
    fan = fan_of(state, node)
    top = -1.0
    for look in range(fan if mask == 0 else 2 * fan):
        late = look >= fan
        step = np.uint64(look - fan if late else look)
        below = state.inner[step]
        if (below != 0) == late:
            value, child = -1.0, child_at(state, node, np.int64(step))
            if below == 0 or state.width[np.uint64(child)] >= top:
                value = _value(state, slot, first + np.int64(step), child, level + 1, below, around)
            state.value[step] = value
            top = max(top, value)
    return top


@inlined
def _best_of_family(
    state: Any, slot: Scalar, node: Scalar, first: Scalar, level: Scalar, mask: Scalar, cap: Scalar
) -> Scalar:
    """Return the highest value among the children of a pair, stored or fresh."""
    if first == 0:
        top = _fresh_value(state, slot, node, level, mask, cap)
        for step in range(np.uint64(fan_of(state, node))):
            state.value[step], state.inner[step] = state.fresh_value[step], state.below[step]
    else:
        around = cap if mask == 0 else state.width[np.uint64(node)]
        top = _best_child(state, slot, node, first, level, mask, around)
    return top


@inlined
def _walk(state: Any, slot: Scalar, above: Scalar, rng: np.random.Generator) -> tuple[Scalar, Scalar]:
    """Walk down along the best value of the pairs that hold the context; return the node and whether the walk was
    random.
    """
    state.sure[0], state.sure[1] = -1.0, np.inf
    entry, level, cap, chance = np.int64(0), 0, np.inf, False
    mask = ((1 << above) - 1) if state.correlated else 0
    node = np.int64(0)
    refined = state.pair[np.uint64(slot), np.uint64(0)]["known_for"] != ACTIVE
    while refined:
        first = family_of(state, slot, entry, level + 1)
        around = cap if mask == 0 else state.width[np.uint64(node)]
        fan = fan_of(state, node)
        if first != 0 and mask == 0 and around <= state.sure[0]:  # all reach their cap
            step = np.int64(rng.random() * fan) if fan > 1 else np.int64(0)
            chance = chance or fan > 1
        else:
            top = _best_of_family(state, slot, node, first, level, mask, cap)
            ties, last = best_places(state.value, fan, top)
            step = np.int64(random_best(state.value, fan, top, rng) if ties > 1 else last)
            chance = chance or ties > 1
            mask = state.inner[np.uint64(step)]
        node = child_at(state, node, step)
        cap = around
        entry = first + step
        level += 1
        refined = first != 0 and state.pair[np.uint64(slot), np.uint64(entry)]["known_for"] != ACTIVE
    return node, chance


@inlined
def walk_context(state: Any, slot: Scalar, shown: Array, above: Scalar, rng: np.random.Generator) -> Scalar:
    """Return the subtree of the best pair that holds the context: that of the last walk if nothing has changed."""
    describe_context(state, shown, above)
    row, name = np.uint64(slot), context_name(state)
    if state.settled_for[row] != name:
        node, chance = _walk(state, slot, above, rng)
        state.settled_for[row], state.settled_on[row] = np.uint64(0) if chance else name, node
    return state.settled_on[row]


@inlined
def odds_in_context(
    state: Any, slot: Scalar, shown: Array, above: Scalar, document: Scalar
) -> tuple[Scalar, Scalar, Scalar]:
    """Walk to the pair that holds a document, multiplying the probability of each tie-break."""
    describe_context(state, shown, above)
    state.sure[0], state.sure[1] = -1.0, np.inf
    entry, node, level, cap, chance, hopeful = np.int64(0), np.int64(0), 0, np.inf, 1.0, False
    mask = ((1 << above) - 1) if state.correlated else 0
    refined = state.pair[np.uint64(slot), np.uint64(0)]["known_for"] != ACTIVE
    while chance > 0.0 and refined:
        first = family_of(state, slot, entry, level + 1)
        top = _best_of_family(state, slot, node, first, level, mask, cap)
        hopeful = state.correlated and top > 0.0  # a subtree without documents left is capped at 0
        cap = cap if mask == 0 else state.width[np.uint64(node)]
        step = np.int64(step_to(state, node, document))
        chance *= chance_of_best_place(state.value, fan_of(state, node), top, np.uint64(step))
        mask = state.inner[np.uint64(step)]
        node = child_at(state, node, step)
        entry = first + step
        level += 1
        refined = first != 0 and state.pair[np.uint64(slot), np.uint64(entry)]["known_for"] != ACTIVE
    return chance, node, hopeful
