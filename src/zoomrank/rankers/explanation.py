"""Explain the place of a document: the estimates of the slot's learner for the strategy that holds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zoomrank.bandits import Bandit
from zoomrank.errors import UnknownDocumentError
from zoomrank.rankers.ranking import RankingArrays
from zoomrank.spaces import DocumentId


@dataclass(frozen=True)
class SlotExplanation:
    """One slot of a ranking, with the current estimates of its learner.

    Attributes
    ----------
    document : DocumentId
        The document in the slot.
    subtree : str
        Name of the subtree whose documents share their estimates.
    documents : int
        Number of its documents.
    plays, clicks : int
        Number of times it was examined, and clicked.
    mean : float
        clicks / plays; 0 before the first.
    estimate : float
        Estimated click probability of the document in this slot, from other slots and similar documents as well, under
        the cap. The mean under the cap, for rankers that keep no records.
    radius : float
        Uncertainty of the mean.
    cap : float
        Cap from the documents above; infinite without the correlation rule.
    index : float
        Value it was chosen by: the highest wins.
    record : float or None
        Best record of any document in the slot, under the cap; None if there is none, and for rankers that keep no
        records.
    trial : bool or None
        True if the document is shown for its bound, not for its record; None for rankers that keep no records.

    Examples
    --------
    >>> import zoomrank as zr
    >>> ranker = zr.RankCorrZoom(zr.DocumentTree.exponential(depth=3), slots=2, seed=0)
    >>> ranker.learn(ranker.rank(), click=0)
    >>> top, _ = ranker.explain(ranker.rank())
    >>> top.documents, top.plays, top.index
    (4, 0, 2.0)
    >>> ranker = zr.ZoomRank(zr.DocumentTree.exponential(depth=3), slots=1, seed=0)
    >>> for _ in range(50):
    ...     ranking = ranker.rank()
    ...     ranker.learn(ranking, click=0 if ranking.documents == [5] else None)
    >>> ranker.explain(ranker.rank())[0].trial
    False

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
    estimate: float
    radius: float
    cap: float
    index: float
    record: float | None = None
    trial: bool | None = None

    def __str__(self) -> str:
        told = (
            f"{self.document!r}: {self.subtree} ({self.documents} documents), {self.clicks} clicks of {self.plays}"
            f", mean {self.mean:.3f} ± {self.radius:.3f}, cap {self.cap:.3f}, index {self.index:.3f}"
        )
        if self.trial:
            best = "no other record" if self.record is None else f"the best record is {self.record:.3f}"
            told += f"; on trial: its bound is {min(self.index, 1.0):.3f}, {best}"
        return told


def explain_slots(bandit: Bandit, state: Any, ranking: RankingArrays, duplicates: bool) -> list[SlotExplanation]:
    """Explain every slot of a ranking whose documents are at their current positions."""
    tree, shown = bandit.tree, ranking.shown[0]
    if min(shown.min(), ranking.pick.min()) < 0:
        raise UnknownDocumentError(
            "A document of this ranking was removed, so it cannot be explained: explain a new ranking."
        )
    prospects = bandit.prospects(state, state, shown, ranking.pick[0], duplicates)
    slots = []
    for slot, document in enumerate(tree.documents.at(shown)):
        found = bandit.strategy_of(state, slot, shown[:slot], int(ranking.pick[0, slot]))
        mean = found.clicks / found.plays if found.plays else 0.0
        slots.append(
            SlotExplanation(
                document,
                subtree=tree.name(found.node),
                documents=int(tree.shape.end_document[found.node]) - int(tree.shape.first_document[found.node]),
                plays=found.plays,
                clicks=found.clicks,
                mean=mean,
                estimate=min(mean, found.cap) if prospects is None else float(prospects.chance[slot]),
                radius=found.radius,
                cap=found.cap,
                index=min(found.index, found.cap),
                record=None if prospects is None or prospects.record[slot] < 0 else float(prospects.record[slot]),
                trial=None if prospects is None else bool(prospects.trial[slot]),
            )
        )
    return slots
