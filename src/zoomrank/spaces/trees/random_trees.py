"""Random trees that approximate any metric (Fakcharoenphol, Rao and Talwar 2003), as Section 3.2 of the paper needs
them.

Draw a random order of the documents and a random scale β in [1, 2). At scale β·2^i every document joins the first
document in the order that lies within that radius; doing so at ever smaller scales, each cluster within its parent's,
gives a tree. A cluster's width is its diameter, so tree distances are never below the metric's; two documents at
distance d are separated at scale 2^i with probability O(d / 2^i), so on average they are at most O(log N) times above.
"""

import numpy as np

from zoomrank.compiled import allocating, compiled
from zoomrank.errors import MetricError
from zoomrank.numbers import Array, Seed
from zoomrank.spaces.finite_metric import FiniteMetric
from zoomrank.spaces.ids import DocumentIds
from zoomrank.spaces.trees.document_tree import DocumentTree
from zoomrank.spaces.trees.shape import breadth_first_shape


def random_tree(space: FiniteMetric, seed: Seed = None) -> DocumentTree:
    """Draw a tree that dominates a metric, and whose distances are on average at most O(log N) times as large.

    Parameters
    ----------
    space : FiniteMetric
        Documents, and their distances, all of them finite.
    seed : int, Generator or None
        Seed of the random draws.

    Returns
    -------
    DocumentTree
        A tree with `tree.distance(x, y) >= space.distance(x, y)` for all documents.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 3.2. J. Fakcharoenphol, S. Rao, K. Talwar, *A tight
    bound on approximating arbitrary metrics by tree metrics*, STOC 2003.

    Examples
    --------
    >>> line = FiniteMetric.from_function(range(4), lambda x, y: abs(x - y))
    >>> tree = random_tree(line, seed=0)
    >>> all(tree.distance(x, y) >= abs(x - y) for x in range(4) for y in range(4))
    True
    """
    matrix = space.distance_matrix()
    if np.isinf(matrix).any():
        raise MetricError("A tree cannot approximate infinite distances: split the space into its finite parts first.")
    rng = np.random.default_rng(seed)
    beta = float(2 ** rng.random())  # density 1 / (β ln 2) on [1, 2)
    parents, widths, homes = _clusters(matrix, rng.permutation(len(matrix)), beta)
    shape, order = breadth_first_shape(parents)
    document_at = np.full(len(parents), -1)
    document_at[homes] = np.arange(len(matrix))
    left_to_right = space.documents.at(document_at[order[shape.leaf]])
    return DocumentTree(shape, widths[order], DocumentIds(len(matrix), left_to_right))


@compiled
def _clusters(matrix: Array, order: Array, beta: float) -> tuple[Array, Array, Array]:
    """Split until every cluster is one document; return the parent and width of each cluster, and the cluster of each
    document.
    """
    documents = len(matrix)
    parents = np.full(2 * documents - 1, -1)  # the most clusters: each split makes at least two of one
    widths = np.zeros(2 * documents - 1)
    home = np.zeros(documents, np.int64)  # the smallest cluster so far of each document
    widths[0] = matrix.max()
    made = 1
    radius = beta
    while radius < widths[0]:
        radius *= 2.0
    while widths[home].max() > 0.0:
        radius /= 2.0
        chief = _cluster_leaders(matrix, order, radius)
        splits = _splits(home, chief, made)
        before = made
        for document in range(documents):
            cluster = home[document]
            if cluster >= before or not splits[cluster]:
                continue
            part = np.flatnonzero((home == cluster) & (chief == chief[document]))
            for at in range(len(part)):
                for other in range(at):
                    widths[made] = max(widths[made], matrix[part[at], part[other]])
            home[part] = made
            parents[made] = cluster
            made += 1
    return parents[:made].copy(), widths[:made].copy(), home


@allocating
def _cluster_leaders(matrix: Array, order: Array, radius: float) -> Array:
    """Return the leader of each document at this scale: the first in the order within the radius."""
    chief = np.empty(len(matrix), np.int64)
    for document in range(len(matrix)):
        rank = 0
        while matrix[document, order[rank]] > radius:
            rank += 1
        chief[document] = order[rank]
    return chief


@allocating
def _splits(home: Array, chief: Array, clusters: int) -> Array:
    """Return which clusters have documents with different leaders; a cluster that does not split stays, so there are no
    chains.
    """
    followed = np.full(clusters, -1)
    splits = np.zeros(clusters, np.bool_)
    for document in range(len(home)):
        cluster = home[document]
        if followed[cluster] < 0:
            followed[cluster] = chief[document]
        elif followed[cluster] != chief[document]:
            splits[cluster] = True
    return splits
