"""What happens in a year, and when: seasons, outages, bad deploys, categories that move, another store."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from zoomrank.errors import ParameterError
from zoomrank.lab.year.shop import SEASONS

DAY = 86_400.0  # seconds
HAPPENINGS = {  # which can be left out, to see what each costs
    "changes": "products come, go and change",
    "moves": "some of those are put on another shelf",
    "seasons": "shelves and wishes of a season",
    "candidates": "searches that pass a list of candidates",
    "silence": "clicks that are reported late, or never",
    "outages": "the process is killed, and starts again hours later",
    "deploys": "pages that report nonsense, until it is noticed and taken back",
    "categories": "one is moved, one is renamed",
    "restore": "a backup, restored on another store",
}

_WHEN = {  # the share of the year that has passed
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
BAD_DAYS = 2  # of a bad deploy
SHORTEST = 20  # days of a year in which everything has room


@dataclass(frozen=True)
class Plan:
    """A year of so many days, with what happens in it."""

    days: int
    happening: frozenset[str]

    @classmethod
    def of(cls, days: int, without: Collection[str] = ()) -> Plan:
        """A year without some of what may happen."""
        unknown = set(without) - set(HAPPENINGS)
        if unknown:
            raise ParameterError(f"{min(unknown)!r} cannot be left out: choose among {', '.join(HAPPENINGS)}.")
        if days < SHORTEST:
            raise ParameterError(f"{days} days are too few for all that happens in a year: {SHORTEST} will do.")
        return cls(days, frozenset(HAPPENINGS) - set(without))

    def undisturbed(self) -> Plan:
        """As many days on which visitors come as they do in this year, and nothing else happens."""
        return Plan(self.days, self.happening & {"candidates", "silence"})

    def season(self, day: int) -> int:
        """The season of a day; years begin on the first of January."""
        return int((12 * day / self.days + 1) // 3) % len(SEASONS)

    def turns(self, day: int) -> bool:
        """Whether a season begins."""
        return "seasons" in self.happening and day > 0 and self.season(day) != self.season(day - 1)

    def began(self, day: int) -> str:
        """The name of the season of a day."""
        return f"{SEASONS[self.season(day)]} begins"

    @property
    def marks(self) -> dict[str, int]:
        """The days of what happens once."""
        return {name: self._day(name) for name, kind in _KIND.items() if kind in self.happening}

    def on(self, day: int) -> list[str]:
        """What happens on a day, of what happens once."""
        return [name for name, at in self.marks.items() if at == day]

    def nonsense(self, day: int) -> str | None:
        """Which nonsense pages report on a day, if they do."""
        return next((name for name in self._deploys if 0 <= day - self._day(name) < BAD_DAYS), None)

    def noticed(self, day: int) -> tuple[str, int] | None:
        """The bad deploy that is noticed on a day, and the day on which it began."""
        later = BAD_DAYS + max(1, self.days // 73)
        return next(((name, day - later) for name in self._deploys if self._day(name) == day - later), None)

    @property
    def _deploys(self) -> list[str]:
        return [name for name in self.marks if _KIND[name] == "deploys"]

    def _day(self, name: str) -> int:
        return int(_WHEN[name] * self.days)
