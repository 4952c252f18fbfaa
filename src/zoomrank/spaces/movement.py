"""`Movement`: where everything of one tree is found in a later one, in which documents have come, gone and moved."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from zoomrank.numbers import Array
from zoomrank.spaces.trees.document_tree import DocumentTree


class Movement(NamedTuple):
    """From a tree to a later one of the same collection, in 32-bit integers.

    Attributes
    ----------
    node : ndarray of int
        For each node of the earlier tree the node of the later one that it is, or that inherits what was learned of it.
    document : ndarray of int
        For each position in the earlier tree the position in the later one; -1 for a document that is gone.
    stays : ndarray of bool
        For each node of the earlier tree whether it is still there; if not, `node` is its heir.

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


def growth_of(tree: DocumentTree) -> Movement:
    """From the tree that a tree has grown from to itself: everything is still there."""
    before, order = tree.grown_from, tree.given_numbers
    assert before is not None  # noqa: S101  (checked by the ranker)
    assert order is not None  # noqa: S101
    node = np.empty(tree.nodes, np.int32)
    node[order] = np.arange(tree.nodes)
    document = tree.shape.first_document[node[before.shape.leaf]].astype(np.int32)
    return Movement(node[: before.nodes], document, np.ones(before.nodes, bool))
