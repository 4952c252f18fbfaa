"""ZoomRank, the rankers of the paper by their names, its baselines, and their anytime versions (`anytime=True`).

| ranker | slots are filled by |
|---|---|
| `ZoomRank` | our own learner, which counts along paths and shares between slots |
| `RankUCB1`, `RankEXP3` | bandits that know nothing of distances |
| `RankGridUCB1`, `RankGridEXP3` | the same over ever finer parts of the tree |
| `RankZoom` | the zooming algorithm |
| `RankCorrZoom` | zooming, with indices capped by the distance to the documents above |
| `RankContextZoom` | contextual zooming with the documents above as context, capped likewise |
| `RankKLUCB`, `CascadeKLUCB` | KL-UCB over documents: a learner per slot, or one for all slots |
| `RankThompson` | Thompson sampling along the tree, capped as in RankCorrZoom |
| `RankRandom`, `FixedRanking` | no learner at all |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zoomrank.bandits import (
    EXP3,
    KLUCB,
    UCB1,
    Anytime,
    Bandit,
    ContextualZooming,
    Fixed,
    Grid,
    PathZooming,
    TreeThompson,
    Uniform,
    Zooming,
)
from zoomrank.bandits.exploration import Exploration
from zoomrank.numbers import Seed
from zoomrank.rankers.ranked import Ranked
from zoomrank.spaces import DocumentId, DocumentTree


class _Named(Ranked):
    """A composition with a name: what it is made of stands in `make`."""

    def __init__(
        self,
        tree: DocumentTree,
        slots: int = 5,
        *,
        seed: Seed = None,
        duplicates: bool = False,
        anytime: bool = False,
        **settings: Any,
    ) -> None:
        bandit = self.make(tree, **settings)
        super().__init__(Anytime(bandit) if anytime else bandit, slots, seed=seed, duplicates=duplicates)

    @staticmethod
    def make(tree: DocumentTree) -> Bandit:
        """The bandit of each slot."""
        raise NotImplementedError


class ZoomRank(_Named):
    """Ranked path zooming; `bandits/path_zooming.py` explains the parameters."""

    @staticmethod
    def make(tree: DocumentTree, **parameters: Any) -> Bandit:
        """PathZooming, which knows the defaults."""
        return PathZooming(tree, **parameters)


class RankUCB1(_Named):
    """Ranked UCB1: `exploration` ("optimistic", "pessimistic" or a number), `horizon`."""

    @staticmethod
    def make(tree: DocumentTree, exploration: Exploration = "optimistic", horizon: int | None = None) -> Bandit:
        """UCB1."""
        return UCB1(tree, exploration=exploration, horizon=horizon)


class RankEXP3(_Named):
    """Ranked EXP3: `horizon`, which it has to know unless `anytime`."""

    @staticmethod
    def make(tree: DocumentTree, horizon: int | None = None) -> Bandit:
        """EXP3."""
        return EXP3(tree, horizon=horizon)


class RankGridUCB1(_Named):
    """Ranked Grid of UCB1: `exploration`, `horizon`."""

    @staticmethod
    def make(tree: DocumentTree, exploration: Exploration = "optimistic", horizon: int | None = None) -> Bandit:
        """Grid(UCB1)."""
        return Grid(UCB1(tree, exploration=exploration, horizon=horizon))


class RankGridEXP3(_Named):
    """Ranked Grid of EXP3; phases set the horizon."""

    @staticmethod
    def make(tree: DocumentTree) -> Bandit:
        """Grid(EXP3)."""
        return Grid(EXP3(tree))


class RankZoom(_Named):
    """Ranked zooming: `exploration`, `horizon`."""

    @staticmethod
    def make(tree: DocumentTree, exploration: Exploration = "optimistic", horizon: int | None = None) -> Bandit:
        """Zooming."""
        return Zooming(tree, exploration=exploration, horizon=horizon)


class RankCorrZoom(_Named):
    """Ranked zooming with the correlation rule: `exploration`, `horizon`."""

    @staticmethod
    def make(tree: DocumentTree, exploration: Exploration = "optimistic", horizon: int | None = None) -> Bandit:
        """Zooming, capped."""
        return Zooming(tree, exploration=exploration, horizon=horizon, correlated=True)


class RankContextZoom(_Named):
    """Ranked contextual zooming: `exploration`, `horizon`, and `scale`, the share of the paper's widths to use."""

    @staticmethod
    def make(
        tree: DocumentTree,
        exploration: Exploration = "optimistic",
        horizon: int | None = None,
        scale: float = 1.0,
    ) -> Bandit:
        """ContextualZooming."""
        return ContextualZooming(tree, exploration=exploration, horizon=horizon, scale=scale)


class RankKLUCB(_Named):
    """Ranked KL-UCB: `exploration`, which multiplies log t."""

    @staticmethod
    def make(tree: DocumentTree, exploration: float = 1.0) -> Bandit:
        """KLUCB, one per slot."""
        return KLUCB(tree, exploration=exploration)


class CascadeKLUCB(_Named):
    """CascadeKL-UCB: the documents with the best bounds, best first; `exploration` multiplies log t."""

    @staticmethod
    def make(tree: DocumentTree, exploration: float = 1.0) -> Bandit:
        """KLUCB, one for all slots."""
        return KLUCB(tree, exploration=exploration, shared=True)


class RankThompson(_Named):
    """Ranked Thompson sampling on the tree: `prior`, and whether it is `correlated`."""

    @staticmethod
    def make(tree: DocumentTree, prior: float = 1.0, correlated: bool = True) -> Bandit:
        """TreeThompson."""
        return TreeThompson(tree, prior=prior, correlated=correlated)


class RankRandom(_Named):
    """Random rankings: the baseline at the bottom."""

    @staticmethod
    def make(tree: DocumentTree) -> Bandit:
        """Uniform."""
        return Uniform(tree)


class FixedRanking(Ranked):
    """Always the same ranking, such as the greedy one: the baseline at the top."""

    def __init__(self, tree: DocumentTree, documents: Sequence[DocumentId], *, seed: Seed = None) -> None:
        super().__init__(Fixed(tree, documents), len(documents), seed=seed)
