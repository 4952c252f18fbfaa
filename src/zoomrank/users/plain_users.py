"""`PlainUsers`: your own model of visitors, in plain Python. Define what is relevant to one visitor; the rest follows.

Clicks come from new visitors, one by one. Whatever needs full information (means, satisfaction, the greedy ranking) is
estimated from one fixed sample of visitors.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from zoomrank.errors import ParameterError
from zoomrank.spaces import DocumentId, RootedTree, Space
from zoomrank.spaces.ids import Positions
from zoomrank.types import Array, whole_number
from zoomrank.users.distribution import UserDistribution
from zoomrank.users.relevance_table import RelevanceTable


class PlainUsers(UserDistribution):
    """Base class for your own visitors: subclass it and write `visitor`.

    Override `click` too if yours do not click on the first relevant document.

    Parameters
    ----------
    space : Space or RootedTree
        The documents.
    sample : int
        Number of visitors drawn once, to estimate what needs full information.
    sample_seed : int
        The seed of the sample.

    Examples
    --------
    >>> from zoomrank.spaces import DocumentTree
    >>> class Neighbours(PlainUsers):
    ...     def visitor(self, rng):
    ...         first = int(rng.integers(7))
    ...         return [first, first + 1]
    >>> users = Neighbours(DocumentTree.exponential(depth=3), sample=500)
    >>> users.greedy(slots=4).satisfaction
    1.0
    """

    def __init__(self, space: Space | RootedTree, *, sample: int = 10_000, sample_seed: int = 0) -> None:
        super().__init__(space.documents)
        self.space = space
        self.sample_size = whole_number(sample, "sample")
        self.sample_seed = sample_seed
        if self.sample_size < 1:
            raise ParameterError(f"A sample of {self.sample_size} visitors is too small; draw at least 1.")

    @abstractmethod
    def visitor(self, rng: np.random.Generator) -> Iterable[DocumentId]:
        """Draw one visitor.

        Parameters
        ----------
        rng : Generator
            The source of random numbers.

        Returns
        -------
        iterable of DocumentId
            The documents that are relevant to the visitor.
        """

    def click(self, ranking: Sequence[DocumentId], rng: np.random.Generator) -> int | None:
        """Return the slot that one visitor clicks on, if any."""
        relevant = set(self.visitor(rng))
        return next((slot for slot, document in enumerate(ranking) if document in relevant), None)

    @cached_property
    def table(self) -> RelevanceTable:
        """Sample that everything but clicks is estimated from.

        Returns
        -------
        RelevanceTable
            A row for each visitor of the sample.
        """
        rng = np.random.default_rng(self.sample_seed)
        return RelevanceTable(self.space, [self.visitor(rng) for _ in range(self.sample_size)])

    def log_skip_probability(self, shown: Positions) -> float:
        """Estimate log P(Z_S)."""
        return self.table.log_skip_probability(shown)

    def given_skipped(self, shown: Positions) -> tuple[float, Array]:
        """Estimate log P(Z_S) and μ(· | Z_S)."""
        return self.table.given_skipped(shown)

    def draw(self, visitors: int, rng: np.random.Generator) -> Array:
        """Draw whole relevance vectors."""
        relevance = np.zeros((visitors, len(self)), bool)
        for row in relevance:
            row[self.documents.positions(self.visitor(rng))] = True
        return relevance

    def first_clicks(self, ranking: Positions, visitors: int, rng: np.random.Generator) -> Array:
        """Return the slot of each visitor's first click; the number of slots for those who leave."""
        documents = self.documents.at(ranking)
        slots = [self.click(documents, rng) for _ in range(visitors)]
        return np.array([len(documents) if slot is None else slot for slot in slots], np.int32)

    @property
    def state(self) -> None:
        """None, since clicks are drawn in plain Python."""
        return None
