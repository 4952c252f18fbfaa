"""`CascadeLinTS`: linear Thompson sampling in the cascade model.

The probability that a document attracts a visitor is linear in its features, x · θ. In each round θ is drawn from its
Gaussian posterior, and the documents with the largest x · θ are shown. All documents down to the click were examined
and are learned from, whatever their slot.

References
----------
Zong, Ni, Sung, Ke, Wen and Kveton, *Cascading bandits for large-scale recommendation problems*, UAI 2016: Algorithm 1,
with M = I + σ⁻² Σ x xᵀ, B = Σ x · click, and θ ~ N(σ⁻² M⁻¹ B, M⁻¹). `spread` is the standard deviation of θ's prior, 1
in the paper: both σ and the draws are multiples of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from research.rivals.rival import Rival, above_zero, best_left
from zoomrank.compiled import Scalar, compiled
from zoomrank.spaces import DocumentTree
from zoomrank.spaces.tree_shape import node_depths
from zoomrank.types import Array, Seed


class SparseRows(NamedTuple):
    """Features of all documents: of document x, `column[start[x] : start[x + 1]]` have the values beside them."""

    start: Array
    column: Array
    value: Array


def path_features(tree: DocumentTree) -> SparseRows:
    """Return the nodes from each document to the root, as unit vectors with equal entries.

    Children come before parents, so that a triangular factor of M keeps the zeros that a path leaves.
    """
    depth = node_depths(tree.shape.parent)[tree.shape.leaf] + 1
    start = np.concatenate([[0], np.cumsum(depth)])
    column = np.empty(start[-1], np.int64)
    for document, node in enumerate(tree.shape.leaf.astype(np.int64)):
        for at in range(start[document], start[document + 1]):
            column[at] = tree.nodes - 1 - node
            node = np.int64(tree.shape.parent[node])
    return SparseRows(start, column, np.repeat(1 / np.sqrt(depth), depth))


class CascadeLinTS(Rival):
    """Linear Thompson sampling in the cascade model, with the paths of the tree as features.

    Parameters
    ----------
    tree, slots, seed
        As for every ranker.
    noise
        σ, the standard deviation of a click given the features.
    spread
        The standard deviation of θ's prior.
    """

    def __init__(
        self, tree: DocumentTree, slots: int, *, noise: float = 0.1, spread: float = 0.1, seed: Seed = None
    ) -> None:
        super().__init__(tree, slots, seed=seed)
        above_zero(noise=noise, spread=spread)
        self.features, self.noise, self.spread = path_features(tree), noise / spread, spread
        self.factor = np.eye(tree.nodes)  # L, lower triangular: M = L Lᵀ
        self.response = np.zeros(tree.nodes)  # B

    def choose(self) -> Array:
        normal = self.rng.standard_normal(len(self.response))
        scale = self.noise**-2 / self.spread
        shown = np.empty(self.slots, np.int64)
        _choose(self.features, self.factor, self.response * scale, normal, self.luck(), shown)
        return shown

    def count(self, shown: Array, click: int) -> None:
        _count(self.features, self.factor, self.response, 1 / self.noise, shown, click)


@compiled
def _choose(features: SparseRows, factor: Array, response: Array, normal: Array, luck: Array, shown: Array) -> None:
    """Draw θ = M⁻¹ b + L⁻ᵀ z, up to the factor `spread`, and show the documents with the largest x · θ."""
    size = len(response)
    theta = response.copy()
    for row in range(size):  # L y = b
        for column in range(row):
            theta[row] -= factor[row, column] * theta[column]
        theta[row] /= factor[row, row]
    theta += normal  # Lᵀ θ = y + z
    for row in range(size - 1, -1, -1):
        theta[row] /= factor[row, row]
        for column in range(row):
            theta[column] -= factor[row, column] * theta[row]
    score = np.zeros(len(features.start) - 1)
    for document in range(len(score)):
        for at in range(features.start[document], features.start[document + 1]):
            score[document] += features.value[at] * theta[features.column[at]]
    for slot in range(len(shown)):
        shown[slot] = best_left(score, shown, slot, luck)


@compiled
def _count(features: SparseRows, factor: Array, response: Array, scale: Scalar, shown: Array, click: Scalar) -> None:
    """Add σ⁻² x xᵀ to M for every examined document, and x to B for the clicked one."""
    size = len(response)
    for slot in range(min(click + 1, len(shown))):
        added = np.zeros(size)
        for at in range(features.start[shown[slot]], features.start[shown[slot] + 1]):
            added[features.column[at]] = scale * features.value[at]
            if slot == click:
                response[features.column[at]] += features.value[at]
        # Rank-one update of a Cholesky factor, a rotation per column; where nothing is added there is nothing to do.
        for column in range(size):
            if added[column] == 0.0:
                continue
            old = factor[column, column]
            new = np.sqrt(old * old + added[column] * added[column])
            cosine, sine = new / old, added[column] / old
            factor[column, column] = new
            for row in range(column + 1, size):
                if factor[row, column] != 0.0 or added[row] != 0.0:
                    factor[row, column] = (factor[row, column] + sine * added[row]) / cosine
                    added[row] = cosine * added[row] - sine * factor[row, column]
