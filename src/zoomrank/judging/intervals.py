"""95 % confidence intervals of estimated shares.

An estimate that is a mean of influences is nearly normal, with three corrections. A few heavy impressions say little
about their own spread, so the quantile is Student's t, with degrees of freedom from the fourth moment. A share near 0
or 1 can only be wrong to one side, so the interval is Wilson's, for as many visits as would have the same error. And a
share is never below 0 or above 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

from zoomrank.judging.estimators import ShareEstimate
from zoomrank.types import Array

_TAIL = 0.975
_FEWEST = 3.0  # degrees of freedom


class Share(NamedTuple):
    """A share of visitors, or a difference of shares, with a 95 % interval.

    Attributes
    ----------
    value : float
        The estimate.
    low, high : float
        The interval.
    error : float
        The standard error.
    """

    value: float
    low: float
    high: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def share(estimate: ShareEstimate, sample: float) -> Share:
    """Return a share with its interval; where nothing varies, the interval is that of `sample` visits."""
    value, error, wide = estimate.value, _error(estimate.influence), _quantile(estimate.influence)
    if 0.0 < value < 1.0 and error > 0:
        visits = value * (1.0 - value) / error**2
    elif 0.0 <= value <= 1.0:
        visits = sample
    else:
        ends = np.clip((value - wide * error, value + wide * error), 0.0, 1.0)
        return Share(float(np.clip(value, 0.0, 1.0)), float(ends[0]), float(ends[1]), error)
    return Share(value, *_wilson(value, visits, wide), error)


def difference(one: ShareEstimate, other: ShareEstimate) -> Share:
    """Return the first minus the second, both estimated from the same impressions."""
    influence = one.influence - other.influence
    value, reach = one.value - other.value, _quantile(influence) * _error(influence)
    return Share(value, max(-1.0, value - reach), min(1.0, value + reach), _error(influence))


def _wilson(value: float, visits: float, wide: float) -> tuple[float, float]:
    more = wide**2 / visits
    middle = (value + more / 2) / (1 + more)
    reach = np.sqrt(value * (1 - value) * more + more**2 / 4) / (1 + more)
    return max(0.0, float(middle - reach)), min(1.0, float(middle + reach))


def _error(influence: Array) -> float:
    return float(np.sqrt((influence**2).sum() / max(len(influence) - 1, 1) / len(influence)))


def _quantile(influence: Array) -> float:
    """Return a quantile of Student's t, with Satterthwaite's degrees of freedom from the spread of squares."""
    squares = influence**2
    second, fourth = squares.mean(), (squares**2).mean()
    if not second:
        return float(stats.norm.ppf(_TAIL))
    freedom = 2.0 * len(influence) / max(fourth / second**2 - 1.0, 1e-9)
    return float(stats.t.ppf(_TAIL, max(freedom, _FEWEST)))
