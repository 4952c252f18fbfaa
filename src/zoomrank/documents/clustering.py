"""Trees from vectors: close vectors share small subtrees, and the width of a subtree bounds its documents' distances.

Up to two thousand documents are linked exactly, by average linkage; the width of a subtree is its largest distance.
Linkage merges two clusters at a time, which makes n - 1 nested subtrees, many hardly smaller than the one above. A
subtree is kept only if it is clearly narrower than the kept one that contains it; the others dissolve into that one.
Distances that double from document to document defeat that rule, as every subtree is half the one above: then the rule
is made stricter until the depth is logarithmic.

More are split from the top: k-means on a sample finds
about eight centres, every document goes to the nearest, and so on in each part, until parts are small enough to link.
Where k-means leaves nearly all documents in one part, they are halved along their direction of largest variance
instead, so that the depth is logarithmic for any data.

The width of a subtree is an upper bound of its diameter: the exact one where it was linked, otherwise twice the largest
distance to its centre. Random choices depend only on the seed and on the place in the tree.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import numpy as np

from zoomrank.compiled import compiled_bulk
from zoomrank.documents.vectors import VectorRows
from zoomrank.errors import EmptyCollectionError, MetricError, MissingExtraError, ParameterError
from zoomrank.spaces.document_tree import DocumentTree
from zoomrank.spaces.ids import DocumentId, DocumentIds
from zoomrank.spaces.tree_shape import breadth_first_shape
from zoomrank.types import Array, whole_number

CLEARLY_NARROWER = 0.95  # of the width above
DISSOLVED = -2
ASYMMETRY = 1e-6  # allowed asymmetry of a distance, relative to the largest


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
    import scipy.cluster.hierarchy
    import scipy.spatial.distance

    merges = scipy.cluster.hierarchy.linkage(distances, method="average")[:, :2].astype(np.int64)
    diameter = _diameters(merges, scipy.spatial.distance.squareform(distances))
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
    refuse(difference > ASYMMETRY * distances.max(), "that in the other direction differs")
    return np.maximum(distances, distances.T)


@compiled_bulk
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


@compiled_bulk
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


LINKED_WHOLE = 2000  # collections up to this size are linked exactly
LINKED_PART = 64  # parts of larger collections up to this size, too
SAMPLE = 512  # vectors per centre in the sample of k-means
LARGEST_SHARE = 0.9  # largest share of the documents in one part of a split
ROUNDING = 1 + 1e-5  # keeps a width in float32 above the distances that it bounds

Progress = Callable[[int], Any]
GivenIds = Sequence[DocumentId] | Array | None  # in the order of the rows


def tree_from_vectors(
    vectors: Array,
    ids: GivenIds = None,
    *,
    normalise: bool = True,
    branching: int = 8,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[DocumentTree, Array]:
    """Build a tree over the rows of a matrix, by their Euclidean distances.

    Parameters
    ----------
    vectors : ndarray
        A row for each document.
    ids : sequence of DocumentId, optional
        The ids of the documents in the order of the rows; by default the numbers of the rows.
    normalise : bool
        Whether to use only the directions of the vectors.
    branching : int
        The approximate number of parts into which a large subtree is split.
    seed : int
        The seed of the random numbers.
    progress : callable, optional
        Called now and then with the number of documents placed so far.

    Returns
    -------
    tree : DocumentTree
        The tree. The width of a subtree is at least the largest distance of its documents.
    rows : ndarray of int
        The row of each leaf, left to right.

    Examples
    --------
    >>> tree, rows = tree_from_vectors(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]]), ids=["a", "b", "c"])
    >>> round(tree.distance("a", "c"), 3), tree.distance("b", "c")
    (1.414, 0.0)
    """
    branching = whole_number(branching, "branching")
    if branching < 2:
        raise ParameterError(f"A subtree cannot be split into {branching} parts; branching must be 2 or more.")
    rows = VectorRows(vectors, normalise)
    growth = _TreeBuilder(rows, branching, whole_number(seed, "seed"), progress)
    with nullcontext() if len(rows) <= LINKED_WHOLE else _one_thread():
        parents, widths = growth.grown()
    return tree_and_rows(parents, widths, len(rows), ids)


def tree_and_rows(parents: Array, widths: Array, documents: int, ids: GivenIds = None) -> tuple[DocumentTree, Array]:
    """Build a tree from parents and widths, where documents are the first nodes; return it with the leaves' rows."""
    shape, order = breadth_first_shape(parents)
    rows = order[shape.leaf]
    return DocumentTree(shape, widths[order], DocumentIds(documents, ids_of_rows(ids, rows))), rows


def ids_of_rows(ids: GivenIds, rows: Array) -> list[DocumentId] | Array:
    """Return the ids of these rows; a row without an id has its number."""
    if ids is None:
        return rows
    return ids[rows] if isinstance(ids, np.ndarray) else [ids[row] for row in rows]


