"""Why a document stands where it stands: what the slot's learner knows of the strategy that holds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zoomrank.bandits import Bandit
from zoomrank.rankers.ranking_arrays import RankingArrays
from zoomrank.spaces import DocumentId


@dataclass(frozen=True)
class SlotExplanation:
    """One slot of a ranking, as its learner sees it now.

    Attributes
    ----------
    document : DocumentId
        What is shown.
    subtree : str
        The part of the collection that is judged as one.
    documents : int
        How many documents that holds.
    plays, clicks : int
        How often it was shown and looked at, and clicked.
    mean : float
        clicks / plays; 0 before the first.
    radius : float
        How uncertain that is.
    cap : float
        The most that the documents above leave possible; infinite without the correlation rule.
    index : float
        What it was chosen for: the highest wins.

    Examples
    --------
    >>> import zoomrank as zr
    >>> ranker = zr.RankCorrZoom(zr.DocumentTree.exponential(depth=3), slots=2, seed=0)
    >>> ranker.learn(ranker.rank(), click=0)
    >>> top, _ = ranker.explain(ranker.rank())
    >>> top.documents, top.plays, top.index
    (4, 0, 2.0)

    References
    ----------
    Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*, JMLR 14 (2013), Section 4: radius (Eq. 17),
    index (Algorithms 3 and 4) and cap (Eq. 23).
    """

    document: DocumentId
    subtree: str
    documents: int
    plays: int
    clicks: int
    mean: float
    radius: float
    cap: float
    index: float

    def __str__(self) -> str:
        return (
            f"{self.document!r}: {self.subtree} ({self.documents} documents), {self.clicks} clicks of {self.plays}"
            f", mean {self.mean:.3f} ± {self.radius:.3f}, cap {self.cap:.3f}, index {self.index:.3f}"
        )


def explained(bandit: Bandit, state: Any, ranking: RankingArrays) -> list[SlotExplanation]:
    """Every slot of one ranking, whose documents stand where they stand now."""
    tree, shown = bandit.tree, ranking.shown[0]
    slots = []
    for slot, document in enumerate(tree.documents.at(shown)):
        found = bandit.strategy_of(state, slot, shown[:slot], int(ranking.pick[0, slot]))
        slots.append(
            SlotExplanation(
                document,
                subtree=tree.name(found.node),
                documents=int(tree.shape.end_document[found.node]) - int(tree.shape.first_document[found.node]),
                plays=found.plays,
                clicks=found.clicks,
                mean=found.clicks / found.plays if found.plays else 0.0,
                radius=found.radius,
                cap=found.cap,
                index=min(found.index, found.cap),
            )
        )
    return slots
