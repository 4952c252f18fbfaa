"""The context of a slot, level by level: the context node of the documents above, its name and its width.

A *context node* is an unordered tuple of nodes, one above each document of the context, all of one level. Its name is a
hash that does not depend on the order of the documents.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.state.context_paths import store_paths
from zoomrank.compiled import Scalar, inlined
from zoomrank.numbers import Array
from zoomrank.spaces.scrambling import hash64


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
