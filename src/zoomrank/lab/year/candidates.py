"""`SearchEngine`: an external search engine that sends candidates from an index that differs from the catalogue."""

from __future__ import annotations

import numpy as np

from zoomrank.lab.year.shop import GONE, Shop, name_of
from zoomrank.lab.year.tastes import Tastes
from zoomrank.numbers import Array

_FEWEST, _MOST = 200, 3000  # candidates
_FOUND = 0.8  # share of the products on the shelves of a query that it finds
_UNKNOWN = 0.02  # share of candidates that the catalogue lacks
_NARROW, _FEW = 0.05, 8  # this share of lists has fewer candidates than this


class SearchEngine:
    """Index of the search engine on one day."""

    def __init__(self, shop: Shop, tastes: Tastes, rng: np.random.Generator) -> None:
        self._shop, self._tastes, self._rng = shop, tastes, rng
        self._there = rng.permutation(shop.there)
        gone = np.flatnonzero(shop.shelf == GONE)
        unknown = np.concatenate([rng.permutation(gone)[:500], len(shop.shelf) + np.arange(100)])
        self._unknown = rng.permutation(unknown)
        self._near: dict[int, Array] = {}

    def candidates(self, query: int) -> list[str]:
        """Return the ids of some matching products, a few of them unknown to the service."""
        return [name_of(number) for number in self.found(query)]

    def found(self, query: int) -> list[int]:
        """Return the same products by their numbers."""
        rng = self._rng
        near = self._of(query)
        found = near[rng.random(len(near)) < _FOUND]
        if rng.random() < _NARROW:
            chosen = rng.permutation(found)[: rng.integers(1, _FEW)]
        else:
            size = int(np.exp(rng.uniform(np.log(_FEWEST), np.log(_MOST))))
            begin = int(rng.integers(len(self._there)))
            chosen = np.concatenate([found, self._there[begin : begin + max(0, size - len(found))]])
        more = int(np.ceil(_UNKNOWN * len(chosen)))
        strange = self._unknown[rng.integers(len(self._unknown), size=more)]
        return list(dict.fromkeys([*chosen.tolist(), *strange.tolist()]))

    def _of(self, query: int) -> Array:
        """Return the products on the shelves that a query is about."""
        if query not in self._near:
            shelves = self._tastes.likes(query)
            self._near[query] = self._there[np.isin(self._shop.shelf[self._there], shelves)]
        return self._near[query]
