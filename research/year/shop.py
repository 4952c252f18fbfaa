"""`Shop`: products on shelves, in categories, in departments; every day some are removed, added or changed.

Every product has a quality of its own; how visitors like it also depends on its shelf. Shelves keep their numbers when
their categories are renamed or moved: only the collection knows their names.

`Tastes` are the intents of the visitors of each query, from which the satisfaction of a ranking is computed exactly. A
visitor of a query comes with one of its intents. An intent likes one shelf, another one of the same category less, and
hardly anything else; a product pleases a visitor with the probability given by the liking for its shelf times its
quality, independently of the others. So of an intent's visitors, the share that a ranking fails to satisfy is the
product of the shares that each of its products fails to please.

`Plan` is what happens in a year: seasons, outages, bad deploys, categories that move, another store.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from zoomrank.documents import Collection
from zoomrank.errors import ParameterError
from zoomrank.types import Array

Change = dict[str, Any]

_ON_A_SHELF = 33  # products, on average
_SHELVES, _CATEGORIES = 5, 6  # of a category, of a department (in a small shop there are fewer, and two departments)
_SEASONAL = 12  # one shelf in this many is seasonal
SEASONS = ("winter", "spring", "summer", "autumn")
GONE = -1  # the shelf of a product that was removed

_DEPARTMENTS = ("Garden", "Kitchen", "Toys", "Sports", "Books", "Music", "Tools", "Clothes", "Shoes", "Pets", "Office")
_KINDS = ["Small", "Large", "Classic", "Light", "Sturdy", "Outdoor", "Folding", "Gift", "Spare", "Organic"]


class Shop:
    """State of the shop today; the same seed gives the same shop."""

    def __init__(self, products: int, rng: np.random.Generator) -> None:
        shelves = max(12, products // _ON_A_SHELF)
        categories = min(_CATEGORIES, max(1, shelves // _SHELVES // 2))
        self.paths = [_path(shelf, categories) for shelf in range(shelves)]
        self.category = np.arange(shelves) // _SHELVES
        self.department = self.category // categories
        self.season = np.full(shelves, GONE)  # of seasonal shelves, which are empty in other seasons
        chosen = rng.choice(shelves, max(len(SEASONS), shelves // _SEASONAL), replace=False)
        self.season[chosen] = np.arange(len(chosen)) % len(SEASONS)
        self.growth = rng.lognormal(0.0, 0.7, shelves)  # some shelves grow faster than others
        room = rng.dirichlet(np.full(shelves, 3.0))
        self.shelf = np.sort(rng.choice(shelves, products, p=room))
        self.quality = rng.uniform(0.2, 1.0, products)
        self._versions = np.zeros(products, np.int64)  # of titles
        self._stored: dict[int, Array] = {}  # products of shelves out of season

    # The current state.

    @property
    def there(self) -> Array:
        """Numbers of the current products."""
        return np.flatnonzero(self.shelf != GONE)

    def collection(self) -> Collection:
        """Return the whole catalogue, for a service to begin with."""
        numbers = self.there.tolist()
        paths = {name_of(number): self.paths[self.shelf[number]] for number in numbers}
        return Collection.from_taxonomy(paths, titles={name_of(number): self._title(number) for number in numbers})

    def _title(self, number: int) -> str:
        version = int(self._versions[number])
        return f"{self.paths[self.shelf[number]][-1]} no. {number}" + (f", model {version + 1}" if version else "")

    # Changes. Each method returns the changes to send to the service.

    def day(self, share: float, rng: np.random.Generator, moves: bool = True) -> list[Change]:
        """Change a share of the products: a third are removed, as many added, the others edited.

        Some of the edited ones are moved to another shelf, if `moves`.
        """
        count = round(share * len(self.there))
        going, titled, moved = _parts(rng.choice(self.there, count, replace=False), 0.35, 0.2, 0.1)
        changes = self._take_away(going)
        self._versions[titled] += 1
        changes += [{"change": name_of(number), "title": self._title(number)} for number in titled.tolist()]
        changes += [self._move(number, rng) for number in moved.tolist() if moves]
        return changes + self._add(self._places(len(going), rng), rng)

    def _places(self, count: int, rng: np.random.Generator) -> Array:
        """Draw nonempty shelves, in proportion to their growth."""
        crowd = np.bincount(self.shelf[self.there], minlength=len(self.paths)) * self.growth
        return rng.choice(len(self.paths), count, p=crowd / crowd.sum())

    def _move(self, number: int, rng: np.random.Generator) -> Change:
        """Move a product to another nonempty shelf of its category, if there is one."""
        here = self.shelf[number]
        filled = np.unique(self.shelf[self.there])
        others = filled[(self.category[filled] == self.category[here]) & (filled != here)]
        self.shelf[number] = rng.choice(others) if len(others) else here
        return {"change": name_of(number), "path": list(self.paths[self.shelf[number]])}

    def _take_away(self, numbers: Array) -> list[Change]:
        self.shelf[numbers] = GONE
        return [{"remove": name_of(number)} for number in numbers.tolist()]

    def _add(self, shelves: Array, rng: np.random.Generator) -> list[Change]:
        """Add new products, one for each given shelf."""
        first = len(self.shelf)
        self.shelf = np.concatenate([self.shelf, shelves])
        self.quality = np.concatenate([self.quality, rng.uniform(0.2, 1.0, len(shelves))])
        self._versions = np.concatenate([self._versions, np.zeros(len(shelves), np.int64)])
        return self._added(range(first, len(self.shelf)))

    def _added(self, numbers: Iterable[int]) -> list[Change]:
        return [
            {"add": name_of(number), "path": list(self.paths[self.shelf[number]]), "title": self._title(number)}
            for number in numbers
        ]

    def turn(self, season: int, rng: np.random.Generator) -> list[Change]:
        """Begin a season: its shelves are filled, half with last year's products; those of the others are emptied."""
        changes: list[Change] = []
        for shelf in np.flatnonzero((self.season != GONE) & (self.season != season)).tolist():
            standing = np.flatnonzero(self.shelf == shelf)
            if len(standing):
                self._stored[shelf] = standing
                changes += self._take_away(standing)
        for shelf in np.flatnonzero(self.season == season).tolist():
            stored = self._stored.pop(shelf, np.zeros(0, np.int64))
            again = stored[: (len(stored) + 1) // 2]
            self.shelf[again] = shelf
            changes += self._added(again.tolist())
            changes += self._add(np.full(len(stored) - len(again), shelf), rng)
        return changes

    def rename_category(self, rng: np.random.Generator) -> list[Change]:
        """Rename a category."""
        category, path = self._some_category(rng)
        return self._call_it(category, path, (path[0], f"{path[1]} and more"))

    def move_category(self, rng: np.random.Generator) -> list[Change]:
        """Move a category into another department."""
        category, path = self._some_category(rng)
        department = rng.choice([home for home in sorted({path[0] for path in self.paths}) if home != path[0]])
        return self._call_it(category, path, (str(department), f"{path[1]} of {path[0]}"))

    def _some_category(self, rng: np.random.Generator) -> tuple[int, tuple[str, ...]]:
        """Draw one of the largest categories."""
        crowd = np.bincount(self.category[self.shelf[self.there]])
        category = int(rng.choice(np.argsort(-crowd)[:5]))
        return category, self.paths[int(np.flatnonzero(self.category == category)[0])][:-1]

    def _call_it(self, category: int, before: tuple[str, ...], after: tuple[str, ...]) -> list[Change]:
        for shelf in np.flatnonzero(self.category == category).tolist():
            self.paths[shelf] = (*after, self.paths[shelf][-1])
        return [{"category": " > ".join(before), "to": " > ".join(after)}]


def name_of(number: int) -> str:
    """Return the id of a product.

    >>> name_of(7), number_of("p7")
    ('p7', 7)
    """
    return f"p{number}"


def number_of(name: str) -> int:
    """Return the number of the product with an id."""
    return int(name[1:])


def _path(shelf: int, categories: int) -> tuple[str, ...]:
    department, kind = divmod(shelf // _SHELVES, categories)
    called = _DEPARTMENTS[department % len(_DEPARTMENTS)]
    again = department // len(_DEPARTMENTS)
    home = f"{called} {again + 1}" if again else called
    return home, f"{_KINDS[kind]} {called.lower()}", f"Shelf {shelf}"


def _parts(numbers: Array, *shares: float) -> list[Array]:
    """Split numbers into parts proportional to the shares; the first share is used for two parts."""
    ends = np.cumsum([*shares]) / (sum(shares) + shares[0])
    cuts = np.round(ends * len(numbers)).astype(int)
    return np.split(numbers, cuts)[: len(shares)]


_LIKED = (0.35, 0.75)  # the shelf of an intent
_LIKED_TOO = (0.1, 0.35)  # another one of its category
_ELSEWHERE = 0.004
_AT_HOME = 0.6  # share of a query's intents that are about its department
_SEASONAL_QUERIES = 0.35  # share of queries with a seasonal intent
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
            seasonal = rng.random() < _SEASONAL_QUERIES
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


DAY = 86_400.0  # seconds
EVENTS = {  # each can be left out, to measure its cost
    "changes": "products come, go and change",
    "moves": "some of those are put on another shelf",
    "seasons": "shelves and wishes of a season",
    "candidates": "searches that pass a list of candidates",
    "silence": "clicks that are reported late, or never",
    "outages": "the process is killed, and starts again hours later",
    "deploys": "pages that report nonsense, until it is noticed and voided",
    "categories": "one is moved, one is renamed",
    "restore": "a backup, restored on another store",
}

_WHEN = {  # as a share of the year
    "category moved": 0.15,
    "outage": 0.27,
    "first always clicked": 0.35,
    "category renamed": 0.44,
    "restored elsewhere": 0.5,
    "clicks lost": 0.62,
    "second outage": 0.73,
}
_KIND = {
    "category moved": "categories",
    "category renamed": "categories",
    "outage": "outages",
    "second outage": "outages",
    "first always clicked": "deploys",
    "clicks lost": "deploys",
    "restored elsewhere": "restore",
}
BAD_DAYS = 2  # duration of a bad deploy
SHORTEST = 20  # minimum number of days for all events


@dataclass(frozen=True)
class Plan:
    """A year of a given number of days, with its events."""

    days: int
    happening: frozenset[str]

    @classmethod
    def of(cls, days: int, without: Iterable[str] = ()) -> Plan:
        """Return a year without some of the events."""
        unknown = set(without) - set(EVENTS)
        if unknown:
            raise ParameterError(f"{min(unknown)!r} cannot be left out; choose from {', '.join(EVENTS)}.")
        if days < SHORTEST:
            raise ParameterError(f"{days} days are too few for the events of a year; ask for at least {SHORTEST}.")
        return cls(days, frozenset(EVENTS) - set(without))

    def undisturbed(self) -> Plan:
        """Return a year with as many visits, in which nothing else happens."""
        return Plan(self.days, self.happening & {"candidates", "silence"})

    def season(self, day: int) -> int:
        """Return the season of a day; years begin on the first of January."""
        return int((12 * day / self.days + 1) // 3) % len(SEASONS)

    def turns(self, day: int) -> bool:
        """Return whether a season begins."""
        return "seasons" in self.happening and day > 0 and self.season(day) != self.season(day - 1)

    def began(self, day: int) -> str:
        """Return the name of the season of a day."""
        return f"{SEASONS[self.season(day)]} begins"

    @property
    def marks(self) -> dict[str, int]:
        """Days of the events that happen once."""
        return {name: self._day(name) for name, kind in _KIND.items() if kind in self.happening}

    def on(self, day: int) -> list[str]:
        """Return the single events of a day."""
        return [name for name, at in self.marks.items() if at == day]

    def nonsense(self, day: int) -> str | None:
        """Return the kind of wrong reports that pages send on a day, if any."""
        return next((name for name in self._deploys if 0 <= day - self._day(name) < BAD_DAYS), None)

    def noticed(self, day: int) -> tuple[str, int] | None:
        """Return the bad deploy that is noticed on a day, and the day on which it began."""
        later = BAD_DAYS + max(1, self.days // 73)
        return next(((name, day - later) for name in self._deploys if self._day(name) == day - later), None)

    @property
    def _deploys(self) -> list[str]:
        return [name for name in self.marks if _KIND[name] == "deploys"]

    def _day(self, name: str) -> int:
        return int(_WHEN[name] * self.days)
