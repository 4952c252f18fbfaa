"""Importance weights: how much likelier the target shows the beginning of a ranking than the log did.

A click in a slot depends only on the visitor and on the documents down to that slot. So an impression of which three
documents were looked at is weighted by these three, whatever is below: weights stay small, and few are 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from zoomrank.judging.impression_log import ImpressionLog
from zoomrank.judging.targets import Target
from zoomrank.numbers import Array

_REACHED = 0.02  # of the target's visitors: slots reached by fewer are ignored in the effective sample


class WeightedLog(NamedTuple):
    """Impressions and their weights: a row each, a column per slot."""

    weight: Array  # of the ranking down to each slot
    looked: Array  # whether the visitor looked at the slot
    satisfied: Array  # whether it satisfied the visitor
    stays: Array  # whether the visitor looked further


def weight_log(log: ImpressionLog, target: Target) -> WeightedLog:
    """Weight the impressions of a log whose rankings are as long as the target's."""
    ratio = np.zeros(log.shown.shape)
    for query, rows in by_query(log):
        chances = target.propensities(query, log.shown[rows])
        ratio[rows] = chances / log.propensity[rows]
    slots = np.arange(log.slots)
    looked = slots < log.looks[:, None]
    satisfied = slots == log.click[:, None]
    stays = slots < log.looks[:, None] - 1
    return WeightedLog(np.cumprod(ratio, axis=1), looked, satisfied, stays)


def by_query(log: ImpressionLog) -> list[tuple[str, Array]]:
    """Return the rows of each query, in their order."""
    order = np.argsort(log.query, kind="stable")
    numbers, starts = np.unique(log.query[order], return_index=True)
    return [(log.queries[number], rows) for number, rows in zip(numbers, np.split(order, starts[1:]), strict=True)]


def reach(seen: WeightedLog) -> Array:
    """Estimate the share of the target's visitors who look at each slot."""
    looked, stays = ((seen.weight * kind).sum(axis=0) for kind in (seen.looked, seen.stays))
    further = np.divide(stays, looked, out=np.zeros(len(looked)), where=looked > 0)
    return np.concatenate([[1.0], np.cumprod(further[:-1])])


def effective_sample(seen: WeightedLog) -> float:
    """Return the number of visits to the target that would be as informative: the minimum over the slots that matter.

    For the weights w of a slot it is (Σ w)² / Σ w². Clicks do not enter, since that would select among results.
    """
    squares = (seen.weight**2).sum(axis=0)
    return _least(seen, np.divide(seen.weight.sum(axis=0) ** 2, squares, out=np.zeros(len(squares)), where=squares > 0))


def heaviest_count(seen: WeightedLog) -> float:
    """Return the total weight over that of the heaviest impression, Σ w / max w: the minimum over slots that matter."""
    heaviest = seen.weight.max(axis=0)
    return _least(seen, np.divide(seen.weight.sum(axis=0), heaviest, out=np.zeros(len(heaviest)), where=heaviest > 0))


def _least(seen: WeightedLog, samples: Array) -> float:
    return float(samples[reach(seen) >= _REACHED].min())


def missing_support(seen: WeightedLog) -> tuple[int, float, float]:
    """Return the slot where the log lacks most of what the target shows, the share that is lacking, and its error.

    If the log can show all that the target does, the weights of visitors who look at a slot have the same mean with the
    document in it as without. Otherwise they are smaller.
    """
    above = np.concatenate([np.ones((len(seen.weight), 1)), seen.weight[:, :-1]], axis=1)
    lacks = (above - seen.weight) * seen.looked
    shares, errors = lacks.mean(axis=0), lacks.std(axis=0) / np.sqrt(len(lacks))
    certain = np.divide(shares, errors, out=np.zeros(len(shares)), where=errors > 0)
    slot = int(np.argmax(certain))
    return slot, float(shares[slot]), float(errors[slot])
