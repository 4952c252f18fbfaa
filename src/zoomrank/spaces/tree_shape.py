"""`Shape`: a rooted tree whose leaves are the documents, as five flat integer arrays and nothing else.

Nodes are numbered breadth first. Three things follow, and everything fast in zoomrank rests on them:

- the children of a node are a range of numbers, so the j-th child is one addition;
- a parent's number is smaller than its child's, so one pass forwards goes down the tree, one backwards goes up,
  and the least common ancestor is found by lifting whichever number is larger;
- documents are numbered left to right, so the documents below a node are a range as well.

Beside it stand the widths of subtrees, the largest distance of documents below a node, checked or computed by the
ε-exponential rule; and trees from taxonomy paths: "Animals > Birds > Owls" becomes a chain of nodes, shared where paths
agree.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from zoomrank.compiled import compiled_bulk, inlined
from zoomrank.errors import (
    DuplicateDocumentError,
    EmptyCollectionError,
    MetricParameterError,
    TaxonomyError,
    TreeError,
    WidthError,
)
from zoomrank.spaces.ids import DocumentId
from zoomrank.types import Array


class Shape(NamedTuple):
    """Arrays of a tree for kernels, in unsigned 32-bit integers, so that indexing needs no check for negative numbers.

    Attributes
    ----------
    parent : ndarray
        The parent of each node; the root is its own.
    child_start : ndarray
        The children of a node `u` are `child_start[u]` to `child_start[u + 1] - 1`.
    first_document, end_document : ndarray
        The documents below a node `u` stand at the positions `first_document[u]` to `end_document[u] - 1`.
    leaf : ndarray
        The node of each document.

    Examples
    --------
    >>> from zoomrank.spaces import DocumentTree
    >>> shape = DocumentTree.exponential(depth=2, branching=2).shape
    >>> shape.parent.tolist(), shape.leaf.tolist()
    ([0, 0, 0, 1, 1, 2, 2], [3, 4, 5, 6])
    """

    parent: Array
    child_start: Array
    first_document: Array
    end_document: Array
    leaf: Array


@compiled_bulk
def _breadth_first(parent: Array, root: int) -> tuple[Array, Array, Array, int]:
    """Number the nodes breadth first; return the caller's number of each, parents, child ranges, and how many were
    reached.
    """
    nodes = len(parent)
    place = np.zeros(nodes + 1, np.int32)
    for node in range(nodes):
        if parent[node] >= 0:
            place[parent[node] + 1] += 1
    for node in range(nodes):
        place[node + 1] += place[node]
    children = np.empty(max(nodes - 1, 1), np.int32)
    for node in range(nodes):  # afterwards place[v] is the end of the children of v
        if parent[node] >= 0:
            children[place[parent[node]]] = node
            place[parent[node]] += 1
    order = np.empty(nodes, np.int32)
    up = np.empty(nodes, np.uint32)
    child_start = np.full(nodes + 1, nodes, np.uint32)
    order[0] = root
    up[0] = 0
    reached = 1
    node = 0
    while node < reached:
        theirs = order[node]
        child_start[node] = reached
        for at in range(place[theirs - 1] if theirs > 0 else 0, place[theirs]):
            order[reached] = children[at]
            up[reached] = node
            reached += 1
        node += 1
    return order, up, child_start, reached


@compiled_bulk
def _documents_below(parent: Array, child_start: Array) -> tuple[Array, Array, Array]:
    """Return the range of documents below each node, and the node of each document."""
    nodes = len(parent)
    end = np.zeros(nodes, np.uint32)  # first the number of documents below, then the end of the range
    documents = 0
    for node in range(nodes - 1, -1, -1):
        if child_start[node] == child_start[node + 1]:
            end[node] = 1
            documents += 1
        if node > 0:
            end[parent[node]] += end[node]
    first = np.zeros(nodes, np.uint32)
    leaf = np.empty(documents, np.uint32)
    for node in range(nodes):
        at = first[node]
        for child in range(child_start[node], child_start[node + 1]):
            first[child] = at
            at += end[child]
        end[node] += first[node]
        if child_start[node] == child_start[node + 1]:
            leaf[first[node]] = node
    return first, end, leaf


@inlined
def least_common_ancestor(parent: Array, one: int, other: int) -> int:
    """Lift the larger number until both are equal: at most as many steps as both depths together."""
    while one != other:
        if one > other:
            one = parent[one]
        else:
            other = parent[other]
    return one


@compiled_bulk
def node_depths(parent: Array) -> Array:
    """Return the depth of each node."""
    depth = np.zeros(len(parent), np.int32)
    for node in range(1, len(parent)):
        depth[node] = depth[parent[node]] + 1
    return depth


def breadth_first_shape(parents: Array) -> tuple[Shape, Array]:
    """Convert a caller's parent array (the root has -1) to a shape; return it and the caller's number of each node."""
    given = np.asarray(parents)
    nodes = given.size
    if nodes == 0:
        raise EmptyCollectionError("There are no nodes; even a single document needs one, the root.")
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise TreeError("Parents must be a one-dimensional array of integers; the root's is -1.")
    lost = np.flatnonzero((given < -1) | (given >= nodes))
    if len(lost):
        raise TreeError(
            f"Node {lost[0]} has the parent {given[lost[0]]}, but nodes are numbered 0 to {nodes - 1} "
            "(the root's parent is -1)."
        )
    roots = np.flatnonzero(given == -1)
    if len(roots) == 0:
        raise TreeError("There is no root: no node has the parent -1, so the parents go round in a cycle.")
    if len(roots) > 1:
        raise TreeError(f"There are {len(roots)} roots, for example nodes {roots[0]} and {roots[1]}.")
    order, up, child_start, reached = _breadth_first(given.astype(np.int32, copy=False), int(roots[0]))
    if reached < nodes:
        raise TreeError(f"Nodes {_cycle(given, order[:reached])} form a cycle that the root does not reach.")
    return shape_from_breadth_first(up, child_start), order


def shape_from_breadth_first(parent: Array, child_start: Array) -> Shape:
    """Return the shape of a tree that is numbered breadth first already."""
    return Shape(parent, child_start, *_documents_below(parent, child_start))


def shape_of_some(shape: Shape, kept: Array) -> tuple[Shape, Array]:
    """Return the shape with only the documents at these positions, and the remaining nodes."""
    mask = np.zeros(len(shape.leaf), bool)
    mask[kept] = True
    before = np.concatenate([[0], np.cumsum(mask)])
    alive = before[shape.end_document] > before[shape.first_document]
    nodes = np.flatnonzero(alive)  # still breadth first
    number = np.cumsum(alive) - 1
    parent = number[shape.parent[nodes]].astype(np.uint32)
    children = np.bincount(parent[1:], minlength=len(nodes))
    child_start = np.concatenate([[1], 1 + np.cumsum(children)]).astype(np.uint32)
    return shape_from_breadth_first(parent, child_start), nodes


def _cycle(parents: Array, reached: Array) -> str:
    outside = np.ones(len(parents), bool)
    outside[reached] = False
    node, seen = int(np.flatnonzero(outside)[0]), []
    while node not in seen:
        seen.append(node)
        node = int(parents[node])
    ring = seen[seen.index(node) :]
    return " -> ".join(str(node) for node in ring[:6]) + (" -> ..." if len(ring) > 6 else "")


# Widths.


def exponential_widths(shape: Shape, epsilon: float, constant: float) -> Array:
    """Compute the width c · ε^depth of every node of any tree, 0 for documents."""
    depth = node_depths(shape.parent)
    width = level_widths(int(depth[-1]), epsilon, constant)[depth]
    width[shape.leaf] = 0.0
    return width


def level_widths(depth: int, epsilon: float, constant: float) -> Array:
    """Compute the width c · ε^depth of each level, from the root down to this depth."""
    if not 0 < epsilon < 1:
        raise MetricParameterError(f"epsilon must lie strictly between 0 and 1, not {epsilon}.")
    if not 0 < constant < np.inf:
        raise MetricParameterError(f"The constant must be a positive number, not {constant}.")
    widths = constant * epsilon ** np.arange(depth + 1.0)
    if widths[-1] == 0.0:
        raise MetricParameterError(
            f"{epsilon} to the power of {depth} underflows to 0: use a larger epsilon or a smaller depth."
        )
    return np.asarray(widths)


def checked_widths(shape: Shape, width: Array, called: Array | None = None) -> Array:
    """Raise an error if widths are invalid; `called` has the caller's node numbers."""

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


