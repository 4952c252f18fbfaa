"""Scale of a tree: how much click probability may differ per unit of distance, estimated from labels or from clicks.

The mean relevance μ(x) is the weighted share of visitors who find x relevant. Rankers rely on |μ(x) - μ(y)| ≤ D(x, y);
too small a scale breaks it and hides good documents, one that is too large is useless. Real data violate any finite
scale somewhere, so the scale must hold for most pairs, not for all.

Labels are exact: a row is the set of documents that are relevant to one visitor, with a weight. A click log has counts,
and counts are noisy: of two documents that nine of a hundred visitors like, each seen ten times, one may be clicked
twice and the other never. Taken for a difference, that would widen every metric. So:

- A document with few looks borrows those of the smallest subtree around it that has enough. It never borrows beyond the
  node at which the two of a pair part, so their distance stays the same, and averages of the two sides may differ by no
  more than single documents may.
- Pairs are drawn by clicks, and the click that a document was drawn by is not counted for it. The rest of its looks is
  then unbiased; otherwise documents would be compared just because they were lucky.
- Of each pair the difference and its standard error are known. The distribution of *true* differences per distance is
  the one under which those observed are likeliest (the nonparametric maximum likelihood of Kiefer and Wolfowitz 1956,
  by the EM algorithm). A poorly measured pair has little weight in it, and noise alone gives nearly 0.
- Depths differ in steepness. Each starts from the distribution of all of them together and takes a few EM steps of its
  own, which change much where rates are known well and little where they are not.

Rates are those of visitors who have skipped the documents above. That is what rankers in metric spaces rely on: also
given what was skipped, click probabilities differ by at most the distance (conditional L-continuity).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from zoomrank.compiled import compiled_bulk
from zoomrank.documents.click_log import ClickLog, Counts
from zoomrank.errors import EmptyCollectionError, ParameterError, WeightError
from zoomrank.spaces.document_tree import DocumentTree
from zoomrank.spaces.ids import DocumentId
from zoomrank.spaces.tree_shape import least_common_ancestor, node_depths
from zoomrank.types import Array, whole_number

LEAST_LOOKS = 30  # minimum number of looks of a rate
_MOST = 4_000  # maximum number of pairs in the likelihood
_STEPS, _STEPS_OF_A_LEVEL = 200, 10  # of the EM algorithm
_POINTS = 50  # of the grid of steepness


class Comparisons(NamedTuple):
    """Pairs of documents with enough looks."""

    parting: Array  # the smallest subtree that contains both
    distance: Array
    difference: Array  # of the two click rates
    noise: Array  # its standard error


RelevanceRows = Sequence[Iterable[DocumentId]]


def mean_relevance(tree: DocumentTree, rows: RelevanceRows, weights: Sequence[float] | Array | None = None) -> Array:
    """Compute μ(x): the weighted share of visitors who find each document relevant.

    Parameters
    ----------
    tree : DocumentTree
        The documents.
    rows : sequence of iterables of DocumentId
        The relevant documents of each visitor.
    weights : sequence of float, optional
        The weight of each visitor; by default all are equal.

    Returns
    -------
    ndarray
        A number for each document, in the order of the tree.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 2.
    """
    visitor, position, share = _relevance(tree, rows, weights)
    return np.bincount(position, share[visitor], minlength=len(tree))


def scale_from_labels(
    tree: DocumentTree,
    rows: RelevanceRows,
    weights: Sequence[float] | Array | None = None,
    *,
    share: float = 0.95,
    close: float = 0.5,
    pairs: int = 20_000,
    seed: int = 0,
) -> float:
    """Estimate the smallest factor with |μ(x) - μ(y)| ≤ factor · D(x, y) for a share of all close pairs.

    One document of each pair is relevant to some visitor, since pairs of irrelevant documents fit any factor. Pairs at
    distance 0 fit none and are left out.

    Parameters
    ----------
    tree : DocumentTree
        The documents and their distances. The factor is for its widths, as in
        `collection.scaled(scale_from_labels(collection.tree, rows))`.
    rows : sequence of iterables of DocumentId
        The relevant documents of each visitor.
    weights : sequence of float, optional
        The weight of each visitor; by default all are equal.
    share : float
        The share of the pairs that the factor must be large enough for.
    close : float
        The maximum distance of pairs, as a fraction of the width of the whole tree.
    pairs : int
        Number of pairs to draw.
    seed : int
        The seed of the random numbers.

    Returns
    -------
    float
        The factor.

    See Also
    --------
    scale_from_clicks : the same from a click log.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 2, Eq. 1, which the factor should make true.

    Examples
    --------
    >>> tree = DocumentTree.from_paths(["A > B", "A > C", "D"], epsilon=0.4)
    >>> scale_from_labels(tree, [{"A > B"}, {"A > B", "A > C"}, {"A > C"}, {"A > B"}])
    0.625
    """
    if not (0 < share <= 1 and 0 < close <= 1):
        raise ParameterError(f"share and close must lie in (0, 1], not be {share} and {close}.")
    mean = mean_relevance(tree, rows, weights)
    rng = np.random.default_rng(seed)
    one = rng.choice(np.flatnonzero(mean), _checked_pairs(pairs))
    shape, luck = tree.shape, rng.random((len(one), 2))
    spans = shape.parent, shape.first_document, shape.end_document, tree.width
    other = _close_partners(*spans, shape.leaf[one], one, close * tree.width[0], luck)
    distance = _distances(tree, one, other)
    usable = distance > 0
    if not usable.any():
        raise ParameterError(f"No two distinct documents are closer than {close} of the whole tree; raise `close`.")
    steepness = np.abs(mean[one] - mean[other])[usable] / distance[usable]
    return float(np.quantile(steepness, share, method="higher"))


def predictive_power_from_labels(
    tree: DocumentTree,
    rows: RelevanceRows,
    weights: Sequence[float] | Array | None = None,
    *,
    pairs: int = 20_000,
    seed: int = 0,
) -> float:
    """Measure how well closeness predicts shared relevance, to the same visitor: 0.5 is chance, 1 perfect.

    It is the probability (the AUC) that a pair from one visitor's row is closer than a pair that shares no row, where
    both documents of the latter are relevant to some visitor; equal distances count half.

    Parameters
    ----------
    tree : DocumentTree
        The documents and their distances.
    rows : sequence of iterables of DocumentId
        The relevant documents of each visitor.
    weights : sequence of float, optional
        The weight of each visitor; by default all are equal.
    pairs : int
        Number of pairs to draw.
    seed : int
        The seed of the random numbers.

    Returns
    -------
    float
        The AUC, from 0 to 1.

    See Also
    --------
    predictive_power_from_clicks : the same for a click log.
    """
    visitor, position, share = _relevance(tree, rows, weights)
    pairs = _checked_pairs(pairs)
    rng = np.random.default_rng(seed)
    size = np.bincount(visitor, minlength=len(share))
    several = np.where(size >= 2, share, 0.0)
    if not several.any():
        raise ParameterError("No visitor finds two documents relevant, so there is nothing to predict.")
    begin = np.cumsum(size) - size
    who = rng.choice(len(share), pairs, p=several / several.sum())
    first = (rng.random(pairs) * size[who]).astype(int)
    second = (rng.random(pairs) * (size[who] - 1)).astype(int)
    second += second >= first
    together = _distances(tree, position[begin[who] + first], position[begin[who] + second])
    one, other = _strangers(visitor, position, share[visitor], pairs, rng)
    if len(one) == 0:
        raise ParameterError(
            "Any two relevant documents are relevant to the same visitor, so there is nothing to predict."
        )
    apart = np.sort(_distances(tree, one, other))
    above = len(apart) - np.searchsorted(apart, together, side="right")
    ties = len(apart) - np.searchsorted(apart, together, side="left") - above
    return float((above + ties / 2).mean() / len(apart))


def _relevance(
    tree: DocumentTree, rows: RelevanceRows, weights: Sequence[float] | Array | None
) -> tuple[Array, Array, Array]:
    """Return visitor and document of each relevance, sorted by visitor; and each visitor's share of the weight."""
    if len(rows) == 0:
        raise EmptyCollectionError("There are no visitors: relevance has no rows.")
    share = np.ones(len(rows)) if weights is None else np.asarray(weights, np.float64)
    if share.shape != (len(rows),):
        raise WeightError(f"Weights of shape {share.shape} were given for {len(rows)} visitors.")
    if not (np.isfinite(share).all() and (share >= 0).all() and share.sum() > 0):
        raise WeightError("Weights of visitors must be finite numbers, 0 or more, and not all 0.")
    places = [sorted({tree.documents.position(document) for document in row}) for row in rows]
    visitor = np.repeat(np.arange(len(rows)), [len(row) for row in places])
    if not share[visitor].any():
        raise ParameterError("No document is relevant to any visitor.")
    return visitor, np.array([place for row in places for place in row], np.int64), share / share.sum()


