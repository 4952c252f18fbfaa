"""Click model from counts on the tree, for doubly robust estimates.

Looks and clicks of a document count for it and for all subtrees that contain it. From the root down, the click rate of
a node is estimated from its own counts and four pseudo-visits with its parent's rate, as in ZoomRank. Queries are
counted separately; the prior of a query is the click rate of the others.

A model must not be fitted to the impressions that it predicts, or the estimate would be biased. So each stretch of a
query's impressions is predicted from those before it, and is as long as all of them together. This is unbiased also for
a log whose ranker learned meanwhile, since no impression depends on a later one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from zoomrank.documents.logged_impressions import positions_of
from zoomrank.errors import UnknownDocumentError
from zoomrank.judging.impression_log import ImpressionLog
from zoomrank.judging.targets import Target
from zoomrank.judging.weighing import WeightedLog, by_query
from zoomrank.numbers import Array
from zoomrank.spaces import DocumentTree

_AROUND = 4.0  # pseudo-visits, as in ZoomRank's prior
_NO_NODE, _ROOT = 0, 1
_HALVINGS = 8  # the first stretch, which has no data before it, is at most a 256th of the log


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
