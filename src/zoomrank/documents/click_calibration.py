"""How much click probability may differ per unit of distance, estimated from a click log.

Labels say who likes what; a log has counts, and counts are noisy: of two documents that nine of a hundred like, each
seen ten times, one is clicked twice and the other never. Taken for a difference, that would widen every metric. So:

- A document that few have looked at borrows the visits of the smallest subtree around it that has enough. It never
  borrows beyond the node at which the two of a pair part, so their distance stays what it is, and any averages of
  their two sides may differ by no more than single documents may.
- Pairs are drawn by clicks, and the click that a document was drawn by is not counted for it. What is left of its
  visits is as if nobody had chosen, else documents would be compared just because they were lucky.
- Of each pair the difference and its standard error are known. The distribution of *true* differences per distance is
  the one under which those observed are likeliest (the nonparametric maximum likelihood of Kiefer and Wolfowitz 1956,
  by the EM algorithm). A pair that was hardly measured has no say in it, and noise alone leads to nearly nothing.
- Depths differ in how steep they are. Each begins with what all of them say together and takes a few steps of its own,
  which lead far where rates are known well and nowhere where they are not.

Rates are those of visitors who have skipped what stood above. That is what rankers in metric spaces rely on: given
what was skipped, too, click probabilities differ by at most the distance (conditional L-continuity).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from zoomrank.documents.click_log import ClickLog, Counts
from zoomrank.errors import ParameterError
from zoomrank.numbers import Array, whole_number
from zoomrank.spaces.topology import node_depths
from zoomrank.spaces.tree import DocumentTree

VISITS = 30  # from so many on, a rate says something
_MOST = 4_000  # pairs that the likelihood is made of
_STEPS, _STEPS_OF_A_LEVEL = 200, 10  # of the EM algorithm
_POINTS = 50  # of the grid on which steepness lies


class Comparisons(NamedTuple):
    """Pairs of documents that were looked at often enough."""

    parting: Array  # the smallest subtree that holds both
    distance: Array
    difference: Array  # of the two click rates
    noise: Array  # its standard error


def scale_from_clicks(
    tree: DocumentTree,
    log: ClickLog,
    *,
    share: float = 0.95,
    close: float = 1.0,
    visits: int = VISITS,
    pairs: int = 20_000,
    seed: int = 0,
    unknown: str = "refuse",
) -> float:
    """The factor on distances within which the click rates of a share of all pairs differ, without the noise.

    Pairs part at any depth with the same chance, since a factor widens and narrows all subtrees. With `close` below 1
    only those count that are at most so far apart, as a part of the width of the whole tree. A rate is that of at
    least so many `visits`. The factor is for the widths of the tree that is given, as in
    `collection.scaled(scale_from_clicks(collection.tree, log))`. It can be 0, when all differences may be luck. It
    leans to the low side where the levels with the steepest differences are those with the fewest visits.

    >>> tree = DocumentTree.from_paths(["A > a", "A > b", "B > c"], epsilon=0.4)
    >>> shows = [["A > a", "A > b"], ["A > b", "A > a"]] * 600
    >>> log = ClickLog([("", shown, "A > a" if time % 10 < 4 else None) for time, shown in enumerate(shows)])
    >>> round(scale_from_clicks(tree, log), 1)
    1.0
    """
    if not (0 < share <= 1 and 0 < close <= 1):
        raise ParameterError(f"share and close must lie in (0, 1], not be {share} and {close}.")
    found = comparisons(tree, log.counted(tree.documents, unknown), visits=visits, pairs=pairs, seed=seed)
    return true_steepness(tree, found, share=share, close=close)


def comparisons(
    tree: DocumentTree, counts: Counts, *, visits: int = VISITS, pairs: int = 20_000, seed: int = 0
) -> Comparisons:
    """Draw pairs: a document by its clicks, a subtree around it, and another document that was seen in there."""
    _check_least(visits, pairs)
    rng, sums = np.random.default_rng(seed), _Sums(tree, counts)
    drawn = rng.choice(len(counts.query), pairs, p=counts.clicked / counts.clicked.sum())
    query, leaf = counts.query[drawn], sums.leaf[counts.document[drawn]]
    inside = leaf
    steps = (rng.random(pairs) * sums.depth[leaf]).astype(np.int64)  # any subtree around it is as likely
    for climbed in range(int(steps.max())):
        inside = np.where(steps > climbed, sums.parent[inside], inside)
    parting = sums.parent[inside]
    begin, end = sums.rows(query, parting)
    low, high = sums.rows(query, inside)
    others = (end - begin) - (high - low)
    use = (others > 0) & (tree.width[parting] > 0)
    other = (begin + rng.random(pairs) * others).astype(np.int64)
    other = np.where(other >= low, other + high - low, other)[use]
    query, leaf, parting = query[use], leaf[use], parting[use]
    their_leaf = sums.leaf[counts.document[other]]
    looks, clicks = sums.looks_and_clicks(query, sums.seen_enough(query, leaf, parting, visits + 1))
    looks, clicks = looks - 1, clicks - 1  # the click that the document was drawn by
    their_looks, their_clicks = sums.looks_and_clicks(query, sums.seen_enough(query, their_leaf, parting, visits))
    use = (looks >= visits) & (their_looks >= visits)
    if not use.any():
        raise ParameterError(
            f"No two documents were looked at {visits} times each for one query, not even with those around them: "
            "the log is too short to tell differences from luck."
        )
    mine, theirs = _rate(clicks[use], looks[use]), _rate(their_clicks[use], their_looks[use])
    return Comparisons(parting[use], tree.width[parting[use]], mine[0] - theirs[0], np.sqrt(mine[1] + theirs[1]))


def true_steepness(tree: DocumentTree, found: Comparisons, *, share: float = 0.95, close: float = 1.0) -> float:
    """How steep a share of the pairs is at most, in difference per distance, without the noise."""
    near: Array = np.flatnonzero(found.distance <= close * tree.width[0])
    if len(near) == 0:
        raise ParameterError(f"No two documents are closer than {close} of the whole tree, yet apart: raise `close`.")
    steepness = np.abs(found.difference[near]) / found.distance[near]
    noise = found.noise[near] / found.distance[near]
    largest = float(np.quantile(steepness, 0.999))
    if largest == 0:
        return 0.0
    grid = np.concatenate([[0.0], np.geomspace(largest / 300, largest, _POINTS)])
    even: Array = np.full(len(grid), 1 / len(grid))
    common = _likeliest(steepness[:_MOST], noise[:_MOST], grid, even, _STEPS)
    depth = node_depths(tree.shape.parent)[found.parting[near]]
    weight = np.zeros(len(grid))
    for level in np.unique(depth):
        here: Array = np.flatnonzero(depth == level)
        start = 0.9 * common + 0.1 * even
        own = _likeliest(steepness[here[:_MOST]], noise[here[:_MOST]], grid, start, _STEPS_OF_A_LEVEL)
        weight += own * (len(here) / len(near))
    reached = int((np.cumsum(weight) < share).sum())
    return float(grid[min(reached, _POINTS)])


def _likeliest(steepness: Array, noise: Array, grid: Array, weight: Array, steps: int) -> Array:
    """The EM algorithm: from some distribution over the grid towards the one that makes these steepnesses likeliest."""
    # Which of two documents was drawn first says nothing, so a difference is as likely up as down.
    misfits = ((steepness[:, None] + np.stack([-grid, grid])[:, None]) / noise[:, None]) ** 2 / 2
    likelihood = np.exp(misfits.min(axis=(0, 2))[:, None] - misfits).sum(axis=0)
    for _ in range(steps):
        weight = weight * (likelihood / (likelihood @ weight)[:, None]).mean(axis=0)
    return weight


def power_of_neighbours(
    tree: DocumentTree,
    log: ClickLog,
    *,
    visits: int = VISITS,
    pairs: int = 20_000,
    seed: int = 0,
    unknown: str = "refuse",
) -> float:
    """How well clicks on the documents around it predict clicks on a document: 0.5 is chance, 1 perfect.

    It is the probability (the AUC) that, of a document that was clicked and another that was skipped for the same
    query, the clicked one has the neighbours with the higher click rate; equal rates count half. Neighbours are the
    others in the smallest subtree around it that has so many `visits` without it. Neither document counts as a
    neighbour of the other, so that what is popular by itself predicts nothing.

    >>> tree = DocumentTree.from_paths(["A > a", "A > b", "B > c", "B > d"])
    >>> shows = [["B > c", "A > a"], ["B > d", "A > b"]] * 60
    >>> power_of_neighbours(tree, ClickLog([("", shown, shown[1]) for shown in shows]))
    1.0
    """
    _check_least(visits, pairs)
    counts = log.counted(tree.documents, unknown)
    sums, rng = _Sums(tree, counts), np.random.default_rng(seed)
    skips = np.concatenate([[0], np.cumsum(counts.examined - counts.clicked)])
    one = rng.choice(len(counts.query), pairs, p=counts.clicked / counts.clicked.sum())
    begin, end = sums.rows(counts.query[one], np.zeros(pairs, np.int64))
    chosen = skips[begin] + rng.random(pairs) * (skips[end] - skips[begin])
    other = np.minimum(np.searchsorted(skips, chosen, side="right"), end) - 1
    told = (skips[end] > skips[begin]) & (one != other)
    clicked, skipped = (sums.neighbours(counts, one, other, visits), sums.neighbours(counts, other, one, visits))
    told &= (clicked >= 0) & (skipped >= 0)
    if not told.any():
        raise ParameterError("No query has a click and a skip of documents whose neighbours were looked at enough.")
    return float(((clicked > skipped) + (clicked == skipped) / 2)[told].mean())


def _check_least(visits: int, pairs: int) -> None:
    if whole_number(visits, "visits") < 1 or whole_number(pairs, "pairs") < 1:
        raise ParameterError(f"{pairs} pairs of {visits} visits cannot be compared; 1 is the least.")


def _rate(clicks: Array, looks: Array) -> tuple[Array, Array]:
    """A click rate, and its variance: a little more than none even if nobody or everybody clicked."""
    likely = (clicks + 0.5) / (looks + 1)
    return clicks / looks, likely * (1 - likely) / looks


class _Sums:
    """Looks and clicks within any subtree for any query, by two searches among the rows of the counts."""

    def __init__(self, tree: DocumentTree, counts: Counts) -> None:
        self._documents = len(tree)
        self.parent = tree.shape.parent.astype(np.int64)
        self.depth = node_depths(tree.shape.parent).astype(np.int64)
        self.leaf = tree.shape.leaf.astype(np.int64)
        self._first = tree.shape.first_document.astype(np.int64)
        self._end = tree.shape.end_document.astype(np.int64)
        self._key = counts.query * self._documents + counts.document
        self._looks, self._clicks = (
            np.concatenate([[0], np.cumsum(column)]) for column in (counts.examined, counts.clicked)
        )

    def rows(self, query: Array, node: Array) -> tuple[Array, Array]:
        """Where the rows of the subtree begin and end."""
        start = query * self._documents
        return (
            np.searchsorted(self._key, start + self._first[node]),
            np.searchsorted(self._key, start + self._end[node]),
        )

    def looks_and_clicks(self, query: Array, node: Array) -> tuple[Array, Array]:
        """How often documents of the subtree were looked at, and clicked."""
        begin, end = self.rows(query, node)
        return self._looks[end] - self._looks[begin], self._clicks[end] - self._clicks[begin]

    def seen_enough(self, query: Array, leaf: Array, below: Array | int, visits: Array | int) -> Array:
        """The smallest subtree around each leaf, strictly below some node, that has enough visits; or the largest."""
        node = leaf
        while True:
            looks, up = self.looks_and_clicks(query, node)[0], self.parent[node]
            climbs = (looks < visits) & (up != below) & (node != 0)
            if not climbs.any():
                return node
            node = np.where(climbs, up, node)

    def neighbours(self, counts: Counts, row: Array, other: Array, visits: int) -> Array:
        """The click rate around the document of each row, without that of the other; -1 where nobody looked."""
        query, document = counts.query[row], counts.document[other]
        node = self.seen_enough(query, self.leaf[counts.document[row]], -1, visits + counts.examined[row])
        looks, clicks = self.looks_and_clicks(query, node)
        inside = (self._first[node] <= document) & (document < self._end[node])
        looks -= counts.examined[row] + np.where(inside, counts.examined[other], 0)
        clicks -= counts.clicked[row] + np.where(inside, counts.clicked[other], 0)
        return np.where(looks > 0, clicks / np.maximum(looks, 1), -1.0)
