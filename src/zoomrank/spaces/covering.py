"""How large a space is to a learner: covering numbers and the dimensions made of them (Section 4.2, Appendix A).

A covering number N_r counts the closed balls of radius r that it takes to hold every document. In a `DocumentTree`
balls are subtrees, so counting is exact and fast. In other spaces the smallest cover is a set-cover problem: solved
exactly by integer programming while small, otherwise bounded from above by the greedy cover, and the answer says which.

A dimension is the smallest d ≥ 0 with `N_r ≤ α · r^-d`. The paper asks for all r > 0; between two distances that
occur N_r does not change while r^-d does, so taken literally even its own example has no finite d with α = 1. We
read "all r" as the distances that occur (or the reward scales 2^-i where Appendix A uses those), which gives the
paper's log_{1/ε}(b).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from zoomrank.errors import MeanError, ParameterError
from zoomrank.spaces.contexts import Space, pair_distances
from zoomrank.spaces.ids import DocumentId
from zoomrank.spaces.topology import Array
from zoomrank.spaces.tree import DocumentTree

EXACT_UP_TO = 64  # points for which the smallest cover is searched for
SCALES = 64  # radii looked at in a space that is not a tree


@dataclass(frozen=True)
class Covering:
    """How many balls, and whether fewer could do."""

    number: int  # N_r
    exact: bool  # False: an upper bound, at most ln(documents) + 1 times too large


def covering_number(space: Space, radius: float, among: Iterable[DocumentId] | None = None) -> Covering:
    """N_r of all documents, or of those `among` them: how many closed balls of this radius it takes to cover them.

    >>> covering_number(DocumentTree.exponential(depth=4, branching=3, epsilon=0.5), radius=0.25)
    Covering(number=9, exact=True)
    """
    if not radius > 0:
        raise ParameterError(f"The radius of a ball must be positive, not {radius}.")
    chosen = None if among is None else space.documents.positions(among)
    if isinstance(space, DocumentTree):
        return Covering(_subtrees(space, radius, chosen), exact=True)
    return _cover(space.distance_matrix(), radius, chosen)


def covering_dimension(space: Space, constant: float = 1.0) -> float:
    """CovDim of Eq. 18 with the constant α: infinite if even r ≥ 1 needs more than α balls.

    >>> round(covering_dimension(DocumentTree.exponential(depth=8, branching=2, epsilon=0.5)), 12)
    1.0
    """
    if isinstance(space, DocumentTree):
        scales, numbers = _all_covering_numbers(space)
        return _dimension(scales, numbers, constant)
    return _matrix_dimension(space.distance_matrix(), constant)


def contextual_covering_dimension(
    space: Space, contexts: Sequence[Iterable[DocumentId]], constant: float = 1.0
) -> float:
    """CovDim of the DC-space over these contexts: all (document, context) pairs (Section 4.5)."""
    return _matrix_dimension(pair_distances(space, contexts), constant)


def zooming_dimension(space: Space, mean: Array, constant: float = 1.0) -> float:
    """ZoomDim(X, D, μ): like the covering dimension, but at each scale covering only documents about that far from
    the best.

    `mean` is μ(x) in the order of `space.documents`.
    """
    badness = _badness(np.asarray(mean, dtype=np.float64)[None, :], len(space), contexts=1)
    if isinstance(space, DocumentTree):
        return _zooming(badness, constant, lambda scale, chosen: _subtrees(space, scale, chosen))
    matrix = space.distance_matrix()
    return _zooming(badness, constant, lambda scale, chosen: _cover(matrix, scale, chosen).number)


def contextual_zooming_dimension(
    space: Space, contexts: Sequence[Iterable[DocumentId]], means: Array, constant: float = 1.0
) -> float:
    """Compute the contextual zooming dimension: `means[h, x]` is μ(x | h), a row per context."""
    badness = _badness(np.asarray(means, dtype=np.float64), len(space), len(contexts))
    matrix = pair_distances(space, contexts)
    return _zooming(badness, constant, lambda scale, chosen: _cover(matrix, scale, chosen).number)


def _badness(means: Array, documents: int, contexts: int) -> Array:
    """Δ(x | h): how much worse a document is than the best one in the same context."""
    if means.shape != (contexts, documents) or not np.isfinite(means).all():
        raise MeanError(f"Means must be finite and of shape {(contexts, documents)}, not {means.shape}.")
    return np.asarray((means.max(axis=1, keepdims=True) - means).ravel())


def _zooming(badness: Array, constant: float, count: Callable[[float, Array], int]) -> float:
    scales, numbers = [], []
    scale = 1.0
    while scale >= badness[badness > 0].min(initial=1.0) / 2:
        chosen = np.flatnonzero((badness > scale) & (badness <= 2 * scale))  # X_r
        if len(chosen):
            scales.append(scale)
            numbers.append(count(scale, chosen))
        scale /= 2
    return _dimension(np.array(scales), np.array(numbers), constant)


def _dimension(scales: Array, numbers: Array, constant: float) -> float:
    if not constant > 0:
        raise ParameterError(f"The constant of a dimension must be positive, not {constant}.")
    crowded = numbers > constant
    if (crowded & (scales >= 1)).any():
        return float("inf")
    small = crowded & (scales < 1)
    return float((np.log(numbers[small] / constant) / -np.log(scales[small])).max(initial=0.0))


def _subtrees(tree: DocumentTree, radius: float, chosen: Array | None) -> int:
    """Largest subtrees of at most this width (those that hold a chosen document)."""
    fits = tree.width <= radius
    largest = fits & ~fits[tree.shape.parent]
    largest[0] = fits[0]
    if chosen is None:
        return int(largest.sum())
    before = np.zeros(len(tree) + 1, np.int64)
    before[np.asarray(chosen) + 1] = 1
    before = np.cumsum(before)
    held = before[tree.shape.end_document] > before[tree.shape.first_document]
    return int((largest & held).sum())


def _all_covering_numbers(tree: DocumentTree) -> tuple[Array, Array]:
    """N_r for every width r that occurs: nodes that fit less nodes whose parent fits too."""
    scales = np.unique(tree.width[tree.width > 0])
    fits = np.searchsorted(np.sort(tree.width), scales, side="right")
    parent_fits = np.searchsorted(np.sort(tree.width[tree.shape.parent[1:]]), scales, side="right")
    return scales, fits - parent_fits


def _matrix_dimension(matrix: Array, constant: float) -> float:
    occurring = np.unique(matrix[(matrix > 0) & np.isfinite(matrix)])
    if len(occurring) > SCALES:
        occurring = occurring[np.unique(np.linspace(0, len(occurring) - 1, SCALES).astype(int))]
    numbers = np.array([_cover(matrix, radius, None).number for radius in occurring])
    return _dimension(occurring, numbers, constant)


def _cover(matrix: Array, radius: float, chosen: Array | None) -> Covering:
    points = np.arange(len(matrix)) if chosen is None else np.asarray(chosen)
    holds = matrix[np.ix_(points, points)] <= radius  # holds[centre, point]
    if len(points) <= EXACT_UP_TO:
        answer = milp(
            np.ones(len(points)),
            constraints=LinearConstraint(holds.T.astype(float), lb=1.0),
            bounds=Bounds(0, 1),
            integrality=np.ones(len(points)),
        )
        return Covering(round(answer.fun), exact=True)
    missing = np.ones(len(points), bool)
    number = 0
    while missing.any():
        centre = int((holds[:, missing]).sum(axis=1).argmax())
        missing &= ~holds[centre]
        number += 1
    return Covering(number, exact=False)
