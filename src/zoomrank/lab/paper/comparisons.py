"""Comparisons that rows can confirm or contradict: one curve is above another, two are alike, one reaches a level.

A comparison is one number per instance, its mean and 95 % interval over instances, and a threshold: it "holds" if the
whole interval is on the right side, "differs" if the whole interval is on the wrong side, else it "cannot tell".

Two comparisons need no rows. One is that sizes of the tables of a Chinese Restaurant Process follow a power law: for
n customers, E[tables with j of them] = (θ / j) · n! / (n - j)! · Γ(n - j + θ) / Γ(n + θ) (Ewens 1972), and a straight
line in log j, a power law, must fit the logarithms better than one in j, an exponential.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import gammaln

from zoomrank.lab.curves import Estimate, Results, estimate
from zoomrank.lab.paper.theory import Facts
from zoomrank.lab.registry import GREEDY
from zoomrank.lab.report_pages import label
from zoomrank.types import Array

HOLDS, DIFFERS, CANNOT_TELL = "holds", "differs", "cannot tell"
CUSTOMERS, THETA = 20, 2.0  # as in the paper
LARGEST = 10  # half of the customers: the largest size that two tables can have


@dataclass(frozen=True)
class Measured:
    """Result of one comparison."""

    what: str
    value: Estimate | None  # None if there are no rows
    verdict: str

    def __str__(self) -> str:
        return f"{self.what}: {'no rows' if self.value is None else self.value}"


class Comparison(ABC):
    """A statement that rows can confirm or contradict."""

    needs_rows: ClassVar[bool] = True  # whether it needs runs of full length

    @property
    def curves(self) -> tuple[str, ...]:
        """Curves that are compared."""
        return ()

    @abstractmethod
    def measure(self, experiment: str, results: Results, known: Mapping[str, Facts]) -> Measured:
        """Evaluate the comparison on the rows."""


@dataclass(frozen=True)
class PairComparison(Comparison):
    """A statement about two curves of an experiment."""

    curve: str
    other: str

    @property
    def curves(self) -> tuple[str, ...]:
        """Both curves."""
        return self.curve, self.other


@dataclass(frozen=True)
class Above(PairComparison):
    """One curve satisfies more visitors than another, by more than this, between two points of the run."""

    by: float = 0.0
    start: float = 0.0
    end: float = 1.0
    visits: int | None = None  # instead of an end: the first visits

    def measure(self, experiment: str, results: Results, known: Mapping[str, Facts]) -> Measured:  # noqa: ARG002
        """Compare in pairs, instance by instance."""
        what = f"{label(self.curve)} − {label(self.other)}{self._when()}"
        if not results.comparable(experiment, self.curve, self.other):
            return Measured(what, None, CANNOT_TELL)
        one, other = results.together(experiment, self.curve, self.other)
        end = self.end if self.visits is None else min(self.visits / one.length, 1.0)
        value = estimate(one.rate(self.start, end) - other.rate(self.start, end))
        return Measured(what, value, _beyond(value, self.by))

    def _when(self) -> str:
        if self.visits is not None:
            return f" in the first {self.visits:,} visits"
        return "" if self.start == 0.0 else f" in the last {1 - self.start:.0%}"


@dataclass(frozen=True)
class Alike(PairComparison):
    """Two curves differ by no more than this: over the run or, with `everywhere`, in its worst window."""

    within: float
    everywhere: bool = False

    def measure(self, experiment: str, results: Results, known: Mapping[str, Facts]) -> Measured:  # noqa: ARG002
        """Check that both ends of the interval are within the threshold."""
        what = f"{label(self.curve)} − {label(self.other)}{' where they differ most' if self.everywhere else ''}"
        if not results.comparable(experiment, self.curve, self.other):
            return Measured(what, None, CANNOT_TELL)
        one, other = results.together(experiment, self.curve, self.other)
        gaps = one.window_rates() - other.window_rates()
        worst = gaps[:, np.abs(gaps.mean(axis=0)).argmax()]
        value = estimate(worst if self.everywhere else one.rate() - other.rate())
        return Measured(what, value, _inside(value, -self.within, self.within))


@dataclass(frozen=True)
class Reaches(Comparison):
    """A curve satisfies this share of what the greedy optimum does: around some visit, or in the last tenth."""

    curve: str
    share: float
    visits: int | None = None

    @property
    def curves(self) -> tuple[str, ...]:
        """The curve and the greedy optimum."""
        return self.curve, GREEDY

    def measure(self, experiment: str, results: Results, known: Mapping[str, Facts]) -> Measured:  # noqa: ARG002
        """Divide instance by instance."""
        when = "in the last tenth" if self.visits is None else f"around visit {self.visits:,}"
        what = f"{label(self.curve)} / greedy {when}"
        if not results.comparable(experiment, self.curve, GREEDY):
            return Measured(what, None, CANNOT_TELL)
        mine, greedy = results.together(experiment, self.curve, GREEDY)
        rate = mine.rate(0.9) if self.visits is None else mine.rate_around(self.visits)
        value = estimate(rate / greedy.expected[:, 0])
        return Measured(what, value, _beyond(value, self.share))


@dataclass(frozen=True)
class Settles(Comparison):
    """A curve ends, in its last tenth, at a given fraction of visitors."""

    curve: str
    at: float
    within: float = 0.01

    @property
    def curves(self) -> tuple[str, ...]:
        """The curve."""
        return (self.curve,)

    def measure(self, experiment: str, results: Results, known: Mapping[str, Facts]) -> Measured:  # noqa: ARG002
        """Measure the last tenth."""
        what = f"{label(self.curve)} in the last tenth"
        if not results.has(experiment, self.curve):
            return Measured(what, None, CANNOT_TELL)
        value = estimate(results.curve(experiment, self.curve).rate(0.9))
        return Measured(what, value, _inside(value, self.at - self.within, self.at + self.within))


@dataclass(frozen=True)
class MoreStrategies(PairComparison):
    """One ranker has more active strategies than another, over all slots, by a factor."""

    times: float

    def measure(self, experiment: str, results: Results, known: Mapping[str, Facts]) -> Measured:  # noqa: ARG002
        """Divide instance by instance."""
        what = f"strategies of {label(self.curve)} / {label(self.other)}"
        if not results.comparable(experiment, *self.curves):
            return Measured(what, None, CANNOT_TELL)
        one, other = results.together(experiment, *self.curves)
        if one.active is None or other.active is None:
            return Measured(what, None, CANNOT_TELL)
        value = estimate(one.active.sum(axis=1) / other.active.sum(axis=1))
        return Measured(what, value, _beyond(value, self.times))


@dataclass(frozen=True)
class Continuous(Comparison):
    """The mean relevance is L-continuous: no difference exceeds the distance."""

    needs_rows = False

    def measure(self, experiment: str, results: Results, known: Mapping[str, Facts]) -> Measured:  # noqa: ARG002
        """Measure the steepest pair of documents of the instances."""
        what = "largest |μ(x) − μ(y)| / D(x, y)"
        if experiment not in known:
            return Measured(what, None, CANNOT_TELL)
        steepest = known[experiment].steepest
        value = Estimate(steepest, steepest, steepest, 1)
        return Measured(what, value, HOLDS if steepest <= 1 + 1e-9 else DIFFERS)


@dataclass(frozen=True)
class PowerLaw(Comparison):
    """Sizes of tables follow a power law more closely than an exponential; computed exactly."""

    needs_rows = False

    def measure(self, experiment: str, results: Results, known: Mapping[str, Facts]) -> Measured:  # noqa: ARG002
        """Compare the fits to the expected number of tables of each size."""
        power, exponential = power_law_and_exponential()
        what = (
            f"tables of size 1 to {LARGEST}: R² of a power law with exponent {power.slope:.2f} is "
            f"{power.r_squared:.3f}, that of an exponential {exponential.r_squared:.3f}; difference"
        )
        better = power.r_squared - exponential.r_squared
        return Measured(what, Estimate(better, better, better, 1), HOLDS if better > 0 else DIFFERS)


def _beyond(value: Estimate, threshold: float) -> str:
    return HOLDS if value.low > threshold else DIFFERS if value.high < threshold else CANNOT_TELL


def _inside(value: Estimate, low: float, high: float) -> str:
    if low <= value.low and value.high <= high:
        return HOLDS
    return DIFFERS if value.low > high or value.high < low else CANNOT_TELL


def expected_tables(customers: int, theta: float) -> Array:
    """Return the expected number of tables of each size from 1 on.

    >>> expected_tables(2, 2.0).round(6).tolist()  # the second customer joins the first with probability 1/3
    [1.333333, 0.333333]
    """
    size = np.arange(1, customers + 1)
    left = gammaln(customers + 1) - gammaln(customers - size + 1)
    seated = gammaln(customers - size + theta) - gammaln(customers + theta)
    return np.asarray(theta / size * np.exp(left + seated))


@dataclass(frozen=True)
class Fit:
    """A straight line through the logarithms of the expected numbers."""

    slope: float
    r_squared: float


def power_law_and_exponential(
    customers: int = CUSTOMERS, theta: float = THETA, largest: int = LARGEST
) -> tuple[Fit, Fit]:
    """Fit both to the sizes from 1 to the largest.

    >>> power, exponential = power_law_and_exponential()
    >>> power.slope < 0 and exponential.slope < 0
    True
    """
    size = np.arange(1.0, largest + 1)
    tables = np.log(expected_tables(customers, theta)[:largest])
    return _fit(np.log(size), tables), _fit(size, tables)


def _fit(along: Array, values: Array) -> Fit:
    slope, _ = np.polyfit(along, values, 1)
    return Fit(float(slope), float(np.corrcoef(along, values)[0, 1] ** 2))
