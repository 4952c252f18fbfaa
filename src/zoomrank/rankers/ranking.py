"""What a ranker gives out: documents to show, and what it needs to learn from the answer, however late that comes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from zoomrank.rankers.ranking_arrays import RankingArrays
from zoomrank.spaces import DocumentId, DocumentIds


@dataclass(frozen=True, slots=True)
class Ranking:
    """A ranking to show, and what its ranker needs to learn from the answer.

    Attributes
    ----------
    documents : list of DocumentId
        What to show, best first.
    number : int
        Counts the rankings of its ranker.
    ranker : str
        The name of the ranker that made it; no other learns from it.
    arrays : RankingArrays
        The same as kernels see it: one row.
    edition : int
        Of the ranker's collection, which may have grown since.

    Examples
    --------
    >>> import zoomrank as zr
    >>> ranking = zr.RankRandom(zr.DocumentTree.exponential(depth=3), slots=3, seed=0).rank()
    >>> ranking.documents, ranking.number
    ([5, 0, 6], 0)
    """

    documents: list[DocumentId]
    number: int
    ranker: str
    arrays: RankingArrays
    edition: int = 0

    @property
    def propensities(self) -> list[float]:
        """How likely each document was in its slot, given those above.

        Returns
        -------
        list of float
            Slot by slot; not a number where it is not known: `RankThompson` is to be asked (`propensities`), since its
            integrals take longer than its rankings. Their product is the probability of the ranking.

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
        The documents of the ranker's tree.
    first_number : int
        The number of the first ranking; the others follow.
    ranker : str
        The name of the ranker that made them.
    arrays : RankingArrays
        The same as kernels see them: a row each.
    edition : int
        Of the ranker's collection, which may have grown since.

    Examples
    --------
    >>> import zoomrank as zr
    >>> rankings = zr.RankRandom(zr.DocumentTree.exponential(depth=3), slots=2, seed=0).rank_many(3)
    >>> len(rankings), rankings.documents[1] == rankings[1].documents
    (3, True)
    """

    ids: DocumentIds
    first_number: int
    ranker: str
    arrays: RankingArrays
    edition: int = 0

    @cached_property
    def documents(self) -> list[list[DocumentId]]:
        """The documents of each ranking; their positions in the tree are `arrays.shown`.

        Returns
        -------
        list of list of DocumentId
            Best first.

        Examples
        --------
        >>> import zoomrank as zr
        >>> zr.FixedRanking(zr.DocumentTree.exponential(depth=3), [4, 2]).rank_many(2).documents
        [[4, 2], [4, 2]]
        """
        return [self.ids.at(shown) for shown in self.arrays.shown.tolist()]

    def __len__(self) -> int:
        return len(self.arrays.shown)

    def __getitem__(self, row: int) -> Ranking:
        at = range(len(self))[row]
        part = RankingArrays(*(array[at : at + 1] for array in self.arrays))
        return Ranking(self.ids.at(part.shown[0]), self.first_number + at, self.ranker, part, self.edition)
