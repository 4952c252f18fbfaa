"""`RelevanceTable`: visitors as a list of kinds, each with a weight and its relevant documents, as in real data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from scipy.sparse import csr_array

from zoomrank.errors import WeightError
from zoomrank.numbers import Array
from zoomrank.spaces import DocumentId, RootedTree, Space
from zoomrank.spaces.ids import Positions
from zoomrank.users.distribution import UserDistribution
from zoomrank.users.first_click import TableState


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