# Taxonomy paths.

TaxonomyPath = str | Sequence[str]


def nodes_of_paths(
    paths: Mapping[DocumentId, TaxonomyPath] | Iterable[TaxonomyPath], separator: str, categories: str
) -> tuple[list[int], list[str], list[DocumentId]]:
    """Return the parent of each node, the name of each node, and the ids of the leaves in the order of their nodes."""
    if categories not in ("refuse", "skip"):
        raise TaxonomyError(f'categories must be "refuse" or "skip", not {categories!r}.')
    if not separator:
        raise TaxonomyError("The separator between the steps of a path must not be empty.")
    parents, names = [-1], [""]
    child: dict[tuple[int, str], int] = {}

    def grow(steps: Sequence[str]) -> int:
        node = 0
        for step in steps:
            if (node, step) not in child:
                child[node, step] = len(parents)
                parents.append(node)
                names.append(step)
            node = child[node, step]
        return node

    if isinstance(paths, Mapping):
        homes = {document: grow(steps_of(path, separator)) for document, path in paths.items()}
        for document, home in homes.items():
            parents.append(home)
            names.append(str(document))
        ids = list(homes)
    else:
        ids, nodes = [], []
        for path in paths:
            nodes.append(grow(steps_of(path, separator)))
            ids.append(path if isinstance(path, str) else tuple(path))
        ids = _documents_only(nodes, ids, set(parents), categories)
    if not ids:
        raise EmptyCollectionError("There are no documents among the paths.")
    return parents, names, ids


def _documents_only(
    nodes: Sequence[int], ids: Sequence[DocumentId], inner: set[int], categories: str
) -> list[DocumentId]:
    """Keep the ids whose node has no children, in the order of their nodes."""
    kept: dict[int, DocumentId] = {}
    for node, document in zip(nodes, ids, strict=True):
        if node in inner:
            if categories == "refuse":
                raise TaxonomyError(
                    f"{document!r} is a document and also a category of others. Leave categories out with "
                    'categories="skip", or give {id: path} to hang documents below any category.'
                )
            continue
        if node in kept:
            raise DuplicateDocumentError(f"The path {document!r} is given twice.")
        kept[node] = document
    return [kept[node] for node in sorted(kept)]


def steps_of(path: TaxonomyPath, separator: str = " > ") -> list[str]:
    """Return the names along a path, from the top."""
    steps = path.split(separator) if isinstance(path, str) else list(path)
    if not all(isinstance(step, str) for step in steps):
        raise TaxonomyError(f"The path {path!r} has a step that is not a string.")
    steps = [step.strip() for step in steps]
    if not steps or not all(steps):
        raise TaxonomyError(f"The path {path!r} has an empty step.")
    return steps
