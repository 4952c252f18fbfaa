"""Two arms of an experiment: by how much one satisfies more visitors, with an interval that holds whenever one looks.

Whoever looks at an ordinary interval again and again, until it excludes 0, will see that sooner or later though there
is nothing to see. A *confidence sequence* holds at all times at once: with a chance of 95 % none of its intervals,
from the first visitor to the last, misses the truth. So one may look whenever one likes, and stop when one likes.

Each visitor of either arm says something of the difference, whichever arm she met. Let p be the chance of the first
arm, and let a and b be what was known of the two shares before she came. If she met the first arm, and x is 1 if she
was satisfied and 0 if not, she says y = a - b + (x - a)/p; in the second, y = a - b - (x - b)/(1 - p). Whatever a and
b are, the expectation of y is the difference of the chances with which the two arms would have satisfied *her*: chance
sent her to one of them, and nothing else decided that. So the mean of y estimates how much better the first arm has
been for those who came, also if shares move with the hour and learners learn. The better a and b, the less y varies.

y lies within 1/min(p, 1 - p) of 0. So the sum of y less its expectations, and the sum V of the squares of y less a -
b, are what the empirical-Bernstein theorem of Howard, Ramdas, McAuliffe and Sekhon (*Time-uniform, nonparametric,
nonasymptotic confidence sequences*, Annals of Statistics 49, 2021, Theorem 4) is about, and its gamma-exponential
mixture (Proposition 9) bounds the one by the other at all times. Nothing in it is only true of large numbers.

Visitors come in batches, since counts are kept by the minute: a and b are those before the batch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammainc, gammaln

from zoomrank.errors import ParameterError
from zoomrank.numbers import Array

LEVEL = 0.95
_SHARPEST = 6000.0  # visitors, at a share of a half: where intervals are as short as they can be


class Differences(NamedTuple):
    """What is known of a difference after each batch.

    Attributes
    ----------
    visitors
        How many have come, in both arms.
    estimate
        How many more of them the first arm satisfies, as a share.
    low, high
        The interval in which that lies.

    Examples
    --------
    >>> told = difference(np.array([[100, 60]]), np.array([[100, 50]]))
    >>> bool(told.low[0] < told.estimate[0] < told.high[0])
    True
    """

    visitors: Array
    estimate: Array
    low: Array
    high: Array


def difference(
    first: Array, second: Array, share: float = 0.5, level: float = LEVEL, at: Array | None = None
) -> Differences:
    """By how much more visitors the first of two arms satisfies, batch by batch.

    Parameters
    ----------
    first, second : array of int, batches × 2
        Of each arm, how many visitors came in each batch, and how many of those were satisfied.
    share : float
        The chance of the first arm, for somebody who comes to either; the same throughout.
    level : float
        The chance that all intervals hold.
    at : array of int, optional
        The batches after which the difference is wanted; all of them unless told.

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
        raise ParameterError(f"A share and a level lie between 0 and 1; {share} and {level} do not both.")
    first, second = np.asarray(first, float), np.asarray(second, float)
    a, b = _known_before(first), _known_before(second)
    one, other = _sums(first, a, share), _sums(second, b, 1 - share)
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


class _Sums(NamedTuple):
    """Over the visitors of each batch, of what they say besides a - b."""

    deviation: Array
    squares: Array


def _sums(counts: Array, known: Array, share: float) -> _Sums:
    visitors, satisfied = counts[:, 0], counts[:, 1]
    deviation = (satisfied - known * visitors) / share
    squares = (satisfied * (1 - known) ** 2 + (visitors - satisfied) * known**2) / share**2
    return _Sums(deviation, squares)


def _known_before(counts: Array) -> Array:
    """The satisfied share before each batch; a half before the first."""
    before = np.cumsum(counts, axis=0) - counts
    return np.asarray((before[:, 1] + 0.5) / (before[:, 0] + 1))


def _bound(spread: float, scale: float, risk: float) -> float:
    """What the sum of deviations never exceeds but with so much risk, where their squares come to so much."""
    rho = _SHARPEST / (2 * np.log(1 / risk) + np.log1p(2 * np.log(1 / risk)))

    def excess(deviation: float) -> float:
        return _log_mixture(deviation, spread, rho, scale) + float(np.log(risk))

    most = 1.0
    while excess(most) < 0:
        most *= 2
    return float(brentq(excess, 0.0, most, xtol=1e-9, rtol=1e-12))


def _log_mixture(deviation: float, spread: float, rho: float, scale: float) -> float:
    """The logarithm of the gamma-exponential mixture (Proposition 9 of Howard et al.)."""
    square = scale**2
    prior, shape = rho / square, (spread + rho) / square
    rate = (scale * deviation + spread + rho) / square
    begin = prior * np.log(prior) - gammaln(prior) - np.log(gammainc(prior, prior))
    now = gammaln(shape) + np.log(gammainc(shape, rate)) - shape * np.log(rate)
    return float(begin + now + (scale * deviation + spread) / square)
