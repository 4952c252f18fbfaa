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

Weights are how much likelier the target shows the beginning of a ranking than the log did. A click in a slot depends
only on the visitor and on the documents down to that slot. So an impression of which three documents were looked at is
weighted by these three, whatever is below: weights stay small, and few are 0.

The model counts looks and clicks on the tree, for a document and for all subtrees that contain it. From the root down,
the click rate of a node is estimated from its own counts and four pseudo-visits with its parent's rate, as in ZoomRank.
Queries are counted separately; the prior of a query is the click rate of the others.

A model must not be fitted to the impressions that it predicts, or the estimate would be biased. So each stretch of a
query's impressions is predicted from those before it, and is as long as all of them together. This is unbiased also for
a log whose ranker learned meanwhile, since no impression depends on a later one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from zoomrank.documents.click_log import positions_of
from zoomrank.errors import UnknownDocumentError
from zoomrank.judging.impression_log import ImpressionLog
from zoomrank.judging.targets import Target
from zoomrank.spaces import DocumentTree
from zoomrank.types import Array

_REACHED = 0.02  # of the target's visitors: slots reached by fewer are ignored in the effective sample
_AROUND = 4.0  # pseudo-visits, as in ZoomRank's prior
_NO_NODE, _ROOT = 0, 1
_HALVINGS = 8  # the first stretch, which has no data before it, is at most a 256th of the log


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


class Predictions(NamedTuple):
    """Predictions for each impression: a row each, a column per slot."""

    own: Array  # the probability of satisfaction here or below, given the document shown here
    before: Array  # the same before the document is drawn; the last column is 0, for below the last slot


class _QueryCounts:
    """Looks and clicks of a query, for the nodes above the documents of a log."""

    def __init__(self, paths: Array, usual: float) -> None:
        self._paths = paths
        self._usual = usual
        self._looks, self._clicks = np.zeros((2, paths.max() + 1))

    def add(self, shown: Array, looked: Array, satisfied: Array) -> None:
        for counts, these in ((self._looks, looked), (self._clicks, satisfied)):
            np.add.at(counts, self._paths[shown[these]], 1.0)
            counts[_NO_NODE] = 0.0

    @property
    def worth(self) -> Array:
        """Click probability of each document of the log."""
        chance = np.full(len(self._paths), self._usual)
        for node in self._paths.T:
            chance = (self._clicks[node] + _AROUND * chance) / (self._looks[node] + _AROUND)
        return chance

    @property
    def otherwise(self) -> float:
        """Click probability of a document that is not in the log."""
        return float((self._clicks[_ROOT] + _AROUND * self._usual) / (self._looks[_ROOT] + _AROUND))


def predicted(log: ImpressionLog, target: Target, seen: WeightedLog, tree: DocumentTree | None = None) -> Predictions:
    """Predict every impression from those of its query before it."""
    paths = tree_paths(log.documents, tree)
    own, before = np.zeros(log.shown.shape), np.zeros((len(log), log.slots + 1))
    looks, clicks = float(seen.looked.sum()), float(seen.satisfied.sum())
    for query, rows in by_query(log):
        mine = seen.looked[rows].sum(), seen.satisfied[rows].sum()
        usual = (clicks - mine[1] + 1.0) / (looks - mine[0] + 2.0 + log.slots)
        counted, continued = _QueryCounts(paths, usual), _Continuation(log.slots)
        for some in stretches(rows):
            there = _Stretch(query, log.shown[some], seen.weight[some], target)
            own[some], before[some] = there.predicted(counted, continued)
            counted.add(log.shown[some], seen.looked[some], seen.satisfied[some])
    return Predictions(own, before)


def stretches(rows: Array) -> Iterator[Array]:
    """Split the rows into parts, each as long as all before it."""
    ends = sorted({0, *(len(rows) >> halving for halving in range(_HALVINGS + 1))})
    for start, end in pairwise(ends):
        yield rows[start:end]


def tree_paths(documents: list[str], tree: DocumentTree | None) -> Array:
    """Return the nodes from the root down to each document, numbered from 1; shorter paths begin with 0 (no node).

    Without a tree, all documents are children of the root.
    """
    if tree is None:
        return np.column_stack([np.ones(len(documents), np.int64), np.arange(2, len(documents) + 2)])
    positions = positions_of(tree.documents)
    lacking = [document for document in documents if document not in positions]
    if lacking:
        raise UnknownDocumentError(
            f"The log shows {len(lacking)} documents that the tree lacks, such as {lacking[0]!r}. Give the tree of the "
            "log's collection, or none, which treats documents as unrelated."
        )
    at = tree.shape.leaf[[positions[document] for document in documents]].astype(np.int64)
    levels = [at]
    while at.any():
        at = tree.shape.parent[at].astype(np.int64)
        levels.append(at)
    nodes = np.column_stack(levels[::-1])
    again = nodes[:, 1:] == 0  # the root is its own parent
    _, numbers = np.unique(nodes, return_inverse=True)  # only nodes above the documents of the log
    paths = numbers.reshape(nodes.shape) + 1
    paths[:, :-1][again] = _NO_NODE
    return np.asarray(paths)


class _Continuation:
    """Expected gain of the target's visitors below each slot, from the stretches before."""

    def __init__(self, slots: int) -> None:
        self._found, self._weight = np.zeros((2, slots))

    def below(self, first: float) -> Array:
        """Return the probability of satisfaction from each slot on; slots without data are like the first."""
        slots = len(self._found)
        earns = np.divide(self._found, self._weight, out=np.full(slots, first), where=self._weight > 0)
        missed = np.cumprod((1.0 - earns)[::-1])[::-1]
        return np.concatenate([1.0 - missed, [0.0]])

    def add(self, expected: Array, weight: Array) -> None:
        """Add the model's expectation for each slot, and the weights of the rankings above it."""
        self._found += (expected * weight).sum(axis=0)
        self._weight += weight.sum(axis=0)


class _Stretch(NamedTuple):
    """Impressions that are predicted together."""

    query: str
    shown: Array
    weight: Array
    target: Target

    def predicted(self, counted: _QueryCounts, continued: _Continuation) -> tuple[Array, Array]:
        """Predict with the documents that are shown, and before they are drawn."""
        worth, otherwise = counted.worth, counted.otherwise
        expected = self._expected(worth, otherwise)
        below = continued.below(float(expected[0, 0]))[1:]
        above = np.concatenate([np.ones((len(self.weight), 1)), self.weight[:, :-1]], axis=1)
        continued.add(expected, above)
        shown = np.append(worth, 0.0)[self.shown]  # the last entry stands for NOTHING
        own, before = (chance + (1.0 - chance) * below for chance in (shown, expected))
        return own, np.concatenate([before, np.zeros((len(before), 1))], axis=1)

    def _expected(self, worth: Array, otherwise: float) -> Array:
        """Return the expected worth of each slot given those above it, where these have any weight."""
        expected = np.zeros(self.shown.shape)
        for slot in range(self.shown.shape[1]):
            rows = np.arange(len(self.shown)) if slot == 0 else np.flatnonzero(self.weight[:, slot - 1] > 0)
            if len(rows):
                above = self.shown[rows, :slot]
                expected[rows, slot] = self.target.expected(self.query, above, worth, otherwise)
        return expected


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
