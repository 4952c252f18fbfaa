"""Exact trees of small collections: average linkage, where the width of a subtree is its largest distance.

Linkage merges two clusters at a time, which makes n - 1 nested subtrees, many hardly smaller than the one above.
A subtree is kept only if it is clearly narrower than the kept one that contains it; the others dissolve into that one.
Distances that double from document to document defeat that rule, as every subtree is half the one above: then the rule
is made stricter until the depth is logarithmic.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from zoomrank.compiled import compiled
from zoomrank.errors import EmptyCollectionError, MetricError
from zoomrank.numbers import Array

CLEARLY_NARROWER = 0.95  # of the width above
DISSOLVED = -2
ROUNDING = 1e-6  # allowed asymmetry of a distance, relative to the largest


def deepest_allowed(documents: int) -> int:
    """Return the maximum depth of an exact tree."""
    return 2 * int(np.ceil(np.log2(max(documents, 2)))) + 2


def linked(distances: Array) -> tuple[Array, Array]:
    """Return parents and widths of a tree over two documents or more, given their distances in SciPy's condensed form.

    Documents are nodes 0 to n - 1, the root is node n; its parent is -1.

    >>> parents, widths = linked(np.array([1.0, 9.0, 9.0]))
    >>> parents.tolist(), widths.tolist()
    ([4, 4, 3, -1, 3], [0.0, 0.0, 0.0, 9.0, 1.0])
    """
    merges = linkage(distances, method="average")[:, :2].astype(np.int64)
    diameter = _diameters(merges, squareform(distances))
    documents = len(merges) + 1
    ratio = CLEARLY_NARROWER
    above, depth = _flattened(merges, diameter, ratio)
    while depth > deepest_allowed(documents):
        ratio *= ratio  # at 0 all documents are children of the root
        above, depth = _flattened(merges, diameter, ratio)
    kept = np.flatnonzero(above[documents:] != DISSOLVED)[::-1] + documents  # the last merge, the root, first
    number = np.arange(2 * documents - 1)
    number[kept] = documents + np.arange(len(kept))
    above = above[np.concatenate([np.arange(documents), kept])]
    parents = np.where(above < 0, -1, number[above])
    return parents, np.concatenate([np.zeros(documents), diameter[kept - documents]])


def checked_distances(matrix: Sequence[Sequence[float]] | Array) -> Array:
    """Return an exactly symmetric matrix of distances; raise an error that names the first wrong entry."""
    distances = np.array(matrix, np.float64)
    if distances.size == 0:
        raise EmptyCollectionError("There are no distances; a collection needs at least one document.")
    if distances.ndim != 2 or distances.shape[0] != distances.shape[1]:
        raise MetricError(f"The distance matrix has shape {distances.shape}; it must be square.")

    def refuse(where: Array, says: str) -> None:
        if where.any():
            i, j = np.argwhere(where)[0]
            raise MetricError(f"The distance in row {i}, column {j} is {distances[i, j]}; {says}.")

    refuse(~np.isfinite(distances), "distances must be finite numbers")
    refuse(distances < 0, "distances must not be negative")
    refuse(np.diag(np.diag(distances) != 0), "a document must be at distance 0 from itself")
    difference = np.abs(distances - distances.T)
    refuse(difference > ROUNDING * distances.max(), "that in the other direction differs")
    return np.maximum(distances, distances.T)


@compiled
def _diameters(merges: Array, matrix: Array) -> Array:
    """Return the largest distance inside each merged cluster; every pair is read once, where its clusters merge."""
    documents = len(matrix)
    following = np.full(documents, -1)  # clusters are linked lists of documents
    first = np.arange(2 * documents - 1)
    last = np.arange(2 * documents - 1)
    diameter = np.zeros(documents - 1)
    for merge in range(documents - 1):
        one, other = merges[merge, 0], merges[merge, 1]
        widest = 0.0
        if one >= documents:
            widest = max(widest, diameter[one - documents])
        if other >= documents:
            widest = max(widest, diameter[other - documents])
        x = first[one]
        while x >= 0:
            y = first[other]
            while y >= 0:
                widest = max(widest, matrix[x, y])
                y = following[y]
            x = following[x]
        diameter[merge] = widest
        following[last[one]] = first[other]
        first[documents + merge] = first[one]
        last[documents + merge] = last[other]
    return diameter


@compiled
def _flattened(merges: Array, diameter: Array, ratio: float) -> tuple[Array, int]:
    """Return the kept cluster above each cluster, DISSOLVED for those not kept; and the depth of the tree."""
    documents = len(merges) + 1
    above = np.full(2 * documents - 1, DISSOLVED)
    holder = np.arange(2 * documents - 1)  # the kept cluster that represents each
    level = np.zeros(2 * documents - 1, np.int64)
    above[2 * documents - 2] = -1
    depth = 0
    for merge in range(documents - 2, -1, -1):
        own = holder[documents + merge]
        for side in range(2):
            part = merges[merge, side]
            if part < documents:
                above[part] = own
                depth = max(depth, level[own] + 1)
            elif diameter[part - documents] < ratio * diameter[own - documents]:
                above[part] = own
                level[part] = level[own] + 1
            else:
                holder[part] = own
    return above, depth
