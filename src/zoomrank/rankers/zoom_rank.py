"""`ZoomRank`: our own ranker, which needs far fewer visits than those of the paper."""

from __future__ import annotations

from zoomrank.bandits import PathZooming
from zoomrank.bandits.path_zooming.learner import BORROW, CONFIDENCE, GROWTH, OPTIMISM, PRIOR
from zoomrank.rankers.ranked import Ranked
from zoomrank.rankers.slot_bandits import SLOTS
from zoomrank.spaces import DocumentTree
from zoomrank.types import Seed


class ZoomRank(Ranked):
    """Path zooming in each slot: every click counts for all subtrees that hold the document, and in every slot.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents.
    slots : int
        Number of documents in a ranking, from 1 to 60.
    confidence : float
        Width of the bounds on the click probability; above 0. A larger value explores more.
    growth : float
        Extra width for a subtree that is visited less than its siblings, and for all within it. 0 or more; with 0, a
        subtree that looks poor by bad luck may never be tried again.
    optimism : float
        Share of a subtree's width that is added to its bound, less the fewer documents it has; 0 or more.
    borrow : float
        Most visits that the evidence of the other slots counts for; 0 or more.
    prior : float
        Number of pseudo-visits, at the click rate of its parent, that a subtree starts with; and of those without a
        click that a document shown above counts as. 0 or more.
    correlated : bool
        Take the documents shown above into account: cap bounds by the distance to them (the correlation rule), and
        leave out what they earned.
    patience : int or None
        Visits without a click after which a subtree is split into its children (after a click, at once); higher values
        use less memory. None: one per thousand documents, from 1 to 15. A subtree with fewer documents is split after
        one visit per document.
    seed : int, numpy.random.Generator or None
        Seed; the same seed gives the same rankings.
    duplicates : bool
        Allow a document twice in a ranking, as in the paper.

    Examples
    --------
    >>> from zoomrank import DocumentTree
    >>> ranker = ZoomRank(DocumentTree.exponential(depth=3), slots=2, seed=0)
    >>> for _ in range(100):
    ...     ranking = ranker.rank()
    ...     ranker.learn(ranking, click=ranking.documents.index(5) if 5 in ranking.documents else None)
    >>> 5 in ranker.rank().documents
    True

    References
    ----------
    Our own (docs/explanation/zoomrank.md), in the frame of
    Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*,
    JMLR 14 (2013): slots are composed as in Section 4.1, and the correlation rule is Eq. 23.
    """

    bandit_kind = PathZooming

    def __init__(
        self,
        tree: DocumentTree,
        slots: int = SLOTS,
        *,
        confidence: float = CONFIDENCE,
        growth: float = GROWTH,
        optimism: float = OPTIMISM,
        borrow: float = BORROW,
        prior: float = PRIOR,
        correlated: bool = True,
        patience: int | None = None,
        seed: Seed = None,
        duplicates: bool = False,
    ) -> None:
        bandit = PathZooming(
            tree,
            confidence=confidence,
            growth=growth,
            optimism=optimism,
            borrow=borrow,
            prior=prior,
            correlated=correlated,
            patience=patience,
        )
        super().__init__(bandit, slots, seed=seed, duplicates=duplicates)
