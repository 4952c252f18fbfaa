"""Sizes of the tables of a Chinese Restaurant Process: a check that they follow a power law, as the paper says.

For n customers, E[tables with j of them] = (θ / j) · n! / (n - j)! · Γ(n - j + θ) / Γ(n + θ) (Ewens 1972). A power law
is a straight line in log j, an exponential one in j; the check is which of the two fits the logarithms better.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from zoomrank.numbers import Array

CUSTOMERS, THETA = 20, 2.0  # as in the paper
LARGEST = 10  # half of the customers: the largest size that two tables can have


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
