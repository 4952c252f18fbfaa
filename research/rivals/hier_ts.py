"""`HierTS`: Thompson sampling with a Gaussian tree posterior, one learner per slot.

The mean of a node is Gaussian around that of its parent, and a click is Gaussian around the mean of its document. The
posterior factors along the tree: messages go up from the documents, and one draw goes down from the root. A slot shows
the document with the largest drawn mean among those that are not above it.

References
----------
Hong, Kveton, Katariya, Zaheer and Ghavamzadeh, *Deep hierarchy in bandits*, ICML 2022: HierTS, with the exact posterior
of a Gaussian hierarchy. The paper has one action a round; here each slot is such a bandit, as in ranked bandits
(Radlinski, Kleinberg and Joachims, ICML 2008).
"""

from __future__ import annotations

import numpy as np

from research.rivals.rival import Rival, above_zero, best_left
from zoomrank.compiled import Scalar, compiled
from zoomrank.spaces import DocumentTree
from zoomrank.types import Array, Seed


class HierTS(Rival):
    """Thompson sampling with a Gaussian tree posterior in each slot.

    Parameters
    ----------
    tree, slots, seed
        As for every ranker.
    noise
        The standard deviation of a click around the mean of its document.
    spread
        The standard deviation of a node's mean around that of its parent; of the root's, around `prior`.
    prior
        The prior mean of the root.
    """

    def __init__(
        self,
        tree: DocumentTree,
        slots: int,
        *,
        noise: float = 0.05,
        spread: float = 0.01,
        prior: float = 0.0,
        seed: Seed = None,
    ) -> None:
        super().__init__(tree, slots, seed=seed)
        above_zero(noise=noise, spread=spread)
        self.noise, self.spread, self.prior = noise, spread, prior
        # Of each slot and node, what the visits below it say about its mean: a precision, and precision times mean.
        self.precision, self.weighted = np.zeros((2, slots, tree.nodes))

    def choose(self) -> Array:
        normal = self.rng.standard_normal((self.slots, self.tree.nodes))
        shown = np.empty(self.slots, np.int64)
        shape = self.tree.shape
        _choose(
            shape.parent, shape.leaf, self.precision, self.weighted, self.spread, self.prior, normal, self.luck(), shown
        )
        return shown

    def count(self, shown: Array, click: int) -> None:
        for slot in range(min(click + 1, self.slots)):
            leaf = self.tree.shape.leaf[shown[slot]]
            self.precision[slot, leaf] += self.noise**-2
            self.weighted[slot, leaf] += self.noise**-2 * (slot == click)
            shape = self.tree.shape
            _send_up(shape.parent, shape.child_start, self.precision[slot], self.weighted[slot], self.spread, leaf)


@compiled
def draw_means(parent: Array, precision: Array, weighted: Array, spread: Scalar, prior: Scalar, normal: Array) -> Array:
    """Draw the means of all nodes from their posterior, from the root down."""
    mean = np.empty(len(parent))
    for node in range(len(parent)):  # parents come before children
        above = prior if node == 0 else mean[parent[node]]
        total = 1.0 / (spread * spread) + precision[node]
        mean[node] = (above / (spread * spread) + weighted[node]) / total + normal[node] / np.sqrt(total)
    return mean


@compiled
def _choose(
    parent: Array,
    leaf: Array,
    precision: Array,
    weighted: Array,
    spread: Scalar,
    prior: Scalar,
    normal: Array,
    luck: Array,
    shown: Array,
) -> None:
    """Choose for each slot by a draw of its own."""
    score = np.empty(len(leaf))
    for slot in range(len(shown)):
        mean = draw_means(parent, precision[slot], weighted[slot], spread, prior, normal[slot])
        for document in range(len(leaf)):
            score[document] = mean[leaf[document]]
        shown[slot] = best_left(score, shown, slot, luck)


@compiled
def _send_up(
    parent: Array, child_start: Array, precision: Array, weighted: Array, spread: Scalar, leaf: Scalar
) -> None:
    """Recompute what is known of the ancestors of a document.

    A child known with precision P tells its parent's mean with precision 1 / (spread² + 1 / P).
    """
    node = leaf
    while node != 0:
        node = parent[node]
        precision[node], weighted[node] = 0.0, 0.0
        for child in range(child_start[node], child_start[node + 1]):
            if precision[child] > 0.0:
                share = 1.0 / (1.0 + spread * spread * precision[child])
                precision[node] += share * precision[child]
                weighted[node] += share * weighted[child]
