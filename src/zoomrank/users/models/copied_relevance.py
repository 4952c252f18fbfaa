"""`CopiedRelevance`: documents that are relevant to the same visitors as another document, however far apart."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from zoomrank.errors import ParameterError
from zoomrank.numbers import Array
from zoomrank.spaces.ids import Positions
from zoomrank.users.distribution import UserDistribution
from zoomrank.users.first_click import ForestState


class CopiedRelevance(UserDistribution):
    """Visitors of another distribution, where the relevance of a document is that of its origin.

    Parameters
    ----------
    users : UserDistribution
        The visitors.
    origin : sequence of int
        For each document, in the order of `users.documents`, the position of its origin: itself, or another.
    """

    def __init__(self, users: UserDistribution, origin: Sequence[int] | Array) -> None:
        super().__init__(users.documents)
        self.users, self.origin = users, np.asarray(origin, dtype=np.int64)
        if self.origin.shape != (len(users),) or not ((self.origin >= 0) & (self.origin < len(users))).all():
            raise ParameterError(f"Give an origin for each of {len(users)} documents, as a position among them.")

    def log_skip_probability(self, shown: Positions) -> float:
        """Return log P(Z_S) of the origins."""
        return self.users.log_skip_probability(np.unique(self.origin[shown]))

    def given_skipped(self, shown: Positions) -> tuple[float, Array]:
        """Return log P(Z_S) and μ(· | Z_S) of the origins."""
        log_probability, means = self.users.given_skipped(np.unique(self.origin[shown]))
        return log_probability, means[self.origin]

    def draw(self, visitors: int, rng: np.random.Generator) -> Array:
        """Draw whole relevance vectors."""
        return self.users.draw(visitors, rng)[:, self.origin]

    def first_clicks(self, ranking: Positions, visitors: int, rng: np.random.Generator) -> Array:
        """Return the slot of each visitor's first click."""
        return self.users.first_clicks(self.origin[ranking], visitors, rng)

    @cached_property
    def state(self) -> ForestState | None:
        """State that clicks are drawn from, if it is a forest: a copy has the same deciding node as its origin."""
        state = self.users.state
        return state._replace(decider=state.decider[:, self.origin]) if isinstance(state, ForestState) else None
