"""Measures of the studies: when a ranker settles, its lead over the best of the others, and intervals.

Instances of a family differ much and not normally; so intervals are those of resampled instances, not Student's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from zoomrank.lab.curves import CurveRows, Estimate, Results, collected
from zoomrank.lab.registry import GREEDY
from zoomrank.types import Array

SUSTAINED = 0.95  # of greedy, from some checkpoint on to the end
_RESAMPLES = 2_000


def settling_visit(mine: CurveRows, greedy: CurveRows) -> Array:
    """Return the checkpoint from which on the ranking shown stays worth 95 % of greedy; infinite if there is none."""
    good = mine.expected >= SUSTAINED * greedy.expected[:, :1] - 1e-12
    since = np.full(len(good), np.inf)
    for instance, row in enumerate(good):
        failures = np.flatnonzero(~row)
        first = 0 if len(failures) == 0 else failures[-1] + 1
        if first < len(row):
            since[instance] = mine.visits[first]
    return since


def lead_over_best(
    results: Results, experiment: str, mine: str, others: Sequence[str], visits: int
) -> tuple[str, Estimate]:
    """Return which other ranker collected most by some visit, and our paired lead over it."""
    ours, greedy, *theirs = results.together(experiment, mine, GREEDY, *others)
    shares = [collected(one, greedy, visits) for one in theirs]
    best = int(np.argmax([share.mean() for share in shares]))
    return others[best], bootstrap(collected(ours, greedy, visits) - shares[best])


def bootstrap(values: Array) -> Estimate:
    """Return the mean, and its 95 % interval by resampling instances."""
    rng = np.random.default_rng(0)
    samples = values[rng.integers(len(values), size=(_RESAMPLES, len(values)))]
    low, high = np.quantile(samples.mean(axis=1), (0.025, 0.975), method="nearest")
    return Estimate(float(values.mean()), float(low), float(high), len(values))


def ratio_of_medians(one: Array, other: Array) -> Estimate:
    """Return the ratio of median visits, paired by instance; 0 where the second's are infinite."""
    rng = np.random.default_rng(0)
    chosen = rng.integers(len(one), size=(_RESAMPLES, len(one)))
    with np.errstate(invalid="ignore"):
        spread = np.median(one[chosen], axis=1) / np.median(other[chosen], axis=1)
    low, high = np.quantile(np.nan_to_num(spread, nan=np.inf), (0.025, 0.975), method="nearest")
    return Estimate(float(np.median(one) / np.median(other)), float(low), float(high), len(one))
