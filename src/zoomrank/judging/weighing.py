"""Weights: how much likelier the target shows the beginning of a ranking than the log did.

What happens in a slot follows from the visitor and from the documents down to that slot. So whoever looked at three
documents is weighed by these three, and what stood below does not matter: weights stay small, and few visits count for
nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from zoomrank.judging.impression_log import ImpressionLog
from zoomrank.judging.targets import Target
from zoomrank.numbers import Array

_REACHED = 0.02  # of the target's visitors: slots that fewer get to need no sample of their own


class Weighed(NamedTuple):
    """Impressions and their weights: a row each, a column per slot."""

    weight: Array  # of the ranking down to each slot
    looked: Array  # whether she looked at the slot
    satisfied: Array  # whether it satisfied her
    stays: Array  # whether she looked further


def weighed(log: ImpressionLog, target: Target) -> Weighed:
    """Weigh a log, whose rankings are as long as the target's."""
    ratio = np.zeros(log.shown.shape)
    for query, rows in by_query(log):
        chances = target.propensities(query, log.shown[rows])
        ratio[rows] = chances / log.propensity[rows]
    slots = np.arange(log.slots)
    looked = slots < log.looks[:, None]
    satisfied = slots == log.click[:, None]
    stays = slots < log.looks[:, None] - 1
    return Weighed(np.cumprod(ratio, axis=1), looked, satisfied, stays)


def by_query(log: ImpressionLog) -> list[tuple[str, Array]]:
    """The rows of each query that was asked, in their order."""
    order = np.argsort(log.query, kind="stable")
    numbers, starts = np.unique(log.query[order], return_index=True)
    return [(log.queries[number], rows) for number, rows in zip(numbers, np.split(order, starts[1:]), strict=True)]


def reached(seen: Weighed) -> Array:
    """The share of the target's visitors who look at each slot, as the log tells it."""
    looked, stays = ((seen.weight * kind).sum(axis=0) for kind in (seen.looked, seen.stays))
    further = np.divide(stays, looked, out=np.zeros(len(looked)), where=looked > 0)
    return np.concatenate([[1.0], np.cumprod(further[:-1])])


def effective_sample(seen: Weighed) -> float:
    """How many visits of the target itself would tell as much: the least over the slots that matter.

    Of the weights w of a slot it is (Σ w)² / Σ w², clicks aside: to look at clicks would be to choose among results.
    """
    squares = (seen.weight**2).sum(axis=0)
    return _least(seen, np.divide(seen.weight.sum(axis=0) ** 2, squares, out=np.zeros(len(squares)), where=squares > 0))


def as_heavy(seen: Weighed) -> float:
    """How many impressions as heavy as the heaviest all of them weigh, where that is least: Σ w / max w."""
    heaviest = seen.weight.max(axis=0)
    return _least(seen, np.divide(seen.weight.sum(axis=0), heaviest, out=np.zeros(len(heaviest)), where=heaviest > 0))


def _least(seen: Weighed, samples: Array) -> float:
    return float(samples[reached(seen) >= _REACHED].min())


def missing(seen: Weighed) -> tuple[int, float, float]:
    """The slot where the log lacks most of what the target shows: the slot, the share that is lacking, its error.

    Those who look at a slot weigh as much with the document in it as without, on the average, if the log may show all
    that the target does. Where it may not, they weigh less.
    """
    above = np.concatenate([np.ones((len(seen.weight), 1)), seen.weight[:, :-1]], axis=1)
    lacks = (above - seen.weight) * seen.looked
    shares, errors = lacks.mean(axis=0), lacks.std(axis=0) / np.sqrt(len(lacks))
    certain = np.divide(shares, errors, out=np.zeros(len(shares)), where=errors > 0)
    slot = int(np.argmax(certain))
    return slot, float(shares[slot]), float(errors[slot])
