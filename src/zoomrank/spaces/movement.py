"""`Remap`: a remap from one tree to a later one, in which documents were added, removed and moved."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from zoomrank.numbers import Array
from zoomrank.spaces.trees.document_tree import DocumentTree


class Remap(NamedTuple):
    """Remap from a tree to a later one of the same collection, in 32-bit integers.

    Attributes
    ----------
    node : ndarray of int
        For each node of the earlier tree its node in the later one, or its successor, which inherits its counts.
    document : ndarray of int
        For each position in the earlier tree the position in the later one; -1 for a removed document.
    stays : ndarray of bool
        For each node of the earlier tree, True if it still exists; if not, `node` is its successor.

    Examples
    --------
    >>> from zoomrank.spaces import DocumentTree
    >>> tree = DocumentTree.exponential(depth=1)
    >>> growth_of(tree.grown({"new": 0})).document.tolist()
    [0, 1]
    """

    node: Array
    document: Array
    stays: Array


def growth_remap(tree: DocumentTree) -> Remap:
    """Return the remap from the tree that a tree has grown from: every node still exists."""
    before, order = tree.grown_from, tree.given_numbers
    assert before is not None  # noqa: S101  (checked by the ranker)
    assert order is not None  # noqa: S101
    node = np.empty(tree.nodes, np.int32)
    node[order] = np.arange(tree.nodes)
    document = tree.shape.first_document[node[before.shape.leaf]].astype(np.int32)
    return Remap(node[: before.nodes], document, np.ones(before.nodes, bool))
