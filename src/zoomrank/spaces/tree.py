"""`DocumentTree`: documents as leaves, and a width W(u) for every subtree.

The distance between two documents is the width of the smallest subtree that holds both (Section 2.1 of the paper):
`D(x, y) = W(LCA(x, y))`. Widths that never grow downwards make this an ultrametric, and every ultrametric is one of
these. The ε-exponential tree metric of Eq. 2 is the case `W(u) = c · ε^depth(u)`.

A subtree of width 0 that holds several documents declares them interchangeable.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from zoomrank.compiled import compiled
from zoomrank.errors import MetricParameterError, TreeError, WidthError
from zoomrank.numbers import Array, whole_number
from zoomrank.spaces.ids import DocumentId, DocumentIds
from zoomrank.spaces.taxonomy import Path, plant
from zoomrank.spaces.topology import RootedTree, Shape, breadth_first_shape, node_depths, shape_from_breadth_first

LARGEST_TREE = 2**31 - 2  # nodes are 32-bit integers


class DocumentTree(RootedTree):
    """A tree of documents with the metric that its widths define.

    >>> tree = DocumentTree.exponential(depth=3, branching=2, epsilon=0.5)
    >>> len(tree), tree.distance(0, 1), tree.distance(0, 7)
    (8, 0.25, 1.0)
    """

    def __init__(
        self, shape: Shape, width: Array, ids: DocumentIds | None = None, names: Sequence[str] | None = None
    ) -> None:
        super().__init__(shape, DocumentIds(len(shape.leaf)) if ids is None else ids, names)
        self.width = _checked_widths(shape, width)  # W(u) of each node
        self.recipe: dict[str, Any] | None = None  # the arguments of `exponential`, if that made it
        self.grown_from: DocumentTree | None = None  # the tree that this one has more documents than

    @classmethod
    def exponential(
        cls, depth: int = 15, branching: int = 2, epsilon: float = 0.837, constant: float = 1.0
    ) -> DocumentTree:
        """Build the complete tree with the ε-exponential metric of Eq. 2; documents are numbered 0, 1, 2, …

        >>> DocumentTree.exponential(depth=2, branching=3)
        DocumentTree(9 documents, 13 nodes, depth 2)
        """
        depth, branching = whole_number(depth, "depth"), whole_number(branching, "branching")
        if depth < 0 or branching < 1:
            raise MetricParameterError(f"A tree of depth {depth} with {branching} children a node cannot be built.")
        level = _exponential_widths(depth, epsilon, constant)
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
        """Build any tree: `parents[i]` is the parent of node i, -1 for the root; nodes without children are documents.

        `width` has a number per node (0 for documents); without it, the ε-exponential metric is used. `ids` names the
        documents in the order of their nodes; without it a document's id is its node's number in `parents`. `names`
        has a string per node, for print only.

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
            widths = _checked_widths(shape, given[order], called=order)
        if names is not None and len(names) != len(order):
            raise WidthError(f"{len(names)} names were given for {len(order)} nodes.")
        tree = cls(shape, widths, document_ids(shape, order, ids), None if names is None else [names[i] for i in order])
        tree.given_numbers = order
        return tree

    @classmethod
    def from_paths(
        cls,
        paths: Mapping[Any, Path] | Iterable[Path],
        *,
        separator: str = " > ",
        categories: str = "refuse",
        epsilon: float = 0.837,
        constant: float = 1.0,
    ) -> DocumentTree:
        """Build a tree from taxonomy paths such as `"Animals > Birds > Owls"`, or sequences of names.

        A mapping {document id: path} hangs each document below the category its path names. Plain paths are themselves
        the documents, with the path as id; one that continues into another is a category, and is refused unless
        `categories="skip"` says to leave categories out.

        >>> tree = DocumentTree.from_paths({"owl.html": "Animals > Birds", "pike.html": "Animals > Fish"})
        >>> tree.name(tree.leaf("owl.html"))
        'Animals > Birds > owl.html'
        """
        parents, names, ids = plant(paths, separator, categories)
        return cls.from_parents(parents, epsilon=epsilon, constant=constant, ids=ids, names=names)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of shape, widths and ids: two trees that share it are the same."""
        digest = hashlib.sha256()
        for array in (*self.shape, self.width):
            digest.update(array.tobytes())
        if self.recipe is None:
            for document in self.documents:
                digest.update(repr(document).encode() + b"\0")
        return digest.hexdigest()[:32]

    def with_width(self, width: Array) -> DocumentTree:
        """Build the same tree with other widths, one per node in this tree's own numbering."""
        return DocumentTree(self.shape, np.array(width, dtype=np.float64), self.documents, self.names)

    def grown(self, near: Mapping[DocumentId, DocumentId]) -> DocumentTree:
        """Build a tree with more documents: each new one stands beside the one that it is near to, in its category.

        >>> tree = DocumentTree.from_parents([-1, 0, 0, 1, 1], ids=["sun", "rain", "snow"])
        >>> more = tree.grown({"hail": "rain"})
        >>> more.distance("hail", "snow") == tree.distance("rain", "snow")
        True
        """
        if self.nodes == 1:
            raise TreeError("A tree of a single document has no category to put another one in.")
        shape = self.shape
        parents = shape.parent.astype(np.int64)
        parents[0] = -1
        homes = [parents[self.leaf(neighbour)] for neighbour in near.values()]
        place = np.argsort(shape.leaf)  # ids are given in the order of nodes
        tree = DocumentTree.from_parents(
            np.concatenate([parents, np.array(homes, dtype=np.int64)]),
            width=np.concatenate([self.width, np.zeros(len(homes))]),
            ids=[*self.documents.at(place), *near],
            names=None if self.names is None else [*self.names, *map(str, near)],
        )
        tree.grown_from = self
        return tree

    def with_documents(self, ids: Sequence[DocumentId]) -> DocumentTree:
        """Build the same tree with other documents in the places of its own, left to right."""
        return DocumentTree(self.shape, self.width, DocumentIds(len(self), ids), self.names)

    def distance(self, one: DocumentId, other: DocumentId) -> float:
        """D(x, y): the width of the smallest subtree that holds both; 0 for a document and itself."""
        return float(self.width[self.common_ancestor(one, other)])

    def distances(self, document: DocumentId) -> Array:
        """D(x, y) for every document y, in the order of `documents`."""
        return _distances(self.shape, self.width, self.leaf(document))

    def distance_matrix(self) -> Array:
        """D between all pairs of documents, in the order of `documents`: for small collections."""
        return np.stack([_distances(self.shape, self.width, leaf) for leaf in self.shape.leaf])


