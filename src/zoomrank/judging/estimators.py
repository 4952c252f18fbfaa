"""Four estimates of the share of visitors that a target would satisfy, each with the influence of every impression.

| name | what it is |
|---|---|
| weighted | the mean of clicks, each weighed by the ranking down to it |
| self-normalised | slot by slot, the weighed share of those who looked at it that it satisfied, and that went on |
| doubly-robust | what a model expects, and the mean of the weighed clicks beyond it |
| self-normalised-doubly-robust | the same, with weights that are made to add up slot by slot |

An influence is how much an impression moves the estimate, times how many there are; their spread tells its error.
`docs/judging.md` derives all of this.

The first and the third are unbiased. Self-normalising costs a bias that vanishes as the sample grows, and faster than
the error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from zoomrank.judging.tree_model import Predicted
from zoomrank.judging.weighing import Weighed
from zoomrank.numbers import Array


class Estimate(NamedTuple):
    """A share, and what each impression has to do with it."""

    value: float
    influence: Array  # their mean is 0


def log_itself(seen: Weighed) -> Estimate:
    """The share of visitors who were satisfied by what was shown."""
    return _mean(seen.satisfied.sum(axis=1).astype(float))


def weighted(seen: Weighed) -> Estimate:
    """Reward-interaction inverse propensity: McInerney et al., KDD 2020."""
    return _mean((seen.weight * seen.satisfied).sum(axis=1))


def self_normalised(seen: Weighed) -> Estimate:
    """Of those who look at a slot, how many does it satisfy, and how many go on: the product-limit of slots."""
    return _slot_by_slot(seen, seen.satisfied)


def doubly_robust(seen: Weighed, model: Predicted) -> Estimate:
    """Cascade doubly robust: Kiyohara et al., WSDM 2022; a visitor who has stopped is known to find nothing more."""
    return _mean(model.before[:, 0] + (seen.weight * _beyond(seen, model)).sum(axis=1))


def self_normalised_doubly_robust(seen: Weighed, model: Predicted) -> Estimate:
    """Doubly robust, where those who look at a slot weigh as much as the visitors that the target has there."""
    first, rest = _mean(model.before[:, 0]), _slot_by_slot(seen, _beyond(seen, model))
    return Estimate(first.value + rest.value, first.influence + rest.influence)


ESTIMATORS: Mapping[str, Callable[[Weighed, Predicted], Estimate]] = {
    "weighted": lambda seen, _: weighted(seen),
    "self-normalised": lambda seen, _: self_normalised(seen),
    "doubly-robust": doubly_robust,
    "self-normalised-doubly-robust": self_normalised_doubly_robust,
}
NEED_A_MODEL = ("doubly-robust", "self-normalised-doubly-robust")


def _slot_by_slot(seen: Weighed, gained: Array) -> Estimate:
    """What visitors gain, where those who look at a slot weigh as much as the visitors that the target has there."""
    weight = seen.weight * seen.looked
    total = weight.sum(axis=0)
    gains, further = (_over((weight * kind).sum(axis=0), total) for kind in (gained, seen.stays))
    rest = np.zeros(len(total) + 1)  # what those who look at a slot gain, there and below
    for slot in reversed(range(len(total))):
        rest[slot] = gains[slot] + further[slot] * rest[slot + 1]
    reach = np.concatenate([[1.0], np.cumprod(further[:-1])])
    surprise = gained + seen.stays * rest[1:] - rest[:-1]
    influence = (weight * _over(reach, total) * surprise).sum(axis=1) * len(weight)
    return Estimate(float(rest[0]), influence)


def _beyond(seen: Weighed, model: Predicted) -> Array:
    """How much better than expected each slot went that she looked at."""
    return np.asarray(seen.looked * (seen.satisfied + seen.stays * model.before[:, 1:] - model.own))


def _mean(values: Array) -> Estimate:
    mean = float(values.mean())
    return Estimate(mean, values - mean)


def _over(part: Array, whole: Array) -> Array:
    return np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)
