"""`VowpalWabbit`: its conditional contextual bandit, with the path of each document as features.

Slots choose in turn among the documents that are not above them; the cost is −1 for a click and 0 for an examined
document without one. Slots below a click are not learned from. Needs the package `vowpalwabbit` (extra `compare`).

References
----------
https://github.com/VowpalWabbit/vowpal_wabbit/wiki/Conditional-Contextual-Bandit
"""

from __future__ import annotations

from typing import Any

import numpy as np

from research.rivals.rival import PlacedRanking, Rival
from zoomrank.spaces import DocumentTree
from zoomrank.types import Array, Seed


class VowpalWabbit(Rival):
    """The conditional contextual bandit of Vowpal Wabbit.

    Parameters
    ----------
    tree, slots, seed
        As for every ranker.
    options
        Options of the command line: the exploration, the learning rate.
    """

    def __init__(self, tree: DocumentTree, slots: int, *, options: str = "--epsilon 0.05", seed: Seed = None) -> None:
        import vowpalwabbit

        super().__init__(tree, slots, seed=seed)
        own = int(self.rng.integers(2**31))
        self.workspace: Any = vowpalwabbit.Workspace(f"--ccb_explore_adf --quiet --random_seed {own} {options}")
        self.actions = ["ccb shared |s query", *(f"ccb action |p {_path(tree, x)}" for x in range(len(tree)))]
        self.chances: list[float] = []

    def choose(self) -> Array:
        slots = self.workspace.predict([*self.actions, *["ccb slot |z slot"] * self.slots])
        self.chances = [slot[0][1] for slot in slots]  # the first of each slot is the chosen one
        return np.array([slot[0][0] for slot in slots])

    def rank(self) -> PlacedRanking:
        """Choose the ranking for one visitor; feedback must come before the next one."""
        return super().rank()

    def count(self, shown: Array, click: int) -> None:
        labels = []
        for slot, (document, chance) in enumerate(zip(shown, self.chances, strict=True)):
            label = f"{document}:{-float(slot == click)}:{chance} " if slot <= click else ""
            labels.append(f"ccb slot {label}|z slot")
        self.workspace.learn([*self.actions, *labels])


def _path(tree: DocumentTree, document: int) -> str:
    """Return the nodes from a document up to the root, without it, as the names of features."""
    node, names = int(tree.shape.leaf[document]), []
    while node != 0:
        names.append(f"n{node}")
        node = int(tree.shape.parent[node])
    return " ".join(names)
