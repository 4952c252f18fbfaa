"""`RankRandom` and `FixedRanking`: no learner at all, below and above those that learn."""

from __future__ import annotations

from collections.abc import Sequence

from zoomrank.bandits import Fixed, Uniform
from zoomrank.numbers import Seed
from zoomrank.rankers.ranked import Ranked
from zoomrank.rankers.slot_bandits import SLOTS
from zoomrank.spaces import DocumentId, DocumentTree


class RankRandom(Ranked):
    """Random rankings: the baseline at the bottom.

    Parameters
    ----------
    tree : DocumentTree
        Where the documents live.
    slots : int
        How many documents a ranking has, from 1 to 60.
    seed : int, numpy.random.Generator or None
        Where chance begins: the same seed, the same rankings.
    duplicates : bool
        Whether a document may be shown twice in a ranking, as in the paper.

    Examples
    --------
    >>> from zoomrank import DocumentTree
    >>> RankRandom(DocumentTree.exponential(depth=3), slots=3, seed=0).rank().documents
    [5, 0, 6]

    References
    ----------
    Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*, JMLR 14 (2013), Section 6: the random
    baseline.
    """

    bandit_kind = Uniform

    def __init__(self, tree: DocumentTree, slots: int = SLOTS, *, seed: Seed = None, duplicates: bool = False) -> None:
        super().__init__(Uniform(tree), slots, seed=seed, duplicates=duplicates)


class FixedRanking(Ranked):
    """Always the same ranking, such as the greedy one: the baseline at the top.

    Parameters
    ----------
    tree : DocumentTree
        Where the documents live.
    documents : sequence of DocumentId
        What to show, best first.
    seed : int, numpy.random.Generator or None
        Has no say in anything.

    Examples
    --------
    >>> from zoomrank import DocumentTree
    >>> FixedRanking(DocumentTree.exponential(depth=3), [4, 2]).rank().documents
    [4, 2]

    References
    ----------
    Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*, JMLR 14 (2013), Section 6: the greedy
    optimum, which learners are measured by.
    """

    bandit_kind = Fixed

    def __init__(self, tree: DocumentTree, documents: Sequence[DocumentId], *, seed: Seed = None) -> None:
        super().__init__(Fixed(tree, documents), len(documents), seed=seed)
