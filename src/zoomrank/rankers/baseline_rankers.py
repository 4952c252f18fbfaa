"""Rankers beside those of the paper, and the common base of rankers with a confidence radius.

`RankRandom` and `FixedRanking` do not learn. `RankKLUCB` and `CascadeKLUCB` use upper bounds over documents,
`RankExploreCommit` explores first, `RankThompson` samples along the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from zoomrank.bandits import KLUCB, Anytime, Bandit, ExploreThenCommit, Fixed, TreeThompson, Uniform
from zoomrank.bandits.baselines import LOOKS
from zoomrank.bandits.kl_ucb import EXPLORATION
from zoomrank.bandits.thompson import PRIOR
from zoomrank.bandits.ucb1 import Exploration, UCBBandit
from zoomrank.rankers.ranked import Ranked
from zoomrank.rankers.slot_bandits import SLOTS
from zoomrank.spaces import DocumentId, DocumentTree
from zoomrank.types import Seed


def maybe_anytime(bandit: Bandit, anytime: bool) -> Bandit:
    """Return the bandit, or its anytime version."""
    return Anytime(bandit) if anytime else bandit


class UCBRanker(Ranked):
    """Ranker whose only parameters are those of exploration."""

    bandit_kind: ClassVar[type[UCBBandit]]
    bandit_settings: ClassVar[dict[str, Any]] = {}  # other parameters of its bandits

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
        bandit = self.bandit_kind(tree, exploration=exploration, horizon=horizon, **self.bandit_settings)
        super().__init__(maybe_anytime(bandit, anytime), slots, seed=seed, duplicates=duplicates)


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
    """KL-UCB in each slot, with the documents as arms; ignores distances.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents.
    slots : int
        Number of documents in a ranking, from 1 to 60.
    exploration : float
        C, which multiplies log t + 3 log log t; above 0.
    seed : int, numpy.random.Generator or None
        Seed; the same seed gives the same rankings.
    duplicates : bool
        Allow a document twice in a ranking, as in the paper.

    References
    ----------
    Garivier and Cappé, *The KL-UCB algorithm for bounded stochastic bandits and beyond*, COLT 2011, in slots that are
    composed as in Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*, JMLR 14 (2013), Section 4.1.
    """

    _shared = False


class CascadeKLUCB(_KLUCBRanker):
    """CascadeKL-UCB: the documents with the best bounds, best first, without diversity; all slots are one learner.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents.
    slots : int
        Number of documents in a ranking, from 1 to 60.
    exploration : float
        C, which multiplies log t + 3 log log t; above 0.
    seed : int, numpy.random.Generator or None
        Seed; the same seed gives the same rankings.
    duplicates : bool
        Allow a document twice in a ranking, as in the paper.

    References
    ----------
    Kveton, Szepesvári, Wen and Ashkan, *Cascading bandits*, ICML 2015.
    """

    _shared = True


class RankExploreCommit(Ranked):
    """Ranked Explore and Commit: one slot after the other, from the top, shows every document equally often and then
    always the one with most clicks.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents.
    slots : int
        Number of documents in a ranking, from 1 to 60.
    looks : int
        Number of times each document is shown in a slot before the slot commits, at least 1.
    seed : int, numpy.random.Generator or None
        Seed; the same seed gives the same rankings.
    duplicates : bool
        Allow a document twice in a ranking, as in the paper.

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
        Tree of the documents.
    slots : int
        Number of documents in a ranking, from 1 to 60.
    prior : float
        Beliefs start as Beta(`prior`, 1): the smaller, the lower the expected value of unseen documents. Above 0.
    correlated : bool
        Cap draws by the distance to the documents shown above (the correlation rule).
    seed : int, numpy.random.Generator or None
        Seed; the same seed gives the same rankings.
    duplicates : bool
        Allow a document twice in a ranking, as in the paper.

    Examples
    --------
    >>> from zoomrank import DocumentTree
    >>> ranker = RankThompson(DocumentTree.exponential(depth=3), slots=2, seed=0)
    >>> len({tuple(documents) for documents in ranker.rank_many(20).documents}) > 5  # rankings differ between visitors
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
