"""`RankZoom`, `RankCorrZoom` and `RankContextZoom`: the rankers of the paper that learn about whole subtrees."""

from __future__ import annotations

from typing import Any, ClassVar

from zoomrank.bandits import ContextualZooming, Zooming
from zoomrank.bandits.contextual_zooming.learner import SCALE
from zoomrank.bandits.ucb1 import Exploration
from zoomrank.rankers.baseline_rankers import UCBRanker, maybe_anytime
from zoomrank.rankers.ranked import Ranked
from zoomrank.rankers.slot_bandits import SLOTS
from zoomrank.spaces import DocumentTree
from zoomrank.types import Seed


class RankZoom(UCBRanker):
    """The zooming algorithm in each slot.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents.
    slots : int
        Number of documents in a ranking, from 1 to 60.
    exploration : str or float
        C in the radius sqrt(C / (1 + n)): "optimistic" is 1, "pessimistic" is 4·log(horizon), or a positive number.
    horizon : int or None
        Number of visits to come; needed by a pessimistic ranker only.
    anytime : bool
        Reset slots after 1, 2, 4, 8, … visits, each time for a horizon of that length.
    seed : int, numpy.random.Generator or None
        Seed; the same seed gives the same rankings.
    duplicates : bool
        Allow a document twice in a ranking, as in the paper.

    References
    ----------
    Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*, JMLR 14 (2013), Section 4: Algorithm 3 in
    each slot.
    """

    bandit_kind = Zooming


class RankCorrZoom(UCBRanker):
    """The zooming algorithm in each slot, with indices capped by the distance to the documents above.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents.
    slots : int
        Number of documents in a ranking, from 1 to 60.
    exploration : str or float
        C in the radius sqrt(C / (1 + n)): "optimistic" is 1, "pessimistic" is 4·log(horizon), or a positive number.
    horizon : int or None
        Number of visits to come; needed by a pessimistic ranker only.
    anytime : bool
        Reset slots after 1, 2, 4, 8, … visits, each time for a horizon of that length.
    seed : int, numpy.random.Generator or None
        Seed; the same seed gives the same rankings.
    duplicates : bool
        Allow a document twice in a ranking, as in the paper.

    Examples
    --------
    >>> from zoomrank import DocumentTree
    >>> ranker = RankCorrZoom(DocumentTree.exponential(depth=3), slots=2, seed=0)
    >>> ranking = ranker.rank()
    >>> [slot.cap for slot in ranker.explain(ranking)]
    [inf, 1.0]

    References
    ----------
    Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*, JMLR 14 (2013), Section 4: Algorithm 3 with
    the correlation rule of Eq. 23.
    """

    bandit_kind = Zooming
    bandit_settings: ClassVar[dict[str, Any]] = {"correlated": True}


class RankContextZoom(Ranked):
    """Contextual zooming in each slot, with the documents above as context, and indices capped as in `RankCorrZoom`.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents.
    slots : int
        Number of documents in a ranking, from 1 to 60.
    exploration : str or float
        C in the radius sqrt(C / (1 + n)): "optimistic" is 1, "pessimistic" is 4·log(horizon), or a positive number.
    horizon : int or None
        Number of visits to come; needed by a pessimistic ranker only.
    scale : float
        Share of the paper's widths of pairs to use; 1 is the paper's bound, a worst case.
    anytime : bool
        Reset slots after 1, 2, 4, 8, … visits, each time for a horizon of that length.
    seed : int, numpy.random.Generator or None
        Seed; the same seed gives the same rankings.
    duplicates : bool
        Allow a document twice in a ranking, as in the paper.

    References
    ----------
    Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*, JMLR 14 (2013), Section 4: Algorithm 4 in
    each slot; Section 5 has a theorem on its regret and on convergence to the greedy optimum.
    """

    bandit_kind = ContextualZooming

    def __init__(
        self,
        tree: DocumentTree,
        slots: int = SLOTS,
        *,
        exploration: Exploration = "optimistic",
        horizon: int | None = None,
        scale: float = SCALE,
        anytime: bool = False,
        seed: Seed = None,
        duplicates: bool = False,
    ) -> None:
        bandit = ContextualZooming(tree, exploration=exploration, horizon=horizon, scale=scale)
        super().__init__(maybe_anytime(bandit, anytime), slots, seed=seed, duplicates=duplicates)
