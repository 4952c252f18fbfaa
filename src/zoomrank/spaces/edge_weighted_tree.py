"""`EdgeWeightedTree`: the shortest-paths metric on the nodes of a tree, as Section 3 of the paper uses it; and
`random_tree`, which approximates any metric by a tree, as Section 3.2 needs it (Fakcharoenphol, Rao and Talwar 2003).

For a random tree, draw a random order of the documents and a random scale β in [1, 2). At scale β·2^i every document
joins the first document in the order that lies within that radius; doing so at ever smaller scales, each cluster within
its parent's, gives a tree. A cluster's width is its diameter, so tree distances are never below the metric's; two
documents at distance d are separated at scale 2^i with probability O(d / 2^i), so on average they are at most O(log N)
times above.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from zoomrank.compiled import allocating, compiled_bulk, expecting
from zoomrank.errors import MetricError, WidthError
from zoomrank.spaces.document_tree import DocumentTree
from zoomrank.spaces.finite_metric import FiniteMetric
from zoomrank.spaces.ids import DocumentId, DocumentIds
from zoomrank.spaces.rooted_tree import RootedTree, ids_of_leaves
from zoomrank.spaces.tree_shape import Shape, breadth_first_shape, least_common_ancestor
from zoomrank.types import Array, Seed


class EdgeWeightedTree(RootedTree):
    """A tree of documents whose distances are lengths of paths; inner nodes have distances too.

    Parameters
    ----------
    shape : Shape
        Parents and children of the tree.
    length : ndarray
        The length of the edge above each node, 0 for the root.
    ids : DocumentIds, optional
        Ids of the documents, left to right; by default a document's id is its position.
    names : sequence of str, optional
        Name of each node, for display only.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 3.1.

    Examples
    --------
    >>> tree = EdgeWeightedTree.from_parents([-1, 0, 0, 2, 2], length=[0, 0.5, 0.1, 0.2, 0.3])
    >>> round(tree.distance(1, 3), 6), round(tree.distance(3, 4), 6)
    (0.8, 0.5)
    """

    def __init__(
        self, shape: Shape, length: Array, ids: DocumentIds | None = None, names: Sequence[str] | None = None
    ) -> None:
        super().__init__(shape, DocumentIds(len(shape.leaf)) if ids is None else ids, names)
        _check_lengths(length, root=0)
        self.length = np.ascontiguousarray(length, dtype=np.float64)  # of the edge above each node
        self.length.flags.writeable = False
        self._from_root = _distances_from_root(shape.parent, self.length)

    @classmethod
    def from_parents(
        cls,
        parents: Sequence[int] | Array,
        *,
        length: Sequence[float] | Array,
        ids: Sequence[DocumentId] | None = None,
    ) -> EdgeWeightedTree:
        """Build a tree from the parents of its nodes; nodes without children are documents.

        Parameters
        ----------
        parents : sequence of int
            `parents[i]` is the parent of node i, -1 for the root. Nodes may come in any order.
        length : sequence of float
            `length[i]` is the length of the edge above node i, 0 for the root.
        ids : sequence of DocumentId, optional
            Ids of the documents in the order of their nodes; by default a document's id is its node's number in
            `parents`.

        Returns
        -------
        EdgeWeightedTree
            The tree; its `given_numbers` map its nodes to the caller's.
        """
        shape, order = breadth_first_shape(np.asarray(parents))
        given = np.asarray(length, dtype=np.float64)
        if given.shape != (len(order),):
            raise WidthError(f"Lengths of shape {given.shape} were given for {len(order)} nodes.")
        _check_lengths(given, root=int(order[0]))
        tree = cls(shape, given[order], ids_of_leaves(shape, order, ids))
        tree.given_numbers = order
        return tree

    @classmethod
    def from_document_tree(cls, tree: DocumentTree) -> EdgeWeightedTree:
        """Build the edge-weighted tree with the same distances between documents.

        The edge above u has length (W(parent) - W(u)) / 2, so a path up from x and down to y adds up to W(LCA).

        Parameters
        ----------
        tree : DocumentTree
            A tree with widths.

        Returns
        -------
        EdgeWeightedTree
            A tree of the same shape, with lengths.

        Examples
        --------
        >>> lengths = EdgeWeightedTree.from_document_tree(DocumentTree.exponential(depth=2, epsilon=0.5))
        >>> lengths.distance(0, 1), lengths.node_distance(0, 1)
        (0.5, 0.25)
        """
        length = (tree.width[tree.shape.parent] - tree.width) / 2
        return cls(tree.shape, length, tree.documents, tree.names)

    def distance(self, one: DocumentId, other: DocumentId) -> float:
        """Measure D(x, y) between two documents.

        Parameters
        ----------
        one, other : DocumentId
            The documents.

        Returns
        -------
        float
            The length of the path between them.
        """
        return self.node_distance(self.leaf(one), self.leaf(other))

    def node_distance(self, one: int, other: int) -> float:
        """Measure D(u, v) between any two nodes.

        Parameters
        ----------
        one, other : int
            The nodes, in this tree's own numbering.

        Returns
        -------
        float
            The length of the path between them.
        """
        far = self._from_root
        ancestor = far[least_common_ancestor(self.shape.parent, one, other)]
        return float((far[one] - ancestor) + (far[other] - ancestor))

    def distances(self, document: DocumentId) -> Array:
        """Measure D(x, y) from one document to all.

        Parameters
        ----------
        document : DocumentId
            The document x.

        Returns
        -------
        ndarray
            A distance for each document, in the order of `documents`.
        """
        return _path_lengths(self.shape.parent, self.length, self.leaf(document))[self.shape.leaf]

    def distance_matrix(self) -> Array:
        """Measure D between all pairs of documents: for small collections.

        Returns
        -------
        ndarray
            A row and a column for each document, in the order of `documents`.
        """
        matrix = np.stack([self.distances(document) for document in self.documents])
        return np.asarray(np.minimum(matrix, matrix.T))  # the same path summed in two directions may differ in a bit

    def to_document_tree(self) -> DocumentTree:
        """Build the tree whose widths are the diameters of the subtrees, as rankers need it.

        Returns
        -------
        DocumentTree
            Its distances are never below these, and agree with them on the farthest pair of every subtree.
        """
        return DocumentTree(self.shape, _diameters(self.shape.parent, self.length), self.documents, self.names)


def _check_lengths(length: Array, root: int) -> None:
    bad = np.flatnonzero(~(np.isfinite(length) & (length >= 0)))
    if len(bad):
        raise WidthError(f"The edge above node {bad[0]} has length {length[bad[0]]}; it must be 0 or more.")
    if length[root] != 0:
        raise WidthError(f"The root has no edge above it, so its length must be 0, not {length[root]}.")


@compiled_bulk
def _distances_from_root(parent: Array, length: Array) -> Array:
    far = np.zeros(len(parent))
    for node in range(1, len(parent)):
        far[node] = far[parent[node]] + length[node]
    return far


@compiled_bulk
def _path_lengths(parent: Array, length: Array, start: int) -> Array:
    """Compute the distance from one node to all nodes: up its own root path, then down to all others."""
    far = np.full(len(parent), -1.0)
    far[start] = 0.0
    node = start
    while node > 0:
        far[parent[node]] = far[node] + length[node]
        node = parent[node]
    for node in range(1, len(parent)):
        if far[node] < 0:
            far[node] = far[parent[node]] + length[node]
    return far


@compiled_bulk
def _diameters(parent: Array, length: Array) -> Array:
    diameter = np.zeros(len(parent))
    deepest = np.full(len(parent), -1.0)  # the farthest document below; -1 until a child has reported
    for node in range(len(parent) - 1, 0, -1):
        up = parent[node]
        reach = max(deepest[node], 0.0) + length[node]
        across = reach + deepest[up] if deepest[up] >= 0 else 0.0
        diameter[up] = max(diameter[up], diameter[node], across)
        deepest[up] = max(deepest[up], reach)
    return diameter


# Random trees.


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
    with expecting(1e-5 * matrix.size):
        parents, widths, homes = _clusters(matrix, rng.permutation(len(matrix)), beta)
    shape, order = breadth_first_shape(parents)
    document_at = np.full(len(parents), -1)
    document_at[homes] = np.arange(len(matrix))
    left_to_right = space.documents.at(document_at[order[shape.leaf]])
    return DocumentTree(shape, widths[order], DocumentIds(len(matrix), left_to_right))


@compiled_bulk
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
        leader = _cluster_leaders(matrix, order, radius)
        splits = _splits(home, leader, made)
        before = made
        for document in range(documents):
            cluster = home[document]
            if cluster >= before or not splits[cluster]:
                continue
            part = np.flatnonzero((home == cluster) & (leader == leader[document]))
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
    leader = np.empty(len(matrix), np.int64)
    for document in range(len(matrix)):
        rank = 0
        while matrix[document, order[rank]] > radius:
            rank += 1
        leader[document] = order[rank]
    return leader


@allocating
def _splits(home: Array, leader: Array, clusters: int) -> Array:
    """Return which clusters have documents with different leaders; a cluster that does not split stays, so there are no
    chains.
    """
    followed = np.full(clusters, -1)
    splits = np.zeros(clusters, np.bool_)
    for document in range(len(home)):
        cluster = home[document]
        if followed[cluster] < 0:
            followed[cluster] = leader[document]
        elif followed[cluster] != leader[document]:
            splits[cluster] = True
    return splits
