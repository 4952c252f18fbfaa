"""`RankRandom` and `FixedRanking`: baselines that do not learn."""

from __future__ import annotations

from collections.abc import Sequence

from zoomrank.bandits import Fixed, Uniform
from zoomrank.numbers import Seed
from zoomrank.rankers.ranked import Ranked
from zoomrank.rankers.slot_bandits import SLOTS
from zoomrank.spaces import DocumentId, DocumentTree


class RankRandom(Ranked):
    """Random rankings: the weakest baseline.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents.
    slots : int
        Number of documents in a ranking, from 1 to 60.
    seed : int, numpy.random.Generator or None
        Seed; the same seed gives the same rankings.
    duplicates : bool
        Allow a document twice in a ranking, as in the paper.

    References
    ----------
    Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*, JMLR 14 (2013), Section 6: the random
    baseline.
    """

    bandit_kind = Uniform

    def __init__(self, tree: DocumentTree, slots: int = SLOTS, *, seed: Seed = None, duplicates: bool = False) -> None:
        super().__init__(Uniform(tree), slots, seed=seed, duplicates=duplicates)


class FixedRanking(Ranked):
    """Always the same ranking, such as the greedy one: the strongest baseline.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents.
    documents : sequence of DocumentId
        Documents to show, best first.
    seed : int, numpy.random.Generator or None
        Not used.

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
