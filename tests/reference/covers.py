"""Covers by trying everything: balls that cover points, edges that cover two sets."""

from collections.abc import Sequence
from itertools import combinations


def covering_number(distances: Sequence[Sequence[float]], radius: float) -> int:
    points = range(len(distances))
    for size in range(1, len(distances) + 1):
        for centres in combinations(points, size):
            if all(any(distances[c][p] <= radius for c in centres) for p in points):
                return size
    raise AssertionError("every point covers itself")


def enumeration_cost(cost: Sequence[Sequence[float]]) -> float:
    """The infimum over pairs of sequences that enumerate rows and columns with repetition: over all sets of edges."""
    rows, columns = range(len(cost)), range(len(cost[0]))
    edges = [(r, c) for r in rows for c in columns]
    best = float("inf")
    for size in range(1, len(edges) + 1):
        for chosen in combinations(edges, size):
            if {r for r, _ in chosen} == set(rows) and {c for _, c in chosen} == set(columns):
                best = min(best, sum(cost[r][c] for r, c in chosen))
    return best
