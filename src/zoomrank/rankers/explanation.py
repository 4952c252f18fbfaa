"""Why a document stands where it stands: what the slot's learner knows of the strategy that holds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zoomrank.bandits import Bandit
from zoomrank.errors import UnknownDocumentError
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
    estimate : float
        What the document is believed to earn there: what other slots and documents like it have seen counts as well,
        and the cap does. The mean under the cap, for rankers that keep no records.
    radius : float
        How uncertain the mean is.
    cap : float
        The most that the documents above leave possible; infinite without the correlation rule.
    index : float
        What it was chosen for: the highest wins.
    record : float or None
        The best record that the slot knows, of any document and under the cap; None if it knows none, and for rankers
        that keep no records.
    trial : bool or None
        Whether the document is shown for what is hoped of it, not for its record; None for rankers that do not tell
        the one from the other. A document that has changed places with one above is on trial there.

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
            best = "nothing else is known" if self.record is None else f"the best that is known earns {self.record:.3f}"
            told += f"; on trial: it may be worth {min(self.index, 1.0):.3f}, and {best}"
        return told


def explained(bandit: Bandit, state: Any, ranking: RankingArrays, duplicates: bool) -> list[SlotExplanation]:
    """Every slot of one ranking, whose documents stand where they stand now."""
    tree, shown = bandit.tree, ranking.shown[0]
    if min(shown.min(), ranking.pick.min()) < 0:
        raise UnknownDocumentError(
            "A document of this ranking is gone, so nothing is known of it; explain a new ranking."
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
