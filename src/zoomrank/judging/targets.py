"""Targets: what a log is asked about. A ranking for each query, one for all, a ranker as it is now, or a mix of those.

A target says two things of its rankings, in the numbers by which the log knows documents: how likely it would have been
to show what the log shows, slot by slot; and what the next slot is worth on average, once it is told what each
document is worth. The second is what a doubly robust estimate needs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from zoomrank.numbers import Array


class Target(ABC):
    """What a log is asked about, in the numbers by which the log knows documents.

    Parameters
    ----------
    slots : int
        How many documents it shows.
    queries : collection of str or None
        The queries that it ranks; None: any.

    Examples
    --------
    >>> from zoomrank.judging import ImpressionLog, TargetRankings
    >>> row = {"query": "owls", "shown": ["barn", "snow"], "propensity": [0.5, 1.0], "clicked": "snow"}
    >>> isinstance(TargetRankings(ImpressionLog.from_rows([row]), {}, ["snow"]), Target)
    True
    """

    def __init__(self, slots: int, queries: Iterable[str] | None = None) -> None:
        self.slots = slots
        self.queries = None if queries is None else list(queries)

    @abstractmethod
    def propensities(self, query: str, shown: Array) -> Array:
        """How likely the target would have been to show what was shown, slot by slot, given those above.

        Parameters
        ----------
        query : str
            What was asked.
        shown : ndarray of int
            Rankings of the log, a row each, as many slots as the target has or fewer.

        Returns
        -------
        ndarray
            As many numbers, from 0 to 1.

        Examples
        --------
        >>> import numpy as np
        >>> from zoomrank.judging import ImpressionLog, TargetRankings
        >>> row = {"query": "owls", "shown": ["barn", "snow"], "propensity": [0.5, 1.0], "clicked": "snow"}
        >>> target = TargetRankings(ImpressionLog.from_rows([row]), {}, ["barn", "barred"])
        >>> target.propensities("owls", np.array([[0, 1]])).tolist()
        [[1.0, 0.0]]
        """

    @abstractmethod
    def expected(self, query: str, above: Array, worth: Array, otherwise: float) -> Array:
        """What the next slot is worth on average, below given documents.

        Parameters
        ----------
        query : str
            What was asked.
        above : ndarray of int
            The documents above, a row each; maybe without columns.
        worth : ndarray
            What each document of the log is worth.
        otherwise : float
            What any other document is worth.

        Returns
        -------
        ndarray
            A number for each row; anything, where the target never has these documents above.

        Examples
        --------
        >>> import numpy as np
        >>> from zoomrank.judging import ImpressionLog, TargetRankings
        >>> row = {"query": "owls", "shown": ["barn", "snow"], "propensity": [0.5, 1.0], "clicked": "snow"}
        >>> target = TargetRankings(ImpressionLog.from_rows([row]), {}, ["snow", "barred"])
        >>> target.expected("owls", np.zeros((1, 0), int), np.array([0.1, 0.2]), 0.5).tolist()
        [0.2]
        """
