"""Checks of whether a user distribution is (conditionally) L-continuous or L-correlated for a metric (Section 2).

Both require, for every pair of documents and (conditionally) every set S that visitors may have skipped, that some
quantity is at most D(x, y). On small collections all sets and pairs are tried; on large ones random sets, half of them
close together, and for each the pairs of some documents with all others. The worst case found is returned.

Only conditional means are needed, because given Z_S
`P[π(x) ≠ π(y)] = μ(x) - μ(y) + 2 · μ(y | x skipped too) · (1 - μ(x))`.

`ExpressivenessBound` has the distances of Theorem 3.1, for which a tree network is conditionally L-correlated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy.sparse.csgraph import shortest_path

from zoomrank.errors import ParameterError, UnknownDocumentError
from zoomrank.spaces import DocumentId, DocumentIds, FiniteMetric, Space
from zoomrank.spaces.ids import Positions
from zoomrank.types import Array, Seed
from zoomrank.users.distribution import UserDistribution, mean_array

EXHAUSTIVE_UP_TO = 12  # documents up to which all 2^n sets are tried by default
ROUNDING = 1e-9  # tolerance of a ratio
NOISE = 1e-14  # probabilities below it are rounding errors


@dataclass(frozen=True)
class CheckResult:
    """The worst pair of documents found, with its ratio.

    Attributes
    ----------
    holds : bool
        Whether no pair exceeded its distance.
    ratio : float
        The value divided by the distance.
    pair : tuple of DocumentId or None
        The pair (x, y); None if no two documents differ.
    skipped : list of DocumentId
        The set S that visitors had skipped.
    value : float
        |μ(x) - μ(y)| or P[π(x) ≠ π(y)], among those visitors.
    distance : float
        D(x, y).
    exhaustive : bool
        Whether every set and pair was tried, so that `holds` is a proof.
    sets : int
        Number of sets tried.
    """

    holds: bool
    ratio: float
    pair: tuple[DocumentId, DocumentId] | None
    skipped: list[DocumentId]
    value: float
    distance: float
    exhaustive: bool
    sets: int


@dataclass(frozen=True)
class CheckSampling:
    """Extent of a check: exhaustive or random.

    Attributes
    ----------
    exhaustive : bool, optional
        Whether to try all sets and pairs; by default for up to a dozen documents.
    sets : int
        Number of random sets to try, half of them close together.
    largest : int
        Maximum number of documents in a set.
    documents : int
        Number of documents, for each set, of which all pairs are tried.
    seed : int, Generator or None
        The seed of the random numbers.
    """

    exhaustive: bool | None = None
    sets: int = 100
    largest: int = 8
    documents: int = 10
    seed: Seed = 0

    def __post_init__(self) -> None:
        if self.sets < 1 or self.largest < 1 or self.documents < 1:
            raise ParameterError("sets, largest and documents must each be at least 1.")


EVERYWHERE = CheckSampling()


def check_continuity(
    users: UserDistribution, space: Space, *, conditional: bool = True, sampling: CheckSampling = EVERYWHERE
) -> CheckResult:
    """Check (conditional) L-continuity: |μ(x | Z_S) - μ(y | Z_S)| ≤ D(x, y).

    Parameters
    ----------
    users : UserDistribution
        The visitors.
    space : Space
        Their documents, and distances.
    conditional : bool
        Whether to check visitors who have skipped any set S of documents, not only all visitors.
    sampling : CheckSampling
        The extent of the check.

    Returns
    -------
    CheckResult
        The worst pair of documents found.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 2, Eq. 1 and the definition of conditional L-continuity.

    Examples
    --------
    >>> from zoomrank.users.worlds import three_documents
    >>> tree, users = three_documents()
    >>> check_continuity(users, tree).ratio
    0.5
    """
    return _check(users, space, conditional, correlated=False, sampling=sampling)


def check_correlation(
    users: UserDistribution, space: Space, *, conditional: bool = True, sampling: CheckSampling = EVERYWHERE
) -> CheckResult:
    """Check (conditional) L-correlation: P[π(x) ≠ π(y) | Z_S] ≤ D(x, y).

    Parameters
    ----------
    users : UserDistribution
        The visitors.
    space : Space
        Their documents, and distances.
    conditional : bool
        Whether to check visitors who have skipped any set S of documents, not only all visitors.
    sampling : CheckSampling
        The extent of the check.

    Returns
    -------
    CheckResult
        The worst pair of documents found.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 2.2, Eq. 3.
    """
    return _check(users, space, conditional, correlated=True, sampling=sampling)


def _check(
    users: UserDistribution, space: Space, conditional: bool, correlated: bool, sampling: CheckSampling
) -> CheckResult:
    everything = _is_exhaustive(users, space, conditional, sampling)
    rng = np.random.default_rng(sampling.seed)
    place = None if users.documents is space.documents else space.documents.positions(users.documents)
    worst = CheckResult(True, 0.0, None, [], 0.0, 0.0, everything, 0)
    tried = 0
    for skipped in _sets(users.documents, space, conditional, everything, sampling, rng):
        log_probability, means = users.given_skipped(skipped)
        if log_probability == -np.inf:
            continue
        tried += 1
        for x in map(int, _documents(means, skipped, everything, sampling, rng)):
            far = space.distances(users.documents[x])
            if place is not None:
                far = far[place]
            values = _discorrelation(users, skipped, means, x) if correlated else np.abs(means - means[x])
            y, ratio = _worst_partner(x, values, far)
            if ratio > worst.ratio:
                worst = CheckResult(
                    holds=ratio <= 1 + ROUNDING,
                    ratio=ratio,
                    pair=(users.documents[x], users.documents[y]),
                    skipped=users.documents.at(skipped),
                    value=float(values[y]),
                    distance=float(far[y]),
                    exhaustive=everything,
                    sets=0,
                )
    return replace(worst, sets=tried)


def _is_exhaustive(users: UserDistribution, space: Space, conditional: bool, sampling: CheckSampling) -> bool:
    """Return whether to try all sets and pairs; raise an error if there are too many, or nothing to compare."""
    if set(users.documents) != set(space.documents):
        raise UnknownDocumentError(
            "The visitors and the space have different documents; make both from one collection."
        )
    everything = len(users) <= EXHAUSTIVE_UP_TO if sampling.exhaustive is None else sampling.exhaustive
    if everything and conditional and len(users) > 20:
        raise ParameterError(
            f"All subsets of {len(users)} documents are too many; leave exhaustive out to sample them."
        )
    return everything


def _worst_partner(x: int, values: Array, far: Array) -> tuple[int, float]:
    """Return the document whose value is largest relative to its distance from x, and that ratio."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(values > NOISE, values / far, 0.0)
    ratios[x] = 0.0
    y = int(ratios.argmax())
    return y, float(ratios[y])


