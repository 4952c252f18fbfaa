"""Mean relevance with peaks: as low as L-continuity and a background rate allow (Eq. 29 of the paper)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from zoomrank.errors import MeanError, ParameterError
from zoomrank.numbers import Array
from zoomrank.spaces import DocumentId, Space


def peaks_mean(space: Space, peaks: Mapping[Any, float], background: float) -> Array:
    """μ(x) = max(μ0, max over peaks y of value(y) - D(x, y)), in the order of `space.documents`."""
    mean, _ = peaks_mean_and_owners(space, peaks, background)
    return mean


def peaks_mean_and_owners(space: Space, peaks: Mapping[Any, float], background: float) -> tuple[Array, Array]:
    """Compute μ(x), and for each peak the documents whose mean it sets (several peaks may tie for one)."""
    if not peaks:
        raise MeanError("There are no peaks.")
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
    """Different documents, uniformly at random."""
    if not 1 <= count <= len(space):
        raise ParameterError(f"{count} peaks cannot be chosen among {len(space)} documents.")
    return space.documents.at(rng.choice(len(space), size=count, replace=False))


def seat_customers(customers: int, theta: float, rng: np.random.Generator) -> list[int]:
    """Seat customers by a Chinese Restaurant Process: how many sit at each table.

    Customer t takes a new table with probability θ / (t - 1 + θ), otherwise joins one in proportion to who sits there.
    """
    if customers < 1 or not theta > 0:
        raise ParameterError(f"A Chinese Restaurant Process needs customers and θ > 0, not {customers} and {theta}.")
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
