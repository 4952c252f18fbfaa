"""Distances of Theorem 3.1, for which a tree network is conditionally L-correlated."""

from collections.abc import Iterable, Mapping

import numpy as np
from scipy.sparse.csgraph import shortest_path

from zoomrank.errors import ParameterError
from zoomrank.numbers import Array
from zoomrank.spaces import DocumentId, FiniteMetric, Space
from zoomrank.users.distribution import mean_array


class ExpressivenessBound:
    """The distances `factor · D_μ(x, y)` with `D_μ(x, y) = D(x, y) · min(1/α, 3 / (μ(x) + μ(y)))`, as a `Space`.

    By Theorem 3.1 a tree network is conditionally L-correlated for factor 3; on random trees of stretch c, for 3·c.

    Parameters
    ----------
    space : Space
        Documents, and distances D.
    mean : mapping, sequence or array of float
        μ(x) above 0, by document or in the order of `space.documents`; α is the smallest of them.
    factor : float
        The factor on D_μ.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 3.1, Theorem 3.1, Eq. 10.

    Examples
    --------
    >>> from zoomrank.spaces import DocumentTree
    >>> from zoomrank.users import TreeNetwork, check_correlation
    >>> tree = DocumentTree.exponential(depth=2, epsilon=0.5)
    >>> users = TreeNetwork(tree, [0.5, 0.4, 0.1, 0.1], extension="lipschitz")
    >>> check_correlation(users, ExpressivenessBound(tree, users.mean())).holds
    True
    """

    def __init__(
        self, space: Space, mean: Mapping[DocumentId, float] | Iterable[float] | Array, factor: float = 3.0
    ) -> None:
        self.space = space
        self.documents = space.documents
        self.mean = mean_array(space.documents, mean)
        self.factor = factor
        self._alpha = float(self.mean.min())
        if self._alpha <= 0:
            raise ParameterError("All means must be above 0 for the theorem to apply.")

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.documents)

    def distance(self, one: DocumentId, other: DocumentId) -> float:
        """Measure factor · D_μ(x, y).

        Parameters
        ----------
        one, other : DocumentId
            The documents.

        Returns
        -------
        float
            Their distance.
        """
        return float(self.distances(one)[self.documents.position(other)])

    def distances(self, document: DocumentId) -> Array:
        """Measure factor · D_μ(x, y) from one document to all.

        Parameters
        ----------
        document : DocumentId
            The document x.

        Returns
        -------
        ndarray
            A distance for each document, in the order of `documents`.
        """
        both = self.mean[self.documents.position(document)] + self.mean
        return np.asarray(self.factor * self.space.distances(document) * np.minimum(1 / self._alpha, 3 / both))

    def distance_matrix(self) -> Array:
        """Measure factor · D_μ between all pairs of documents.

        Returns
        -------
        ndarray
            A row and a column for each document, in the order of `documents`.
        """
        matrix = np.stack([self.distances(document) for document in self.documents])
        return np.asarray(np.minimum(matrix, matrix.T))

    def closure(self) -> FiniteMetric:
        """Build the shortest-paths metric that D_μ induces, for which the theorem holds too.

        Returns
        -------
        FiniteMetric
            The metric, times the factor.

        References
        ----------
        Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 3.1, the remark after Theorem 3.1.
        """
        closure = shortest_path(self.distance_matrix())
        return FiniteMetric.from_matrix(np.minimum(closure, closure.T), self.documents)
