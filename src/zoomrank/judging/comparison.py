"""Difference of two arms of an experiment, with a confidence sequence: an interval that is valid at every look.

An ordinary interval that is checked again and again until it excludes 0 will do so sooner or later, even if there is no
difference. A *confidence sequence* holds at all times at once: with a chance of 95 % none of its intervals, from the
first visitor to the last, misses the truth. So the experiment can be checked and stopped at any time.

Each visitor of either arm contributes to the estimate of the difference. Let p be the probability of the first arm, and
let a and b be the estimates of the two shares before the visit. Let x be 1 if the visitor was satisfied and 0 if not. A
visitor of the first arm contributes y = a - b + (x - a)/p; of the second, y = a - b - (x - b)/(1 - p). Whatever a and b
are, the expectation of y is the difference of the probabilities with which the two arms would have satisfied *this
visitor*, since the assignment was random. So the mean of y estimates how much better the first arm has been for the
visitors who came, even if shares change with the hour and learners learn. The better a and b, the less y varies.

y lies within 1/min(p, 1 - p) of 0. So the sum of y less its expectations, and the sum V of the squares of y less a - b,
satisfy the conditions of the empirical-Bernstein theorem of Howard, Ramdas, McAuliffe and Sekhon (*Time-uniform,
nonparametric, nonasymptotic confidence sequences*, Annals of Statistics 49, 2021, Theorem 4), and its gamma-exponential
mixture (Proposition 9) bounds the one by the other at all times. The bound is not asymptotic.

Visitors come in batches, since counts are kept by the minute: a and b are those before the batch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammainc, gammaln

from zoomrank.errors import ParameterError
from zoomrank.types import Array

LEVEL = 0.95
_SHARPEST = 6000.0  # visitors, at a share of a half: the mixture is tuned to give the shortest intervals here


class Differences(NamedTuple):
    """Estimated difference of two arms, with its interval, after each batch.

    Attributes
    ----------
    visitors
        Number of visitors so far, in both arms.
    estimate
        Satisfied share of the first arm minus that of the second.
    low, high
        Ends of the interval.
    """

    visitors: Array
    estimate: Array
    low: Array
    high: Array


def difference(
    first: Array, second: Array, share: float = 0.5, level: float = LEVEL, at: Array | None = None
) -> Differences:
    """Estimate how much larger a share of visitors the first of two arms satisfies, after each batch.

    Parameters
    ----------
    first, second : array of int, batches × 2
        Per arm: the visitors of each batch, and how many of those were satisfied.
    share : float
        The probability that a visitor of either arm is assigned to the first; constant throughout.
    level : float
        The probability that all intervals hold at once.
    at : array of int, optional
        The batches after which to estimate; by default all of them.

    Returns
    -------
    Differences
        The estimate after each of those batches, and the interval.

    Examples
    --------
    >>> first, second = np.array([[500, 250], [500, 290]]), np.array([[500, 210], [500, 200]])
    >>> told = difference(first, second)
    >>> told.visitors.tolist(), told.estimate.round(2).tolist()
    ([1000, 2000], [0.08, 0.13])
    >>> bool(told.low[0] < 0 < told.low[1])
    True

    References
    ----------
    Howard, Ramdas, McAuliffe and Sekhon, *Time-uniform, nonparametric, nonasymptotic confidence sequences*, Annals of
    Statistics 49 (2021).
    """
    if not 0 < share < 1 or not 0 < level < 1:
        raise ParameterError(f"share and level must lie between 0 and 1, but are {share} and {level}.")
    first, second = np.asarray(first, float), np.asarray(second, float)
    a, b = _prior_share(first), _prior_share(second)
    one, other = _batch_sums(first, a, share), _batch_sums(second, b, 1 - share)
    visitors = first[:, 0] + second[:, 0]
    chosen = np.arange(len(visitors)) if at is None else np.asarray(at)
    total = np.cumsum((a - b) * visitors + one.deviation - other.deviation)[chosen]
    spread, came = np.cumsum(one.squares + other.squares)[chosen], np.cumsum(visitors)[chosen]
    scale = 2 / min(share, 1 - share)
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = np.array([_bound(v, scale, (1 - level) / 2) for v in spread]) / came
        estimate = total / came
    low, high = (np.nan_to_num(side, nan=far) for side, far in ((estimate - bound, -1.0), (estimate + bound, 1.0)))
    return Differences(came.astype(int), estimate, np.clip(low, -1, 1), np.clip(high, -1, 1))


class _BatchSums(NamedTuple):
    """Sums over the visitors of each batch: their deviations from a - b, and the squares of those."""

    deviation: Array
    squares: Array


def _batch_sums(counts: Array, known: Array, share: float) -> _BatchSums:
    visitors, satisfied = counts[:, 0], counts[:, 1]
    deviation = (satisfied - known * visitors) / share
    squares = (satisfied * (1 - known) ** 2 + (visitors - satisfied) * known**2) / share**2
    return _BatchSums(deviation, squares)


def _prior_share(counts: Array) -> Array:
    """Return the satisfied share before each batch; a half before the first."""
    before = np.cumsum(counts, axis=0) - counts
    return np.asarray((before[:, 1] + 0.5) / (before[:, 0] + 1))


def _bound(spread: float, scale: float, risk: float) -> float:
    """Bound the sum of deviations, given the sum of their squares, except with probability `risk`."""
    rho = _SHARPEST / (2 * np.log(1 / risk) + np.log1p(2 * np.log(1 / risk)))

    def excess(deviation: float) -> float:
        return _log_mixture(deviation, spread, rho, scale) + float(np.log(risk))

    most = 1.0
    while excess(most) < 0:
        most *= 2
    return float(brentq(excess, 0.0, most, xtol=1e-9, rtol=1e-12))


def _log_mixture(deviation: float, spread: float, rho: float, scale: float) -> float:
    """Return the logarithm of the gamma-exponential mixture (Proposition 9 of Howard et al.)."""
    square = scale**2
    prior, shape = rho / square, (spread + rho) / square
    rate = (scale * deviation + spread + rho) / square
    begin = prior * np.log(prior) - gammaln(prior) - np.log(gammainc(prior, prior))
    now = gammaln(shape) + np.log(gammainc(shape, rate)) - shape * np.log(rate)
    return float(begin + now + (scale * deviation + spread) / square)
