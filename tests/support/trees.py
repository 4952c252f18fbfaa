"""Random small trees for the tests: uneven branching, one-child chains and single documents included."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from zoomrank import DocumentTree
from zoomrank.users import TreeNetwork

Array = np.ndarray[Any, Any]


def random_parents(rng: np.random.Generator, nodes: int) -> list[int]:
    """Each node below any earlier one, numbers shuffled."""
    parents = [-1] + [int(rng.integers(0, node)) for node in range(1, nodes)]
    names = rng.permutation(nodes)
    shuffled = [-1] * nodes
    for node, parent in enumerate(parents):
        shuffled[names[node]] = -1 if parent < 0 else int(names[parent])
    return shuffled


def random_tree(rng: np.random.Generator, nodes: int) -> DocumentTree:
    """A random tree with random widths that shrink downwards."""
    tree = DocumentTree.from_parents(random_parents(rng, nodes), epsilon=0.9)
    width = np.ones(tree.nodes)
    for node in range(1, tree.nodes):
        width[node] = width[tree.shape.parent[node]] * rng.uniform(0.3, 1.0)
    width[tree.shape.leaf] = 0.0
    return tree.with_width(width)


def random_network(rng: np.random.Generator, nodes: int) -> TreeNetwork:
    """Any mutations, the extreme ones included: far beyond what the theory allows."""
    tree = random_tree(rng, nodes)
    q = rng.random((2, nodes))
    q[rng.random((2, nodes)) < 0.2] = 0.0
    q[rng.random((2, nodes)) < 0.1] = 1.0
    return TreeNetwork.from_mutations(tree, float(rng.random()), q[0], q[1], beyond_theory=True)


def lipschitz_mean(rng: np.random.Generator, tree: DocumentTree, low: float = 0.02) -> Array:
    """A random L-continuous mean on the documents with values in [low, ½]."""
    mean = np.full(len(tree), low)
    for document in tree.documents:
        mean = np.maximum(mean, rng.uniform(low, 0.5) - tree.distances(document))
    return mean


seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 14)
