"""How path zooming chooses: a walk down along the best bound, under the cap of the documents above.

Off the root paths of the documents above, the cap is one number and the walk is free; entries on those paths are
listed first, with what is to be expected of their best documents. If only some documents are eligible, a search finds
what is to be expected of those.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.state.context_paths import farthest_from, one_of_the_best, remember_paths, share_out
from zoomrank.bandits.state.path_bounds import table_of_logarithms
from zoomrank.bandits.state.tree_view import size_of
from zoomrank.compiled import Scalar, inlined, separate
from zoomrank.numbers import Array


class PathScratch(NamedTuple):
    """The entries that hold documents of S, parents before children, beside the stack of `ContextScratch`; a table."""

    limit: Array  # what the witnesses above an entry allow; then what it is worth itself
    best: Array  # the best capped bound among its children
    origin: Array  # the place of its parent in this list
    inside: Array  # the place of the first of its children that is in it
    search_entry: Array  # a stack of entries yet to be searched
    search_limit: Array  # and what those above them allow
    logarithm: Array  # of 1, 2, 3, …


def fresh_path_scratch(room: int) -> PathScratch:
    """Room for so many entries."""
    limit, best, search_limit = np.zeros(room), np.zeros(room), np.zeros(room)
    origin, inside, search_entry = (np.zeros(room, np.int64) for _ in range(3))
    return PathScratch(limit, best, origin, inside, search_entry, search_limit, table_of_logarithms())


@separate
def _best_eligible(state: Any, slot: Scalar, entry: Scalar, cap: Scalar, threshold: Scalar) -> Scalar:
    """The best bound, capped by one number, of the eligible documents below an entry; if below the threshold, anything
    below it.

    A search that turns back where witnesses allow no more than was found already. It goes down along the favourites
    first, so that it finds much of what there is at once.
    """
    found, column, size = -1.0, np.uint64(slot), np.uint64(1)
    state.search_entry[0], state.search_limit[0] = entry, cap
    while size > 0:
        size -= np.uint64(1)
        at = np.uint64(state.search_entry[size])
        most = min(state.search_limit[size], state.bound[at, column])
        if most < threshold or most <= found or size_of(state, state.node[at]) == 0:
            continue
        first = np.uint64(state.child[at])
        if first == 0:
            found = most
            continue
        favourite = np.uint64(state.favourite[at, column])
        for turn in range(2):
            for child in range(first, first + np.uint64(state.fan[at])):
                if (child == favourite) == (turn == 1):
                    state.search_entry[size], state.search_limit[size] = child, most
                    size += np.uint64(1)
    return found


@inlined
def _hope(state: Any, slot: Scalar, entry: Scalar, cap: Scalar, threshold: Scalar) -> Scalar:
    """What may be hoped for below an entry that holds no document of S: exactly, unless it is below the threshold."""
    value = min(state.bound[np.uint64(entry), np.uint64(slot)], cap)
    if len(state.eligible) > 0 and value >= threshold:
        value = _best_eligible(state, slot, entry, cap, threshold)
    return value


@inlined
def _walk_along_favourites(state: Any, slot: Scalar, entry: Scalar, cap: Scalar) -> Scalar:
    """Walk down as long as one child is better than all others and the cap does not matter."""
    at, going = np.uint64(entry), True
    while going:
        favourite = np.uint64(state.favourite[at, np.uint64(slot)])
        going = state.child[at] != 0 and favourite != 0 and state.bound[favourite, np.uint64(slot)] <= cap
        if going:
            at = favourite
    return at


@inlined
def walk_freely(
    state: Any, slot: Scalar, entry: Scalar, cap: Scalar, known: Scalar, rng: np.random.Generator
) -> Scalar:
    """Walk down along the best bound, capped by one number, to an entry whose children are not told apart.

    What is known to be below the entry spares the search for eligible documents everything that is worth less.
    """
    at = np.uint64(entry)
    while state.child[at] != 0:
        ahead = _walk_along_favourites(state, slot, at, cap)
        if len(state.eligible) == 0 or (state.child[ahead] == 0 and size_of(state, state.node[ahead]) > 0):
            at = ahead
        if state.child[at] != 0:
            first, fan, top = np.uint64(state.child[at]), np.uint64(state.fan[at]), -1.0
            for step in range(fan):
                state.value[step] = _hope(state, slot, first + step, cap, max(top, known))
                top = max(top, state.value[step])
            known = top
            at = first + one_of_the_best(state.value, fan, top, rng)
    return np.int64(at)


@inlined
def _follow_paths(state: Any, slot: Scalar, above: Scalar) -> Scalar:
    """List the entries that hold documents of S, and compute what is to be expected of their best documents under the
    cap; returns how many there are. Those that cannot hold the best of all are worth -1.

    Witnesses count on the way down, too: nothing below an entry is worth more than its own bound.
    """
    column, size, place = np.uint64(slot), np.uint64(1), np.uint64(0)
    found = -1.0
    state.stack_entry[0], state.stack_depth[0], state.stack_mask[0] = 0, 0, (1 << above) - 1
    state.limit[0] = state.bound[0, column]
    while place < size:
        at = np.uint64(state.stack_entry[place])
        node, first = np.uint64(state.node[at]), np.uint64(state.child[at])
        width, limit = state.width[node], state.limit[place]
        best = -1.0
        state.inside[place] = size
        if min(limit, width) >= found and (len(state.eligible) == 0 or size_of(state, node) > 0):
            level, mask = state.stack_depth[place], state.stack_mask[place]
            if first == 0:
                best = farthest_from(state, node, level, mask)
            else:
                share_out(state, state.below, node, level, mask)
                for step in range(np.uint64(state.fan[at])):
                    if state.below[step] == 0:
                        best = max(best, _hope(state, slot, first + step, width, max(best, found)))
                    else:
                        state.stack_entry[size] = first + step
                        state.stack_depth[size] = level + 1
                        state.stack_mask[size] = state.below[step]
                        state.limit[size] = min(limit, state.bound[first + step, column])
                        state.origin[size] = place
                        size += np.uint64(1)
            found = max(found, min(limit, best))
        state.best[place] = best
        place += np.uint64(1)
    for back in range(np.uint64(1), size):
        place = size - back
        value = min(state.bound[np.uint64(state.stack_entry[place]), column], state.best[place])
        above_it = np.uint64(state.origin[place])
        state.limit[place] = value
        state.best[above_it] = max(state.best[above_it], value)
    return size


def select_along_paths(
    state: Any, slot: Scalar, shown: Array, above: Scalar, rng: np.random.Generator
) -> tuple[Scalar, Scalar]:
    """Choose an entry: along the listed paths as long as the best is there, then freely."""
    at, cap, known = np.uint64(0), np.inf, -1.0
    if state.correlated and above > 0:
        remember_paths(state, shown, above)
        size = _follow_paths(state, slot, above)
        place, on_path = np.uint64(0), True
        while on_path and state.child[at] != 0:
            first, fan, listed = np.uint64(state.child[at]), np.uint64(state.fan[at]), np.uint64(state.inside[place])
            cap = state.width[np.uint64(state.node[at])]
            for step in range(fan):
                if listed < size and np.uint64(state.stack_entry[listed]) == first + step:
                    state.value[step] = state.limit[listed]
                    state.below[step] = listed
                    listed += np.uint64(1)
                else:
                    state.value[step] = _hope(state, slot, first + step, cap, state.best[place])
                    state.below[step] = 0
            known = state.best[place]
            chosen = one_of_the_best(state.value, fan, known, rng)
            at = first + chosen
            place = np.uint64(state.below[chosen])
            on_path = place != 0
    return walk_freely(state, slot, at, cap, known, rng), 1.0
