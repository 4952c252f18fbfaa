"""`Shop`: products on shelves, in categories, in departments; every day some are removed, added or changed.

Every product has a quality of its own; how visitors like it also depends on its shelf (`tastes`). Shelves keep their
numbers when their categories are renamed or moved: only the collection knows their names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from zoomrank.documents import Collection
from zoomrank.numbers import Array

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
