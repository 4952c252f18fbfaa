"""`RankUCB1` and `RankEXP3`, which ignore distances, and their grid versions over ever finer parts of the tree."""

from __future__ import annotations

from zoomrank.bandits import EXP3, UCB1, Grid
from zoomrank.bandits.ucb1 import Exploration
from zoomrank.rankers.baseline_rankers import UCBRanker, maybe_anytime
from zoomrank.rankers.ranked import Ranked
from zoomrank.rankers.slot_bandits import SLOTS
from zoomrank.spaces import DocumentTree
from zoomrank.types import Seed


class RankUCB1(UCBRanker):
    """UCB1 in each slot, with the documents as arms; ignores distances.

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
    Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*, JMLR 14 (2013), Section 4.1; UCB1 is of Auer,
    Cesa-Bianchi and Fischer, *Finite-time analysis of the multiarmed bandit problem*, Machine Learning 47 (2002).
    """

    bandit_kind = UCB1


class RankGridUCB1(Ranked):
    """UCB1 over ever finer parts of the tree in each slot.

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
    start : int
        Depth of the grid's first phase, at least 0.
    stretch : float
        Factor on the phase lengths of the paper, above 0; a phase lasts at least one visit.
    replay : bool
        Replay the visits of earlier phases to the bandits of a new phase, as a footnote of the paper suggests.
    anytime : bool
        Reset slots after 1, 2, 4, 8, … visits, each time for a horizon of that length.
    seed : int, numpy.random.Generator or None
        Seed; the same seed gives the same rankings.
    duplicates : bool
        Allow a document twice in a ranking, as in the paper.

    References
    ----------
    Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*, JMLR 14 (2013), Section 4: GridUCB1 after
    Kleinberg, *Nearly tight bounds for the continuum-armed bandit problem*, NIPS 2004.
    """

    bandit_kind = Grid

    def __init__(
        self,
        tree: DocumentTree,
        slots: int = SLOTS,
        *,
        exploration: Exploration = "optimistic",
        horizon: int | None = None,
        start: int = 0,
        stretch: float = 1.0,
        replay: bool = False,
        anytime: bool = False,
        seed: Seed = None,
        duplicates: bool = False,
    ) -> None:
        bandit = UCB1(tree, exploration=exploration, horizon=horizon)
        grid = Grid(bandit, start=start, stretch=stretch, replay=replay)
        super().__init__(maybe_anytime(grid, anytime), slots, seed=seed, duplicates=duplicates)


class RankEXP3(Ranked):
    """EXP3 in each slot, with the documents as arms; ignores distances, and is robust against adversarial rewards.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents.
    slots : int
        Number of documents in a ranking, from 1 to 60.
    horizon : int or None
        Number of visits to come; required unless `anytime`.
    anytime : bool
        Reset slots after 1, 2, 4, 8, … visits, each time for a horizon of that length.
    seed : int, numpy.random.Generator or None
        Seed; the same seed gives the same rankings.
    duplicates : bool
        Allow a document twice in a ranking, as in the paper.

    Examples
    --------
    >>> from zoomrank import DocumentTree
    >>> ranker = RankEXP3(DocumentTree.exponential(depth=3), slots=2, anytime=True, seed=0)
    >>> [slot.index for slot in ranker.explain(ranker.rank())]  # the probability of each of eight documents
    [0.125, 0.125]

    References
    ----------
    Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*, JMLR 14 (2013), Section 4.1; EXP3 is of Auer,
    Cesa-Bianchi, Freund and Schapire, *The nonstochastic multiarmed bandit problem*, SIAM Journal on Computing 32
    (2002).
    """

    bandit_kind = EXP3

    def __init__(
        self,
        tree: DocumentTree,
        slots: int = SLOTS,
        *,
        horizon: int | None = None,
        anytime: bool = False,
        seed: Seed = None,
        duplicates: bool = False,
    ) -> None:
        bandit = EXP3(tree, horizon=horizon)
        super().__init__(maybe_anytime(bandit, anytime), slots, seed=seed, duplicates=duplicates)


class RankGridEXP3(Ranked):
    """EXP3 over ever finer parts of the tree in each slot; the phases of the grid set its horizon.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents.
    slots : int
        Number of documents in a ranking, from 1 to 60.
    start : int
        Depth of the grid's first phase, at least 0.
    stretch : float
        Factor on the phase lengths of the paper, above 0; a phase lasts at least one visit.
    anytime : bool
        Reset slots after 1, 2, 4, 8, … visits, each time for a horizon of that length.
    seed : int, numpy.random.Generator or None
        Seed; the same seed gives the same rankings.
    duplicates : bool
        Allow a document twice in a ranking, as in the paper.

    References
    ----------
    Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*, JMLR 14 (2013), Section 4: RankGridEXP3, with
    a theorem on its regret.
    """

    bandit_kind = Grid

    def __init__(
        self,
        tree: DocumentTree,
        slots: int = SLOTS,
        *,
        start: int = 0,
        stretch: float = 1.0,
        anytime: bool = False,
        seed: Seed = None,
        duplicates: bool = False,
    ) -> None:
        grid = Grid(EXP3(tree), start=start, stretch=stretch)
        super().__init__(maybe_anytime(grid, anytime), slots, seed=seed, duplicates=duplicates)
