"""`MetricNetwork`: Algorithm 2 of the paper. Visitors over any metric space, with a new random tree for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NoReturn, overload

import numpy as np

from zoomrank.errors import ContinuityError, ParameterError
from zoomrank.spaces import DocumentId, FiniteMetric, random_tree
from zoomrank.spaces.ids import Positions
from zoomrank.types import Array, Seed
from zoomrank.users.distribution import UserDistribution, mean_array
from zoomrank.users.mixture import Mixture
from zoomrank.users.tree_network import TreeNetwork, check_mean_range


class MetricNetwork(UserDistribution):
    """Each visitor draws a tree that dominates the metric, then a relevance vector from the network on that tree.

    Means are exact. Conditional means have no closed form, as they average over all trees. Use `frozen` for these: the
    same model over a fixed number of trees, which is a mixture, and exact.

    Parameters
    ----------
    space : FiniteMetric
        The documents and their distances.
    mean : mapping, sequence or array of float
        μ(x) in (0, ½], by document or in the order of `space.documents`; L-continuous in this space.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 3.2, Algorithm 2.

    Examples
    --------
    >>> line = FiniteMetric.from_function([0, 1, 2, 3], lambda x, y: 0.1 * abs(x - y))
    >>> users = MetricNetwork(line, mean=[0.5, 0.4, 0.3, 0.2])
    >>> users.mean(1), round(users.frozen(trees=10, seed=0).mean(1), 12)
    (0.4, 0.4)
    """

    def __init__(self, space: FiniteMetric, mean: Mapping[DocumentId, float] | Iterable[float] | Array) -> None:
        super().__init__(space.documents)
        self.space = space
        self._mean = mean_array(space.documents, mean)
        check_mean_range(space.documents, self._mean)
        excess = np.abs(self._mean[:, None] - self._mean[None, :]) - space.distance_matrix()
        x, y = np.unravel_index(int(excess.argmax()), excess.shape)
        if excess[x, y] > 1e-12:
            raise ContinuityError(
                f"The mean relevance is not L-continuous: those of {space.documents[int(x)]!r} and "
                f"{space.documents[int(y)]!r} differ by {excess[x, y]:.3g} more than their distance."
            )

    @overload
    def mean(self) -> Array: ...

    @overload
    def mean(self, document: DocumentId) -> float: ...

    def mean(self, document: DocumentId | None = None) -> Array | float:
        """Return μ(x), the same on every tree."""
        return self._mean.copy() if document is None else float(self._mean[self.documents.position(document)])

    def network(self, rng: np.random.Generator) -> TreeNetwork:
        """Draw one random tree, and the network on it, as for one visitor.

        Parameters
        ----------
        rng : Generator
            The source of random numbers.

        Returns
        -------
        TreeNetwork
            The network. Its documents may come in another order.
        """
        tree = random_tree(self.space, rng)
        return TreeNetwork(tree, self._mean[self.documents.positions(tree.documents)], extension="lipschitz")

    def frozen(self, trees: int, seed: Seed = None) -> Mixture:
        """Build the same model over a fixed number of random trees: exact in everything, compiled for clicks.

        Parameters
        ----------
        trees : int
            Number of trees to draw.
        seed : int, Generator or None
            The seed of the random numbers.

        Returns
        -------
        Mixture
            A network on each of the trees, with equal shares.
        """
        if trees < 1:
            raise ParameterError(f"{trees} trees are too few; ask for at least 1.")
        rng = np.random.default_rng(seed)
        networks = [self.network(rng) for _ in range(trees)]
        return Mixture(networks, np.full(trees, 1 / trees), self.documents)

    def draw(self, visitors: int, rng: np.random.Generator) -> Array:
        """Draw whole relevance vectors, each from a tree of its own."""
        relevance = np.empty((visitors, len(self)), np.bool_)
        for visitor in range(visitors):
            network = self.network(rng)
            relevance[visitor] = network.draw(1, rng)[0, network.documents.positions(self.documents)]
        return relevance

    def first_clicks(self, ranking: Positions, visitors: int, rng: np.random.Generator) -> Array:
        """Return the slot of each visitor's first click, each from a tree of its own."""
        relevant = self.draw(visitors, rng)[:, ranking]
        return np.where(relevant.any(axis=1), relevant.argmax(axis=1), len(ranking)).astype(np.int32)

    def log_skip_probability(self, shown: Positions) -> float:  # noqa: ARG002
        """Raise an error: there is no closed form."""
        self._refuse()

    def given_skipped(self, shown: Positions) -> tuple[float, Array]:  # noqa: ARG002
        """Raise an error: there is no closed form."""
        self._refuse()

    @property
    def state(self) -> NoReturn:
        """Raise an error: a new tree for each visitor has no compiled form."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ParameterError(
            "With a new tree for each visitor this has no closed form; use users.frozen(trees=200, seed=0) instead."
        )
