"""Mean relevance with peaks, as low as L-continuity and a background allow (Eq. 29); and draws of the peaks."""

from collections.abc import Mapping

import numpy as np

from zoomrank.errors import MeanError, ParameterError
from zoomrank.numbers import Array
from zoomrank.spaces import DocumentId, Space


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
