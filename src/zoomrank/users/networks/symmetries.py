"""Symmetries of a tree network: documents that its tree, its parameters and a set S of documents do not distinguish."""

import numpy as np

from zoomrank.compiled import compiled
from zoomrank.numbers import Array
from zoomrank.spaces import RootedTree
from zoomrank.spaces.ids import Positions
from zoomrank.spaces.scrambling import hash64


def orbits(tree: RootedTree, parameters: Array, shown: Positions) -> Array:
    """Number the documents so that two share a number if the tree, its parameters and S do not distinguish them."""
    leaves = tree.shape.leaf[shown].astype(np.int64)
    with np.errstate(over="ignore"):  # scrambled bits may overflow when run as plain Python
        return np.asarray(_orbits(tree.shape.parent, parameters, leaves))[tree.shape.leaf]


@compiled
def _orbits(parent: Array, parameters: Array, leaves: Array) -> Array:
    """Number the nodes; equal numbers mean that a parameter-preserving automorphism exchanges the nodes.

    Upwards, a subtree is named by its parameters and the multiset of its children's names; downwards, a node by its own
    name and its parent's position. Parameters are compared to 12 digits, as ties are.
    """
    nodes = len(parent)
    name = np.zeros(nodes, np.uint64)
    for leaf in leaves:
        name[leaf] = np.uint64(1)
    for node in range(nodes - 1, -1, -1):
        own = np.uint64(0x9E3779B97F4A7C15)
        for parameter in parameters[node]:
            own = hash64(own ^ np.uint64(np.int64(parameter * 1e12 + 0.5)))
        name[node] = hash64(name[node] + own)
        if node > 0:
            name[parent[node]] += name[node]
    for node in range(1, nodes):
        name[node] = hash64(name[node] ^ hash64(name[parent[node]]))
    return name
