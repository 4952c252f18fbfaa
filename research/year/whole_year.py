"""A whole year: it is simulated, verified, and compared with an undisturbed service."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from research.year.service_handle import ServiceHandle, StorePlace, other_store
from research.year.simulation import START, Tell, YearRecord, YearSimulation
from research.year.traffic import SimulatedClock
from zoomrank.errors import ParameterError
from zoomrank.service.verification import VerifyReport
from zoomrank.types import Array

ProgressFactory = Callable[[str], Tell]  # makes a progress callback for a named step


@dataclass(frozen=True)
class YearResult:
    """Result of a year: shares of satisfied visitors on its last day, and statistics of the service."""

    lived: YearRecord
    control: YearRecord
    verdict: VerifyReport
    counts: Counter[str]
    stores: tuple[str, str]
    editions: int
    size: int  # bytes of the store
    greedy: float
    undisturbed: float
    year: float
    random: float
    error: float  # standard error of `year` minus `undisturbed`, over queries

    @property
    def share(self) -> float:
        """Satisfaction after the year, as a share of the undisturbed learners'."""
        return self.year / self.undisturbed


async def whole_year(year: YearSimulation, folder: Path, address: str | None, telling: ProgressFactory) -> YearResult:
    """Simulate a year in an empty folder."""
    if folder.exists() and any(folder.iterdir()):
        raise ParameterError(f"{folder} is not empty; name another folder with --out.")
    folder.mkdir(parents=True, exist_ok=True)
    with other_store(folder, address) as elsewhere:
        clock = SimulatedClock(START)
        kept = ServiceHandle(StorePlace(folder / "first"), clock)
        before = kept.place.kind
        lived = await year.live(kept, clock, elsewhere, folder / "middle.sqlite", telling("days"))
        editions = kept.shop.version.number
        await kept.stop()
        verdict = kept.place.verify(telling("events checked"))
        size, stores = kept.place.size(), (before, kept.place.kind)
    control = await _undisturbed(year, folder / "undisturbed", lived, telling("days, undisturbed"))
    asked = year.tastes.asked(year.plan.season(year.last_day))
    ends = (year.knowing(year.last_day), control.end, lived.end, year.by_chance())
    shares = [float(asked @ end) for end in ends]
    shares.append(_standard_error(asked, lived.end - control.end))
    return YearResult(lived, control, verdict, year.traffic.tally.counts, stores, editions, size, *shares)


def _standard_error(weights: Array, differences: Array) -> float:
    """Return the standard error of a weighted mean of differences."""
    if len(differences) < 2:
        return float("nan")
    spread = differences - weights @ differences
    return float(np.sqrt((weights**2 @ spread**2) / (1 - weights @ weights)))


async def _undisturbed(year: YearSimulation, folder: Path, lived: YearRecord, tell: Tell) -> YearRecord:
    clock = SimulatedClock(START)
    kept = ServiceHandle(StorePlace(folder), clock)
    control = await year.undisturbed(kept, clock, lived, tell)
    await kept.stop()
    return control
