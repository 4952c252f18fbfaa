"""Targets that are rankers in their current state: those of the library, or any ranker with propensities.

A ranker is always asked about whole rankings, since its choice for a lower slot may swap places with one above.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from zoomrank.documents.logged_impressions import positions_of
from zoomrank.errors import ParameterError, SearchTooLargeError
from zoomrank.judging.impression_log import ImpressionLog
from zoomrank.judging.targets import Target
from zoomrank.numbers import Array
from zoomrank.spaces import DocumentTree

_LARGEST = 4_000_000  # propensities computed by a ranker in one call


@runtime_checkable
class KnowsPropensities(Protocol):
    """A ranker that can compute the propensities of its rankings: those of the library, and your own."""

    tree: DocumentTree
    slots: int

    def propensities(self, shown: Array, eligible: Any = None) -> Array:
        """Return the probability of each document in its slot, given those above.

        Parameters
        ----------
        shown : ndarray of int
            Rankings, a row each: the positions of their documents.
        eligible : Eligible, iterable of DocumentId or None
            The documents that may be shown; None: all.

        Returns
        -------
        ndarray
            Probabilities, in the shape of `shown`.
        """


class TargetRanker(Target):
    """A ranker in its current state, for all queries, or a ranker for each query; it does not learn meanwhile.

    Parameters
    ----------
    log : ImpressionLog
        The log to judge by.
    rankers : ranker, or mapping of str to ranker
        Those of the library, or any that have `propensities`.
    """

    def __init__(self, log: ImpressionLog, rankers: KnowsPropensities | Mapping[str, KnowsPropensities]) -> None:
        some: list[KnowsPropensities] = list(rankers.values()) if isinstance(rankers, Mapping) else [rankers]
        if len({ranker.slots for ranker in some}) > 1:
            raise ParameterError("The rankers of a target must have the same number of slots.")
        super().__init__(some[0].slots, list(rankers) if isinstance(rankers, Mapping) else None)
        self._rankers = rankers
        self._places: dict[int, Array] = {}
        self._documents = log.documents

    def propensities(self, query: str, shown: Array) -> Array:
        """Return the ranker's propensities; a document that the ranker lacks has 0, and so has every slot below it."""
        ranker = self._ranker(query)
        places = self._placed(ranker)[shown]
        known = np.logical_and.accumulate(places >= 0, axis=1)
        asked = complete_rankings(places, known.sum(axis=1), ranker.slots)
        return np.where(known, ranker.propensities(asked)[:, : shown.shape[1]], 0.0)

    def expected(self, query: str, above: Array, worth: Array, otherwise: float) -> Array:
        """Return the mean over all documents of the log, weighted by their propensities below those above."""
        prefixes, which = np.unique(above, axis=0, return_inverse=True)
        documents = np.flatnonzero(self._placed(self._ranker(query))[:-1] >= 0)
        if len(prefixes) * len(documents) > _LARGEST:
            raise SearchTooLargeError(
                f"A doubly robust estimate would ask the ranker about {len(prefixes):,} beginnings times "
                f'{len(documents):,} documents: ask for estimator="self-normalised" (--estimator self-normalised).'
            )
        means = np.empty(len(prefixes))
        for number, prefix in enumerate(prefixes):
            left = np.setdiff1d(documents, prefix)
            rows = np.column_stack([np.tile(prefix, (len(left), 1)), left])
            chances = self.propensities(query, rows)[:, -1]
            means[number] = chances @ worth[left] + max(0.0, 1.0 - chances.sum()) * otherwise
        return np.asarray(means[which.reshape(-1)])

    def _ranker(self, query: str) -> KnowsPropensities:
        return self._rankers[query] if isinstance(self._rankers, Mapping) else self._rankers

    def _placed(self, ranker: KnowsPropensities) -> Array:
        """Return the positions of the log's documents in the ranker's tree; -1 for missing ones and for NOTHING."""
        if id(ranker.tree) not in self._places:
            positions = positions_of(ranker.tree.documents)
            found = [positions.get(name, -1) for name in self._documents]
            self._places[id(ranker.tree)] = np.array([*found, -1])  # the last entry stands for NOTHING
        return self._places[id(ranker.tree)]


def complete_rankings(places: Array, lengths: Array, slots: int) -> Array:
    """Complete rankings of which only the first documents are known with arbitrary others below.

    >>> filled_up(np.array([[1, -1], [4, 0]]), np.array([1, 2]), 3).tolist()
    [[1, 0, 2], [4, 0, 1]]
    """
    asked = np.full((len(places), slots), -1)
    asked[:, : places.shape[1]] = places
    for slot in range(slots):
        rows = np.flatnonzero(lengths <= slot)
        others = np.arange(slots)  # at least one of them is not above
        free = (asked[rows, :slot, None] != others).all(axis=1)
        asked[rows, slot] = others[free.argmax(axis=1)]
    return asked
