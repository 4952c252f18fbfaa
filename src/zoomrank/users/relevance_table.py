"""Models of visitors without a tree of their own.

`RelevanceTable` is a list of kinds of visitors, each with a weight and its relevant documents, as in real data.
`CopiedRelevance` makes documents relevant to the same visitors as another document, however far apart. `Independent`
has no correlations at all, as in the example of Section 5.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from zoomrank.errors import ParameterError, WeightError
from zoomrank.spaces import DocumentId, RootedTree, Space
from zoomrank.spaces.ids import Positions
from zoomrank.spaces.tree_shape import breadth_first_shape
from zoomrank.types import Array
from zoomrank.users.distribution import UserDistribution, mean_array
from zoomrank.users.first_click import ForestState, TableState
from zoomrank.users.tree_network import TreeNetwork


class RelevanceTable(UserDistribution):
    """Visitors drawn from the rows of a table.

    Parameters
    ----------
    space : Space or RootedTree
        The documents.
    rows : sequence of iterables of DocumentId
        For each kind of visitor the documents that are relevant to it.
    weights : sequence of float, optional
        The relative frequency of each kind; by default all are equally frequent.

    Examples
    --------
    >>> from zoomrank.spaces import DocumentTree
    >>> tree = DocumentTree.from_paths(["A > a", "A > b", "B > c"])
    >>> users = RelevanceTable(tree, rows=[["A > a", "A > b"], ["B > c"], []], weights=[5, 4, 1])
    >>> users.greedy(slots=2)
    BestRanking(['A > a', 'B > c'], satisfaction=0.900000)
    """

    def __init__(
        self,
        space: Space | RootedTree,
        rows: Sequence[Iterable[DocumentId]],
        weights: Sequence[float] | Array | None = None,
    ) -> None:
        super().__init__(space.documents)
        if len(rows) == 0:
            raise WeightError("A relevance table needs at least one row.")
        given = np.ones(len(rows)) if weights is None else np.array(weights, dtype=np.float64)
        if given.shape != (len(rows),):
            raise WeightError(f"{given.size} weights were given for {len(rows)} rows.")
        bad = np.flatnonzero(~(np.isfinite(given) & (given >= 0)))
        if len(bad):
            raise WeightError(f"Row {bad[0]} has the weight {given[bad[0]]}; it must be a finite number, 0 or more.")
        if given.sum() == 0:
            raise WeightError("All rows have weight 0: there are no visitors.")
        self.weights = given / given.sum()
        relevant = [np.sort(self.documents.positions(row)) for row in rows]
        starts = np.concatenate([[0], np.cumsum([len(row) for row in relevant])]).astype(np.int64)
        columns = np.concatenate([*relevant, np.empty(0, np.int64)])
        self._matrix = csr_array((np.ones(len(columns)), columns, starts), shape=(len(rows), len(self)))
        self._rows_of = self._matrix.tocsc()
        self._state = TableState(np.cumsum(self.weights), starts, columns)

    def log_skip_probability(self, shown: Positions) -> float:
        """Return the logarithm of the weight of the rows that have none of S."""
        with np.errstate(divide="ignore"):
            return float(np.log(min(self._left(shown).sum(), 1.0)))

    def given_skipped(self, shown: Positions) -> tuple[float, Array]:
        """Return log P(Z_S) and μ(· | Z_S), from the rows that have none of S."""
        left = self._left(shown)
        total = left.sum()
        if total == 0:
            return float("-inf"), np.zeros(len(self))
        # Weights that add up to the total only up to rounding must not make a mean that is more than 1.
        return float(np.log(min(total, 1.0))), np.minimum(np.asarray(left @ self._matrix) / total, 1.0)

    def draw(self, visitors: int, rng: np.random.Generator) -> Array:
        """Draw whole relevance vectors."""
        rows = rng.choice(len(self.weights), size=visitors, p=self.weights)
        return np.asarray(self._matrix[rows].toarray() > 0)

    @property
    def state(self) -> TableState:
        """State that clicks are drawn from."""
        return self._state

    def _left(self, shown: Positions) -> Array:
        """Return the weights of the rows, 0 for those with a document of S."""
        left = self.weights.copy()
        for document in shown:
            start, end = self._rows_of.indptr[document], self._rows_of.indptr[document + 1]
            left[self._rows_of.indices[start:end]] = 0.0
        return np.asarray(left)


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


class Independent(TreeNetwork):
    """Visitors without correlations: a network that is a star, whose root is never relevant.

    Parameters
    ----------
    space : Space or RootedTree
        The documents.
    mean : mapping, sequence or array of float
        μ(x), by document or in the order of `space.documents`.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 5.1, the example of three documents.
    """

    def __init__(self, space: Space | RootedTree, mean: Mapping[DocumentId, float] | Iterable[float] | Array) -> None:
        means = mean_array(space.documents, mean)
        shape, _ = breadth_first_shape(np.array([-1] + [0] * len(means)))
        appears = np.concatenate([[0.0], means])
        self._assemble(RootedTree(shape, space.documents), 0.0, appears, np.zeros_like(appears))
