"""`UserDistribution`: who visits (the 𝒫 of Section 2), and everything an all-knowing observer can say about them.

A visitor is a relevance vector π: a set of documents that are relevant to her. She reads a ranking top-down and
clicks on the first relevant document. A model of visitors supplies two things, how a visitor is drawn and what is
known of those who skip a set S of documents; means, satisfaction and the greedy optimum follow from these for every
model alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import overload

import numpy as np

from zoomrank.errors import ImpossibleEventError, MeanError, ParameterError, SlotsError
from zoomrank.numbers import Array, Seed, whole_number
from zoomrank.spaces import DocumentId, DocumentIds
from zoomrank.spaces.ids import Positions
from zoomrank.users.best_rankings import BestRanking, greedy, optimum, optimum_bound, satisfied
from zoomrank.users.first_click import ClickState, first_clicks


class UserDistribution(ABC):
    """A distribution over visitors of the documents of one collection.

    Models of visitors are its subclasses; for one of your own see `PlainUsers`.

    Parameters
    ----------
    documents : DocumentIds
        The ids of the documents.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 2.

    Examples
    --------
    >>> from zoomrank.spaces import DocumentTree
    >>> from zoomrank.users import two_peaks
    >>> users = two_peaks(DocumentTree.exponential(depth=4), seed=1)
    >>> users, isinstance(users, UserDistribution), round(users.greedy(slots=2).satisfaction, 3)
    (TreeNetwork(16 documents), True, 0.72)
    """

    def __init__(self, documents: DocumentIds) -> None:
        self.documents = documents

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} documents)"

    def __len__(self) -> int:
        """How many documents there are."""
        return len(self.documents)

    # What a model supplies; documents are positions here.

    @abstractmethod
    def log_skip_probability(self, shown: Positions) -> float:
        """Compute the logarithm of P(Z_S): how likely no document of a set S is relevant to a visitor.

        Parameters
        ----------
        shown : ndarray of int
            The positions of the documents of S.

        Returns
        -------
        float
            The logarithm; -inf if every visitor finds one of them relevant.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> from zoomrank.users import RelevanceTable
        >>> tree = DocumentTree.from_paths(["owl", "pike", "trout"])
        >>> users = RelevanceTable(tree, rows=[["owl"], ["pike", "trout"], ["pike"], []])
        >>> round(np.exp(users.log_skip_probability(np.array([0]))), 12)
        np.float64(0.75)
        """

    @abstractmethod
    def given_skipped(self, shown: Positions) -> tuple[float, Array]:
        """Compute the logarithm of P(Z_S), and what is relevant to those visitors to whom no document of S is.

        Parameters
        ----------
        shown : ndarray of int
            The positions of the documents of S.

        Returns
        -------
        log_probability : float
            The logarithm; -inf if every visitor finds one of them relevant.
        means : ndarray
            μ(x | Z_S) of each document; anything, if there are no such visitors.

        References
        ----------
        Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 2.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> from zoomrank.users import RelevanceTable
        >>> tree = DocumentTree.from_paths(["owl", "pike", "trout"])
        >>> users = RelevanceTable(tree, rows=[["owl"], ["pike", "trout"], ["pike"], []])
        >>> users.given_skipped(np.array([0]))[1].round(3).tolist()
        [0.0, 0.667, 0.333]
        """

    @abstractmethod
    def draw(self, visitors: int, rng: np.random.Generator) -> Array:
        """Draw visitors: whole relevance vectors.

        Parameters
        ----------
        visitors : int
            How many to draw.
        rng : Generator
            Where chance comes from.

        Returns
        -------
        ndarray of bool
            A row for each visitor, a column for each document.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> from zoomrank.users import RelevanceTable
        >>> tree = DocumentTree.from_paths(["owl", "pike", "trout"])
        >>> users = RelevanceTable(tree, rows=[["owl"], ["pike", "trout"], ["pike"], []])
        >>> users.draw(5, np.random.default_rng(1)).shape
        (5, 3)
        """

    @property
    @abstractmethod
    def state(self) -> ClickState | None:
        """What `first_click` draws from; its scratch space belongs to this object, one thread at a time.

        Returns
        -------
        ForestState, TableState or None
            None if clicks are drawn in plain Python.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> from zoomrank.users import RelevanceTable
        >>> tree = DocumentTree.from_paths(["owl", "pike", "trout"])
        >>> users = RelevanceTable(tree, rows=[["owl"], ["pike", "trout"], ["pike"], []])
        >>> type(users.state).__name__
        'TableState'
        """

    def first_clicks(self, ranking: Positions, visitors: int, rng: np.random.Generator) -> Array:
        """Show the same ranking to many visitors, and see where they click first.

        Parameters
        ----------
        ranking : ndarray of int
            The positions of the documents, from the top.
        visitors : int
            How many visitors to draw.
        rng : Generator
            Where chance comes from.

        Returns
        -------
        ndarray of int
            The slot of each visitor's first click; the number of slots for those who leave without one.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> from zoomrank.users import RelevanceTable
        >>> tree = DocumentTree.from_paths(["owl", "pike", "trout"])
        >>> users = RelevanceTable(tree, rows=[["owl"], ["pike", "trout"], ["pike"], []])
        >>> users.first_clicks(np.array([1, 0]), 8, np.random.default_rng(1)).tolist()
        [0, 2, 1, 2, 0, 0, 2, 0]
        """
        return np.asarray(first_clicks(self.state, ranking, visitors, rng))

    # What follows from it; documents are the caller's ids here.

    @overload
    def mean(self) -> Array: ...

    @overload
    def mean(self, document: DocumentId) -> float: ...

    def mean(self, document: DocumentId | None = None) -> Array | float:
        """Compute μ(x): the chance that a document is relevant to a visitor.

        Parameters
        ----------
        document : DocumentId, optional
            The document; all of them, if left out.

        Returns
        -------
        float or ndarray
            The chance; without a document that of each, in the order of `documents`.

        References
        ----------
        Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 2.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> from zoomrank.users import RelevanceTable
        >>> tree = DocumentTree.from_paths(["owl", "pike", "trout"])
        >>> users = RelevanceTable(tree, rows=[["owl"], ["pike", "trout"], ["pike"], []])
        >>> users.mean("pike"), users.mean().tolist()
        (0.5, [0.25, 0.5, 0.25])
        """
        means = self.given_skipped(_no_documents())[1]
        return means if document is None else float(means[self.documents.position(document)])

    @overload
    def conditional_mean(self, shown: Iterable[DocumentId]) -> Array: ...

    @overload
    def conditional_mean(self, shown: Iterable[DocumentId], document: DocumentId) -> float: ...

    def conditional_mean(self, shown: Iterable[DocumentId], document: DocumentId | None = None) -> Array | float:
        """Compute μ(x | Z_S): the chance that a document is relevant to a visitor who has skipped some others.

        Parameters
        ----------
        shown : iterable of DocumentId
            The documents S, none of which is relevant to her.
        document : DocumentId, optional
            The document x; all of them, if left out.

        Returns
        -------
        float or ndarray
            The chance, 0 for the shown ones; without a document that of each, in the order of `documents`.

        References
        ----------
        Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 2.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> from zoomrank.users import RelevanceTable
        >>> tree = DocumentTree.from_paths(["owl", "pike", "trout"])
        >>> users = RelevanceTable(tree, rows=[["owl"], ["pike", "trout"], ["pike"], []])
        >>> users.conditional_mean(["pike"], "owl"), users.conditional_mean(["pike"]).tolist()
        (0.5, [0.5, 0.0, 0.0])
        """
        names = list(shown)
        log_probability, means = self.given_skipped(self.documents.positions(names))
        if log_probability == -np.inf:
            raise ImpossibleEventError(
                f"Every visitor finds one of {_few(names)} relevant; there is nobody left to ask."
            )
        return means if document is None else float(means[self.documents.position(document)])

    def satisfaction(self, ranking: Iterable[DocumentId]) -> float:
        """Compute the share of visitors who click on a ranking.

        Parameters
        ----------
        ranking : iterable of DocumentId
            The documents, in any order.

        Returns
        -------
        float
            The share to whom one of them is relevant, from 0 to 1.

        References
        ----------
        Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 2.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> from zoomrank.users import RelevanceTable
        >>> tree = DocumentTree.from_paths(["owl", "pike", "trout"])
        >>> users = RelevanceTable(tree, rows=[["owl"], ["pike", "trout"], ["pike"], []])
        >>> users.satisfaction(["trout", "owl"])
        0.5
        """
        return satisfied(self.log_skip_probability(self.documents.positions(ranking)))

    def greedy(self, slots: int, tie_budget: int = 64) -> BestRanking:
        """Find the greedy optimum: slot by slot the document most likely to be relevant to those who skip all above it.

        Where several are best, the paper counts the *worst* greedy ranking.

        Parameters
        ----------
        slots : int
            How many documents the ranking has.
        tie_budget : int
            While so many evaluations last, all choices among ties are followed; documents that a symmetry of the model
            exchanges count as one.

        Returns
        -------
        BestRanking
            The ranking; its `every_tie` says whether all choices were followed.

        References
        ----------
        Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 4.1.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> from zoomrank.users import RelevanceTable
        >>> tree = DocumentTree.from_paths(["owl", "pike", "trout"])
        >>> users = RelevanceTable(tree, rows=[["owl"], ["pike", "trout"], ["pike"], []])
        >>> users.greedy(slots=2)
        BestRanking(['pike', 'owl'], satisfaction=0.750000)
        """
        return greedy(self, self._checked_slots(slots), tie_budget)

    def optimum(self, slots: int, limit: int = 1_000_000) -> BestRanking:
        """Find the best ranking there is, by search with bounds: for small collections.

        Parameters
        ----------
        slots : int
            How many documents the ranking has.
        limit : int
            How many sets of documents may be looked at before the search is given up, with an error.

        Returns
        -------
        BestRanking
            The ranking.

        References
        ----------
        Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 4.1, OPT.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> from zoomrank.users import RelevanceTable
        >>> tree = DocumentTree.from_paths(["owl", "pike", "trout"])
        >>> users = RelevanceTable(tree, rows=[["owl"], ["pike", "trout"], ["pike"], []])
        >>> users.optimum(slots=2)
        BestRanking(['pike', 'owl'], satisfaction=0.750000)
        """
        return optimum(self, self._checked_slots(slots), limit)

    def optimum_bound(self, slots: int) -> float:
        """Bound how many visitors any ranking can satisfy: at once, and often sharp.

        Parameters
        ----------
        slots : int
            How many documents rankings have.

        Returns
        -------
        float
            A share of visitors, at most 1, that no ranking exceeds.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> from zoomrank.users import RelevanceTable
        >>> tree = DocumentTree.from_paths(["owl", "pike", "trout"])
        >>> users = RelevanceTable(tree, rows=[["owl"], ["pike", "trout"], ["pike"], []])
        >>> users.optimum_bound(slots=2)
        0.75
        """
        return optimum_bound(self, self.greedy(slots, tie_budget=1).documents)

    def sample(self, visitors: int, seed: Seed = None) -> Array:
        """Draw visitors: whole relevance vectors.

        Parameters
        ----------
        visitors : int
            How many to draw.
        seed : int, Generator or None
            Where chance begins.

        Returns
        -------
        ndarray of bool
            A row for each visitor, a column for each document, in the order of `documents`.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> from zoomrank.users import RelevanceTable
        >>> tree = DocumentTree.from_paths(["owl", "pike", "trout"])
        >>> users = RelevanceTable(tree, rows=[["owl"], ["pike", "trout"], ["pike"], []])
        >>> users.sample(2, seed=1).tolist()
        [[False, True, False], [False, False, False]]
        """
        return self.draw(_checked_count(visitors), np.random.default_rng(seed))

    def clicks(self, ranking: Iterable[DocumentId], visitors: int, seed: Seed = None) -> Array:
        """Show the same ranking to many visitors, and see where they click first.

        Parameters
        ----------
        ranking : iterable of DocumentId
            The documents, from the top.
        visitors : int
            How many visitors to draw.
        seed : int, Generator or None
            Where chance begins.

        Returns
        -------
        ndarray of int
            The slot of each visitor's first click; the number of slots for those who leave without one.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> from zoomrank.users import RelevanceTable
        >>> tree = DocumentTree.from_paths(["owl", "pike", "trout"])
        >>> users = RelevanceTable(tree, rows=[["owl"], ["pike", "trout"], ["pike"], []])
        >>> users.clicks(["pike", "owl"], visitors=8, seed=1).tolist()
        [0, 2, 1, 2, 0, 0, 2, 0]
        """
        positions = self.documents.positions(ranking)
        return self.first_clicks(positions, _checked_count(visitors), np.random.default_rng(seed))

    def click(self, ranking: Sequence[DocumentId], rng: np.random.Generator) -> int | None:
        """Show a ranking to one visitor, and see where she clicks first.

        Parameters
        ----------
        ranking : sequence of DocumentId
            The documents, from the top; one may be there twice.
        rng : Generator
            Where chance comes from.

        Returns
        -------
        int or None
            The slot, or None if she leaves without a click.

        References
        ----------
        Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 2.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> from zoomrank.users import RelevanceTable
        >>> tree = DocumentTree.from_paths(["owl", "pike", "trout"])
        >>> users = RelevanceTable(tree, rows=[["owl"], ["pike", "trout"], ["pike"], []])
        >>> users.click(["pike", "owl"], np.random.default_rng(1))
        0
        """
        positions = np.array([self.documents.position(document) for document in ranking], np.int64)
        slot = int(self.first_clicks(positions, 1, rng)[0])
        return None if slot == len(positions) else slot

    def symmetry_classes(self, shown: Positions) -> Array | None:  # noqa: ARG002  (nothing is known here)
        """Number the documents so that two share a number only if the model cannot tell them apart.

        Parameters
        ----------
        shown : ndarray of int
            The positions of documents that a visitor has skipped, which tells some apart.

        Returns
        -------
        ndarray or None
            A number for each document; None if nothing is known.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> from zoomrank.users import TreeNetwork
        >>> users = TreeNetwork(DocumentTree.exponential(depth=2), [0.4, 0.4, 0.1, 0.1])
        >>> len(set(users.symmetry_classes(np.array([0])).tolist()))  # documents 2 and 3 are the same to it
        3
        """
        return None

    def _checked_slots(self, slots: int) -> int:
        count = whole_number(slots, "slots")
        if not 1 <= count <= len(self):
            raise SlotsError(f"{count} slots cannot be filled from {len(self)} documents.")
        return count


def mean_array(documents: DocumentIds, mean: Mapping[DocumentId, float] | Iterable[float] | Array) -> Array:
    """One mean per document in the order of `documents`, from a mapping or an array; refused if not within [0, 1]."""
    if isinstance(mean, Mapping):
        positions = documents.positions(mean)
        values = np.full(len(documents), np.nan)
        values[positions] = list(mean.values())
        missing = np.setdiff1d(np.arange(len(documents)), positions)
        if len(missing):
            raise MeanError(f"{len(missing)} documents have no mean relevance, for example {documents[missing[0]]!r}.")
    else:
        values = np.array(mean if isinstance(mean, np.ndarray) else list(mean), dtype=np.float64)
    if values.shape != (len(documents),):
        raise MeanError(f"Means of shape {values.shape} were given for {len(documents)} documents.")
    bad = np.flatnonzero(~((values >= 0) & (values <= 1)))
    if len(bad):
        raise MeanError(f"The mean relevance of {documents[bad[0]]!r} is {values[bad[0]]}; it must lie in [0, 1].")
    return values


def _no_documents() -> Positions:
    return np.empty(0, np.int64)


def _checked_count(visitors: int) -> int:
    count = whole_number(visitors, "visitors")
    if count < 0:
        raise ParameterError(f"{count} visitors cannot be drawn.")
    return count


def _few(names: list[DocumentId]) -> str:
    return ", ".join(repr(name) for name in names[:5]) + (", …" if len(names) > 5 else "")
