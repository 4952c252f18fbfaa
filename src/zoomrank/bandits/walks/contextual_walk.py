"""How contextual zooming chooses: what a pair is worth in a context, and the walk down along the best.

What a refined pair is worth depends on the context; it is remembered for the last context that asked, and forgotten
when something below it changes. So while contexts recur, as they do once the slots above have settled, choosing is a
walk.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.state.context_paths import documents_below, farthest_from, one_of_the_best, share_out
from zoomrank.bandits.state.described_context import context_node, describe_context, width_around
from zoomrank.bandits.state.pair_tree import ACTIVE, child_at, family_of, fan_of, fresh_index, is_opened
from zoomrank.compiled import Scalar, inlined
from zoomrank.numbers import Array
from zoomrank.spaces import DocumentTree
from zoomrank.spaces.trees.shape import node_depths


class PairScratch(NamedTuple):
    """A stack of pairs that are being valued, one inside the other."""

    look_entry: Array
    look_mask: Array  # documents of the context below the subtree
    look_cap: Array  # for what hangs off the paths of the context
    look_first: Array  # the first child in this context
    look_step: Array  # the child to look at next
    look_value: Array  # the best so far
    look_level: Array  # the deepest level of the context that it depends on
    family_value: Array  # the values of the children of one pair
    least_width: Array  # of any subtree at this level or above it
    opened_level: Array  # per slot, where to begin to look for the deepest level at which the context was met before
    sure: Array  # [0]: what every active pair is worth at least in this context, not yet capped; below 0: not known
    sure_level: Array  # [0]: the deepest level of the context that this depends on


def fresh_pair_scratch(tree: DocumentTree, slots: int, widest: int) -> PairScratch:
    """Room to look as deep as pairs go."""
    levels = tree.depth + 1
    least = np.full(levels, np.inf)
    np.minimum.at(least, node_depths(tree.shape.parent), tree.width)
    return PairScratch(
        look_entry=np.zeros(levels + 2, np.int64),
        look_mask=np.zeros(levels + 2, np.int64),
        look_cap=np.zeros(levels + 2),
        look_first=np.zeros(levels + 2, np.int64),
        look_step=np.zeros(levels + 2, np.int64),
        look_value=np.zeros(levels + 2),
        look_level=np.zeros(levels + 2, np.int64),
        family_value=np.zeros(max(widest, 1)),
        least_width=np.minimum.accumulate(least),
        opened_level=np.zeros(slots, np.int64),
        sure=np.full(1, -1.0),
        sure_level=np.zeros(1, np.int64),
    )


@inlined
def _find_sure(state: Any, slot: Scalar) -> Scalar:
    """Compute what every active pair is worth at least in this context, before it is capped.

    Below the level at which the context was met before nothing is refined. A pair that was played and is still active
    has a radius of at least its width, any other a whole one; and pairs are the narrower, the deeper they are.
    """
    if state.sure[0] < 0.0:
        last = state.path.shape[1] - 1
        level = state.opened_level[slot]
        while level < last and is_opened(state, slot, level + 1):
            level += 1
        while level > 0 and not is_opened(state, slot, level):
            level -= 1
        state.opened_level[slot] = level
        deepest = min(level + 1, last)
        width = state.scale * (state.least_width[deepest] + width_around(state, deepest))
        sure = min(2.0 * width, width + np.sqrt(state.constant[slot]))
        state.sure[0] = sure * (1.0 - 1e-9)  # sums of widths may have been rounded otherwise
        state.sure_level[0] = deepest
    return state.sure[0]


@inlined
def _cap(state: Any, node: Scalar, level: Scalar, mask: Scalar, cap: Scalar) -> Scalar:
    """Cap the index of an active pair: by one number off the paths of S, else by how far its documents can be from
    S.
    """
    return farthest_from(state, node, level, mask) if mask != 0 else cap


@inlined
def _held_by(state: Any, node: Scalar, step: Scalar, level: Scalar, mask: Scalar) -> Scalar:
    """Say which documents in the mask lie below this child."""
    held = mask
    if mask != 0 and state.child_start[node] != state.child_start[node + 1]:
        held = documents_below(state, child_at(state, node, step), level + 1, mask)
    return held


@inlined
def _share_out(state: Any, node: Scalar, level: Scalar, mask: Scalar) -> None:
    """Say which documents in the mask lie below each child, in `state.below`."""
    if state.child_start[node] == state.child_start[node + 1]:
        state.below[0] = mask
    else:
        share_out(state, state.below, node, level, mask)


@inlined
def _child_value(
    state: Any, slot: Scalar, node: Scalar, level: Scalar, mask: Scalar, cap: Scalar, step: Scalar
) -> Scalar:
    """The capped index of a fresh child, after `_share_out`."""
    child = child_at(state, node, step)
    below = state.below[step]
    around = cap if mask == 0 else state.width[node]
    return min(fresh_index(state, slot, child, level + 1), _cap(state, child, level + 1, below, around))


@inlined
def _fresh_value(state: Any, slot: Scalar, node: Scalar, level: Scalar, mask: Scalar, cap: Scalar) -> Scalar:
    """The best capped index among children of which none was ever played in this context."""
    _share_out(state, node, level, mask)
    top = -1.0
    for step in range(fan_of(state, node)):
        state.value[step] = _child_value(state, slot, node, level, mask, cap, step)
        top = max(top, state.value[step])
    return top


@inlined
def _quick_value(
    state: Any, slot: Scalar, entry: Scalar, level: Scalar, mask: Scalar, cap: Scalar
) -> tuple[Scalar, Scalar, Scalar]:
    """The capped value of a pair if it takes no search: it is active, known, sure, or its children are fresh. Else -1.

    Then, where its children are; and the deepest level of the context that all this depends on.
    """
    row, at = np.uint64(slot), np.uint64(entry)
    node = np.int64(state.pair_node[row, at])
    known_for = state.known_for[row, at]
    last = state.path.shape[1] - 1
    value, first, deepest = -1.0, np.int64(0), np.int64(level if mask == 0 else last)
    if known_for == ACTIVE:
        value = min(state.pair_value[row, at], _cap(state, node, level, mask, cap))
    elif known_for == context_node(state, state.known_level[row, at]):
        value, deepest = state.pair_value[row, at], np.int64(state.known_level[row, at])
    elif mask == 0 and _find_sure(state, slot) >= cap:
        value, deepest = cap, state.sure_level[0]
    else:
        first = family_of(state, slot, entry, level + 1)
        deepest = max(deepest, np.int64(level + 1))
        if first == 0:
            value = _fresh_value(state, slot, node, level, mask, cap)
    return value, first, deepest


@inlined
def _push(
    state: Any, depth: Scalar, entry: Scalar, first: Scalar, mask: Scalar, cap: Scalar, deepest: Scalar
) -> None:
    state.look_entry[depth] = entry
    state.look_first[depth] = first
    state.look_mask[depth] = mask
    state.look_cap[depth] = cap
    state.look_step[depth] = 0
    state.look_value[depth] = -1.0
    state.look_level[depth] = deepest


@inlined
def _remember(state: Any, slot: Scalar, depth: Scalar) -> Scalar:
    """Write down what a pair that was looked at is worth, for itself and for the pair above it; returns that."""
    here, value, deepest = state.look_entry[depth], state.look_value[depth], state.look_level[depth]
    state.known_for[slot, here] = context_node(state, deepest)
    state.known_level[slot, here] = deepest
    state.pair_value[slot, here] = value
    if depth > 0:
        state.look_value[depth - 1] = max(state.look_value[depth - 1], value)
        state.look_level[depth - 1] = max(state.look_level[depth - 1], deepest)
    return value


@inlined
def _value(state: Any, slot: Scalar, entry: Scalar, level: Scalar, mask: Scalar, cap: Scalar) -> Scalar:
    """The highest capped index at or below a pair in this context; what was searched is remembered.

    A search ends early where the cap is reached: nothing below can be worth more. Children off the paths of S come
    first; the others are worth at most their width, so that mostly nobody has to look.
    """
    value, first, deepest = _quick_value(state, slot, entry, level, mask, cap)
    depth = -1
    if value < 0.0:
        depth = 0
        _push(state, 0, entry, first, mask, cap, deepest)
    while depth >= 0:
        here = state.look_entry[depth]
        node = np.int64(state.pair_node[slot, here])
        around = state.look_cap[depth] if state.look_mask[depth] == 0 else state.width[node]
        step = state.look_step[depth]
        fan = fan_of(state, node)
        steps = fan if state.look_mask[depth] == 0 else 2 * fan
        if step == steps or state.look_value[depth] >= around:
            value = _remember(state, slot, depth)
            depth -= 1
        else:
            state.look_step[depth] += 1
            late = step >= fan
            step -= fan if late else 0
            inner = level + depth + 1
            below = _held_by(state, node, step, inner - 1, state.look_mask[depth])
            bound = around if below == 0 else state.width[child_at(state, node, step)]
            if (below != 0) == late and bound > state.look_value[depth]:
                child = state.look_first[depth] + step
                quick, first, deepest = _quick_value(state, slot, child, inner, below, around)
                if quick >= 0.0:
                    state.look_value[depth] = max(state.look_value[depth], quick)
                    state.look_level[depth] = max(state.look_level[depth], deepest)
                else:
                    depth += 1
                    _push(state, depth, child, first, below, around, deepest)
    return value


@inlined
def _best_child(
    state: Any, slot: Scalar, node: Scalar, first: Scalar, level: Scalar, mask: Scalar, around: Scalar
) -> Scalar:
    """The highest value among the children of a refined pair, whose values are in `state.value`."""
    fan = fan_of(state, node)
    top = -1.0
    for look in range(fan if mask == 0 else 2 * fan):
        step = look if look < fan else look - fan
        below = _held_by(state, node, step, level, mask)
        if (below != 0) == (look >= fan):
            value = -1.0
            if below == 0 or state.width[child_at(state, node, step)] >= top:
                value = _value(state, slot, first + step, level + 1, below, around)
            state.family_value[step] = value
            top = max(top, value)
    for step in range(fan):
        state.value[step] = state.family_value[step]
    return top


@inlined
def walk_context(state: Any, slot: Scalar, shown: Array, above: Scalar, rng: np.random.Generator) -> Scalar:
    """Walk down along the best value of the pairs that hold the context."""
    describe_context(state, shown, above)
    state.sure[0] = -1.0
    entry, level, cap = np.int64(0), 0, np.inf
    mask = ((1 << above) - 1) if state.correlated else 0
    node = np.int64(0)
    refined = state.known_for[slot, 0] != ACTIVE
    while refined:
        first = family_of(state, slot, entry, level + 1)
        around = cap if mask == 0 else state.width[node]
        fan = fan_of(state, node)
        if first != 0 and mask == 0 and state.sure[0] >= around:  # all are worth what they are capped at
            step = np.int64(rng.random() * fan) if fan > 1 else np.int64(0)
        else:
            if first == 0:
                top = _fresh_value(state, slot, node, level, mask, cap)
            else:
                top = _best_child(state, slot, node, first, level, mask, around)
            step = np.int64(one_of_the_best(state.value, fan, top, rng))
            mask = _held_by(state, node, step, level, mask)
        node = child_at(state, node, step)
        cap = around
        entry = first + step
        level += 1
        refined = first != 0 and state.known_for[slot, entry] != ACTIVE
    return node
