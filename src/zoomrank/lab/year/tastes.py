"""`Tastes`: intents of the visitors of each query, from which the satisfaction of a ranking is computed exactly.

A visitor of a query comes with one of its intents. An intent likes one shelf, another one of the same category less,
and hardly anything else; a product pleases a visitor with the probability given by the liking for its shelf times its
quality, independently of the others. So of an intent's visitors, the share that a ranking fails to satisfy is the
product of the shares that each of its products fails to please.
"""

from __future__ import annotations

import numpy as np

from zoomrank.lab.year.shop import GONE, SEASONS, Shop
from zoomrank.numbers import Array

_LIKED = (0.35, 0.75)  # the shelf of an intent
_LIKED_TOO = (0.1, 0.35)  # another one of its category
_ELSEWHERE = 0.004
_AT_HOME = 0.6  # share of a query's intents that are about its department
_SEASONAL = 0.35  # share of queries with a seasonal intent
_IN_SEASON = 0.3  # share of their visitors with that intent in its season
_MORE = 2.0  # factor on visitors in that season
_EXPONENT = 0.7  # of the distribution of query frequencies


class Tastes:
    """The visitors of all queries."""

    def __init__(self, shop: Shop, queries: int, rng: np.random.Generator) -> None:
        self.queries = [f"query {number}" for number in range(queries)]
        self._likes: list[Array] = []  # intents × shelves
        self._shares: list[Array] = []
        self._season: list[int] = []  # of the last intent, if it is seasonal
        self._asked = np.arange(1, queries + 1) ** -_EXPONENT
        self.with_seasons = True
        for query in range(queries):
            seasonal = rng.random() < _SEASONAL
            season = query % len(SEASONS) if seasonal else GONE
            self._likes.append(_likes(shop, int(rng.integers(3, 6)), season, rng))
            self._season.append(season)
            self._shares.append(_shares(len(self._likes[-1]) - seasonal, rng))

    def asked(self, season: int) -> Array:
        """Return the shares of queries in a season."""
        hot = np.array([own == season and self.with_seasons for own in self._season])
        weights = self._asked * np.where(hot, _MORE, 1.0)
        return np.asarray(weights / weights.sum())

    def shares(self, query: int, season: int) -> Array:
        """Return the shares of the intents of a query in a season."""
        own, usual = self._season[query], self._shares[query]
        if own == GONE:
            return usual
        hot = _IN_SEASON if own == season and self.with_seasons else 0.0
        return np.append(usual * (1 - hot), hot)

    def chances(self, query: int, shop: Shop, products: Array) -> Array:
        """Return the probability that each product pleases a visitor of each intent."""
        shelf = shop.shelf[products]
        likes = np.where(shelf == GONE, 0.0, self._likes[query][:, shelf])
        return np.asarray(likes * shop.quality[products])

    def likes(self, query: int) -> Array:
        """Return the shelves that some visitors of a query like."""
        return np.flatnonzero(self._likes[query].max(axis=0) > _LIKED_TOO[0])

    def satisfaction(self, query: int, season: int, shop: Shop, products: Array) -> float:
        """Return the share of the visitors of a query who click on a ranking."""
        return satisfied(self.shares(query, season), self.chances(query, shop, products))

    def click(self, query: int, season: int, shop: Shop, products: Array, rng: np.random.Generator) -> int | None:
        """Draw the slot that a visitor clicks first; None without a click."""
        shares = self.shares(query, season)
        intent = min(int(np.searchsorted(np.cumsum(shares), rng.random())), len(shares) - 1)
        pleased = np.flatnonzero(rng.random(len(products)) < self.chances(query, shop, products)[intent])
        return int(pleased[0]) if len(pleased) else None

    def greedy(self, query: int, season: int, shop: Shop, slots: int) -> float:
        """Return the satisfaction of the greedy ranking, from full information."""
        shares, chances = self.shares(query, season), self.chances(query, shop, shop.there)
        left = shares.copy()
        for _ in range(slots):
            best = int(np.argmax(left @ chances))
            left = left * (1 - chances[:, best])
            chances[:, best] = 0.0
        return float(1 - left.sum())

    def random(self, query: int, season: int, shop: Shop, slots: int, rng: np.random.Generator) -> float:
        """Return the mean satisfaction of two hundred random rankings."""
        drawn = rng.choice(shop.there, (200, slots))
        shares = self.shares(query, season)
        return float(np.mean([satisfied(shares, self.chances(query, shop, products)) for products in drawn]))


def satisfied(shares: Array, chances: Array) -> float:
    """Return the share of visitors that at least one product pleases.

    >>> satisfied(np.array([0.5, 0.5]), np.array([[0.5, 0.5], [0.0, 0.1]]))
    0.425
    """
    return round(float(shares @ (1 - np.prod(1 - chances, axis=1))), 12)


def _likes(shop: Shop, count: int, season: int, rng: np.random.Generator) -> Array:
    """Draw what the intents of a query like; the last one likes a season's shelves if there is a season."""
    shelves = np.arange(len(shop.paths))
    always = shelves[shop.season == GONE]
    home = rng.choice(shop.department)
    near = always[shop.department[always] == home]
    rows = []
    for _ in range(count):
        about = near if len(near) and rng.random() < _AT_HOME else always
        rows.append(_liking(shop, int(rng.choice(about)), rng))
    if season != GONE:
        rows.append(_liking(shop, int(rng.choice(shelves[shop.season == season])), rng))
    return np.array(rows)


def _liking(shop: Shop, shelf: int, rng: np.random.Generator) -> Array:
    likes = np.full(len(shop.paths), _ELSEWHERE)
    siblings = np.flatnonzero((shop.category == shop.category[shelf]) & (np.arange(len(likes)) != shelf))
    if len(siblings):
        likes[rng.choice(siblings)] = rng.uniform(*_LIKED_TOO)
    likes[shelf] = rng.uniform(*_LIKED)
    return likes


def _shares(count: int, rng: np.random.Generator) -> Array:
    shares = rng.dirichlet(np.full(count, 3.0))
    return np.sort(shares)[::-1]