def _discorrelation(users: UserDistribution, skipped: Positions, means: Array, x: int) -> Array:
    """Return P[π(x) ≠ π(y) | Z_S] for all y."""
    if means[x] >= 1.0:
        return np.asarray(1.0 - means)
    if x in skipped:
        return np.array(means)
    _, without_x = users.given_skipped(np.append(skipped, x))
    return np.asarray(np.maximum(means[x] - means + 2 * without_x * (1 - means[x]), 0.0))


def _sets(
    ids: DocumentIds,
    space: Space,
    conditional: bool,
    everything: bool,
    sampling: CheckSampling,
    rng: np.random.Generator,
) -> Iterator[Positions]:
    yield np.empty(0, np.int64)
    if not conditional or len(ids) == 1:
        return
    if everything:
        for size in range(1, len(ids)):
            for chosen in combinations(range(len(ids)), size):
                yield np.array(chosen, dtype=np.int64)
        return
    for number in range(sampling.sets):
        size = int(rng.integers(1, min(sampling.largest, len(ids) - 1) + 1))
        if number % 2:
            yield rng.choice(len(ids), size=size, replace=False)
        else:  # close together, where conditioning matters most
            centre = ids[int(rng.integers(len(ids)))]
            near = np.argsort(space.distances(centre), kind="stable")[: 2 * size]
            chosen_ids = space.documents.at(rng.choice(near, size=size, replace=False))
            yield ids.positions(chosen_ids)


