"""`DocumentTree`: documents as leaves, and a width W(u) for every subtree.

The distance between two documents is the width of the smallest subtree that holds both (Section 2.1 of the paper):
`D(x, y) = W(LCA(x, y))`. Widths that never grow downwards make this an ultrametric, and every ultrametric is one of
these. The ε-exponential tree metric of Eq. 2 is the case `W(u) = c · ε^depth(u)`.

A subtree of width 0 that holds several documents declares them interchangeable.

`Remap` maps a tree to a later one, in which documents were added, removed and moved.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from zoomrank.compiled import compiled_bulk
from zoomrank.errors import EmptyCollectionError, MetricParameterError, TreeError, WidthError
from zoomrank.spaces.ids import DocumentId, DocumentIds
from zoomrank.spaces.rooted_tree import RootedTree, ids_of_leaves
from zoomrank.spaces.tree_shape import (
    Shape,
    TaxonomyPath,
    breadth_first_shape,
    checked_widths,
    exponential_widths,
    level_widths,
    nodes_of_paths,
    shape_from_breadth_first,
    shape_of_some,
)
from zoomrank.types import Array, whole_number

LARGEST_TREE = 2**31 - 2  # nodes are 32-bit integers
_AT_ONCE = 4096  # ids per hash update


class DocumentTree(RootedTree):
    """A tree of documents with the metric that its widths define. Immutable.

    Usually made by `exponential`, `from_parents` or `from_paths`, or part of a `zoomrank.documents.Collection`.

    Parameters
    ----------
    shape : Shape
        Parents and children of the tree.
    width : ndarray
        W(u), a number for each node: 0 for documents, and never larger than the one above.
    ids : DocumentIds, optional
        Ids of the documents, left to right; by default a document's id is its position.
    names : sequence of str, optional
        Name of each node, for display only.

    Attributes
    ----------
    width : ndarray
        W(u) of each node.
    recipe : dict or None
        The arguments of `exponential`, if that made the tree.
    grown_from : DocumentTree or None
        The tree that this one was `grown` from.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 2.1; W(u) in Section 4.2.

    Examples
    --------
    >>> tree = DocumentTree.exponential(depth=3, branching=2, epsilon=0.5)
    >>> len(tree), tree.distance(0, 1), tree.distance(0, 7)
    (8, 0.25, 1.0)
    """

    def __init__(
        self, shape: Shape, width: Array, ids: DocumentIds | None = None, names: Sequence[str] | None = None
    ) -> None:
        super().__init__(shape, DocumentIds(len(shape.leaf)) if ids is None else ids, names)
        self.width = checked_widths(shape, width)
        self.recipe: dict[str, Any] | None = None
        self.grown_from: DocumentTree | None = None

    @classmethod
    def exponential(
        cls, depth: int = 15, branching: int = 2, epsilon: float = 0.837, constant: float = 1.0
    ) -> DocumentTree:
        """Build the complete tree with the ε-exponential metric; documents are numbered 0, 1, 2, …

        The defaults are those of the paper's experiments: 32,768 documents and ε = 0.837.

        Parameters
        ----------
        depth : int
            Number of steps from the root to the documents.
        branching : int
            Number of children of a node.
        epsilon : float
            Factor on widths from level to level, strictly between 0 and 1.
        constant : float
            The width of the root.

        Returns
        -------
        DocumentTree
            A tree of `branching ** depth` documents.

        References
        ----------
        Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 2.1, Eq. 2; the values in Section 6.1.
        """
        depth, branching = whole_number(depth, "depth"), whole_number(branching, "branching")
        if depth < 0 or branching < 1:
            raise MetricParameterError(f"A tree of depth {depth} with {branching} children a node cannot be built.")
        level = level_widths(depth, epsilon, constant)
        sizes = [branching**d for d in range(depth + 1)]
        nodes = sum(sizes)
        if nodes > LARGEST_TREE:
            raise MetricParameterError(f"{nodes} nodes are too many; {LARGEST_TREE} is the most.")
        number = np.arange(nodes + 1, dtype=np.int64)
        parent = (np.maximum(number[:-1] - 1, 0) // branching).astype(np.uint32)
        child_start = np.minimum(number * branching + 1, nodes).astype(np.uint32)
        del number
        width = np.repeat(level, sizes)
        width[nodes - sizes[-1] :] = 0.0
        tree = cls(shape_from_breadth_first(parent, child_start), width)
        tree.recipe = {"depth": depth, "branching": branching, "epsilon": epsilon, "constant": constant}
        return tree

    @classmethod
    def from_parents(
        cls,
        parents: Sequence[int] | Array,
        *,
        width: Sequence[float] | Array | None = None,
        epsilon: float = 0.837,
        constant: float = 1.0,
        ids: Sequence[DocumentId] | None = None,
        names: Sequence[str] | None = None,
    ) -> DocumentTree:
        """Build any tree from the parents of its nodes; nodes without children are documents.

        Parameters
        ----------
        parents : sequence of int
            `parents[i]` is the parent of node i, -1 for the root. Nodes may come in any order.
        width : sequence of float, optional
            A width for each node: 0 for documents, and never larger than the one above. Without them the
            ε-exponential metric is used.
        epsilon, constant : float
            Parameters of the ε-exponential metric (see `exponential`), if there is no `width`.
        ids : sequence of DocumentId, optional
            Ids of the documents in the order of their nodes; by default a document's id is its node's number in
            `parents`.
        names : sequence of str, optional
            Name of each node, for display only.

        Returns
        -------
        DocumentTree
            The tree; its `given_numbers` map its nodes to the caller's.

        Examples
        --------
        >>> tree = DocumentTree.from_parents([-1, 0, 0, 1, 1], width=[1, 0.3, 0, 0, 0], ids=["sun", "rain", "snow"])
        >>> tree.distance("rain", "snow"), tree.distance("sun", "snow")
        (0.3, 1.0)
        """
        shape, order = breadth_first_shape(np.asarray(parents))
        if width is None:
            widths = exponential_widths(shape, epsilon, constant)
        else:
            given = np.asarray(width, dtype=np.float64)
            if given.shape != (len(order),):
                raise WidthError(f"Widths of shape {given.shape} were given for {len(order)} nodes.")
            widths = checked_widths(shape, given[order], called=order)
        if names is not None and len(names) != len(order):
            raise WidthError(f"{len(names)} names were given for {len(order)} nodes.")
        tree = cls(
            shape, widths, ids_of_leaves(shape, order, ids), None if names is None else [names[i] for i in order]
        )
        tree.given_numbers = order
        return tree

    @classmethod
    def from_paths(
        cls,
        paths: Mapping[DocumentId, TaxonomyPath] | Iterable[TaxonomyPath],
        *,
        separator: str = " > ",
        categories: str = "refuse",
        epsilon: float = 0.837,
        constant: float = 1.0,
    ) -> DocumentTree:
        """Build a tree from taxonomy paths such as `"Animals > Birds > Owls"`, or sequences of names.

        Parameters
        ----------
        paths : mapping or iterable of str or sequence of str
            A mapping {document id: path} puts each document below the category of its path. Bare paths are documents
            themselves, with the path as id.
        separator : str
            Separator between the steps of a path.
        categories : {"refuse", "skip"}
            Raise an error on a bare path that is a category of others, or leave it out.
        epsilon, constant : float
            Parameters of the ε-exponential metric (see `exponential`).

        Returns
        -------
        DocumentTree
            The tree, whose nodes are named by the steps of the paths.

        Examples
        --------
        >>> tree = DocumentTree.from_paths({"owl.html": "Animals > Birds", "pike.html": "Animals > Fish"})
        >>> tree.name(tree.leaf("owl.html"))
        'Animals > Birds > owl.html'
        """
        parents, names, ids = nodes_of_paths(paths, separator, categories)
        return cls.from_parents(parents, epsilon=epsilon, constant=constant, ids=ids, names=names)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of shape, widths and ids; equal trees have equal fingerprints.

        Returns
        -------
        str
            32 hexadecimal digits.
        """
        digest = hashlib.sha256()
        for array in (*self.shape, self.width):
            digest.update(np.ascontiguousarray(array).data)
        if self.recipe is None:
            rest = iter(self.documents)
            while some := list(islice(rest, _AT_ONCE)):  # in pieces, so that other threads can run
                digest.update("\0".join([*map(repr, some), ""]).encode())
        return digest.hexdigest()[:32]

    def with_width(self, width: Array) -> DocumentTree:
        """Build the same tree with other widths.

        Parameters
        ----------
        width : ndarray
            A width for each node, in this tree's own numbering.

        Returns
        -------
        DocumentTree
            A tree of the same documents.
        """
        return DocumentTree(self.shape, np.array(width, dtype=np.float64), self.documents, self.names)

    def grown(self, near: Mapping[DocumentId, DocumentId]) -> DocumentTree:
        """Build a tree with more documents: each new one is added beside an existing one, in its category.

        Parameters
        ----------
        near : mapping of DocumentId to DocumentId
            Existing document for each new one.

        Returns
        -------
        DocumentTree
            The larger tree, for `Ranked.grow`; distances between the old documents are unchanged.

        Examples
        --------
        >>> tree = DocumentTree.from_parents([-1, 0, 0, 1, 1], ids=["sun", "rain", "snow"])
        >>> more = tree.grown({"hail": "rain"})
        >>> more.distance("hail", "snow") == tree.distance("rain", "snow")
        True
        """
        if self.nodes == 1:
            raise TreeError("A tree of a single document cannot grow, since it has no category: build a new tree.")
        shape = self.shape
        parents = shape.parent.astype(np.int64)
        parents[0] = -1
        homes = [parents[self.leaf(neighbour)] for neighbour in near.values()]
        place = np.argsort(shape.leaf)  # ids are in the order of nodes
        tree = DocumentTree.from_parents(
            np.concatenate([parents, np.array(homes, dtype=np.int64)]),
            width=np.concatenate([self.width, np.zeros(len(homes))]),
            ids=[*self.documents.at(place), *near],
            names=None if self.names is None else [*self.names, *map(str, near)],
        )
        tree.grown_from = self
        return tree

    def restricted(self, documents: Iterable[DocumentId]) -> DocumentTree:
        """Build the tree of some of the documents, with the same distances.

        Parameters
        ----------
        documents : iterable of DocumentId
            The documents to keep, in any order.

        Returns
        -------
        DocumentTree
            The smaller tree, with the same widths.
        """
        kept = np.sort(self.documents.positions(documents))
        if len(kept) == 0:
            raise EmptyCollectionError("No documents were named: pass at least one.")
        shape, nodes = shape_of_some(self.shape, kept)
        ids: list[DocumentId] | Array = self.documents.at(kept)
        if all(type(document) is int for document in ids):
            ids = np.array(ids)  # integers take less memory than objects
        names = None if self.names is None else [self.names[node] for node in nodes.tolist()]
        return DocumentTree(shape, self.width[nodes], DocumentIds(len(kept), ids), names)

    def with_documents(self, ids: Sequence[DocumentId]) -> DocumentTree:
        """Build the same tree with other document ids.

        Parameters
        ----------
        ids : sequence of DocumentId
            The ids, left to right.

        Returns
        -------
        DocumentTree
            A tree of the same shape and widths.
        """
        return DocumentTree(self.shape, self.width, DocumentIds(len(self), ids), self.names)

    def distance(self, one: DocumentId, other: DocumentId) -> float:
        """Measure D(x, y): the width of the smallest subtree that holds both.

        Parameters
        ----------
        one, other : DocumentId
            The documents.

        Returns
        -------
        float
            Their distance; 0 for a document and itself.

        References
        ----------
        Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 2.1, Eq. 2.
        """
        return float(self.width[self.common_ancestor(one, other)])

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
        return _distances(self.shape, self.width, self.leaf(document))

    def distance_matrix(self) -> Array:
        """Measure D between all pairs of documents: for small collections.

        Returns
        -------
        ndarray
            A row and a column for each document, in the order of `documents`.
        """
        return np.stack([_distances(self.shape, self.width, leaf) for leaf in self.shape.leaf])


@compiled_bulk
def _distances(shape: Shape, width: Array, leaf: int) -> Array:
    """Climb from the leaf; each ancestor gives its width to the documents that the node before did not hold."""
    distance = np.zeros(len(shape.leaf))
    below = leaf
    while below > 0:
        node = shape.parent[below]
        distance[shape.first_document[node] : shape.first_document[below]] = width[node]
        distance[shape.end_document[below] : shape.end_document[node]] = width[node]
        below = node
    return distance


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
    >>> growth_remap(tree.grown({"new": 0})).document.tolist()
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
