"""Rankers of other schools, three over documents, one along the tree.

`RankKLUCB` and `CascadeKLUCB` go by bounds, `RankExploreCommit` looks at everything first, `RankThompson` draws.
"""

from __future__ import annotations

from typing import ClassVar

from zoomrank.bandits import KLUCB, ExploreThenCommit, TreeThompson
from zoomrank.bandits.explore_commit import LOOKS
from zoomrank.bandits.kl_ucb import EXPLORATION
from zoomrank.bandits.thompson import PRIOR
from zoomrank.numbers import Seed
from zoomrank.rankers.ranked import Ranked
from zoomrank.rankers.slot_bandits import SLOTS
from zoomrank.spaces import DocumentTree


class _KLUCBRanker(Ranked):
    """KL-UCB over documents, in each slot or one for all slots."""

    _shared: ClassVar[bool]
    bandit_kind = KLUCB

    def __init__(
        self,
        tree: DocumentTree,
        slots: int = SLOTS,
        *,
        exploration: float = EXPLORATION,
        seed: Seed = None,
        duplicates: bool = False,
    ) -> None:
        bandit = KLUCB(tree, exploration=exploration, shared=self._shared)
        super().__init__(bandit, slots, seed=seed, duplicates=duplicates)


class RankKLUCB(_KLUCBRanker):
    """KL-UCB in each slot, with the documents as arms: it knows nothing of distances.

    Parameters
    ----------
    tree : DocumentTree
        Where the documents live.
    slots : int
        How many documents a ranking has, from 1 to 60.
    exploration : float
        C, which multiplies log t + 3 log log t; above 0.
    seed : int, numpy.random.Generator or None
        Where chance begins: the same seed, the same rankings.
    duplicates : bool
        Whether a document may be shown twice in a ranking, as in the paper.

    Examples
    --------
    >>> from zoomrank import DocumentTree
    >>> ranker = RankKLUCB(DocumentTree.exponential(depth=3), slots=2, exploration=0.1, seed=0)
    >>> ranker.learn(ranker.rank(), click=1)

    References
    ----------
    Garivier and Cappé, *The KL-UCB algorithm for bounded stochastic bandits and beyond*, COLT 2011, in slots that are
    composed as in Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*, JMLR 14 (2013), Section 4.1.
    """

    _shared = False


class CascadeKLUCB(_KLUCBRanker):
    """CascadeKL-UCB: the documents with the best bounds, best first, whomever they please; all slots are one learner.

    Parameters
    ----------
    tree : DocumentTree
        Where the documents live.
    slots : int
        How many documents a ranking has, from 1 to 60.
    exploration : float
        C, which multiplies log t + 3 log log t; above 0.
    seed : int, numpy.random.Generator or None
        Where chance begins: the same seed, the same rankings.
    duplicates : bool
        Whether a document may be shown twice in a ranking, as in the paper.

    Examples
    --------
    >>> from zoomrank import DocumentTree
    >>> ranker = CascadeKLUCB(DocumentTree.exponential(depth=3), slots=4, seed=0)
    >>> seen = ranker.rank()
    >>> ranker.learn(seen, click=None)
    >>> set(seen.documents) & set(ranker.rank().documents)  # what was never seen comes first
    set()

    References
    ----------
    Kveton, Szepesvári, Wen and Ashkan, *Cascading bandits*, ICML 2015.
    """

    _shared = True


class RankExploreCommit(Ranked):
    """Ranked Explore and Commit: one slot after the other, from the top, looks at every document equally often and
    then shows the one that was clicked most, for ever.

    Parameters
    ----------
    tree : DocumentTree
        Where the documents live.
    slots : int
        How many documents a ranking has, from 1 to 60.
    looks : int
        How often each document is looked at in a slot before that commits, from 1 on.
    seed : int, numpy.random.Generator or None
        Where chance begins: the same seed, the same rankings.
    duplicates : bool
        Whether a document may be shown twice in a ranking, as in the paper.

    Examples
    --------
    >>> from zoomrank import DocumentTree
    >>> ranker = RankExploreCommit(DocumentTree.exponential(depth=2), slots=1, seed=0)
    >>> for _ in range(4):
    ...     ranking = ranker.rank()
    ...     ranker.learn(ranking, click=0 if ranking.documents == [3] else None)
    >>> ranker.rank().documents
    [3]

    References
    ----------
    Radlinski, Kleinberg and Joachims, *Learning diverse rankings with multi-armed bandits*, ICML 2008.
    """

    bandit_kind = ExploreThenCommit

    def __init__(
        self,
        tree: DocumentTree,
        slots: int = SLOTS,
        *,
        looks: int = LOOKS,
        seed: Seed = None,
        duplicates: bool = False,
    ) -> None:
        super().__init__(ExploreThenCommit(tree, looks=looks), slots, seed=seed, duplicates=duplicates)


class RankThompson(Ranked):
    """Thompson sampling along the tree in each slot.

    Parameters
    ----------
    tree : DocumentTree
        Where the documents live.
    slots : int
        How many documents a ranking has, from 1 to 60.
    prior : float
        Beliefs start as Beta(`prior`, 1): the smaller, the less is expected of what was never seen. Above 0.
    correlated : bool
        Whether draws are capped by how far documents are from those shown above (the correlation rule).
    seed : int, numpy.random.Generator or None
        Where chance begins: the same seed, the same rankings.
    duplicates : bool
        Whether a document may be shown twice in a ranking, as in the paper.

    Examples
    --------
    >>> from zoomrank import DocumentTree
    >>> ranker = RankThompson(DocumentTree.exponential(depth=3), slots=2, seed=0)
    >>> len({tuple(documents) for documents in ranker.rank_many(20).documents}) > 5  # visitors see different things
    True

    References
    ----------
    Thompson, *On the likelihood that one unknown probability exceeds another*, Biometrika 25 (1933), in slots that are
    composed as in Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*, JMLR 14 (2013), Section 4.1;
    the correlation rule is their Eq. 23.
    """

    bandit_kind = TreeThompson

    def __init__(
        self,
        tree: DocumentTree,
        slots: int = SLOTS,
        *,
        prior: float = PRIOR,
        correlated: bool = True,
        seed: Seed = None,
        duplicates: bool = False,
    ) -> None:
        bandit = TreeThompson(tree, prior=prior, correlated=correlated)
        super().__init__(bandit, slots, seed=seed, duplicates=duplicates)
