"""`CascadeLSB`: topic coverage with a linear bandit in the cascade model.

A document covers topics; below others it counts only for what those leave uncovered. So it attracts a visitor with
probability Δ(a | S) · θ, where Δ(a | S) = c(S ∪ {a}) − c(S), and c_j(S) = 1 − Π over a of S of (1 − x_aj) is the
probability that S covers topic j. Slots are filled from the top by the largest upper confidence bound of that gain.

Topics are categories of the tree: the lowest ones, or all of them and each document itself, so that documents of one
category can be told apart. A document covers its own topic wholly and its categories with probability `cover`.

References
----------
Hiranandani, Singh, Gupta, Burhanuddin, Wen and Kveton, *Cascading linear submodular bandits: accounting for position
bias and diversity in online learning to rank*, UAI 2019: Section 3 (coverage), Algorithm 1, with M = I + σ⁻² Σ Δ Δᵀ,
B = Σ Δ · click, θ̄ = σ⁻² M⁻¹ B, and the bound Δ · θ̄ + α (Δᵀ M⁻¹ Δ)^½. Coverage is of El-Arini et al., KDD 2009.
"""

from __future__ import annotations

import numpy as np

from research.rivals.cascade_lin_ts import SparseRows, path_features
from research.rivals.rival import Rival, above_zero, best_left
from zoomrank.compiled import Scalar, compiled, inlined
from zoomrank.errors import ParameterError
from zoomrank.spaces import DocumentTree
from zoomrank.types import Array, Seed

TOPICS = ("shelves", "nodes")


def topic_coverage(tree: DocumentTree, topics: str, cover: float) -> SparseRows:
    """Return the topics that each document covers, with their probabilities x_aj."""
    if topics not in TOPICS:
        raise ParameterError(f"topics is {topics!r}; choose one of {', '.join(TOPICS)}.")
    if topics == "shelves":
        _, shelf = np.unique(tree.shape.parent[tree.shape.leaf], return_inverse=True)
        return SparseRows(np.arange(len(tree) + 1), shelf.astype(np.int64), np.full(len(tree), cover))
    paths = path_features(tree)
    value = np.full(len(paths.column), cover)
    value[paths.start[:-1]] = 1.0  # itself
    return paths._replace(value=value)


class CascadeLSB(Rival):
    """Topic coverage with a linear bandit in the cascade model.

    Parameters
    ----------
    tree, slots, seed
        As for every ranker.
    noise
        σ, the standard deviation of a click given the gain in coverage.
    alpha
        α, the width of the upper confidence bound.
    topics
        "shelves": the lowest categories; "nodes": all categories, and each document itself.
    cover
        Probability that a document covers a category that it is in.
    """

    def __init__(
        self,
        tree: DocumentTree,
        slots: int,
        *,
        noise: float = 0.3,
        alpha: float = 0.3,
        topics: str = "nodes",
        cover: float = 1.0,
        seed: Seed = None,
    ) -> None:
        super().__init__(tree, slots, seed=seed)
        above_zero(noise=noise, alpha=alpha, cover=cover)
        self.coverage, self.noise, self.alpha = topic_coverage(tree, topics, cover), noise, alpha
        count = int(self.coverage.column.max()) + 1
        self.covariance, self.response = np.eye(count), np.zeros(count)  # M⁻¹, B
        self.theta = np.zeros(count)  # θ̄

    def choose(self) -> Array:
        shown = np.empty(self.slots, np.int64)
        _choose(self.coverage, self.covariance, self.theta, self.alpha, self.luck(), shown)
        return shown

    def count(self, shown: Array, click: int) -> None:
        _count(self.coverage, self.covariance, self.response, self.noise**-2, shown, click)
        self.theta = self.noise**-2 * (self.covariance @ self.response)


@inlined
def _cover(coverage: SparseRows, document: Scalar, uncovered: Array) -> None:
    """Show a document: multiply what is uncovered of its topics by 1 − x_aj."""
    for at in range(coverage.start[document], coverage.start[document + 1]):
        uncovered[coverage.column[at]] *= 1.0 - coverage.value[at]


@compiled
def _choose(coverage: SparseRows, covariance: Array, theta: Array, alpha: Scalar, luck: Array, shown: Array) -> None:
    """Fill slots from the top by the largest upper confidence bound of the gain Δ(a | S) · θ."""
    uncovered = np.ones(len(theta))
    bound = np.empty(len(coverage.start) - 1)
    for slot in range(len(shown)):
        for document in range(len(bound)):
            mean, variance = 0.0, 0.0
            first, end = coverage.start[document], coverage.start[document + 1]
            for at in range(first, end):
                gain = coverage.value[at] * uncovered[coverage.column[at]]
                mean += gain * theta[coverage.column[at]]
                for other in range(first, end):
                    again = coverage.value[other] * uncovered[coverage.column[other]]
                    variance += gain * again * covariance[coverage.column[at], coverage.column[other]]
            # Rounded, so that luck and not a rounding error decides among documents that are alike.
            bound[document] = round(mean + alpha * np.sqrt(max(variance, 0.0)), 12)
        shown[slot] = best_left(bound, shown, slot, luck)
        _cover(coverage, shown[slot], uncovered)


@compiled
def _count(
    coverage: SparseRows, covariance: Array, response: Array, precision: Scalar, shown: Array, click: Scalar
) -> None:
    """Add σ⁻² Δ Δᵀ to M for every examined document, by Sherman and Morrison's formula, and Δ to B for the clicked."""
    uncovered = np.ones(len(response))
    for slot in range(min(click + 1, len(shown))):
        first, end = coverage.start[shown[slot]], coverage.start[shown[slot] + 1]
        product, total = np.zeros(len(response)), 1.0 / precision
        for at in range(first, end):
            gain = coverage.value[at] * uncovered[coverage.column[at]]
            product += gain * covariance[coverage.column[at]]
            if slot == click:
                response[coverage.column[at]] += gain
        for at in range(first, end):
            total += coverage.value[at] * uncovered[coverage.column[at]] * product[coverage.column[at]]
        for row in range(len(response)):
            if product[row] != 0.0:
                covariance[row] -= product[row] / total * product
        _cover(coverage, shown[slot], uncovered)
