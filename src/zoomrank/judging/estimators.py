"""Four estimates of the share of visitors that a target would satisfy, each with the influence of every impression.

| name | what it is |
|---|---|
| weighted | the mean of clicks, each weighted by the ranking down to it |
| self-normalised | slot by slot, the weighted shares of visitors who were satisfied there and who continued |
| doubly-robust | the prediction of a model, plus the mean of its weighted errors |
| self-normalised-doubly-robust | the same, with weights normalised slot by slot |

The influence of an impression is how much it moves the estimate, times the number of impressions; the spread of
influences gives the standard error. `docs/explanation/judging.md` derives all of this.

The first and the third are unbiased. Self-normalising adds a bias that vanishes faster than the error as the sample
grows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from zoomrank.judging.tree_model import Predictions
from zoomrank.judging.weighing import WeightedLog
from zoomrank.numbers import Array


class ShareEstimate(NamedTuple):
    """An estimated share, and the influence of each impression on it."""

    value: float
    influence: Array  # their mean is 0


def observed_share(seen: WeightedLog) -> ShareEstimate:
    """Return the share of visitors who were satisfied by the rankings of the log."""
    return _mean(seen.satisfied.sum(axis=1).astype(float))


def weighted(seen: WeightedLog) -> ShareEstimate:
    """Estimate by reward-interaction inverse propensities: McInerney et al., KDD 2020."""
    return _mean((seen.weight * seen.satisfied).sum(axis=1))


def self_normalised(seen: WeightedLog) -> ShareEstimate:
    """Estimate slot by slot, as a product-limit: of the visitors who look at a slot, the shares satisfied and
    continuing.
    """
    return _product_limit(seen, seen.satisfied)


def doubly_robust(seen: WeightedLog, model: Predictions) -> ShareEstimate:
    """Estimate by cascade doubly robust (Kiyohara et al., WSDM 2022); visitors who stopped gain nothing below."""
    return _mean(model.before[:, 0] + (seen.weight * _residuals(seen, model)).sum(axis=1))


def self_normalised_doubly_robust(seen: WeightedLog, model: Predictions) -> ShareEstimate:
    """Estimate doubly robust, with the weights of each slot normalised to the target's visitors who reach it."""
    first, rest = _mean(model.before[:, 0]), _product_limit(seen, _residuals(seen, model))
    return ShareEstimate(first.value + rest.value, first.influence + rest.influence)


ESTIMATORS: Mapping[str, Callable[[WeightedLog, Predictions], ShareEstimate]] = {
    "weighted": lambda seen, _: weighted(seen),
    "self-normalised": lambda seen, _: self_normalised(seen),
    "doubly-robust": doubly_robust,
    "self-normalised-doubly-robust": self_normalised_doubly_robust,
}
NEED_A_MODEL = ("doubly-robust", "self-normalised-doubly-robust")


def _product_limit(seen: WeightedLog, gained: Array) -> ShareEstimate:
    """Estimate the gain of visitors, with the weights of each slot normalised to the target's visitors who reach it."""
    weight = seen.weight * seen.looked
    total = weight.sum(axis=0)
    gains, further = (_safe_ratio((weight * kind).sum(axis=0), total) for kind in (gained, seen.stays))
    rest = np.zeros(len(total) + 1)  # expected gain from a slot on, for visitors who look at it
    for slot in reversed(range(len(total))):
        rest[slot] = gains[slot] + further[slot] * rest[slot + 1]
    reach = np.concatenate([[1.0], np.cumprod(further[:-1])])
    surprise = gained + seen.stays * rest[1:] - rest[:-1]
    influence = (weight * _safe_ratio(reach, total) * surprise).sum(axis=1) * len(weight)
    return ShareEstimate(float(rest[0]), influence)


def _residuals(seen: WeightedLog, model: Predictions) -> Array:
    """Return the error of the model in each slot that the visitor looked at."""
    return np.asarray(seen.looked * (seen.satisfied + seen.stays * model.before[:, 1:] - model.own))


def _mean(values: Array) -> ShareEstimate:
    mean = float(values.mean())
    return ShareEstimate(mean, values - mean)


def _safe_ratio(part: Array, whole: Array) -> Array:
    return np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)
