"""Targets that a log can judge: a ranking for each query, one for all, a ranker in its current state, or a mixture.

A target computes two things, with documents numbered as in the log: the probability of showing what the log shows, slot
by slot; and the expected worth of the next slot, given the worth of each document. Doubly robust estimates need the
second.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from zoomrank.numbers import Array


class Target(ABC):
    """A policy to be judged by a log, with documents numbered as in the log.

    Parameters
    ----------
    slots : int
        The number of documents it shows.
    queries : collection of str or None
        The queries that it ranks; None: any.
    """

    def __init__(self, slots: int, queries: Iterable[str] | None = None) -> None:
        self.slots = slots
        self.queries = None if queries is None else list(queries)

    @abstractmethod
    def propensities(self, query: str, shown: Array) -> Array:
        """Return the probability that the target shows each document of the log's rankings, given those above.

        Parameters
        ----------
        query : str
            The query.
        shown : ndarray of int
            Rankings of the log, a row each, as many slots as the target has or fewer.

        Returns
        -------
        ndarray
            Probabilities, in the shape of `shown`.
        """

    @abstractmethod
    def expected(self, query: str, above: Array, worth: Array, otherwise: float) -> Array:
        """Return the expected worth of the next slot, below given documents.

        Parameters
        ----------
        query : str
            The query.
        above : ndarray of int
            The documents above, a row each; possibly without columns.
        worth : ndarray
            The worth of each document of the log.
        otherwise : float
            The worth of any other document.

        Returns
        -------
        ndarray
            A number for each row; arbitrary where the target never shows these documents above.
        """
