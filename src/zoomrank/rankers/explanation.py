"""Why a document stands where it stands: what the slot's learner knows of the strategy that holds it."""

from __future__ import annotations

from dataclasses import dataclass

from zoomrank.spaces import DocumentId


@dataclass(frozen=True)
class SlotExplanation:
    """One slot of a ranking, as its learner sees it now."""

    document: DocumentId
    subtree: str  # the part of the collection that is judged as one
    documents: int  # how many it holds
    plays: int  # how often it was shown and looked at
    clicks: int
    mean: float  # clicks / plays, 0 before the first
    radius: float  # how uncertain that is
    cap: float  # the most that the documents above leave possible; infinite without the correlation rule
    index: float  # what it was chosen for: the highest wins

    def __str__(self) -> str:
        return (
            f"{self.document!r}: {self.subtree} ({self.documents} documents), {self.clicks} clicks of {self.plays}"
            f", mean {self.mean:.3f} ± {self.radius:.3f}, cap {self.cap:.3f}, index {self.index:.3f}"
        )
