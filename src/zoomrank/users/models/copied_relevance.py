"""`CopiedRelevance`: documents that are relevant to just those visitors to whom another one is, however far apart."""

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
    """The visitors of another distribution, to whom a document is relevant if another one, its origin, is.

    Parameters
    ----------
    users : UserDistribution
        The visitors.
    origin : sequence of int
        For each document, in the order of `users.documents`, the position of its origin: itself, or another.

    Examples
    --------
    >>> from zoomrank.spaces import DocumentTree
    >>> from zoomrank.users.models.independent import Independent
    >>> users = Independent(DocumentTree.exponential(depth=2), [0.4, 0.3, 0.2, 0.1])
    >>> twins = CopiedRelevance(users, origin=[0, 1, 2, 0])
    >>> twins.mean(3), twins.conditional_mean(shown=[0], document=3)
    (0.4, 0.0)
    """

    def __init__(self, users: UserDistribution, origin: Sequence[int] | Array) -> None:
        super().__init__(users.documents)
        self.users, self.origin = users, np.asarray(origin, dtype=np.int64)
        if self.origin.shape != (len(users),) or not ((self.origin >= 0) & (self.origin < len(users))).all():
            raise ParameterError(f"An origin is needed for each of {len(users)} documents, and among them.")

    def log_skip_probability(self, shown: Positions) -> float:
        """Log P(Z_S): of the origins."""
        return self.users.log_skip_probability(np.unique(self.origin[shown]))

    def given_skipped(self, shown: Positions) -> tuple[float, Array]:
        """Log P(Z_S) and μ(· | Z_S): of the origins."""
        log_probability, means = self.users.given_skipped(np.unique(self.origin[shown]))
        return log_probability, means[self.origin]

    def draw(self, visitors: int, rng: np.random.Generator) -> Array:
        """Whole relevance vectors."""
        return self.users.draw(visitors, rng)[:, self.origin]

    def first_clicks(self, ranking: Positions, visitors: int, rng: np.random.Generator) -> Array:
        """The slot of each visitor's first click."""
        return self.users.first_clicks(self.origin[ranking], visitors, rng)

    @cached_property
    def state(self) -> ForestState | None:
        """What clicks are drawn from, if that is a forest: a copy hangs on the same node as its origin."""
        state = self.users.state
        return state._replace(decider=state.decider[:, self.origin]) if isinstance(state, ForestState) else None
