"""`ContextualZooming`: Algorithm 4 of the paper on pairs of a subtree and a context, with the correlation rule.

The context of a slot is the set of documents shown above it. A strategy is a pair of a subtree u and a *context
node*: an unordered tuple of nodes, one above each document of the context, as deep as u is. Active pairs partition
all (document, context) pairs; one whose confidence radius is smaller than its width is replaced by the pairs of
their children.

Given a context, the pairs that hold it form a zoom tree over subtrees like that of plain zooming, but its lower part is
shared only with similar contexts. So children are kept in families, one for each refinement of the context that has
come up, found by a hash table; a family that never came up is not stored, all its members being fresh. What a
refined pair is worth depends on the context; it is remembered for the last context that asked, and forgotten when
something below it changes. So while contexts recur, as they do once the slots above have settled, choosing is again
a walk.

Width of a pair: `W(u) + 4 · Σ W(context nodes)`, which is ε^l (4i + 1) at level l for i documents above, times a
scale. The paper's bound is scale 1; it is a worst case, and makes the lower slots refine after every single play.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.exploration import Exploration, exploration_constant
from zoomrank.bandits.interface import (
    LARGEST_CONTEXT,
    Bandit,
    Choice,
    Clock,
    Feedback,
    Strategy,
    endless,
    on_reset,
    on_roomy,
    on_select,
    on_subtree,
    on_update,
)
from zoomrank.bandits.state.tree_view import Grove
from zoomrank.bandits.zooming import (
    Paths,
    Pool,
    Rule,
    correlation_cap,
    documents_below,
    farthest_from,
    fresh_paths,
    fresh_pool,
    one_of_the_best,
    plant,
    plant_all,
    pool_is_roomy,
    remember_paths,
    share_out,
    update_zoom,
    walk_best,
    with_larger_pool,
    zoom_strategy,
)
from zoomrank.compiled import Scalar, compiled, flat, inlined
from zoomrank.errors import ParameterError
from zoomrank.numbers import Array, Seed
from zoomrank.spaces import DocumentId, DocumentTree
from zoomrank.spaces.scrambling import scramble


class Pairs(NamedTuple):
    """Zoom trees over (subtree, context node) pairs, a row per slot; entry 0 is the pair of roots."""

    pair_node: Array  # the subtree
    pair_plays: Array
    pair_clicks: Array
    known_for: Array  # ACTIVE; or, once it is refined, the context in which its value is known, 0 if in none
    pair_value: Array  # its index while it is active, else its capped value in that context
    pair_used: Array  # entries in use, per slot
    family: Array  # hash table: the name of (entry, refined context) or 0, and the first of its children
    families: Array  # in use, per slot
    scale: float


ACTIVE = np.uint64(0xFFFFFFFFFFFFFFFF)  # no context is called so


class Look(NamedTuple):
    """Scratch: a stack of pairs that are being valued, one inside the other, and the context level by level."""

    look_entry: Array
    look_mask: Array  # documents of the context below the subtree
    look_cap: Array  # for what hangs off the paths of the context
    look_first: Array  # the first child in this context
    look_step: Array  # the child to look at next
    look_value: Array  # the best so far
    family_value: Array  # the values of the children of one pair
    context_sum: Array  # [i, l]: of the scrambled nodes at level l above the first i documents: their order is the same
    context_hash: Array  # [i, l]: that, scrambled: the name of the context node
    context_width: Array  # [i, l]: 4 · the sum of the widths of its nodes
    described: Array  # for how many documents above that is written down, and how many there are now


ContextualState = flat("ContextualState", Grove, Pool, Rule, Paths, Pairs, Look, Clock)


@inlined
def _describe_context(state: Any, shown: Array, above: Scalar) -> None:
    """Write down, level by level, which context node the documents above are in, and how wide it is.

    One more document adds to what is known of those before it, and the slots of a round ask one after the other. So
    whatever is still true is kept.
    """
    size = np.uint64(above)
    known: Scalar = np.uint64(state.described[0])
    for row in range(size):
        if row < known and state.path_leaf[row] != state.leaf[np.uint64(shown[row])]:
            known = row
    remember_paths(state, shown, above)
    for row in range(known, size):
        for level in range(np.uint64(state.path.shape[1])):
            node = state.path[row, level]
            total = state.context_sum[row, level] + scramble(node)
            state.context_sum[row + np.uint64(1), level] = total
            state.context_hash[row + np.uint64(1), level] = scramble(total)
            state.context_width[row + np.uint64(1), level] = state.context_width[row, level] + 4.0 * state.width[node]
    state.described[0] = max(known, size)
    state.described[1] = size


@inlined
def _name_at(state: Any, level: Scalar) -> Scalar:
    """The name of the context node at a level; at the last one, of the context itself."""
    return state.context_hash[np.uint64(state.described[1]), np.uint64(level)]


@inlined
def _context(state: Any) -> Scalar:
    return _name_at(state, state.context_hash.shape[1] - 1)


@inlined
def _width(state: Any, node: Scalar, level: Scalar) -> Scalar:
    """Width of a pair at this level."""
    around = state.context_width[np.uint64(state.described[1]), np.uint64(level)]
    return state.scale * (state.width[np.uint64(node)] + around)


@inlined
def _family_key(state: Any, entry: Scalar, level: Scalar) -> Scalar:
    return scramble(np.uint64(entry) ^ _name_at(state, level)) | np.uint64(1)  # 0 is an empty place


@inlined
def _family(state: Any, slot: Scalar, entry: Scalar, level: Scalar) -> Scalar:
    """Find where in the table the children of an entry are, or would be, in the context at this level."""
    key = _family_key(state, entry, level)
    room = np.uint64(state.family.shape[1] - 1)
    at = key & room
    while state.family[slot, at, 0] != 0 and state.family[slot, at, 0] != key:
        at = (at + np.uint64(1)) & room
    return np.int64(at)


@inlined
def _fresh_index(state: Any, slot: Scalar, node: Scalar, level: Scalar) -> Scalar:
    """The index of a pair that was never played: its width and a whole radius."""
    return _width(state, node, level) + np.sqrt(state.constant[slot])


@inlined
def _cap(state: Any, node: Scalar, level: Scalar, mask: Scalar, cap: Scalar) -> Scalar:
    """Cap the index of an active pair: by one number off the paths of S, else by how far its documents can be from
    S.
    """
    return farthest_from(state, node, level, mask) if mask != 0 else cap


@inlined
def _fan_of(state: Any, node: Scalar) -> Scalar:
    """How many children a subtree has; a document goes on as its own only child while contexts are refined."""
    return max(np.int64(state.child_start[node + 1]) - np.int64(state.child_start[node]), 1)


@inlined
def _child(state: Any, node: Scalar, step: Scalar) -> Scalar:
    start = np.int64(state.child_start[node])
    return start + step if start != np.int64(state.child_start[node + 1]) else node


@inlined
def _held_by(state: Any, node: Scalar, step: Scalar, level: Scalar, mask: Scalar) -> Scalar:
    """Say which documents in the mask lie below this child."""
    held = mask
    if mask != 0 and state.child_start[node] != state.child_start[node + 1]:
        held = documents_below(state, _child(state, node, step), level + 1, mask)
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
    child = _child(state, node, step)
    below = state.below[step]
    around = cap if mask == 0 else state.width[node]
    return min(_fresh_index(state, slot, child, level + 1), _cap(state, child, level + 1, below, around))


@inlined
def _fresh_value(state: Any, slot: Scalar, node: Scalar, level: Scalar, mask: Scalar, cap: Scalar) -> Scalar:
    """The best capped index among children of which none was ever played in this context."""
    _share_out(state, node, level, mask)
    top = -1.0
    for step in range(_fan_of(state, node)):
        state.value[step] = _child_value(state, slot, node, level, mask, cap, step)
        top = max(top, state.value[step])
    return top


@inlined
def _quick_value(
    state: Any, slot: Scalar, entry: Scalar, level: Scalar, mask: Scalar, cap: Scalar
) -> tuple[Scalar, Scalar]:
    """The capped value of a pair if it takes no search: it is active, known, or its children are fresh. Else -1, and
    where those children are.
    """
    row, at = np.uint64(slot), np.uint64(entry)
    node = np.int64(state.pair_node[row, at])
    known_for = state.known_for[row, at]
    value, first = -1.0, np.int64(0)
    if known_for == ACTIVE:
        value = min(state.pair_value[row, at], _cap(state, node, level, mask, cap))
    elif known_for == _context(state):
        value = state.pair_value[row, at]
    else:
        place = _family(state, slot, entry, level + 1)
        if state.family[row, place, 0] == 0:
            value = _fresh_value(state, slot, node, level, mask, cap)
        else:
            first = np.int64(state.family[row, place, 1])
    return value, first


@inlined
def _value(state: Any, slot: Scalar, entry: Scalar, level: Scalar, mask: Scalar, cap: Scalar) -> Scalar:
    """The highest capped index at or below a pair in this context; what was searched is remembered.

    A search ends early where the cap is reached: nothing below can be worth more. Children off the paths of S come
    first; the others are worth at most their width, so that mostly nobody has to look.
    """
    value, first = _quick_value(state, slot, entry, level, mask, cap)
    depth = -1
    if value < 0.0:
        depth = 0
        _push(state, 0, entry, first, mask, cap)
    while depth >= 0:
        here = state.look_entry[depth]
        node = np.int64(state.pair_node[slot, here])
        around = state.look_cap[depth] if state.look_mask[depth] == 0 else state.width[node]
        step = state.look_step[depth]
        fan = _fan_of(state, node)
        steps = fan if state.look_mask[depth] == 0 else 2 * fan
        if step == steps or state.look_value[depth] >= around:
            value = state.look_value[depth]
            state.known_for[slot, here] = _context(state)
            state.pair_value[slot, here] = value
            depth -= 1
            if depth >= 0:
                state.look_value[depth] = max(state.look_value[depth], value)
        else:
            state.look_step[depth] += 1
            late = step >= fan
            step -= fan if late else 0
            inner = level + depth + 1
            below = _held_by(state, node, step, inner - 1, state.look_mask[depth])
            bound = around if below == 0 else state.width[_child(state, node, step)]
            if (below != 0) == late and bound > state.look_value[depth]:
                child = state.look_first[depth] + step
                quick, first = _quick_value(state, slot, child, inner, below, around)
                if quick >= 0.0:
                    state.look_value[depth] = max(state.look_value[depth], quick)
                else:
                    depth += 1
                    _push(state, depth, child, first, below, around)
    return value


@inlined
def _push(state: Any, depth: Scalar, entry: Scalar, first: Scalar, mask: Scalar, cap: Scalar) -> None:
    state.look_entry[depth] = entry
    state.look_first[depth] = first
    state.look_mask[depth] = mask
    state.look_cap[depth] = cap
    state.look_step[depth] = 0
    state.look_value[depth] = -1.0


@inlined
def _walk_context(state: Any, slot: Scalar, shown: Array, above: Scalar, rng: np.random.Generator) -> Scalar:
    """Walk down along the best value of the pairs that hold the context."""
    _describe_context(state, shown, above)
    entry, level, cap = np.int64(0), 0, np.inf
    mask = ((1 << above) - 1) if state.correlated else 0
    node = np.int64(0)
    refined = state.known_for[slot, 0] != ACTIVE
    while refined:
        place = _family(state, slot, entry, level + 1)
        fresh = state.family[slot, place, 0] == 0
        first = np.int64(state.family[slot, place, 1])
        fan = _fan_of(state, node)
        around = cap if mask == 0 else state.width[node]
        if fresh:
            top = _fresh_value(state, slot, node, level, mask, cap)
        else:
            top = -1.0
            for look in range(fan if mask == 0 else 2 * fan):
                step = look if look < fan else look - fan
                below = _held_by(state, node, step, level, mask)
                if (below != 0) == (look >= fan):
                    value = -1.0
                    if below == 0 or state.width[_child(state, node, step)] >= top:
                        value = _value(state, slot, first + step, level + 1, below, around)
                    state.family_value[step] = value
                    top = max(top, value)
            for step in range(fan):
                state.value[step] = state.family_value[step]
        step = np.int64(one_of_the_best(state.value, fan, top, rng))
        mask = _held_by(state, node, step, level, mask)
        node = _child(state, node, step)
        cap = around
        entry = first + step
        level += 1
        refined = not fresh and state.known_for[slot, entry] != ACTIVE
    return node


@inlined
def _open_family(state: Any, slot: Scalar, entry: Scalar, level: Scalar, place: Scalar) -> None:
    """Store the children of an entry in a context that has come up for the first time."""
    node = np.int64(state.pair_node[slot, entry])
    key = _family_key(state, entry, level)
    first = state.pair_used[slot]
    state.family[slot, place, 0] = key
    state.family[slot, place, 1] = first
    state.families[slot] += 1
    for step in range(_fan_of(state, node)):
        child = _child(state, node, step)
        state.pair_node[slot, first + step] = child
        state.known_for[slot, first + step] = ACTIVE
        state.pair_plays[slot, first + step] = 0
        state.pair_clicks[slot, first + step] = 0
        state.pair_value[slot, first + step] = _fresh_index(state, slot, child, level)
    state.pair_used[slot] += _fan_of(state, node)


@inlined
def _update_pair(state: Any, slot: Scalar, feedback: Feedback, shown: Array, above: Scalar) -> None:
    """Credit the active pair that holds the document in this context, opening families on the way to it."""
    _describe_context(state, shown, above)
    entry, level = np.int64(0), 0
    while state.known_for[slot, entry] != ACTIVE:
        state.known_for[slot, entry] = 0  # something below is about to change
        place = _family(state, slot, entry, level + 1)
        if state.family[slot, place, 0] == 0:
            _open_family(state, slot, entry, level + 1, place)
        entry = np.int64(state.family[slot, place, 1])
        while state.end_document[state.pair_node[slot, entry]] <= feedback.pick:
            entry += 1
        level += 1
    state.pair_plays[slot, entry] += np.uint32(1)
    state.pair_clicks[slot, entry] += np.uint32(feedback.reward)
    plays = state.pair_plays[slot, entry]
    radius = np.sqrt(state.constant[slot] / (1.0 + plays))
    width = _width(state, state.pair_node[slot, entry], level)
    state.pair_value[slot, entry] = width + state.pair_clicks[slot, entry] / plays + radius
    if radius < width:
        state.known_for[slot, entry] = 0


@on_select(ContextualState)
def _select(state: Any, slot: Scalar, shown: Array, above: Scalar, rng: np.random.Generator) -> tuple[Scalar, Scalar]:
    if above == 0:  # no context: plain zooming
        node = np.int64(state.node[slot, walk_best(state, slot, 0, np.inf, rng)])
    else:
        node = _walk_context(state, slot, shown, above, rng)
    return node, 1.0


@on_subtree(ContextualState)
def _subtree(state: Any, slot: Scalar, strategy: Scalar) -> Scalar:
    return strategy


@on_update(ContextualState)
def _update(state: Any, slot: Scalar, feedback: Feedback, shown: Array, above: Scalar) -> None:
    if above == 0:
        update_zoom(state, slot, 0, feedback.pick, feedback.reward)
    else:
        _update_pair(state, slot, feedback, shown, above)


@on_reset(ContextualState)
def _reset(state: Any, slot: Scalar, horizon: Scalar) -> None:
    if state.pessimistic:
        state.constant[slot] = 4.0 * np.log(horizon)
    plant(state, slot, 2.0 * np.sqrt(state.constant[slot]))
    for place in range(state.family.shape[1]):
        state.family[slot, place, 0] = 0
    state.families[slot] = 0
    _plant_pairs(state, slot)


@inlined
def _plant_pairs(state: Any, slot: Scalar) -> None:
    state.pair_used[slot] = 1
    state.pair_node[slot, 0] = 0
    state.known_for[slot, 0] = ACTIVE
    state.pair_plays[slot, 0] = 0
    state.pair_clicks[slot, 0] = 0
    state.pair_value[slot, 0] = np.inf  # there is nothing beside it


@compiled
def _plant_all_pairs(state: Any) -> None:
    for slot in range(len(state.pair_used)):
        _plant_pairs(state, slot)


@compiled
def _find_pair(state: Any, slot: Scalar, shown: Array, document: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """The subtree, plays, clicks and width of the active pair that holds a document in a context."""
    _describe_context(state, shown, len(shown))
    entry, node, level = np.int64(0), np.int64(0), 0
    stored = True
    while stored and state.known_for[slot, entry] != ACTIVE:
        place = _family(state, slot, entry, level + 1)
        stored = state.family[slot, place, 0] != 0
        step = 0
        while state.end_document[_child(state, node, step)] <= document:
            step += 1
        node = _child(state, node, step)
        entry = np.int64(state.family[slot, place, 1]) + step
        level += 1
    plays = np.int64(state.pair_plays[slot, entry]) if stored else 0
    clicks = np.int64(state.pair_clicks[slot, entry]) if stored else 0
    return node, plays, clicks, _width(state, node, level)


@on_roomy(ContextualState)
def _roomy(state: Any) -> Scalar:
    levels = state.path.shape[1]
    room = pool_is_roomy(state)
    for slot in range(len(state.pair_used)):
        room = room and state.pair_used[slot] + levels * max(state.widest, 1) < state.pair_node.shape[1]
        room = room and 2 * (state.families[slot] + levels) < state.family.shape[1]
    return room


class ContextualZooming(Bandit):
    """Contextual zooming on any tree of documents; contexts are the documents shown above, all of one number.

    `scale` multiplies the widths of pairs (1 is the paper's bound); `correlated` is the correlation rule. Without a
    context it is `Zooming`.
    """

    def __init__(
        self,
        tree: DocumentTree,
        *,
        exploration: Exploration = "optimistic",
        horizon: int | None = None,
        scale: float = 1.0,
        correlated: bool = True,
        seed: Seed = None,
    ) -> None:
        super().__init__(tree, seed)
        if not 0 < scale < np.inf:
            raise ParameterError(f"The scale of widths must be a positive number, not {scale}.")
        self.constant = exploration_constant(exploration, horizon)
        self.exploration, self.horizon, self.scale, self.correlated = exploration, horizon, scale, correlated
        self._context_size: int | None = None

    not_saved = Bandit.not_saved | {*Paths._fields, *Look._fields}

    @property
    def settings(self) -> dict[str, Any]:
        """What rebuilds this bandit."""
        return {
            "exploration": self.exploration,
            "horizon": self.horizon,
            "scale": self.scale,
            "correlated": self.correlated,
        }

    def select(self, context: Iterable[DocumentId] = ()) -> Choice:
        """Choose a document in a context; all contexts must be of one size, as those of a slot are."""
        above = tuple(context)
        if above and self._context_size not in (None, len(above)):
            raise ParameterError(f"A context of {len(above)} documents came after one of {self._context_size}.")
        self._context_size = len(above) or self._context_size
        return super().select(above)

    def fresh_state(self, slots: int) -> Any:
        """The pair of roots per slot."""
        widest = int(np.diff(self.tree.shape.child_start).max())
        levels = self.tree.depth + 1
        largest = LARGEST_CONTEXT if slots == 1 else slots
        room = 2 + 2 * levels * max(widest, 1)
        table = 1 << (4 * levels).bit_length()
        state = ContextualState(
            *self.grove,
            *fresh_pool(slots, 1 + 2 * widest),
            *Rule(np.full(slots, self.constant), self.exploration == "pessimistic", self.correlated, widest),
            *fresh_paths(self.tree, largest, widest),
            *_fresh_pairs(slots, room, table, float(self.scale)),
            *_fresh_look(levels, widest, largest),
            *endless(slots),
        )
        plant_all(state)
        _plant_all_pairs(state)
        return state

    def larger(self, state: Any) -> Any:
        """More room wherever it is short."""
        levels, widest = self.tree.depth + 1, max(state.widest, 1)
        if int(state.used.max()) + state.widest > state.node.shape[1]:
            state = with_larger_pool(state)
        slots, room = state.pair_node.shape
        table = state.family.shape[1]
        if int(state.pair_used.max()) + levels * widest >= room:
            room += max(room // 2, 2 * levels * widest)
        grow_table = 2 * (int(state.families.max()) + levels) >= table
        grown = _fresh_pairs(slots, room, 2 * table if grow_table else table, state.scale)
        for name in ("pair_node", "pair_plays", "pair_clicks", "known_for", "pair_value"):
            getattr(grown, name)[:, : state.pair_node.shape[1]] = getattr(state, name)
        grown = grown._replace(pair_used=state.pair_used, families=state.families)
        if grow_table:
            _rehash(state.family, grown.family)
        else:
            grown = grown._replace(family=state.family)
        return state._replace(**grown._asdict())

    def forget_searches(self, state: Any) -> None:
        """What refined pairs are worth is searched for again."""
        refined = state.known_for != ACTIVE
        state.known_for[refined] = 0
        state.pair_value[refined] = 0.0

    def strategy_of(self, state: Any, slot: int, above: Array, document: int) -> Strategy:
        """The active pair that holds the document in this context."""
        if len(above) == 0:
            return zoom_strategy(self.tree, state, slot, above, document)
        node, plays, clicks, width = _find_pair(state, slot, np.asarray(above), document)
        radius = float(np.sqrt(state.constant[slot] / (1 + plays)))
        index = float(width + (clicks / plays if plays else 0.0) + radius)
        cap = correlation_cap(self.tree, node, above if self.correlated else above[:0])
        return Strategy(int(node), int(plays), int(clicks), radius, index, cap)


@compiled
def _rehash(family: Array, larger: Array) -> None:
    room = np.uint64(larger.shape[1] - 1)
    for slot in range(family.shape[0]):
        for place in range(family.shape[1]):
            key = family[slot, place, 0]
            if key != 0:
                at = key & room
                while larger[slot, at, 0] != 0:
                    at = (at + np.uint64(1)) & room
                larger[slot, at] = family[slot, place]


def _fresh_pairs(slots: int, room: int, table: int, scale: float) -> Pairs:
    shape = (slots, room)
    return Pairs(
        pair_node=np.zeros(shape, np.uint32),
        pair_plays=np.zeros(shape, np.uint32),
        pair_clicks=np.zeros(shape, np.uint32),
        known_for=np.zeros(shape, np.uint64),
        pair_value=np.zeros(shape),
        pair_used=np.zeros(slots, np.int64),
        family=np.zeros((slots, table, 2), np.uint64),
        families=np.zeros(slots, np.int64),
        scale=scale,
    )


def _fresh_look(levels: int, widest: int, largest: int) -> Look:
    return Look(
        look_entry=np.zeros(levels + 2, np.int64),
        look_mask=np.zeros(levels + 2, np.int64),
        look_cap=np.zeros(levels + 2),
        look_first=np.zeros(levels + 2, np.int64),
        look_step=np.zeros(levels + 2, np.int64),
        look_value=np.zeros(levels + 2),
        family_value=np.zeros(max(widest, 1)),
        context_sum=np.ones((largest + 1, levels), np.uint64),
        context_hash=np.zeros((largest + 1, levels), np.uint64),
        context_width=np.zeros((largest + 1, levels)),
        described=np.zeros(2, np.int64),
    )
