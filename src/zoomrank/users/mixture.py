"""`Mixture`: each visitor belongs to one of several user distributions (Section 3.3).

The lemma of Section 3.3 says that such a mixture is conditionally L-continuous where all its components are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from zoomrank.errors import UnknownDocumentError, WeightError
from zoomrank.spaces.ids import DocumentIds, Positions
from zoomrank.types import Array
from zoomrank.users.distribution import UserDistribution
from zoomrank.users.first_click import ForestState, whole_relevance
from zoomrank.users.tree_inference import forest_state, orbits
from zoomrank.users.tree_network import TreeNetwork


class Mixture(UserDistribution):
    """Visitors from several distributions over the same documents, with given shares.

    Parameters
    ----------
    components : sequence of UserDistribution
        The distributions.
    shares : sequence of float
        The share of visitors that comes from each; they add up to 1.
    documents : DocumentIds, optional
        The order in which documents are numbered; that of the first component, if left out.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 3.3: where all components are conditionally L-continuous, so
    is their mixture.
    """

    def __init__(
        self,
        components: Sequence[UserDistribution],
        shares: Sequence[float] | Array,
        documents: DocumentIds | None = None,
    ) -> None:
        if not components:
            raise WeightError("A mixture needs at least one component.")
        super().__init__(components[0].documents if documents is None else documents)
        for component in components:
            if component.documents is not self.documents and set(component.documents) != set(self.documents):
                raise UnknownDocumentError("The components of a mixture must have the same documents.")
        self.components = list(components)
        self.shares = checked_shares(shares, len(components))
        networks = [c for c in components if isinstance(c, TreeNetwork)]
        self._networks = networks if len(networks) == len(components) else None
        # Positions of the mixture's documents in each component; None where the order is the same.
        self._places: list[Positions | None] = [
            None
            if c.documents is self.documents or list(c.documents) == list(self.documents)
            else c.documents.positions(self.documents)
            for c in components
        ]

    def log_skip_probability(self, shown: Positions) -> float:
        """Return the logarithm of the components' average P(Z_S)."""
        logs = [c.log_skip_probability(self._there(i, shown)) for i, c in enumerate(self.components)]
        return float(_log_average(np.array(logs), self.shares))

    def given_skipped(self, shown: Positions) -> tuple[float, Array]:
        """Reweight the shares by P_i(Z_S), since skipping S is evidence on a visitor's component."""
        logs = np.empty(len(self.components))
        means = np.empty((len(self.components), len(self)))
        for i, component in enumerate(self.components):
            logs[i], theirs = component.given_skipped(self._there(i, shown))
            place = self._places[i]
            means[i] = theirs if place is None else theirs[place]
        log_probability = _log_average(logs, self.shares)
        if log_probability == -np.inf:
            return log_probability, np.zeros(len(self))
        alive = logs > -np.inf
        posterior_shares = self.shares[alive] * np.exp(logs[alive] - log_probability)
        # Shares that add up to 1 only up to rounding must not make a mean that is more than 1.
        return float(log_probability), np.minimum(posterior_shares @ means[alive], 1.0)

    def draw(self, visitors: int, rng: np.random.Generator) -> Array:
        """Draw whole relevance vectors: a component for every visitor, then the visitors of each component."""
        if self.state is not None:
            return np.asarray(whole_relevance(self.state, visitors, rng))
        component_of = rng.choice(len(self.components), size=visitors, p=self.shares)
        relevance = np.empty((visitors, len(self)), np.bool_)
        for i, component in enumerate(self.components):
            mine = component_of == i
            theirs = component.draw(int(mine.sum()), rng)
            place = self._places[i]
            relevance[mine] = theirs if place is None else theirs[:, place]
        return relevance

    @cached_property
    def state(self) -> ForestState | None:
        """State that clicks are drawn from: all components side by side, if they are tree networks."""
        return None if self._networks is None else forest_state(self._networks, self.shares, self.documents)

    def first_clicks(self, ranking: Positions, visitors: int, rng: np.random.Generator) -> Array:
        """Draw a component for every visitor, then clicks; compiled where all components are networks."""
        if self._networks is not None:
            return super().first_clicks(ranking, visitors, rng)
        component_of = rng.choice(len(self.components), size=visitors, p=self.shares)
        slots = np.empty(visitors, np.int32)
        for i, component in enumerate(self.components):
            mine = component_of == i
            slots[mine] = component.first_clicks(self._there(i, ranking), int(mine.sum()), rng)
        return slots

    def symmetry_classes(self, shown: Positions) -> Array | None:
        """Return classes where all components are networks on one tree: a symmetry must keep all their parameters."""
        networks = self._networks
        if networks is None or any(c.tree is not networks[0].tree for c in networks):
            return None
        parameters = np.concatenate([c.chance for c in networks], axis=1)
        classes = orbits(networks[0].tree, parameters, self._there(0, shown))
        place = self._places[0]
        return classes if place is None else classes[place]

    def _there(self, component: int, shown: Positions) -> Positions:
        place = self._places[component]
        return shown if place is None else place[shown]


def checked_shares(shares: Sequence[float] | Array, count: int) -> Array:
    """Raise an error unless the shares are a probability distribution."""
    values = np.array(shares, dtype=np.float64)
    if values.shape != (count,):
        raise WeightError(f"{values.size} shares were given for {count} components.")
    bad = np.flatnonzero(~(values >= 0))
    if len(bad):
        raise WeightError(f"Share number {bad[0]} is {values[bad[0]]}; shares must be 0 or more.")
    if abs(values.sum() - 1) > 1e-9:
        raise WeightError(f"Shares must add up to 1, not {values.sum()}.")
    return np.asarray(values / values.sum())


def _log_average(logs: Array, shares: Array) -> float:
    largest = logs.max()
    if largest == -np.inf:
        return float(largest)
    average = float(shares @ np.exp(logs - largest))
    return float(largest + np.log(average)) if average > 0 else float("-inf")
