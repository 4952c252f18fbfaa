"""The distances that Theorem 3.1 speaks of: how far a tree network can be from L-correlated, at most."""

from collections.abc import Iterable

import numpy as np
from scipy.sparse.csgraph import shortest_path

from zoomrank.errors import ParameterError
from zoomrank.numbers import Array
from zoomrank.spaces import DocumentId, FiniteMetric, Space
from zoomrank.users.distribution import mean_array


class ExpressivenessBound:
    """`factor · D_μ(x, y)` with `D_μ(x, y) = D(x, y) · min(1/α, 3 / (μ(x) + μ(y)))` (Eq. 10); a `Space` of its own.

    Theorem 3.1: a tree network is conditionally L-correlated for factor 3; on random trees of stretch c, for 3·c.
    """

    def __init__(self, space: Space, mean: Iterable[float] | Array, factor: float = 3.0) -> None:
        self.space = space
        self.documents = space.documents
        self.mean = mean_array(space.documents, mean)
        self.factor = factor
        self._alpha = float(self.mean.min())
        if self._alpha <= 0:
            raise ParameterError("The theorem needs means above 0.")

    def __len__(self) -> int:
        """How many documents there are."""
        return len(self.documents)

    def distance(self, one: DocumentId, other: DocumentId) -> float:
        """factor · D_μ(x, y)."""
        return float(self.distances(one)[self.documents.position(other)])

    def distances(self, document: DocumentId) -> Array:
        """factor · D_μ(x, y) for every document y."""
        both = self.mean[self.documents.position(document)] + self.mean
        return np.asarray(self.factor * self.space.distances(document) * np.minimum(1 / self._alpha, 3 / both))

    def distance_matrix(self) -> Array:
        """factor · D_μ between all pairs."""
        matrix = np.stack([self.distances(document) for document in self.documents])
        return np.asarray(np.minimum(matrix, matrix.T))

    def closure(self) -> FiniteMetric:
        """The shortest-paths metric that D_μ induces: by the remark after Theorem 3.1, the theorem holds for it too."""
        closure = shortest_path(self.distance_matrix())
        return FiniteMetric.from_matrix(np.minimum(closure, closure.T), self.documents)


class Stretched:
    """A space with all distances multiplied by one factor: the 2·D of the equivalence lemma, for example."""

    def __init__(self, space: Space, factor: float) -> None:
        if not factor > 0:
            raise ParameterError(f"Distances can be stretched by a positive factor, not by {factor}.")
        self.space, self.factor, self.documents = space, factor, space.documents

    def __len__(self) -> int:
        """How many documents there are."""
        return len(self.documents)

    def distance(self, one: DocumentId, other: DocumentId) -> float:
        """factor · D(x, y)."""
        return self.factor * self.space.distance(one, other)

    def distances(self, document: DocumentId) -> Array:
        """factor · D(x, y) for every document y."""
        return self.factor * self.space.distances(document)

    def distance_matrix(self) -> Array:
        """factor · D between all pairs."""
        return self.factor * self.space.distance_matrix()
