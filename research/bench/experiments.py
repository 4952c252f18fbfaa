"""Simulated experiments: how often the intervals of two arms are wrong, and how many visitors a lift takes to detect.

All go through `zoomrank.judging.difference`, as in the service, and are checked after every hundred visitors. For
comparison: an ordinary 95 % interval, which is valid for a single look only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

import zoomrank as zr
from research.bench.measure import Row
from zoomrank.judging.comparison import Differences, difference
from zoomrank.lab.simulator import simulate
from zoomrank.types import Array

EXPERIMENTS, VISITORS, A_LOOK = 2_000, 10_000, 100
LEARNED = 500  # experiments whose arms learn, which take longer
FOUND = 400  # experiments per lift to detect
SHARES = (0.5, 0.1)
RATES = (0.02, 0.1, 0.5, 0.9)
LIFTS = {0.01: 600_000, 0.02: 200_000, 0.05: 50_000, 0.1: 20_000}  # and the maximum number of visitors
LOOKS = 300  # maximum number of looks when detecting lifts
Interval = Callable[[Array, Array, float], Differences]


class Came(NamedTuple):
    """Visitors of both arms, batch by batch, with those satisfied; and the truth, visitor by visitor."""

    first: Array
    second: Array
    truth: Array | None = None  # the mean difference up to each batch; 0 throughout if None


def fixed(rng: np.random.Generator, share: float, rates: tuple[Array | float, Array | float], visitors: int) -> Came:
    """Simulate arms whose satisfaction may change from batch to batch."""
    batches = visitors // A_LOOK
    first = rng.binomial(A_LOOK, share, batches)
    second = A_LOOK - first
    satisfied = [rng.binomial(came, rate) for came, rate in zip((first, second), rates, strict=True)]
    return Came(np.stack([first, satisfied[0]], axis=1), np.stack([second, satisfied[1]], axis=1))


def moving(visitors: int) -> Array:
    """Return a satisfied share that oscillates, as from day to night."""
    return 0.5 + 0.3 * np.sin(np.arange(visitors // A_LOOK) * A_LOOK * 2 * np.pi / 3_000)


def learning(rng: np.random.Generator, tree: zr.DocumentTree, users: zr.users.UserDistribution, visitors: int) -> Came:
    """Simulate two ZoomRanks that learn, each from its own visitors; their satisfaction is known exactly."""
    met = rng.random(visitors) < 0.5  # visitors of the first arm
    satisfaction = functools.cache(users.satisfaction)
    satisfied, worth = np.empty(visitors), []
    for mine in (met, ~met):
        ranker = zr.ZoomRank(tree, slots=2, seed=int(rng.integers(2**31)))
        count = int(mine.sum())
        trace = simulate(ranker, users, count, seed=int(rng.integers(2**31)), windows=count)
        satisfied[mine] = trace.satisfied
        exact = np.array([satisfaction(tuple(ranking)) for ranking in trace.shown])
        worth.append(
            exact[np.minimum(np.cumsum(mine) - mine, count - 1)]
        )  # of the ranking that this arm would have shown
    truth = np.cumsum(worth[0] - worth[1])[A_LOOK - 1 :: A_LOOK] / np.arange(A_LOOK, visitors + 1, A_LOOK)
    counts = [np.stack([which, which * satisfied], axis=1).reshape(-1, A_LOOK, 2).sum(axis=1) for which in (met, ~met)]
    return Came(counts[0], counts[1], truth)


def ordinary(first: Array, second: Array, share: float) -> Differences:
    """Return ordinary intervals for a single look: 1.96 standard errors to both sides."""
    del share
    one, other = np.cumsum(first, axis=0), np.cumsum(second, axis=0)
    (rate, noise), (other_rate, other_noise) = (_rate_and_noise(arm) for arm in (one, other))
    middle, error = rate - other_rate, np.sqrt(noise + other_noise)
    return Differences(one[:, 0] + other[:, 0], middle, middle - 1.96 * error, middle + 1.96 * error)


def _rate_and_noise(counts: Array) -> tuple[Array, Array]:
    came = np.maximum(counts[:, 0], 1)
    rate = counts[:, 1] / came
    return rate, rate * (1 - rate) / came


def missed(came: Came, share: float, interval: Interval = difference) -> bool:
    """Return whether an interval has ever missed the truth."""
    told = interval(came.first, came.second, share)
    truth = 0.0 if came.truth is None else came.truth
    return bool(np.any((told.low > truth) | (told.high < truth)))


def found_after(came: Came, share: float) -> float:
    """Return the number of visitors until the first arm was known to be better; infinite if it never was."""
    batches = len(came.first)
    at = np.unique(np.geomspace(1, batches, min(batches, LOOKS)).round().astype(int)) - 1
    told = difference(came.first, came.second, share, at=at)
    known = np.flatnonzero(told.low > 0)
    return float(told.visitors[known[0]]) if len(known) else np.inf


def experiments() -> Iterator[Row]:
    """Measure false alarms, then power."""
    rng = np.random.default_rng(1)
    for share in SHARES:
        for rate in RATES:
            drawn = [fixed(rng, share, (rate, rate), VISITORS) for _ in range(EXPERIMENTS)]
            yield _alarms(f"{100 * rate:.0f} % satisfied, shares {share:g} and {1 - share:g}", share, drawn)
    wave = moving(VISITORS)
    drawn = [fixed(rng, 0.5, (wave, wave), VISITORS) for _ in range(EXPERIMENTS)]
    yield _alarms("20 to 80 % satisfied, up and down", 0.5, drawn)
    tree = zr.DocumentTree.exponential(depth=6)
    users = zr.users.two_peaks(tree, seed=7)
    yield _alarms("two ZoomRanks that learn", 0.5, [learning(rng, tree, users, VISITORS) for _ in range(LEARNED)])
    yield from _power(rng)


def _alarms(name: str, share: float, all_came: list[Came]) -> Row:
    wrong, often = (np.mean([missed(came, share, how) for came in all_came]) for how in (difference, ordinary))
    return Row(f"A/A, {name}, of {len(all_came):,}: intervals that ever missed (ordinary ones)",
               f"{100 * wrong:.1f} % ({100 * often:.0f} %)", "≤ 5 %")  # fmt: skip


def _power(rng: np.random.Generator) -> Iterator[Row]:
    after = [found_after(fixed(rng, 0.5, (0.55, 0.5), 8_000), 0.5) for _ in range(EXPERIMENTS)]
    found = 100 * np.mean(np.isfinite(after))
    yield Row("a lift from 50 to 55 %, found by 4,000 visitors an arm", f"{found:.0f} %", "≥ 80 %")
    for rate in (0.1, 0.5):
        for lift, most in LIFTS.items():
            after = [found_after(fixed(rng, 0.5, (rate + lift, rate), most), 0.5) for _ in range(FOUND)]
            half, most_of_them = np.quantile(after, [0.5, 0.8], method="higher")
            what = f"a lift of {100 * lift:.0f} points at {100 * rate:.0f} %: visitors until it is found"
            yield Row(f"{what}, in half of {FOUND} experiments and in 80 %", f"{half:,.0f}, {most_of_them:,.0f}")
    rng = np.random.default_rng(1)
    after = [found_after(fixed(rng, 0.1, (0.55, 0.5), 150_000), 0.1) for _ in range(FOUND)]
    half, most_of_them = np.quantile(after, [0.5, 0.8], method="higher")
    yield Row("the same of 5 points at 50 %, with shares of 10 and 90 %", f"{half:,.0f}, {most_of_them:,.0f}")
