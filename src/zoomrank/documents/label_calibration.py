"""Scale of a tree estimated from labels: how much click probability may differ per unit of distance.

A row is the set of documents that are relevant to one visitor, with a weight. The mean relevance μ(x) is the weighted
share of visitors who find x relevant. Rankers rely on |μ(x) - μ(y)| ≤ D(x, y); too small a scale breaks it and hides
good documents, one that is too large is useless. Real data violate any finite scale somewhere, so the scale must hold
for most close pairs, not for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from zoomrank.compiled import compiled
from zoomrank.errors import EmptyCollectionError, ParameterError, WeightError
from zoomrank.numbers import Array, whole_number
from zoomrank.spaces.ids import DocumentId
from zoomrank.spaces.trees.document_tree import DocumentTree
from zoomrank.spaces.trees.shape import least_common_ancestor

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
    one = rng.choice(np.flatnonzero(mean), _positive(pairs))
    other = _close_partners(
        tree.shape.parent,
        tree.shape.first_document,
        tree.shape.end_document,
        tree.width,
        tree.shape.leaf[one],
        one,
        close * tree.width[0],
        rng.random((len(one), 2)),
    )
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
    pairs = _positive(pairs)
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


def _positive(pairs: int) -> int:
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


@compiled
def _pair_distances(parent: Array, width: Array, one: Array, other: Array) -> Array:
    distance = np.empty(len(one))
    for pair in range(len(one)):
        distance[pair] = width[least_common_ancestor(parent, one[pair], other[pair])]
    return distance


@compiled
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
