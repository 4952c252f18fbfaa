"""Distances between contexts: the sets of documents shown above a slot.

The contextual Lipschitz lemma measures two contexts by pairing up their documents, each at least once, as cheaply as
possible: `D_c(S, S') = 4 · inf Σ D(x_j, x'_j)` over all sequences that enumerate S and S' with repetition. An
enumeration is a set of edges that touches every document of both, so the infimum is a minimum-weight edge cover of a
bipartite graph, which an assignment problem solves exactly.

`D_c` satisfies the lemma's Lipschitz condition, but it is *not* a metric between contexts of different sizes: on the
line, {0} to {1} to {1, 2} costs 4·1 + 4·1, while {0} to {1, 2} costs 4·3. Covering numbers do not need the triangle
inequality, and contexts of one slot all have the same size.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from zoomrank.compiled import Scalar, inlined
from zoomrank.spaces.ids import DocumentId
from zoomrank.spaces.space import Space
from zoomrank.types import Array

LIPSCHITZ_FACTOR = 4.0  # the 4 of Eq. 25


def context_distance(space: Space, one: Iterable[DocumentId], other: Iterable[DocumentId]) -> float:
    """Measure the distance D_c(S, S') between two contexts, exactly.

    Parameters
    ----------
    space : Space
        Documents and their distances.
    one, other : iterable of DocumentId
        The contexts: documents above a slot. Their order does not matter.

    Returns
    -------
    float
        Four times the cheapest way to pair up the documents of both, each at least once; infinite between an empty
        context and any other.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 4, Eq. 25.

    Examples
    --------
    >>> from zoomrank.spaces.finite_metric import FiniteMetric
    >>> line = FiniteMetric.from_function([0, 1, 2], lambda x, y: abs(x - y))
    >>> context_distance(line, [0], [1, 2])
    12.0
    """
    ours, theirs = list(dict.fromkeys(one)), list(dict.fromkeys(other))
    if not ours and not theirs:
        return 0.0
    if not ours or not theirs:
        return float("inf")
    cost = np.array([[space.distance(x, y) for y in theirs] for x in ours])
    return LIPSCHITZ_FACTOR * edge_cover_weight(cost)


def edge_cover_weight(cost: Array) -> float:
    """Compute the weight of the cheapest set of edges that touches every row and every column.

    Letting every vertex take its cheapest edge is a cover; an edge that two vertices share instead saves `cheapest(row)
    + cheapest(column) - cost`. The best set of shared edges is a matching of maximal saving.
    """
    import scipy.optimize

    cheapest_row, cheapest_column = cost.min(axis=1), cost.min(axis=0)
    total = cheapest_row.sum() + cheapest_column.sum()
    if not np.isfinite(total):
        return float("inf")
    saving = np.maximum(cheapest_row[:, None] + cheapest_column[None, :] - cost, 0.0)
    rows, columns = scipy.optimize.linear_sum_assignment(saving, maximize=True)
    return float(max(total - saving[rows, columns].sum(), 0.0))


def context_distances(space: Space, contexts: Sequence[Iterable[DocumentId]]) -> Array:
    """Compute D_c between all pairs of contexts."""
    sets = [list(context) for context in contexts]
    found = [[context_distance(space, one, other) for other in sets] for one in sets]
    return np.array(found).reshape(len(sets), len(sets))


def pair_distances(space: Space, contexts: Sequence[Iterable[DocumentId]]) -> Array:
    """Compute distances in the DC-space: `D((x, h), (x', h')) = D(x, x') + D_c(h, h')`, with pair (x, h) at index h ·
    documents + x.
    """
    found = context_distances(space, contexts)[:, None, :, None] + space.distance_matrix()[None, :, None, :]
    return np.asarray(found.reshape(len(contexts) * len(space), -1))


@inlined
def hash64(value: Scalar) -> Scalar:
    """Hash 64 bits (a finaliser in the style of splitmix64): sums of hashes name multisets."""
    bits = np.uint64(value) + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
