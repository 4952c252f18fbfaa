"""Probability that path zooming chooses the subtree that holds a document.

The walk is that of `path_walk.py`, but it goes to the document instead of breaking ties at random, and divides by the
number of tied children at each branch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zoomrank.bandits.state.context_paths import chance_of_best_place, store_paths
from zoomrank.bandits.state.tree_view import size_of
from zoomrank.bandits.walks.path_walk import follow_paths, value_children, value_listed, walk_along_favourites
from zoomrank.compiled import Scalar, inlined
from zoomrank.numbers import Array


@inlined
def _holds(state: Any, entry: Scalar, document: Scalar) -> Scalar:
    node = np.uint64(state.node[np.uint64(entry)])
    return state.first_document[node] <= document < state.end_document[node]


@inlined
def _step_to(state: Any, entry: Scalar, document: Scalar) -> Scalar:
    """Return the position of the child of an entry that holds a document."""
    first, step = np.uint64(state.child[np.uint64(entry)]), np.uint64(0)
    while not _holds(state, first + step, document):
        step += np.uint64(1)
    return step


@inlined
def _odds_of_free_walk(
    state: Any, slot: Scalar, entry: Scalar, cap: Scalar, known: Scalar, document: Scalar, some: Scalar
) -> tuple[Scalar, Scalar]:
    """Compute the probability below an entry without documents of S; return it and the entry of the document."""
    at, chance = np.uint64(entry), 1.0
    while chance > 0.0 and state.child[at] != 0:
        ahead = walk_along_favourites(state, slot, at, cap, some)
        if not some or (state.child[ahead] == 0 and size_of(state, np.uint64(state.node[ahead])) > 0):
            at = ahead
        if not _holds(state, at, document):
            chance = 0.0
        elif state.child[at] != 0:
            known = value_children(state, slot, at, cap, known, some)
            step = _step_to(state, at, document)
            chance *= chance_of_best_place(state.value, np.uint64(state.fan[at]), known, step)
            at = np.uint64(state.child[at]) + step
    return chance, at


@inlined
def _odds(
    state: Any, slot: Scalar, shown: Array, above: Scalar, document: Scalar, some: Scalar
) -> tuple[Scalar, Scalar, Scalar]:
    at, cap, known, chance, hopeful = np.uint64(0), np.inf, -1.0, 1.0, False
    if state.correlated and above > 0:
        store_paths(state, shown, above)
        size = follow_paths(state, slot, above, some)
        hopeful = max(state.seen[0], state.limit[0]) > 0.0  # a subtree without documents left is capped at 0
        place, on_path = np.uint64(0), True
        while chance > 0.0 and on_path and state.child[at] != 0:
            first, fan = np.uint64(state.child[at]), np.uint64(state.fan[at])
            cap = state.width[np.uint64(state.node[at])]
            known = value_listed(state, slot, first, fan, cap, place, size)
            step = _step_to(state, at, document)
            chance *= chance_of_best_place(state.value, fan, known, step)
            at = first + step
            place = np.uint64(state.below[step])
            on_path = place != 0
    if chance > 0.0:
        more, at = _odds_of_free_walk(state, slot, at, cap, known, document, some)
        chance *= more
    return chance, np.int64(state.node[at]), hopeful


def odds_along_paths(
    state: Any, slot: Scalar, shown: Array, above: Scalar, document: Scalar
) -> tuple[Scalar, Scalar, Scalar]:
    """Compute `odds` when all documents are eligible."""
    return _odds(state, slot, shown, above, document, False)


def odds_of_eligible(
    state: Any, slot: Scalar, shown: Array, above: Scalar, document: Scalar
) -> tuple[Scalar, Scalar, Scalar]:
    """Compute `odds` when only some documents are eligible."""
    return _odds(state, slot, shown, above, document, True)
