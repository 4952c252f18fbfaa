"""What rankers have in common whose slots explore by a confidence radius, or that can be made anytime."""

from __future__ import annotations

from abc import abstractmethod

from zoomrank.bandits import Anytime, Bandit
from zoomrank.bandits.exploration import Exploration
from zoomrank.numbers import Seed
from zoomrank.rankers.ranked import Ranked
from zoomrank.rankers.slot_bandits import SLOTS
from zoomrank.spaces import DocumentTree


def maybe_anytime(bandit: Bandit, anytime: bool) -> Bandit:
    """The bandit, or its anytime version."""
    return Anytime(bandit) if anytime else bandit


class ExploringRanker(Ranked):
    """A ranker with nothing to choose but how its slots explore."""

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
        """The bandit of each slot."""
