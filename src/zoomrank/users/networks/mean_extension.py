"""Extension of the mean relevance from documents to all nodes above them: two ways, both in the paper.

- `average`: a node's mean is the average of its children's (Section 6.1, used in every experiment of the paper).
- `lipschitz`: values that keep |μ(u) - μ(v)| ≤ D(u, v) along every edge (proved possible in Section 7). The lemma
  leaves room; of all values it allows we take the one nearest to the average of the children.
"""

import numpy as np

from zoomrank.compiled import compiled
from zoomrank.errors import ContinuityError
from zoomrank.numbers import Array
from zoomrank.spaces import DocumentTree, EdgeWeightedTree, RootedTree
from zoomrank.spaces.trees.shape import Shape

ROUNDING = 1e-12


def average_of_children(tree: RootedTree, mean: Array) -> Array:
    """Return μ of every node, bottom up."""
    return _averages(tree.shape, mean)


def lipschitz_extension(tree: RootedTree, mean: Array) -> Array:
    """Return μ of every node, L-continuous on all of them; raise an error if it is not so on the documents."""
    if isinstance(tree, DocumentTree):
        tree = EdgeWeightedTree.from_document_tree(tree)
    if not isinstance(tree, EdgeWeightedTree):
        raise ContinuityError("The Lipschitz extension needs distances between nodes: a tree with widths or lengths.")
    low, high = _intervals(tree.shape, tree.length, mean)
    empty = np.flatnonzero(low > high + ROUNDING)
    if len(empty):
        node = int(empty[-1])  # breadth first: the last is a smallest subtree that shows the conflict
        raise ContinuityError(
            f"The mean relevance is not L-continuous: below {tree.name(node)} two documents differ by more than their "
            f"distance (by {low[node] - high[node]:.3g})."
        )
    return _nearest_to_average(tree.shape, tree.length, mean, low, high)


@compiled
def _averages(shape: Shape, mean: Array) -> Array:
    values = np.zeros(len(shape.parent))
    for node in range(len(shape.parent) - 1, -1, -1):
        first, end = shape.child_start[node], shape.child_start[node + 1]
        if first == end:
            values[node] = mean[shape.first_document[node]]
        else:
            for child in range(first, end):
                values[node] += values[child]
            values[node] /= end - first
    return values


@compiled
def _intervals(shape: Shape, length: Array, mean: Array) -> tuple[Array, Array]:
    """Return I(x) = [μ-(x), μ+(x)] of Section 7: the values that the documents below allow."""
    nodes = len(shape.parent)
    low, high = np.full(nodes, -np.inf), np.full(nodes, np.inf)
    for node in range(nodes - 1, -1, -1):
        if shape.child_start[node] == shape.child_start[node + 1]:
            low[node] = high[node] = mean[shape.first_document[node]]
        if node > 0:
            up = shape.parent[node]
            low[up] = max(low[up], low[node] - length[node])
            high[up] = min(high[up], high[node] + length[node])
    return low, high


@compiled
def _nearest_to_average(shape: Shape, length: Array, mean: Array, low: Array, high: Array) -> Array:
    """Choose values top down: within the interval, within reach of the parent, within the range of μ, nearest to the
    average.
    """
    values = _averages(shape, mean)  # averages lie in the range of μ; so do the interval's ends once cut to it
    smallest, largest = mean.min(), mean.max()
    for node in range(len(shape.parent)):
        if shape.child_start[node] == shape.child_start[node + 1]:
            continue  # a document keeps its mean: the interval is that point
        floor, ceiling = max(low[node], smallest), min(high[node], largest)
        if node > 0:
            up = values[shape.parent[node]]
            floor, ceiling = max(floor, up - length[node]), min(ceiling, up + length[node])
        values[node] = min(max(values[node], floor), ceiling)
    return values