class _TreeBuilder:
    """A growing tree: documents are nodes 0 to n - 1, subtrees are numbered as they are made."""

    def __init__(self, rows: VectorRows, branching: int, seed: int, progress: Progress | None) -> None:
        count = len(rows)
        self.rows, self.branching, self.seed, self.progress = rows, branching, seed, progress
        self.parent = np.full(2 * count, -1, np.int32)
        self.width = np.zeros(2 * count)
        self.order = np.arange(count)  # documents; those of a subtree are contiguous
        self.made = count
        self.done = 0

    def grown(self) -> tuple[Array, Array]:
        count = len(self.rows)
        if count == 1:
            return np.array([-1], np.int32), np.zeros(1)
        waiting = [(self._sprout(-1), 0, count)]
        if count <= LINKED_WHOLE:
            self._link(*waiting.pop())
        while waiting:
            node, start, end = waiting.pop()
            if end - start <= LINKED_PART:
                self._link(node, start, end)
            else:
                waiting.extend(self._split(node, start, end))
        return self.parent[: self.made], self.width[: self.made]

    def _sprout(self, parent: int) -> int:
        self.parent[self.made] = parent
        self.made += 1
        return self.made - 1

    def _narrowed(self, node: int, width: float) -> float:
        """Cap a width by the parent's, which bounds the same distances."""
        above = self.parent[node]
        return width if above < 0 else min(width, float(self.width[above]))

    def _settle(self, documents: int) -> None:
        self.done += documents
        if self.progress is not None:
            self.progress(self.done)

    def _link(self, node: int, start: int, end: int) -> None:
        """Link a small part exactly."""
        import scipy.spatial.distance

        members = self.order[start:end]
        count = len(members)
        parents, widths = linked(scipy.spatial.distance.pdist(self.rows.take(members).astype(np.float64)))
        inner = len(parents) - count
        number = np.concatenate([members, [node], np.arange(self.made, self.made + inner - 1)])
        self.made += inner - 1
        self.parent[number[parents >= 0]] = number[parents[parents >= 0]]
        self.width[number[count:]] = np.minimum(widths[count:] * ROUNDING, self._narrowed(node, np.inf))
        self._settle(count)

    def _split(self, node: int, start: int, end: int) -> list[tuple[int, int, int]]:
        """Split a large part; return the subtrees still to be split."""
        members = self.order[start:end]
        count = len(members)
        centre, radius = self._ball(members)
        self.width[node] = self._narrowed(node, 2 * radius * ROUNDING)
        if radius == 0:  # all are equal, so subtrees would be arbitrary
            self.parent[members] = node
            self._settle(count)
            return []
        rng = np.random.default_rng([self.seed, start, end])
        sample = members[np.sort(rng.choice(count, min(count, SAMPLE * self.branching), replace=False))]
        sample = self.rows.take(sample) - centre
        unit = np.abs(sample).max() or 1  # makes numbers at most 1, so that no sum of squares overflows
        sample = sample / unit
        part = self._nearest(members, centre, unit * _centres(sample, self.branching, int(rng.integers(2**31))))
        sizes = np.bincount(part)
        if sizes.max() > LARGEST_SHARE * count:
            part = self._halves(members, _principal_direction(sample))
            sizes = np.bincount(part)
        members = members[np.argsort(part, kind="stable")]
        self.order[start:end] = members
        waiting = []
        for size in sizes[sizes > 0].tolist():
            if size == 1:
                self.parent[self.order[start]] = node
                self._settle(1)
            else:
                waiting.append((self._sprout(node), start, start + size))
            start += size
        return waiting

    def _ball(self, members: Array) -> tuple[Array, float]:
        """Return the mean of these documents, and a radius that bounds all distances to the mean, or to the first of
        them.
        """
        total = np.zeros(self.rows.vectors.shape[1])
        first = self.rows.take(members[:1])
        reach = radius = 0.0
        for _, block in self.rows.pieces(members):
            total += block.sum(axis=0, dtype=np.float64)
            block -= first
            reach = max(reach, float(np.einsum("ij,ij->i", block, block).max()))
        centre = (total / len(members)).astype(self.rows.dtype)
        for _, block in self.rows.pieces(members):
            block -= centre
            radius = max(radius, float(np.einsum("ij,ij->i", block, block).max()))
        return centre, float(np.sqrt(min(reach, radius)))

    def _nearest(self, members: Array, centre: Array, centres: Array) -> Array:
        part = np.empty(len(members), np.int64)
        half_squares = np.einsum("ij,ij->i", centres, centres) / 2
        for start, block in self.rows.pieces(members):
            block -= centre  # far from the origin, products would lose the digits that matter
            part[start : start + len(block)] = np.argmax(block @ centres.T - half_squares, axis=1)
        return part

    def _halves(self, members: Array, direction: Array) -> Array:
        """Return which half each document is in, along a direction."""
        along = np.empty(len(members), self.rows.dtype)
        for start, block in self.rows.pieces(members):
            along[start : start + len(block)] = block @ direction
        part = np.ones(len(members), np.int64)
        part[np.argsort(along, kind="stable")[: len(members) // 2]] = 0
        return part


def _one_thread() -> AbstractContextManager[Any]:
    """Keep products and k-means to one thread: with more, sums are rounded differently, and the tree would change."""
    try:
        import sklearn.cluster  # noqa: F401  first: only libraries that are loaded are limited
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise MissingExtraError(
            f"More than {LINKED_WHOLE} vectors need scikit-learn: pip install 'zoomrank[documents]'."
        ) from error
    return cast("AbstractContextManager[Any]", threadpool_limits(1))


def _centres(sample: Array, branching: int, seed: int) -> Array:
    from sklearn.cluster import KMeans

    kmeans = KMeans(min(branching, len(sample)), n_init=1, max_iter=25, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer distinct vectors than centres: halving handles it
        return np.asarray(kmeans.fit(sample).cluster_centers_)


def _principal_direction(sample: Array) -> Array:
    """Approximate the direction of largest variance: some steps of the power method from the farthest vector."""
    centred = sample - sample.mean(axis=0)
    squares = np.einsum("ij,ij->i", centred, centred)
    direction = centred[np.argmax(squares)]
    for _ in range(12):
        length = np.linalg.norm(direction)
        if length == 0:
            break
        direction = centred.T @ (centred @ (direction / length))
    length = np.linalg.norm(direction)
    return np.asarray(direction / length if length > 0 else direction)