def _checked_pairs(pairs: int) -> int:
    if whole_number(pairs, "pairs") < 1:
        raise ParameterError(f"{pairs} pairs cannot be sampled; ask for at least 1.")
    return pairs


def _strangers(
    visitor: Array, position: Array, weight: Array, pairs: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Draw pairs of documents, by their relevance, that are never relevant to the same visitor."""
    visitors_of: dict[int, set[int]] = {}
    for who, document in zip(visitor.tolist(), position.tolist(), strict=True):
        visitors_of.setdefault(document, set()).add(who)
    drawn = position[rng.choice(len(position), (2, 4 * pairs), p=weight / weight.sum())]
    apart = [visitors_of[x].isdisjoint(visitors_of[y]) for x, y in drawn.T.tolist()]
    one, other = drawn[:, apart][:, :pairs]
    return one, other


def _distances(tree: DocumentTree, one: Array, other: Array) -> Array:
    return _pair_distances(tree.shape.parent, tree.width, tree.shape.leaf[one], tree.shape.leaf[other])


@compiled_bulk
def _pair_distances(parent: Array, width: Array, one: Array, other: Array) -> Array:
    distance = np.empty(len(one))
    for pair in range(len(one)):
        distance[pair] = width[least_common_ancestor(parent, one[pair], other[pair])]
    return distance


@compiled_bulk
def _close_partners(
    parent: Array, first: Array, end: Array, width: Array, leaf: Array, document: Array, widest: float, chance: Array
) -> Array:
    """Draw, for each document, another from one of its close subtrees, uniformly; itself if it has none."""
    partner = document.copy()
    for pair in range(len(document)):
        levels = 0
        node = leaf[pair]
        while node != 0 and width[parent[node]] <= widest:
            node = parent[node]
            levels += 1
        climb = int(chance[pair, 0] * levels) + 1 if levels > 0 else 0
        node = leaf[pair]
        for _ in range(climb):
            node = parent[node]
        others = int(end[node]) - int(first[node]) - 1
        if others > 0:
            found = int(first[node]) + int(chance[pair, 1] * others)
            partner[pair] = found + 1 if found >= document[pair] else found
    return partner


def scale_from_clicks(
    tree: DocumentTree,
    log: ClickLog,
    *,
    share: float = 0.95,
    close: float = 1.0,
    least_looks: int = LEAST_LOOKS,
    pairs: int = 20_000,
    seed: int = 0,
    unknown: str = "refuse",
) -> float:
    """Estimate the factor on distances within which the click rates of a share of all pairs differ, corrected for
    noise.

    Pairs part at any depth with equal probability, since a factor scales all subtrees. The estimate is biased low where
    the steepest levels are those with the fewest looks.

    Parameters
    ----------
    tree : DocumentTree
        The documents and their distances. The factor is for its widths, as in
        `collection.scaled(scale_from_clicks(collection.tree, log))`.
    log : ClickLog
        Looks and clicks.
    share : float
        The share of all pairs that the factor must be large enough for.
    close : float
        The maximum distance of pairs, as a fraction of the width of the whole tree.
    least_looks : int
        Minimum number of looks for a click rate; with fewer, a document is pooled with its neighbours.
    pairs : int
        Number of pairs to draw.
    seed : int
        The seed of the random numbers.
    unknown : {"refuse", "skip"}
        Raise an error for documents that the tree lacks, or skip them.

    Returns
    -------
    float
        The factor; 0 if noise explains all differences.

    See Also
    --------
    scale_from_labels : the same from what visitors found relevant.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 2, Eq. 1, which the factor should make true. J. Kiefer and
    J. Wolfowitz, *Consistency of the maximum likelihood estimator in the presence of infinitely many incidental
    parameters*, Annals of Mathematical Statistics 27 (1956).

    Examples
    --------
    >>> tree = DocumentTree.from_paths(["A > a", "A > b", "B > c"], epsilon=0.4)
    >>> shows = [["A > a", "A > b"], ["A > b", "A > a"]] * 600
    >>> log = ClickLog([("", shown, "A > a" if time % 10 < 4 else None) for time, shown in enumerate(shows)])
    >>> round(scale_from_clicks(tree, log), 1)
    1.0
    """
    if not (0 < share <= 1 and 0 < close <= 1):
        raise ParameterError(f"share and close must lie in (0, 1], not be {share} and {close}.")
    found = comparisons(tree, log.counted(tree.documents, unknown), least_looks=least_looks, pairs=pairs, seed=seed)
    return true_steepness(tree, found, share=share, close=close)


def comparisons(
    tree: DocumentTree, counts: Counts, *, least_looks: int = LEAST_LOOKS, pairs: int = 20_000, seed: int = 0
) -> Comparisons:
    """Draw pairs: a document by its clicks, a subtree around it, and another document seen in that subtree."""
    _check_least(least_looks, pairs)
    rng, sums = np.random.default_rng(seed), _SubtreeCounts(tree, counts)
    drawn = rng.choice(len(counts.query), pairs, p=counts.clicks / counts.clicks.sum())
    query, leaf = counts.query[drawn], sums.leaf[counts.document[drawn]]
    inside = leaf
    steps = (rng.random(pairs) * sums.depth[leaf]).astype(np.int64)  # uniform over the subtrees around it
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
    looks, clicks = sums.looks_and_clicks(query, sums.seen_enough(query, leaf, parting, least_looks + 1))
    looks, clicks = looks - 1, clicks - 1  # the click that the document was drawn by
    their_looks, their_clicks = sums.looks_and_clicks(query, sums.seen_enough(query, their_leaf, parting, least_looks))
    use = (looks >= least_looks) & (their_looks >= least_looks)
    if not use.any():
        raise ParameterError(
            f"No two documents have {least_looks} looks each for one query, even pooled with their neighbours: "
            "the log is too short to tell differences from noise."
        )
    mine, theirs = _rate(clicks[use], looks[use]), _rate(their_clicks[use], their_looks[use])
    return Comparisons(parting[use], tree.width[parting[use]], mine[0] - theirs[0], np.sqrt(mine[1] + theirs[1]))


def true_steepness(tree: DocumentTree, found: Comparisons, *, share: float = 0.95, close: float = 1.0) -> float:
    """Return the quantile of the steepness of pairs (difference per distance), corrected for noise."""
    near: Array = np.flatnonzero(found.distance <= close * tree.width[0])
    if len(near) == 0:
        raise ParameterError(f"No two distinct documents are closer than {close} of the whole tree; raise `close`.")
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
    """Run EM steps from a distribution over the grid towards the one that makes these steepnesses likeliest."""
    # The order of the two documents is arbitrary, so the sign of a difference is symmetric.
    misfits = ((steepness[:, None] + np.stack([-grid, grid])[:, None]) / noise[:, None]) ** 2 / 2
    likelihood = np.exp(misfits.min(axis=(0, 2))[:, None] - misfits).sum(axis=0)
    for _ in range(steps):
        weight = weight * (likelihood / (likelihood @ weight)[:, None]).mean(axis=0)
    return weight


def predictive_power_from_clicks(
    tree: DocumentTree,
    log: ClickLog,
    *,
    least_looks: int = LEAST_LOOKS,
    pairs: int = 20_000,
    seed: int = 0,
    unknown: str = "refuse",
) -> float:
    """Measure how well clicks on the documents around it predict clicks on a document: 0.5 is chance, 1 perfect.

    It is the probability (the AUC) that, of a document that was clicked and another that was skipped for the same
    query, the clicked one has the neighbours with the higher click rate; equal rates count half. Neither document
    counts as a neighbour of the other, so that popularity by itself predicts nothing.

    Parameters
    ----------
    tree : DocumentTree
        The documents and their distances.
    log : ClickLog
        Looks and clicks.
    least_looks : int
        Minimum number of looks of the neighbours, which are the other documents of the smallest subtree that has as
        many.
    pairs : int
        Number of pairs to draw.
    seed : int
        The seed of the random numbers.
    unknown : {"refuse", "skip"}
        Raise an error for documents that the tree lacks, or skip them.

    Returns
    -------
    float
        The AUC, from 0 to 1.

    See Also
    --------
    predictive_power_from_labels : the same for what visitors found relevant.

    Examples
    --------
    >>> tree = DocumentTree.from_paths(["A > a", "A > b", "B > c", "B > d"])
    >>> shows = [["B > c", "A > a"], ["B > d", "A > b"]] * 60
    >>> predictive_power_from_clicks(tree, ClickLog([("", shown, shown[1]) for shown in shows]))
    1.0
    """
    _check_least(least_looks, pairs)
    counts = log.counted(tree.documents, unknown)
    sums, rng = _SubtreeCounts(tree, counts), np.random.default_rng(seed)
    skips = np.concatenate([[0], np.cumsum(counts.looks - counts.clicks)])
    one = rng.choice(len(counts.query), pairs, p=counts.clicks / counts.clicks.sum())
    begin, end = sums.rows(counts.query[one], np.zeros(pairs, np.int64))
    chosen = skips[begin] + rng.random(pairs) * (skips[end] - skips[begin])
    other = np.minimum(np.searchsorted(skips, chosen, side="right"), end) - 1
    told = (skips[end] > skips[begin]) & (one != other)
    clicked = sums.neighbours(counts, one, other, least_looks)
    skipped = sums.neighbours(counts, other, one, least_looks)
    told &= (clicked >= 0) & (skipped >= 0)
    if not told.any():
        raise ParameterError(
            "No query has a clicked and a skipped document whose neighbours have enough looks; use a longer log."
        )
    return float(((clicked > skipped) + (clicked == skipped) / 2)[told].mean())


def _check_least(least_looks: int, pairs: int) -> None:
    if whole_number(least_looks, "least_looks") < 1 or whole_number(pairs, "pairs") < 1:
        raise ParameterError(f"{pairs} pairs of {least_looks} looks cannot be compared; both must be at least 1.")


def _rate(clicks: Array, looks: Array) -> tuple[Array, Array]:
    """Return a click rate, and its variance, which is above 0 even if no visitor or every visitor clicked."""
    likely = (clicks + 0.5) / (looks + 1)
    return clicks / looks, likely * (1 - likely) / looks


class _SubtreeCounts:
    """Looks and clicks within any subtree for any query, by two binary searches among the rows of the counts."""

    def __init__(self, tree: DocumentTree, counts: Counts) -> None:
        self._documents = len(tree)
        self.parent = tree.shape.parent.astype(np.int64)
        self.depth = node_depths(tree.shape.parent).astype(np.int64)
        self.leaf = tree.shape.leaf.astype(np.int64)
        self._first = tree.shape.first_document.astype(np.int64)
        self._end = tree.shape.end_document.astype(np.int64)
        self._key = counts.query * self._documents + counts.document
        self._looks, self._clicks = (
            np.concatenate([[0], np.cumsum(column)]) for column in (counts.looks, counts.clicks)
        )

    def rows(self, query: Array, node: Array) -> tuple[Array, Array]:
        """Return the first row of the subtree, and the row after its last."""
        start = query * self._documents
        first, end = (np.searchsorted(self._key, start + bound[node]) for bound in (self._first, self._end))
        return first, end

    def looks_and_clicks(self, query: Array, node: Array) -> tuple[Array, Array]:
        """Return the looks and clicks of the documents of the subtree."""
        begin, end = self.rows(query, node)
        return self._looks[end] - self._looks[begin], self._clicks[end] - self._clicks[begin]

    def seen_enough(self, query: Array, leaf: Array, below: Array | int, least: Array | int) -> Array:
        """Return the smallest subtree around each leaf, strictly below some node, with enough looks; or else the
        largest.
        """
        node = leaf
        while True:
            looks, up = self.looks_and_clicks(query, node)[0], self.parent[node]
            climbs = (looks < least) & (up != below) & (node != 0)
            if not climbs.any():
                return node
            node = np.where(climbs, up, node)

    def neighbours(self, counts: Counts, row: Array, other: Array, least_looks: int) -> Array:
        """Return the click rate around the document of each row, without that of the other; -1 where there are no
        looks.
        """
        query, document = counts.query[row], counts.document[other]
        node = self.seen_enough(query, self.leaf[counts.document[row]], -1, least_looks + counts.looks[row])
        looks, clicks = self.looks_and_clicks(query, node)
        inside = (self._first[node] <= document) & (document < self._end[node])
        looks -= counts.looks[row] + np.where(inside, counts.looks[other], 0)
        clicks -= counts.clicks[row] + np.where(inside, counts.clicks[other], 0)
        return np.where(looks > 0, clicks / np.maximum(looks, 1), -1.0)
