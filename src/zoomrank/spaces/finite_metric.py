"""`FiniteMetric`: any finite set of documents with any metric, as a checked matrix of distances."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from zoomrank.compiled import compiled_bulk, expecting
from zoomrank.errors import EmptyCollectionError, MetricError
from zoomrank.spaces.ids import DocumentId, DocumentIds
from zoomrank.types import Array

Point = TypeVar("Point")

ROUNDING = 1e-9  # relative tolerance of the triangle inequality


class FiniteMetric:
    """Documents and the distances between them. Distances may be infinite (unknown), never negative.

    Usually made by `from_matrix`, `from_vectors`, `from_function` or `from_bounds`, which check that it is a metric.

    Parameters
    ----------
    matrix : ndarray
        Distances, known to be a metric.
    ids : DocumentIds
        The ids of the documents, in the order of the rows.

    Attributes
    ----------
    documents : DocumentIds
        The ids of the documents.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 2.

    Examples
    --------
    >>> FiniteMetric.from_matrix([[0, 1, 2], [1, 0, 1], [2, 1, 0]], ids="abc")
    FiniteMetric(3 documents, diameter 2)
    """

    def __init__(self, matrix: Array, ids: DocumentIds) -> None:
        self.matrix = matrix
        self.matrix.flags.writeable = False
        self.documents = ids

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.matrix)

    def __repr__(self) -> str:
        return f"FiniteMetric({len(self)} documents, diameter {self.matrix.max():.4g})"

    @classmethod
    def from_matrix(
        cls, matrix: Sequence[Sequence[float]] | Array, ids: Sequence[DocumentId] | None = None
    ) -> FiniteMetric:
        """Take a full matrix of distances, and check that it is a metric.

        Parameters
        ----------
        matrix : array-like
            The distance of each pair, in both directions.
        ids : sequence of DocumentId, optional
            Ids of the documents; by default a document's id is the number of its row.

        Returns
        -------
        FiniteMetric
            The space.
        """
        distances = np.array(matrix, dtype=np.float64)
        if distances.size == 0:
            raise EmptyCollectionError("There are no documents: a collection needs at least one.")
        if distances.ndim != 2 or distances.shape[0] != distances.shape[1]:
            raise MetricError(f"A distance matrix is square; this one has shape {distances.shape}.")
        documents = DocumentIds(len(distances), ids)
        _check(distances, documents)
        return cls(distances, documents)

    @classmethod
    def from_vectors(
        cls,
        vectors: Array,
        ids: Sequence[DocumentId] | None = None,
        metric: str = "euclidean",
        scale: float = 1.0,
    ) -> FiniteMetric:
        """Measure distances between vectors.

        Parameters
        ----------
        vectors : ndarray
            A row for each document.
        ids : sequence of DocumentId, optional
            Ids of the documents; by default a document's id is the number of its row.
        metric : str
            A metric of `scipy.spatial.distance.cdist`. Some of its functions are not metrics ("cosine" is not): the
            result is checked like any other.
        scale : float
            Factor on all distances.

        Returns
        -------
        FiniteMetric
            The space.
        """
        import scipy.spatial.distance

        points = np.asarray(vectors, dtype=np.float64)
        if points.ndim != 2 or not np.isfinite(points).all():
            raise MetricError("Vectors must be the rows of a matrix of finite numbers.")
        distances = scale * scipy.spatial.distance.cdist(points, points, metric=metric)
        np.fill_diagonal(distances, 0.0)
        return cls.from_matrix((distances + distances.T) / 2, ids)

    @classmethod
    def from_function(
        cls,
        points: Sequence[Point],
        distance: Callable[[Point, Point], float],
        ids: Sequence[DocumentId] | None = None,
    ) -> FiniteMetric:
        """Measure every ordered pair with a function.

        Parameters
        ----------
        points : sequence
            Arguments of the function, one for each document.
        distance : callable
            The distance of two points.
        ids : sequence of DocumentId, optional
            The ids of the documents; without them the points themselves are the ids.

        Returns
        -------
        FiniteMetric
            The space.
        """
        matrix = [[float(distance(one, other)) for other in points] for one in points]
        return cls.from_matrix(matrix, list(points) if ids is None else ids)

    @classmethod
    def from_bounds(
        cls, documents: Sequence[DocumentId], bounds: Mapping[tuple[DocumentId, DocumentId], float]
    ) -> FiniteMetric:
        """Build a metric from known bounds: |μ(x) - μ(y)| ≤ δ for some pairs of documents.

        The distance is the length of the shortest chain of known pairs, infinite where there is none.

        Parameters
        ----------
        documents : sequence of DocumentId
            The ids of the documents.
        bounds : mapping of pairs of DocumentId to float
            δ of each known pair, above 0.

        Returns
        -------
        FiniteMetric
            The space.

        References
        ----------
        Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 2, the footnote to Eq. 1.

        Examples
        --------
        >>> FiniteMetric.from_bounds("abc", {("a", "b"): 0.25, ("b", "c"): 0.5}).distance("a", "c")
        0.75
        """
        import scipy.sparse
        import scipy.sparse.csgraph

        ids = DocumentIds(len(documents), documents)
        best: dict[tuple[int, int], float] = {}
        for (one, other), bound in bounds.items():
            if not bound > 0:
                raise MetricError(f"The bound between {one!r} and {other!r} is {bound}; it must be positive.")
            a, b = sorted((ids.position(one), ids.position(other)))
            if a == b:
                raise MetricError(f"A bound between {one!r} and itself is always 0: leave it out.")
            best[a, b] = min(bound, best.get((a, b), np.inf))
        rows, columns = np.array(list(best), dtype=np.int64).reshape(-1, 2).T
        graph = scipy.sparse.coo_array((list(best.values()), (rows, columns)), shape=(len(ids), len(ids)))
        closure = scipy.sparse.csgraph.shortest_path(graph.tocsr(), directed=False)
        return cls.from_matrix((closure + closure.T) / 2, documents)

    def distance(self, one: DocumentId, other: DocumentId) -> float:
        """Measure D(x, y).

        Parameters
        ----------
        one, other : DocumentId
            The documents.

        Returns
        -------
        float
            Their distance.
        """
        return float(self.matrix[self.documents.position(one), self.documents.position(other)])

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
        return np.asarray(self.matrix[self.documents.position(document)])

    def distance_matrix(self) -> Array:
        """Measure D between all pairs of documents.

        Returns
        -------
        ndarray
            A row and a column for each document, in the order of `documents`.
        """
        return self.matrix


def _check(matrix: Array, ids: DocumentIds) -> None:
    """Raise an error that names the pair if the matrix is not a metric."""
    off_diagonal = ~np.eye(len(matrix), dtype=bool)
    rules = (
        (np.isnan(matrix), "D({one!r}, {other!r}) is not a number."),
        (matrix < 0, "D({one!r}, {other!r}) = {forth} is negative."),
        ((matrix != 0) & ~off_diagonal, "D({one!r}, {other!r}) = {forth}; a document is at distance 0 from itself."),
        (
            (matrix == 0) & off_diagonal,
            "D({one!r}, {other!r}) = 0, but only a document and itself may be at distance 0.",
        ),
        (
            matrix != matrix.T,
            "Distances must be symmetric, but D({one!r}, {other!r}) = {forth} and D({other!r}, {one!r}) = {back}.",
        ),
    )
    for broken, says in rules:
        if broken.any():
            i, j = np.argwhere(broken)[0]
            raise MetricError(says.format(one=ids[i], other=ids[j], forth=matrix[i, j], back=matrix[j, i]))
    with expecting(1e-7 * len(matrix) ** 3):
        worst, x, via, y = _worst_triangle(matrix)
    if worst > ROUNDING:
        raise MetricError(
            f"The triangle inequality fails: D({ids[x]!r}, {ids[y]!r}) = {matrix[x, y]} is more than "
            f"D({ids[x]!r}, {ids[via]!r}) + D({ids[via]!r}, {ids[y]!r}) = {matrix[x, via]} + {matrix[via, y]}."
        )


@compiled_bulk
def _worst_triangle(matrix: Array) -> tuple[float, int, int, int]:
    """Find the triple that breaks the triangle inequality most, relative to its own size."""
    count = len(matrix)
    worst, at = 0.0, (0, 0, 0)
    for via in range(count):
        for x in range(count):
            first = matrix[x, via]
            for y in range(x):
                detour = first + matrix[via, y]
                if matrix[x, y] > detour:
                    excess = 1.0 if np.isinf(matrix[x, y]) else (matrix[x, y] - detour) / matrix[x, y]
                    if excess > worst:
                        worst, at = excess, (y, via, x)
    return worst, at[0], at[1], at[2]
