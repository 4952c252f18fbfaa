"""Common base of the rankers whose slots explore by a confidence radius, or that have an anytime version."""

from __future__ import annotations

from abc import abstractmethod

from zoomrank.bandits import Anytime, Bandit
from zoomrank.bandits.exploration import Exploration
from zoomrank.numbers import Seed
from zoomrank.rankers.ranked import Ranked
from zoomrank.rankers.slot_bandits import SLOTS
from zoomrank.spaces import DocumentTree


def maybe_anytime(bandit: Bandit, anytime: bool) -> Bandit:
    """Return the bandit, or its anytime version."""
    return Anytime(bandit) if anytime else bandit


class UCBRanker(Ranked):
    """Ranker whose only parameters are those of exploration."""

    def __init__(
        self,
        tree: DocumentTree,
        slots: int = SLOTS,
        *,
        exploration: Exploration = "optimistic",
        horizon: int | None = None,
        anytime: bool = False,
        seed: Seed = None,
        duplicates: bool = False,
    ) -> None:
        bandit = self._of_a_slot(tree, exploration, horizon)
        super().__init__(maybe_anytime(bandit, anytime), slots, seed=seed, duplicates=duplicates)

    @staticmethod
    @abstractmethod
    def _of_a_slot(tree: DocumentTree, exploration: Exploration, horizon: int | None) -> Bandit:
        """Return the bandit of each slot."""