def document_ids(shape: Shape, order: Array, ids: Sequence[DocumentId] | None) -> DocumentIds:
    """Ids of the leaves, left to right, from a caller who lists them in the order of her own node numbers."""
    numbers = order[shape.leaf]
    if ids is None:
        return DocumentIds(len(numbers), numbers)
    DocumentIds(len(numbers), ids)  # refuses a wrong number of ids before they are shuffled
    rank = np.argsort(np.argsort(numbers, kind="stable"), kind="stable")
    return DocumentIds(len(numbers), [ids[i] for i in rank])


def exponential_widths(shape: Shape, epsilon: float, constant: float) -> Array:
    """The width c · ε^depth of every node of any tree, 0 for documents."""
    depth = node_depths(shape.parent)
    width = _exponential_widths(int(depth[-1]), epsilon, constant)[depth]
    width[shape.leaf] = 0.0
    return width


def _exponential_widths(depth: int, epsilon: float, constant: float) -> Array:
    if not 0 < epsilon < 1:
        raise MetricParameterError(f"epsilon must lie strictly between 0 and 1, not {epsilon}.")
    if not 0 < constant < np.inf:
        raise MetricParameterError(f"The constant must be a positive number, not {constant}.")
    widths = constant * epsilon ** np.arange(depth + 1.0)
    if widths[-1] == 0.0:
        raise MetricParameterError(
            f"{epsilon} to the power of {depth} is 0 to a computer: this tree is too deep for it."
        )
    return np.asarray(widths)


def _checked_widths(shape: Shape, width: Array, called: Array | None = None) -> Array:
    """Refuse widths that are no widths; `called` has the numbers by which the caller knows the nodes."""

    def name(node: int) -> str:
        return f"node {node if called is None else called[node]}"

    if width.shape != shape.parent.shape:
        raise WidthError(f"Widths of shape {width.shape} were given for {len(shape.parent)} nodes.")
    bad = np.flatnonzero(~(np.isfinite(width) & (width >= 0)))
    if len(bad):
        raise WidthError(f"The width of {name(bad[0])} is {width[bad[0]]}; it must be a finite number, 0 or more.")
    wide = shape.leaf[width[shape.leaf] != 0]
    if len(wide):
        raise WidthError(f"A document has width 0, but that of {name(wide[0])}, a leaf, is {width[wide[0]]}.")
    growing = np.flatnonzero(width > width[shape.parent])
    if len(growing):
        up = int(shape.parent[growing[0]])
        raise WidthError(
            f"Widths must not grow downwards, but {name(growing[0])} has width {width[growing[0]]} "
            f"below {name(up)} with width {width[up]}."
        )
    width = np.ascontiguousarray(width, dtype=np.float64)
    width.flags.writeable = False
    return width


@compiled
def _distances(shape: Shape, width: Array, leaf: int) -> Array:
    """Climb from the leaf; each ancestor settles the documents that the node before did not hold."""
    distance = np.zeros(len(shape.leaf))
    below = leaf
    while below > 0:
        node = shape.parent[below]
        distance[shape.first_document[node] : shape.first_document[below]] = width[node]
        distance[shape.end_document[below] : shape.end_document[node]] = width[node]
        below = node
    return distance
