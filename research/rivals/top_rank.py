"""`TopRank`: blocks of documents that could still be equally attractive, shuffled and sorted.

The documents are divided into blocks, the best first. Each block fills its slots in random order. Clicks on two
documents are compared while both are in one block; a document that is clearly clicked more often beats the other, and a
block holds what is beaten by none of the documents that are left. Documents that are not shown take part: they are not
clicked. No click model is assumed but that better documents and higher slots are clicked more often.

References
----------
Lattimore, Kveton, Li and Szepesvári, *TopRank: a practical algorithm for online stochastic ranking*, NeurIPS 2018:
Algorithm 1. S_ij adds C_i − C_j while i and j share a block, N_ij its absolute value, and i beats j as soon as
S_ij ≥ (2 N_ij log(c √N_ij / δ))^½ with c = 4 √(2/π) / erf(√2), about 3.34 (3.43 in print). `scale` multiplies this
bound; it is 1 in the paper, where δ is one over the number of visits.
"""

from __future__ import annotations

import math

import numpy as np

from research.rivals.rival import Rival, above_zero
from zoomrank.compiled import Scalar, compiled
from zoomrank.spaces import DocumentTree
from zoomrank.types import Array, Seed

CONSTANT = 4 * math.sqrt(2 / math.pi) / math.erf(math.sqrt(2))  # c


class TopRank(Rival):
    """Blocks of documents that could still be equally attractive.

    Parameters
    ----------
    tree, slots, seed
        As for every ranker.
    horizon
        The number of visits to come: δ is one over it.
    scale
        Factor on the bound at which a document beats another.
    """

    def __init__(
        self, tree: DocumentTree, slots: int, *, horizon: int = 10_000, scale: float = 0.2, seed: Seed = None
    ) -> None:
        super().__init__(tree, slots, seed=seed)
        above_zero(horizon=horizon, scale=scale)
        self.delta, self.scale = 1 / horizon, scale
        self.difference, self.compared = np.zeros((2, len(tree), len(tree)))  # S, N
        self.beats = np.zeros((len(tree), len(tree)), np.bool_)  # beats[i, j]: i beats j, (j, i) of G
        self.block = blocks(self.beats)

    def choose(self) -> Array:
        return np.lexsort((self.luck(), self.block))[: self.slots]

    def count(self, shown: Array, click: int) -> None:
        if click == self.slots:
            return
        clicked = shown[click]
        if _compare(self.difference, self.compared, self.beats, self.block, clicked, self.delta, self.scale):
            self.block = blocks(self.beats)


@compiled
def blocks(beats: Array) -> Array:
    """Return the number of each document's block: 0 for those that are beaten by none, and so on among the others."""
    block = np.full(len(beats), -1)
    number, left = 0, len(beats)
    while left > 0:
        found = 0
        for one in range(len(beats)):
            if block[one] == -1:
                beaten = False
                for other in range(len(beats)):
                    beaten = beaten or (beats[other, one] and (block[other] == -1 or block[other] == number))
                if not beaten:
                    block[one] = number
                    found += 1
        if found == 0:  # in a circle, which a wrong comparison can make: all that are left
            block[block == -1] = number
            found = left
        number, left = number + 1, left - found
    return block


@compiled
def _compare(
    difference: Array, compared: Array, beats: Array, block: Array, clicked: Scalar, delta: Scalar, scale: Scalar
) -> Scalar:
    """Compare the clicked document with all others of its block; return whether it beats another that it did not."""
    changed = False
    for other in range(len(block)):
        if other == clicked or block[other] != block[clicked]:
            continue
        difference[clicked, other] += 1
        difference[other, clicked] -= 1
        compared[clicked, other] += 1
        compared[other, clicked] += 1
        number = compared[clicked, other]
        bound = scale * np.sqrt(2 * number * np.log(CONSTANT * np.sqrt(number) / delta))
        if difference[clicked, other] >= bound and not beats[clicked, other]:
            beats[clicked, other] = True
            changed = True
    return changed
