"""Plan of a year: seasons, outages, bad deploys, categories that move, another store."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from zoomrank.errors import ParameterError
from zoomrank.lab.year.shop import SEASONS

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
    def of(cls, days: int, without: Collection[str] = ()) -> Plan:
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