def _documents(
    means: Array, skipped: Positions, everything: bool, sampling: CheckSampling, rng: np.random.Generator
) -> Positions:
    if everything or len(means) <= sampling.documents:
        return np.arange(len(means))
    random = rng.choice(len(means), size=sampling.documents, replace=False)
    return np.unique(np.concatenate([skipped[:2], [int(means.argmax())], random])).astype(np.int64)


class ExpressivenessBound:
    """The distances `factor · D_μ(x, y)` with `D_μ(x, y) = D(x, y) · min(1/α, 3 / (μ(x) + μ(y)))`, as a `Space`.

    By Theorem 3.1 a tree network is conditionally L-correlated for factor 3; on random trees of stretch c, for 3·c.

    Parameters
    ----------
    space : Space
        Documents, and distances D.
    mean : mapping, sequence or array of float
        μ(x) above 0, by document or in the order of `space.documents`; α is the smallest of them.
    factor : float
        The factor on D_μ.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 3.1, Theorem 3.1, Eq. 10.

    Examples
    --------
    >>> from zoomrank.spaces import DocumentTree
    >>> from zoomrank.users import TreeNetwork, check_correlation
    >>> tree = DocumentTree.exponential(depth=2, epsilon=0.5)
    >>> users = TreeNetwork(tree, [0.5, 0.4, 0.1, 0.1], extension="lipschitz")
    >>> check_correlation(users, ExpressivenessBound(tree, users.mean())).holds
    True
    """

    def __init__(
        self, space: Space, mean: Mapping[DocumentId, float] | Iterable[float] | Array, factor: float = 3.0
    ) -> None:
        self.space = space
        self.documents = space.documents
        self.mean = mean_array(space.documents, mean)
        self.factor = factor
        self._alpha = float(self.mean.min())
        if self._alpha <= 0:
            raise ParameterError("All means must be above 0 for the theorem to apply.")

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.documents)

    def distance(self, one: DocumentId, other: DocumentId) -> float:
        """Measure factor · D_μ(x, y).

        Parameters
        ----------
        one, other : DocumentId
            The documents.

        Returns
        -------
        float
            Their distance.
        """
        return float(self.distances(one)[self.documents.position(other)])

    def distances(self, document: DocumentId) -> Array:
        """Measure factor · D_μ(x, y) from one document to all.

        Parameters
        ----------
        document : DocumentId
            The document x.

        Returns
        -------
        ndarray
            A distance for each document, in the order of `documents`.
        """
        both = self.mean[self.documents.position(document)] + self.mean
        return np.asarray(self.factor * self.space.distances(document) * np.minimum(1 / self._alpha, 3 / both))

    def distance_matrix(self) -> Array:
        """Measure factor · D_μ between all pairs of documents.

        Returns
        -------
        ndarray
            A row and a column for each document, in the order of `documents`.
        """
        matrix = np.stack([self.distances(document) for document in self.documents])
        return np.asarray(np.minimum(matrix, matrix.T))

    def closure(self) -> FiniteMetric:
        """Build the shortest-paths metric that D_μ induces, for which the theorem holds too.

        Returns
        -------
        FiniteMetric
            The metric, times the factor.

        References
        ----------
        Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 3.1, the remark after Theorem 3.1.
        """
        closure = shortest_path(self.distance_matrix())
        return FiniteMetric.from_matrix(np.minimum(closure, closure.T), self.documents)
