"""Widths of subtrees, the largest distance of documents below a node: checked, or computed by the ε-exponential
rule.
"""

import numpy as np

from zoomrank.errors import MetricParameterError, WidthError
from zoomrank.numbers import Array
from zoomrank.spaces.trees.shape import Shape, node_depths


def exponential_widths(shape: Shape, epsilon: float, constant: float) -> Array:
    """Compute the width c · ε^depth of every node of any tree, 0 for documents."""
    depth = node_depths(shape.parent)
    width = level_widths(int(depth[-1]), epsilon, constant)[depth]
    width[shape.leaf] = 0.0
    return width


def level_widths(depth: int, epsilon: float, constant: float) -> Array:
    """Compute the width c · ε^depth of each level, from the root down to this depth."""
    if not 0 < epsilon < 1:
        raise MetricParameterError(f"epsilon must lie strictly between 0 and 1, not {epsilon}.")
    if not 0 < constant < np.inf:
        raise MetricParameterError(f"The constant must be a positive number, not {constant}.")
    widths = constant * epsilon ** np.arange(depth + 1.0)
    if widths[-1] == 0.0:
        raise MetricParameterError(
            f"{epsilon} to the power of {depth} underflows to 0: use a larger epsilon or a smaller depth."
        )
    return np.asarray(widths)


def checked_widths(shape: Shape, width: Array, called: Array | None = None) -> Array:
    """Raise an error if widths are invalid; `called` has the caller's node numbers."""

    def name(node: int) -> str:
        return f"node {node if called is None else called[node]}"

    if width.shape != shape.parent.shape:
        raise WidthError(f"Widths of shape {width.shape} were given for {len(shape.parent)} nodes.")
    bad = np.flatnonzero(~(np.isfinite(width) & (width >= 0)))
    if len(bad):
        raise WidthError(f"The width of {name(bad[0])} is {width[bad[0]]}; it must be a finite number, 0 or more.")
    wide = shape.leaf[width[shape.leaf] != 0]
    if len(wide):
        raise WidthError(f"A document has width 0, but that of {name(wide[0])}, a leaf, is {width[wide[0]]}.")
    growing = np.flatnonzero(width > width[shape.parent])
    if len(growing):
        up = int(shape.parent[growing[0]])
        raise WidthError(
            f"Widths must not grow downwards, but {name(growing[0])} has width {width[growing[0]]} "
            f"below {name(up)} with width {width[up]}."
        )
    width = np.ascontiguousarray(width, dtype=np.float64)
    width.flags.writeable = False
    return width
