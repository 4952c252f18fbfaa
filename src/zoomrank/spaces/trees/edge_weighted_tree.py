"""`EdgeWeightedTree`: the shortest-paths metric on the nodes of a tree, as Section 3 of the paper uses it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from zoomrank.compiled import compiled
from zoomrank.errors import WidthError
from zoomrank.numbers import Array
from zoomrank.spaces.ids import DocumentId, DocumentIds
from zoomrank.spaces.trees.document_tree import DocumentTree
from zoomrank.spaces.trees.rooted_tree import RootedTree, ids_of_leaves
from zoomrank.spaces.trees.shape import Shape, breadth_first_shape, least_common_ancestor


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
        meeting = int(least_common_ancestor(self.shape.parent, one, other))
        return float(
            (self._from_root[one] - self._from_root[meeting]) + (self._from_root[other] - self._from_root[meeting])
        )

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


@compiled
def _distances_from_root(parent: Array, length: Array) -> Array:
    far = np.zeros(len(parent))
    for node in range(1, len(parent)):
        far[node] = far[parent[node]] + length[node]
    return far


@compiled
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


@compiled
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
