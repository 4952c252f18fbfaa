"""The context of a slot, level by level: which context node the documents above are in, its name and its width.

A *context node* is an unordered tuple of nodes, one above each document of the context, all of one level. Its name is
a hash that does not depend on the order of the documents.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.state.context_paths import remember_paths
from zoomrank.compiled import Scalar, inlined
from zoomrank.numbers import Array
from zoomrank.spaces.scrambling import scramble


class DescribedScratch(NamedTuple):
    """The context level by level, as far as it is written down."""

    context_sum: Array  # [i, l]: of the scrambled nodes at level l above the first i documents: their order is the same
    context_hash: Array  # [i, l]: that, scrambled: the name of the context node
    context_width: Array  # [i, l]: 4 · the sum of the widths of its nodes
    described: Array  # for how many documents above that is written down, and how many there are now


def fresh_described(levels: int, documents: int) -> DescribedScratch:
    """Room for contexts of so many documents."""
    shape = (documents + 1, levels)
    return DescribedScratch(
        np.ones(shape, np.uint64), np.zeros(shape, np.uint64), np.zeros(shape), np.zeros(2, np.int64)
    )


@inlined
def describe_context(state: Any, shown: Array, above: Scalar) -> None:
    """Write down, level by level, which context node the documents above are in, and how wide it is.

    One more document adds to what is known of those before it, and the slots of a ranking ask one after the other. So
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
def context_node(state: Any, level: Scalar) -> Scalar:
    """The name of the context node at a level; at the last one, of the context itself."""
    return state.context_hash[np.uint64(state.described[1]), np.uint64(level)]


@inlined
def context_name(state: Any) -> Scalar:
    """The name of the context itself."""
    return context_node(state, state.context_hash.shape[1] - 1)


@inlined
def width_around(state: Any, level: Scalar) -> Scalar:
    """4 · the widths of the nodes of the context node at a level."""
    return state.context_width[np.uint64(state.described[1]), np.uint64(level)]
