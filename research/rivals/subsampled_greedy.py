"""`SubsampledGreedy`: greedy among few documents, drawn once at random.

Where there are more documents than the square root of the visits, most of them are never worth a look: some Θ(√T) are
drawn, each is shown once, and then the one with the best mean so far.

References
----------
Bayati, Hamidi, Johari and Khosravi, *Unreasonable effectiveness of greedy algorithms in multi-armed bandit with many
arms*, NeurIPS 2020: SS-Greedy. The paper has one arm a round. Here each slot is such a bandit, as in
ranked bandits; or, `shared`, all slots learn one mean per document, as in cascading bandits.
"""

from __future__ import annotations

import math

import numpy as np

from research.rivals.rival import Rival, above_zero
from zoomrank.compiled import Scalar, compiled
from zoomrank.spaces import DocumentTree
from zoomrank.types import Array, Seed


class SubsampledGreedy(Rival):
    """Greedy among few documents, drawn once at random.

    Parameters
    ----------
    tree, slots, seed
        As for every ranker.
    horizon
        T, the number of visits to come.
    factor
        Number of drawn documents, as a multiple of √T; at least one per slot, and all documents at most.
    shared
        Whether all slots learn one mean per document; otherwise each has its own documents and means.
    """

    def __init__(
        self,
        tree: DocumentTree,
        slots: int,
        *,
        horizon: int = 10_000,
        factor: float = 1.0,
        shared: bool = False,
        seed: Seed = None,
    ) -> None:
        super().__init__(tree, slots, seed=seed)
        above_zero(horizon=horizon, factor=factor)
        count = min(max(round(factor * math.sqrt(horizon)), slots), len(tree))
        tables = 1 if shared else slots
        self.arms = np.stack([self.rng.choice(len(tree), count, replace=False) for _ in range(tables)])
        self.plays, self.clicks = np.zeros((2, tables, count))

    def choose(self) -> Array:
        shown = np.empty(self.slots, np.int64)
        _choose(self.arms, self.plays, self.clicks, self.rng.random(self.arms.shape), shown)
        return shown

    def count(self, shown: Array, click: int) -> None:
        _count(self.arms, self.plays, self.clicks, shown, click)


@compiled
def _choose(arms: Array, plays: Array, clicks: Array, luck: Array, shown: Array) -> None:
    """Show in each slot an arm without a play or, without such, the one with the best mean; ties by luck."""
    for slot in range(len(shown)):
        table = min(slot, len(arms) - 1)
        best, top = -1, -1.0
        for arm in range(arms.shape[1]):
            mean = clicks[table, arm] / plays[table, arm] if plays[table, arm] > 0 else np.inf
            if mean < top or (mean == top and luck[table, arm] < luck[table, best]):
                continue
            taken = False
            for above in range(slot):
                taken = taken or shown[above] == arms[table, arm]
            if not taken:
                best, top = arm, mean
        shown[slot] = arms[table, best]


@compiled
def _count(arms: Array, plays: Array, clicks: Array, shown: Array, click: Scalar) -> None:
    """Count every examined document in the table of its slot."""
    for slot in range(min(click + 1, len(shown))):
        table = min(slot, len(arms) - 1)
        for arm in range(arms.shape[1]):
            if arms[table, arm] == shown[slot]:
                plays[table, arm] += 1
                clicks[table, arm] += slot == click
