"""Size of a space for a learner: covering numbers and dimensions (Section 4.2, Appendix A).

A covering number N_r counts the closed balls of radius r that it takes to hold every document. In a `DocumentTree`
balls are subtrees, so counting is exact and fast. In other spaces the smallest cover is a set-cover problem: solved
exactly by integer programming while small, otherwise bounded from above by the greedy cover; the result says which.

A dimension is the smallest d ≥ 0 with `N_r ≤ α · r^-d`. The paper asks for all r > 0; between two distances that
occur N_r does not change while r^-d does, so taken literally even its own example has no finite d with α = 1. We
read "all r" as the distances that occur (or the reward scales 2^-i where Appendix A uses those), which gives the
paper's log_{1/ε}(b).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from zoomrank.errors import MeanError, ParameterError
from zoomrank.spaces.contexts import pair_distances
from zoomrank.spaces.document_tree import DocumentTree
from zoomrank.spaces.ids import DocumentId
from zoomrank.spaces.space import Space
from zoomrank.types import Array

EXACT_UP_TO = 64  # most points for which the smallest cover is computed
SCALES = 256  # number of radii in a space that is not a tree


@dataclass(frozen=True)
class Covering:
    """Number of balls, and whether it is the smallest.

    Attributes
    ----------
    number : int
        N_r.
    exact : bool
        True if it is the smallest; otherwise an upper bound, at most ln(documents) + 1 times too large.
    """

    number: int
    exact: bool


@dataclass(frozen=True)
class Dimension:
    """The smallest d with N_r ≤ α · r^-d.

    Attributes
    ----------
    value : float
        d, 0 or more; infinite if there is none.
    exact : bool
        True if all covering numbers are exact, and all distances were used.
    """

    value: float
    exact: bool


def covering_number(space: Space, radius: float, among: Iterable[DocumentId] | None = None) -> Covering:
    """Count the closed balls around documents that it takes to cover them: N_r.

    Parameters
    ----------
    space : Space
        Documents and their distances.
    radius : float
        r, above 0.
    among : iterable of DocumentId, optional
        The documents to cover, by balls around themselves; all, if left out.

    Returns
    -------
    Covering
        Exact in a `DocumentTree`, where balls are subtrees, and for up to 64 documents elsewhere; otherwise the greedy
        cover.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 4.2.

    Examples
    --------
    >>> covering_number(DocumentTree.exponential(depth=4, branching=3, epsilon=0.5), radius=0.25)
    Covering(number=9, exact=True)
    """
    if not radius > 0:
        raise ParameterError(f"The radius of a ball must be positive, not {radius}.")
    chosen = None if among is None else space.documents.positions(among)
    if isinstance(space, DocumentTree):
        return Covering(_subtrees(space, radius, chosen), exact=True)
    return _cover(space.distance_matrix(), radius, chosen)


def covering_dimension(space: Space, constant: float = 1.0) -> Dimension:
    """Compute the covering dimension of a space, from the distances that occur in it.

    Parameters
    ----------
    space : Space
        Documents and their distances.
    constant : float
        α of the dimension.

    Returns
    -------
    Dimension
        Infinite if even a radius of 1 or more needs more than α balls.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 4.2, Eq. 18.

    Examples
    --------
    >>> tree = DocumentTree.exponential(depth=8, branching=2, epsilon=0.5)
    >>> covering_dimension(tree)
    Dimension(value=1.0, exact=True)
    """
    if isinstance(space, DocumentTree):
        scales, numbers = _all_covering_numbers(space)
        return _dimension(scales, [Covering(int(number), exact=True) for number in numbers], constant)
    return _matrix_dimension(space.distance_matrix(), constant)


def contextual_covering_dimension(
    space: Space, contexts: Sequence[Iterable[DocumentId]], constant: float = 1.0
) -> Dimension:
    """Compute the covering dimension of the DC-space: all pairs of a document and a context.

    Parameters
    ----------
    space : Space
        Documents and their distances.
    contexts : sequence of iterables of DocumentId
        The contexts: sets of documents above a slot.
    constant : float
        α of the dimension.

    Returns
    -------
    Dimension
        The dimension of `len(space) * len(contexts)` pairs.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 4.5; Appendix A.

    Examples
    --------
    >>> tree = DocumentTree.exponential(depth=2, branching=2, epsilon=0.5)
    >>> contextual_covering_dimension(tree, [[0], [1]], constant=2.0)
    Dimension(value=1.0, exact=True)
    """
    if not contexts:
        raise ParameterError("contexts is empty: pass at least one.")
    return _matrix_dimension(pair_distances(space, contexts), constant)


def zooming_dimension(space: Space, mean: Sequence[float] | Array, constant: float = 1.0) -> Dimension:
    """Compute the zooming dimension: at each scale r only documents that are r to 2r worse than the best need covering.

    Parameters
    ----------
    space : Space
        Documents and their distances.
    mean : sequence of float
        μ(x) of each document, in the order of `space.documents`.
    constant : float
        α of the dimension.

    Returns
    -------
    Dimension
        Much less than the covering dimension where few documents are good.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Appendix A.

    Examples
    --------
    >>> tree = DocumentTree.exponential(depth=3, branching=2, epsilon=0.5)
    >>> zooming_dimension(tree, mean=[0.9, 0.7, 0.5, 0.5, 0.1, 0.1, 0.1, 0.1]).value
    0.0
    """
    badness = _badness(np.asarray(mean, dtype=np.float64)[None, :], len(space), contexts=1)
    if isinstance(space, DocumentTree):
        return _zooming(badness, constant, lambda scale, chosen: Covering(_subtrees(space, scale, chosen), exact=True))
    matrix = space.distance_matrix()
    return _zooming(badness, constant, lambda scale, chosen: _cover(matrix, scale, chosen))


def contextual_zooming_dimension(
    space: Space,
    contexts: Sequence[Iterable[DocumentId]],
    means: Sequence[Sequence[float]] | Array,
    constant: float = 1.0,
) -> Dimension:
    """Compute the zooming dimension of the DC-space: all pairs of a document and a context.

    Parameters
    ----------
    space : Space
        Documents and their distances.
    contexts : sequence of iterables of DocumentId
        The contexts: sets of documents above a slot.
    means : array-like
        `means[h, x]` is μ(x | h), a row for each context.
    constant : float
        α of the dimension.

    Returns
    -------
    Dimension
        The dimension.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Appendix A.

    Examples
    --------
    >>> tree = DocumentTree.exponential(depth=1, branching=2)
    >>> contextual_zooming_dimension(tree, [[0], [1]], means=[[0.0, 0.5], [0.4, 0.0]]).value
    0.5
    """
    badness = _badness(np.asarray(means, dtype=np.float64), len(space), len(contexts))
    matrix = pair_distances(space, contexts)
    return _zooming(badness, constant, lambda scale, chosen: _cover(matrix, scale, chosen))


def _badness(means: Array, documents: int, contexts: int) -> Array:
    """Compute Δ(x | h): how much worse a document is than the best one in the same context."""
    if means.shape != (contexts, documents) or not ((means >= 0) & (means <= 1)).all():
        raise MeanError(
            f"Means must lie in [0, 1] and have the shape {(contexts, documents)}; theirs is {means.shape}."
        )
    return np.asarray((means.max(axis=1, keepdims=True) - means).ravel())


def _zooming(badness: Array, constant: float, cover: Callable[[float, Array], Covering]) -> Dimension:
    scales, covers = [], []
    scale = 1.0
    while scale >= badness[badness > 0].min(initial=1.0) / 2:
        chosen = np.flatnonzero((badness > scale) & (badness <= 2 * scale))  # X_r
        if len(chosen):
            scales.append(scale)
            covers.append(cover(scale, chosen))
        scale /= 2
    return _dimension(np.array(scales), covers, constant)


def _dimension(scales: Array, covers: Sequence[Covering], constant: float, every_scale: bool = True) -> Dimension:
    """Compute the smallest d for these radii. Radii above 1 only require at most α balls."""
    if not constant > 0:
        raise ParameterError(f"The constant of a dimension must be positive, not {constant}.")
    exact = every_scale and all(cover.exact for cover in covers)
    numbers = np.array([cover.number for cover in covers], dtype=np.float64)
    crowded = numbers > constant
    if (crowded & (scales >= 1)).any():
        return Dimension(float("inf"), exact)
    small = crowded & (scales < 1)
    return Dimension(float((np.log(numbers[small] / constant) / -np.log(scales[small])).max(initial=0.0)), exact)


def _subtrees(tree: DocumentTree, radius: float, chosen: Array | None) -> int:
    """Count the largest subtrees of at most this width (those that hold a chosen document)."""
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
    """Compute N_r for every width r that occurs: nodes that fit less nodes whose parent fits too."""
    branches = np.diff(tree.shape.child_start) > 1  # the width of a node with one child is not a distance
    scales = np.unique(tree.width[branches & (tree.width > 0)])
    fits = np.searchsorted(np.sort(tree.width), scales, side="right")
    parent_fits = np.searchsorted(np.sort(tree.width[tree.shape.parent[1:]]), scales, side="right")
    return scales, fits - parent_fits


def _matrix_dimension(matrix: Array, constant: float) -> Dimension:
    occurring = np.unique(matrix[(matrix > 0) & np.isfinite(matrix)])
    every_scale = len(occurring) <= SCALES
    if not every_scale:
        occurring = occurring[np.linspace(0, len(occurring) - 1, SCALES).astype(int)]
    return _dimension(occurring, [_cover(matrix, radius, None) for radius in occurring], constant, every_scale)


def _cover(matrix: Array, radius: float, chosen: Array | None) -> Covering:
    import scipy.optimize

    points = np.arange(len(matrix)) if chosen is None else np.asarray(chosen)
    if len(points) == 0:
        return Covering(0, exact=True)
    holds = matrix[np.ix_(points, points)] <= radius  # holds[centre, point]
    if len(points) <= EXACT_UP_TO:
        answer = scipy.optimize.milp(
            np.ones(len(points)),
            constraints=scipy.optimize.LinearConstraint(holds.T.astype(float), lb=1.0),
            bounds=scipy.optimize.Bounds(0, 1),
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
