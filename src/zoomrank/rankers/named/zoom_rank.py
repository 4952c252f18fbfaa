"""`ZoomRank`: our own ranker, which needs far fewer visits than those of the paper."""

from __future__ import annotations

from zoomrank.bandits import PathZooming
from zoomrank.bandits.path_zooming import BORROW, CONFIDENCE, GROWTH, MARGIN, OPTIMISM, PRIOR
from zoomrank.numbers import Seed
from zoomrank.rankers.ranked import Ranked
from zoomrank.rankers.slot_bandits import SLOTS
from zoomrank.spaces import DocumentTree


class ZoomRank(Ranked):
    """Path zooming in each slot: every click counts for all subtrees that hold the document, and in every slot.

    Parameters
    ----------
    tree : DocumentTree
        Where the documents live.
    slots : int
        How many documents a ranking has, from 1 to 60.
    confidence : float
        How wide bounds on the chance of a click are, in the last slot; above 0. The more, the more is tried. Slots
        above have their share of it: a visit to the top is too dear for trying things.
    growth : float
        How much wider they get for a subtree that is visited less than its siblings, and for all within it. 0 or more;
        0 may lock out for ever what bad luck made look poor.
    optimism : float
        The share of a subtree's width that is added to its bound; 0 or more.
    borrow : float
        For how many visits at most what other slots saw counts in a slot; 0 or more.
    prior : float
        As if a subtree had begun with so many visits that went as those of its parent did; 0 or more.
    margin : float
        How much better than the best record something must promise to be, as a share, to be tried; from 0 to below 1.
    correlated : bool
        Whether bounds are capped by how far documents are from those shown above (the correlation rule).
    patience : int or None
        After how many visits without a click the children of a subtree are told apart (after a click, at once): the
        more, the less memory. None: one for every thousand documents, from 1 to 15. A subtree with fewer documents
        waits for as many visits as it has.
    exchange : bool
        Whether a document that does well below one that is like it is tried in the other's slot. With `duplicates`
        rankings stay as slots chose them.
    seed : int, numpy.random.Generator or None
        Where chance begins: the same seed, the same rankings.
    duplicates : bool
        Whether a document may be shown twice in a ranking, as in the paper.

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
    Our own (docs/zoomrank.md), in the frame of Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*,
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
        margin: float = MARGIN,
        correlated: bool = True,
        patience: int | None = None,
        exchange: bool = True,
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
            margin=margin,
            correlated=correlated,
            patience=patience,
            exchange=exchange,
        )
        super().__init__(bandit, slots, seed=seed, duplicates=duplicates)
