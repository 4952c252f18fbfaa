"""`UserDistribution`: the distribution of visitors (the 𝒫 of Section 2), and what full information about it implies.

A visitor is a relevance vector π: the set of documents that are relevant to the visitor, who reads a ranking top-down
and clicks on the first relevant document. A model of visitors supplies two things: how a visitor is drawn, and the
means among visitors who skip a set S of documents. Means, satisfaction and the greedy optimum follow from these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import overload

import numpy as np

from zoomrank.errors import ImpossibleEventError, MeanError, ParameterError, SlotsError
from zoomrank.spaces import DocumentId, DocumentIds
from zoomrank.spaces.ids import Positions
from zoomrank.types import Array, Seed, whole_number
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
        """Return the number of documents."""
        return len(self.documents)

    # Supplied by a model; documents are positions here.

    @abstractmethod
    def log_skip_probability(self, shown: Positions) -> float:
        """Compute the logarithm of P(Z_S): the probability that no document of a set S is relevant to a visitor.

        Parameters
        ----------
        shown : ndarray of int
            The positions of the documents of S.

        Returns
        -------
        float
            The logarithm; -inf if every visitor finds one of them relevant.
        """

    @abstractmethod
    def given_skipped(self, shown: Positions) -> tuple[float, Array]:
        """Compute the logarithm of P(Z_S), and the mean relevance among visitors to which no document of S is relevant.

        Parameters
        ----------
        shown : ndarray of int
            The positions of the documents of S.

        Returns
        -------
        log_probability : float
            The logarithm; -inf if every visitor finds one of them relevant.
        means : ndarray
            μ(x | Z_S) of each document; arbitrary if there are no such visitors.

        References
        ----------
        Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 2.
        """

    @abstractmethod
    def draw(self, visitors: int, rng: np.random.Generator) -> Array:
        """Draw visitors as whole relevance vectors.

        Parameters
        ----------
        visitors : int
            Number of visitors to draw.
        rng : Generator
            The source of random numbers.

        Returns
        -------
        ndarray of bool
            A row for each visitor, a column for each document.
        """

    @property
    @abstractmethod
    def state(self) -> ClickState | None:
        """State that `first_click` draws from; its scratch space belongs to this object, one thread at a time.

        Returns
        -------
        ForestState, TableState or None
            None if clicks are drawn in plain Python.
        """

    def first_clicks(self, ranking: Positions, visitors: int, rng: np.random.Generator) -> Array:
        """Draw visitors, and return their first clicks on the same ranking.

        Parameters
        ----------
        ranking : ndarray of int
            The positions of the documents, from the top.
        visitors : int
            Number of visitors to draw.
        rng : Generator
            The source of random numbers.

        Returns
        -------
        ndarray of int
            The slot of each visitor's first click; the number of slots for those who leave without one.
        """
        return np.asarray(first_clicks(self.state, ranking, visitors, rng))

    # Derived; documents are the caller's ids here.

    @overload
    def mean(self) -> Array: ...

    @overload
    def mean(self, document: DocumentId) -> float: ...

    def mean(self, document: DocumentId | None = None) -> Array | float:
        """Compute μ(x): the probability that a document is relevant to a visitor.

        Parameters
        ----------
        document : DocumentId, optional
            The document; all of them, if left out.

        Returns
        -------
        float or ndarray
            The probability; without a document that of each, in the order of `documents`.

        References
        ----------
        Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 2.
        """
        means = self.given_skipped(_no_documents())[1]
        return means if document is None else float(means[self.documents.position(document)])

    @overload
    def conditional_mean(self, shown: Iterable[DocumentId]) -> Array: ...

    @overload
    def conditional_mean(self, shown: Iterable[DocumentId], document: DocumentId) -> float: ...

    def conditional_mean(self, shown: Iterable[DocumentId], document: DocumentId | None = None) -> Array | float:
        """Compute μ(x | Z_S): the probability that a document is relevant to a visitor who has skipped some others.

        Parameters
        ----------
        shown : iterable of DocumentId
            The documents S, none of which is relevant to the visitor.
        document : DocumentId, optional
            The document x; all of them, if left out.

        Returns
        -------
        float or ndarray
            The probability, 0 for the shown ones; without a document that of each, in the order of `documents`.

        References
        ----------
        Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 2.
        """
        names = list(shown)
        log_probability, means = self.given_skipped(self.documents.positions(names))
        if log_probability == -np.inf:
            raise ImpossibleEventError(
                f"Every visitor finds one of {_few(names)} relevant, so no visitors remain to compute a mean for."
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
            The share of visitors with a relevant document among them, from 0 to 1.

        References
        ----------
        Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 2.
        """
        return satisfied(self.log_skip_probability(self.documents.positions(ranking)))

    def greedy(self, slots: int, tie_budget: int = 64) -> BestRanking:
        """Find the greedy optimum: slot by slot the document most likely to be relevant to visitors who skip all above
        it.

        Where several are best, the paper counts the *worst* greedy ranking.

        Parameters
        ----------
        slots : int
            Number of documents in the ranking.
        tie_budget : int
            Number of evaluations for following all choices among ties; documents that a symmetry of the model exchanges
            count as one.

        Returns
        -------
        BestRanking
            The ranking; `every_tie` is true if all choices were followed.

        References
        ----------
        Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 4.1.
        """
        return greedy(self, self._checked_slots(slots), tie_budget)

    def optimum(self, slots: int, limit: int = 1_000_000) -> BestRanking:
        """Find the best ranking by branch and bound: for small collections.

        Parameters
        ----------
        slots : int
            Number of documents in the ranking.
        limit : int
            Number of sets of documents to evaluate before the search gives up, with an error.

        Returns
        -------
        BestRanking
            The ranking.

        References
        ----------
        Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 4.1, OPT.
        """
        return optimum(self, self._checked_slots(slots), limit)

    def optimum_bound(self, slots: int) -> float:
        """Bound the share of visitors that any ranking can satisfy: fast, and often sharp.

        Parameters
        ----------
        slots : int
            Number of documents in a ranking.

        Returns
        -------
        float
            A share of visitors, at most 1, that no ranking exceeds.
        """
        return optimum_bound(self, self.greedy(slots, tie_budget=1).documents)

    def sample(self, visitors: int, seed: Seed = None) -> Array:
        """Draw visitors as whole relevance vectors.

        Parameters
        ----------
        visitors : int
            Number of visitors to draw.
        seed : int, Generator or None
            The seed of the random numbers.

        Returns
        -------
        ndarray of bool
            A row for each visitor, a column for each document, in the order of `documents`.
        """
        return self.draw(_checked_count(visitors), np.random.default_rng(seed))

    def clicks(self, ranking: Iterable[DocumentId], visitors: int, seed: Seed = None) -> Array:
        """Draw visitors, and return their first clicks on the same ranking.

        Parameters
        ----------
        ranking : iterable of DocumentId
            The documents, from the top.
        visitors : int
            Number of visitors to draw.
        seed : int, Generator or None
            The seed of the random numbers.

        Returns
        -------
        ndarray of int
            The slot of each visitor's first click; the number of slots for those who leave without one.
        """
        positions = self.documents.positions(ranking)
        return self.first_clicks(positions, _checked_count(visitors), np.random.default_rng(seed))

    def click(self, ranking: Sequence[DocumentId], rng: np.random.Generator) -> int | None:
        """Draw one visitor, and return the first click on a ranking.

        Parameters
        ----------
        ranking : sequence of DocumentId
            The documents, from the top; a document may occur twice.
        rng : Generator
            The source of random numbers.

        Returns
        -------
        int or None
            The slot, or None without a click.

        References
        ----------
        Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 2.
        """
        positions = np.array([self.documents.position(document) for document in ranking], np.int64)
        slot = int(self.first_clicks(positions, 1, rng)[0])
        return None if slot == len(positions) else slot

    def symmetry_classes(self, shown: Positions) -> Array | None:  # noqa: ARG002  (a model may know symmetries)
        """Number the documents so that two share a number only if the model cannot distinguish them.

        Parameters
        ----------
        shown : ndarray of int
            The positions of documents that a visitor has skipped, which distinguishes some.

        Returns
        -------
        ndarray or None
            A number for each document; None if nothing is known.
        """
        return None

    def _checked_slots(self, slots: int) -> int:
        count = whole_number(slots, "slots")
        if not 1 <= count <= len(self):
            raise SlotsError(f"{count} slots cannot be filled from {len(self)} documents.")
        return count


def mean_array(documents: DocumentIds, mean: Mapping[DocumentId, float] | Iterable[float] | Array) -> Array:
    """Return one mean per document in the order of `documents`, from a mapping or an array, checked to be within [0,
    1].
    """
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
        raise ParameterError(f"{count} visitors cannot be drawn; ask for 0 or more.")
    return count


def _few(names: list[DocumentId]) -> str:
    return ", ".join(repr(name) for name in names[:5]) + (", …" if len(names) > 5 else "")
