"""Named visitors of the paper's experiments (Section 6.1), under different readings of the paper.

The paper draws visitors "per Algorithm 1" but also speaks of visitors that belong to a peak. So every model takes a
`reading`:

- `network`    one tree network whose mean has all the peaks; inner nodes are averages of their children.
- `mixture`    each visitor belongs to one peak, in proportion to its share, and draws from that peak's own network; the
               overall mean stays the same. Documents that several peaks tie for are shared by them.
- `mutations`  one network with the most independent mutations that the two conditions of Section 3.1 allow, and the
               L-continuous extension of Section 7.
- `metric`     Algorithm 2: a fresh random tree for each visitor. For small collections.

The mean relevance is as low as L-continuity and a background allow between given peaks (Eq. 29).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from zoomrank.errors import MeanError, ParameterError, WeightError
from zoomrank.spaces import DocumentId, DocumentTree, FiniteMetric, Space
from zoomrank.types import Array, Seed
from zoomrank.users.distribution import UserDistribution
from zoomrank.users.metric_network import MetricNetwork
from zoomrank.users.mixture import Mixture, checked_shares
from zoomrank.users.relevance_table import CopiedRelevance, Independent
from zoomrank.users.tree_network import TreeNetwork

READINGS = ("network", "mixture", "mutations", "metric")
HEIGHTS = ("shares", "tallest", "halves")  # height of the peak that a table of a Chinese restaurant becomes
HIGHEST = 0.5  # largest mean that Algorithm 1 allows


def peaks_mean(space: Space, peaks: Mapping[DocumentId, float], background: float) -> Array:
    """Compute the mean relevance μ(x) = max(μ0, max over peaks y of value(y) - D(x, y)).

    Parameters
    ----------
    space : Space
        The documents and their distances.
    peaks : mapping of DocumentId to float
        The mean relevance of each peak, between the background and 1.
    background : float
        μ0, the mean relevance far from all peaks.

    Returns
    -------
    ndarray
        A probability for each document, in the order of `space.documents`.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 6.1, Eq. 29.
    """
    mean, _ = peaks_mean_and_owners(space, peaks, background)
    return mean


def peaks_mean_and_owners(space: Space, peaks: Mapping[DocumentId, float], background: float) -> tuple[Array, Array]:
    """Compute μ(x), and for each peak the documents whose mean it sets (several peaks may tie for one)."""
    if not peaks:
        raise MeanError("There are no peaks; give at least one.")
    if not 0 <= background <= 1:
        raise MeanError(f"The background relevance is {background}; it must lie in [0, 1].")
    for document, value in peaks.items():
        if not background <= value <= 1:
            raise MeanError(f"The peak {document!r} has the mean {value}; it must lie between the background and 1.")
    slopes = np.stack([value - space.distances(document) for document, value in peaks.items()])
    mean = slopes.max(axis=0)
    owners = (slopes == mean) & (mean > background)
    return np.maximum(mean, background), owners


def choose_peaks(space: Space, count: int, rng: np.random.Generator) -> list[DocumentId]:
    """Choose different documents, uniformly at random.

    Parameters
    ----------
    space : Space
        The documents.
    count : int
        Number of documents to choose.
    rng : Generator
        The source of random numbers.

    Returns
    -------
    list of DocumentId
        The chosen documents.
    """
    if not 1 <= count <= len(space):
        raise ParameterError(f"{count} peaks cannot be chosen among {len(space)} documents.")
    return space.documents.at(rng.choice(len(space), size=count, replace=False))


def seat_customers(customers: int, theta: float, rng: np.random.Generator) -> list[int]:
    """Seat customers by a Chinese Restaurant Process.

    Customer t takes a new table with probability θ / (t - 1 + θ), otherwise joins one in proportion to its customers.

    Parameters
    ----------
    customers : int
        Number of customers.
    theta : float
        θ, above 0.
    rng : Generator
        The source of random numbers.

    Returns
    -------
    list of int
        Number of customers at each table.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 6.1.

    Examples
    --------
    >>> sum(seat_customers(20, 2.0, np.random.default_rng(1)))
    20
    """
    if customers < 1 or not theta > 0:
        raise ParameterError(
            f"A Chinese Restaurant Process needs at least one customer and θ > 0, not {customers} and {theta}."
        )
    tables: list[int] = []
    for seated in range(customers):
        seat = rng.random() * (seated + theta)
        for table, size in enumerate(tables):
            if seat < size:
                tables[table] += 1
                break
            seat -= size
        else:
            tables.append(1)
    return tables


def peaks(
    tree: DocumentTree,
    values: Mapping[DocumentId, float],
    *,
    background: float = 0.05,
    shares: Sequence[float] | None = None,
    reading: str = "network",
) -> UserDistribution:
    """Make visitors whose mean relevance peaks at given documents.

    Parameters
    ----------
    tree : DocumentTree
        The documents.
    values : mapping of DocumentId to float
        The mean relevance of each peak, between the background and 1.
    background : float
        The mean relevance far from all peaks.
    shares : sequence of float, optional
        The share of visitors that belongs to each peak, for the reading "mixture" only; by default in proportion to the
        values.
    reading : {"network", "mixture", "mutations", "metric"}
        The reading of the paper: one network with all the peaks; visitors that belong to one peak each; one network
        with as many mutations as the theory allows; or a new random tree for each visitor.

    Returns
    -------
    UserDistribution
        The visitors.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 6.1, Eq. 29.
    """
    if reading not in READINGS:
        raise ParameterError(f"reading must be one of {', '.join(READINGS)}, not {reading!r}.")
    mean, owners = peaks_mean_and_owners(tree, values, background)
    if reading == "mixture":
        heights = np.array(list(values.values()))
        parts = checked_shares(heights / heights.sum() if shares is None else shares, len(values))
        return Mixture(
            [TreeNetwork(tree, part, beyond_theory=True) for part in _parts(tree, mean, owners, parts, background)],
            parts,
        )
    if reading == "metric":
        return MetricNetwork(FiniteMetric.from_matrix(tree.distance_matrix(), tree.documents), mean)
    if reading == "mutations":
        return TreeNetwork(tree, mean, extension="lipschitz", looseness=1.0)
    return TreeNetwork(tree, mean)


def two_peaks(
    tree: DocumentTree,
    *,
    background: float = 0.05,
    value: float = 0.5,
    seed: Seed = None,
    reading: str = "network",
) -> UserDistribution:
    """Make visitors with two peaks at random documents: the first model of the paper's experiments.

    Parameters
    ----------
    tree : DocumentTree
        The documents.
    background : float
        The mean relevance far from both peaks.
    value : float
        The mean relevance of both peaks.
    seed : int, Generator or None
        The seed, which decides the places of the peaks.
    reading : {"network", "mixture", "mutations", "metric"}
        The reading of the paper (see `peaks`).

    Returns
    -------
    UserDistribution
        The visitors.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 6.1.

    Examples
    --------
    >>> tree = DocumentTree.exponential(depth=6, branching=2)
    >>> users = two_peaks(tree, background=0.05, seed=7)
    >>> len(users.greedy(slots=5).documents)
    5
    """
    chosen = choose_peaks(tree, 2, np.random.default_rng(seed))
    return peaks(tree, dict.fromkeys(chosen, value), background=background, reading=reading)


def random_peaks(
    tree: DocumentTree,
    *,
    values: Sequence[float],
    background: float = 0.05,
    seed: Seed = None,
    reading: str = "network",
) -> UserDistribution:
    """Make visitors with peaks of given values at random documents.

    Parameters
    ----------
    tree : DocumentTree
        The documents.
    values : sequence of float
        The mean relevance of each peak.
    background : float
        The mean relevance far from all peaks.
    seed : int, Generator or None
        The seed, which decides the places of the peaks.
    reading : {"network", "mixture", "mutations", "metric"}
        The reading of the paper (see `peaks`).

    Returns
    -------
    UserDistribution
        The visitors.
    """
    chosen = choose_peaks(tree, len(values), np.random.default_rng(seed))
    return peaks(tree, dict(zip(chosen, values, strict=True)), background=background, reading=reading)


def decoy(
    tree: DocumentTree,
    *,
    values: Sequence[float] = (0.5, 0.45),
    background: float = 0.05,
    flat: float = 0.2,
    seed: Seed = None,
) -> UserDistribution:
    """Make visitors with peaks, and a quarter of all documents that is somewhat relevant: a decoy for rankers.

    Parameters
    ----------
    tree : DocumentTree
        The documents.
    values : sequence of float
        The mean relevance of each peak, at random documents.
    background : float
        The mean relevance far from all peaks.
    flat : float
        The mean relevance of the quarter, at least.
    seed : int, Generator or None
        The seed, which decides the places of the peaks and the quarter.

    Returns
    -------
    UserDistribution
        The visitors.
    """
    rng = np.random.default_rng(seed)
    mean = random_peaks(tree, values=values, background=background, seed=rng).mean()
    quarter = np.array_split(np.arange(len(tree)), 4)[int(rng.integers(4))]
    mean[quarter] = np.maximum(mean[quarter], flat)
    return TreeNetwork(tree, mean)


def twins(
    tree: DocumentTree,
    *,
    values: Sequence[float] = (0.5, 0.4),
    background: float = 0.05,
    neighbours: int = 64,
    seed: Seed = None,
) -> CopiedRelevance:
    """Make visitors with peaks, each with a twin elsewhere: a copy of its neighbourhood, relevant to the same visitors.

    Parameters
    ----------
    tree : DocumentTree
        The documents.
    values : sequence of float
        The mean relevance of each peak, at random documents.
    background : float
        The mean relevance far from all peaks.
    neighbours : int
        Number of documents in a neighbourhood.
    seed : int, Generator or None
        The seed, which decides the places of the peaks and their twins.

    Returns
    -------
    CopiedRelevance
        The visitors.
    """
    rng = np.random.default_rng(seed)
    blocks = len(tree) // neighbours
    if blocks < 2 * len(values):
        raise ParameterError(f"{len(tree)} documents have no room for {len(values)} twins of {neighbours} neighbours.")
    chosen = rng.permutation(blocks)[: 2 * len(values)]
    own, copies = chosen[: len(values)], chosen[len(values) :]
    places = own * neighbours + rng.integers(neighbours, size=len(values))
    mean = dict(zip(tree.documents.at(places), values, strict=True))
    origin = np.arange(len(tree))
    for block, copy in zip(own, copies, strict=True):
        origin[copy * neighbours : (copy + 1) * neighbours] = np.arange(block * neighbours, (block + 1) * neighbours)
    return CopiedRelevance(peaks(tree, mean, background=background), origin)


def chinese_restaurant(
    tree: DocumentTree,
    *,
    customers: int = 20,
    theta: float = 2.0,
    background: float = 0.01,
    heights: str = "shares",
    seed: Seed = None,
    reading: str = "network",
) -> UserDistribution:
    """Make visitors with as many peaks as a Chinese Restaurant Process has tables: the second model of the experiments.

    A table with c of the n customers is a peak, to which the share c / n of visitors belongs.

    Parameters
    ----------
    tree : DocumentTree
        The documents.
    customers : int
        Number of customers.
    theta : float
        Concentration θ, above 0: larger values give more tables.
    background : float
        The mean relevance far from all peaks.
    heights : {"shares", "tallest", "halves"}
        The mean relevance of a peak, never below the background: its share c / n, at most ½; in proportion to c, the
        largest table's being ½; or ½ for every peak, as Eq. 29 is printed. Only shares always suit the reading
        "mixture": no peak can be relevant to more visitors than belong to it.
    seed : int, Generator or None
        The seed, which decides the tables and the places of the peaks.
    reading : {"network", "mixture", "mutations", "metric"}
        The reading of the paper (see `peaks`).

    Returns
    -------
    UserDistribution
        The visitors.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 6.1.
    """
    if heights not in HEIGHTS:
        raise ParameterError(f"heights must be one of {', '.join(HEIGHTS)}, not {heights!r}.")
    rng = np.random.default_rng(seed)
    tables = seat_customers(customers, theta, rng)
    chosen = choose_peaks(tree, len(tables), rng)
    shares = [size / customers for size in tables]
    values = dict(zip(chosen, (max(background, value) for value in _heights(shares, heights)), strict=True))
    return peaks(tree, values, background=background, shares=shares, reading=reading)


def _heights(shares: Sequence[float], heights: str) -> list[float]:
    if heights == "halves":
        return [HIGHEST] * len(shares)
    if heights == "tallest":
        return [HIGHEST * share / max(shares) for share in shares]
    return [min(HIGHEST, share) for share in shares]


def three_documents() -> tuple[DocumentTree, Independent]:
    """Make the paper's example of three unrelated documents: ranked bandits without context settle at 2/3, not at 3/4.

    Returns
    -------
    tree : DocumentTree
        The documents, all at distance 1.
    users : Independent
        Their visitors.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 5.1.
    """
    tree = DocumentTree.from_parents([-1, 0, 0, 0], width=[1.0, 0.0, 0.0, 0.0], ids=["x1", "x2", "x3"])
    return tree, Independent(tree, {"x1": 1 / 2, "x2": 1 / 2, "x3": 1 / 3})


def _parts(tree: DocumentTree, mean: Array, owners: Array, shares: Array, background: float) -> Array:
    """Return the mean of each peak's own visitors: the background, plus all that the peak adds to it."""
    empty = np.flatnonzero((shares == 0) & owners.any(axis=1))
    if len(empty):
        raise WeightError(f"Peak number {empty[0]} has no visitors; a peak needs a share above 0.")
    owned_by = shares @ owners  # share of visitors of all peaks of a document
    with np.errstate(divide="ignore", invalid="ignore"):
        raised = np.where(owned_by > 0, (mean - background) / owned_by, 0.0)
    parts = background + owners * raised
    high = np.argwhere(parts > 1 + 1e-12)
    if len(high):
        peak, document = high[0]
        raise MeanError(
            f"{tree.documents[document]!r} would have to be relevant with probability {parts[peak, document]:.4g} to "
            f"the share {shares[peak]:.4g} of visitors that belong to peak number {peak}. Lower the peaks (those of a "
            'Chinese restaurant with heights="shares"), raise its share, or take another reading.'
        )
    return np.asarray(np.minimum(parts, 1.0))
