"""Output of a ranker: documents to show, and what it needs to learn from late feedback."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from zoomrank.rankers.ranking_arrays import RankingArrays
from zoomrank.spaces import DocumentId, DocumentIds


@dataclass(frozen=True, slots=True)
class Ranking:
    """A ranking to show, with what its ranker needs to learn from the feedback.

    Attributes
    ----------
    documents : list of DocumentId
        Documents to show, best first.
    number : int
        Number of the ranking among those of its ranker.
    ranker : str
        Name of the ranker that made it; no other ranker learns from it.
    arrays : RankingArrays
        The ranking as an array for kernels: one row.
    edition : int
        Version of the ranker's collection, which may have changed since.
    """

    documents: list[DocumentId]
    number: int
    ranker: str
    arrays: RankingArrays
    edition: int = 0

    @property
    def propensities(self) -> list[float]:
        """Probability of each document in its slot, given those above.

        Returns
        -------
        list of float
            Slot by slot; their product is the probability of the ranking. NaN for `RankThompson`, whose integrals take
            longer than its rankings: call its `propensities`.

        Examples
        --------
        >>> import zoomrank as zr
        >>> zr.ZoomRank(zr.DocumentTree.exponential(depth=2), slots=3, seed=0).rank().propensities
        [0.25, 0.25, 0.5]
        """
        weights: list[float] = self.arrays.propensity[0].tolist()
        return weights


@dataclass(frozen=True)
class Rankings:
    """Many rankings, made without learning in between; a sequence of `Ranking`s.

    Attributes
    ----------
    ids : DocumentIds
        Documents of the ranker's tree.
    first_number : int
        Number of the first ranking; the others follow.
    ranker : str
        Name of the ranker that made them.
    arrays : RankingArrays
        The rankings as arrays for kernels: a row each.
    edition : int
        Version of the ranker's collection, which may have changed since.
    """

    ids: DocumentIds
    first_number: int
    ranker: str
    arrays: RankingArrays
    edition: int = 0

    @cached_property
    def documents(self) -> list[list[DocumentId]]:
        """Documents of each ranking; their positions in the tree are `arrays.shown`.

        Returns
        -------
        list of list of DocumentId
            Documents, best first.
        """
        return [self.ids.at(shown) for shown in self.arrays.shown.tolist()]

    def __len__(self) -> int:
        return len(self.arrays.shown)

    def __getitem__(self, row: int) -> Ranking:
        at = range(len(self))[row]
        part = RankingArrays(*(array[at : at + 1] for array in self.arrays))
        return Ranking(self.ids.at(part.shown[0]), self.first_number + at, self.ranker, part, self.edition)
