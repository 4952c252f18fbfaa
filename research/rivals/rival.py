"""`Rival`: the base of all rivals. Documents are positions inside; a subclass chooses some and learns from a click.

All random numbers are drawn here, by NumPy, and given to kernels: so that a kernel can be compared with its twin.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from zoomrank.compiled import Scalar, inlined
from zoomrank.errors import ParameterError, SlotsError
from zoomrank.spaces import DocumentId, DocumentTree
from zoomrank.types import Array, Seed


class PlacedRanking(NamedTuple):
    """A ranking, and the positions of its documents."""

    documents: list[DocumentId]
    positions: Array


class Rival(ABC):
    """A ranker that chooses and learns by positions.

    Parameters
    ----------
    tree
        The documents.
    slots
        Number of documents in a ranking.
    seed
        The seed of all draws.
    """

    def __init__(self, tree: DocumentTree, slots: int, *, seed: Seed = None) -> None:
        if not 1 <= slots <= len(tree):
            raise SlotsError(f"{slots} slots cannot be filled from {len(tree)} documents.")
        self.tree, self.slots, self.rng = tree, slots, np.random.default_rng(seed)

    def rank(self) -> PlacedRanking:
        """Choose the ranking for one visitor."""
        positions = self.choose()
        return PlacedRanking(self.tree.documents.at(positions), positions)

    def learn(self, ranking: Any, click: int | None) -> None:
        """Learn from the visitor's first click."""
        self.count(ranking.positions, self.slots if click is None else click)

    @abstractmethod
    def choose(self) -> Array:
        """Return the positions of the documents to show, from the top."""

    @abstractmethod
    def count(self, shown: Array, click: int) -> None:
        """Count a visit that ended at the slot `click`; at the number of slots, if there was no click."""

    def luck(self) -> Array:
        """Draw a number for each document, by which ties are broken."""
        return self.rng.random(len(self.tree))


def above_zero(**values: float) -> None:
    """Raise an error unless all these parameters are above 0."""
    for name, value in values.items():
        if not value > 0:
            raise ParameterError(f"{name} is {value}; it must be above 0.")


@inlined
def best_left(score: Array, shown: Array, above: Scalar, luck: Array) -> Scalar:
    """Return the position with the highest score that is not among `shown[:above]`; ties go to the higher luck."""
    best = np.int64(-1)
    for position in range(len(score)):
        if best >= 0 and score[position] < score[best]:
            continue
        if best >= 0 and score[position] == score[best] and luck[position] < luck[best]:
            continue
        taken = False
        for slot in range(above):
            taken = taken or shown[slot] == position
        if not taken:
            best = np.int64(position)
    return best
