"""Mutation probabilities q0, q1 of Algorithm 1, and the two conditions of Section 3.1 that they have to meet.

A child's bit is its parent's, flipped with probability q_b(u) if the parent's bit is b. With v the parent of u:

- Eq. 7, the mean is right:      μ(u) = (1 - μ(v)) q0(u) + μ(v) (1 - q1(u))
- Eq. 8, mutations are rare:     q0(u) + q1(u) ≤ D(u, v) / μ(v)
"""

from dataclasses import dataclass

import numpy as np

from zoomrank.errors import MutationError, ParameterError
from zoomrank.numbers import Array
from zoomrank.spaces import EdgeWeightedTree
from zoomrank.spaces.trees.shape import Shape

ROUNDING = 1e-14


@dataclass(frozen=True)
class ConditionReport:
    """Violation of the two conditions on mutation probabilities, each at its worst node."""

    consistency_error: float  # of Eq. 7: |left - right|
    consistency_node: int
    rarity_ratio: float  # of Eq. 8: (q0 + q1) · μ(v) / D(u, v), at most 1 where it holds
    rarity_node: int
    continuity_ratio: float  # |μ(u) - μ(v)| / D(u, v), at most 1 where μ is L-continuous on all nodes
    continuity_node: int

    @property
    def hold(self) -> bool:
        """True if both conditions hold, on means that are L-continuous, as Theorem 3.1 requires."""
        return self.consistency_error <= 1e-9 and max(self.rarity_ratio, self.continuity_ratio) <= 1 + 1e-9


def example_mutations(shape: Shape, mean: Array) -> tuple[Array, Array]:
    """Return Eq. 9, the paper's choice: flip as rarely as the means of all nodes allow, in one direction only."""
    above = mean[shape.parent]
    with np.errstate(divide="ignore", invalid="ignore"):
        q0 = np.where(mean > above, (mean - above) / (1 - above), 0.0)
        q1 = np.where(mean < above, (above - mean) / above, 0.0)
    return q0, q1


def loosened_mutations(tree: EdgeWeightedTree, mean: Array, looseness: float) -> tuple[Array, Array]:
    """Return Eq. 9 plus a probability t(u) to draw the bit anew from μ(v), which makes children more independent.

    Adding t·μ(v) to q0 and t·(1 - μ(v)) to q1 leaves Eq. 7 true. `looseness` is the share used of what Eq. 8 leaves
    open: 0 is the paper's example, 1 the most independent network that the theory covers.
    """
    if not 0 <= looseness <= 1:
        raise ParameterError(f"looseness must lie between 0 and 1, not {looseness}.")
    q0, q1 = example_mutations(tree.shape, mean)
    above = mean[tree.shape.parent]
    with np.errstate(divide="ignore", invalid="ignore"):
        allowed = np.where(above > 0, tree.length / above, 1.0)
    room = np.minimum(allowed, 1.0) - (q0 + q1)
    fresh = looseness * np.maximum(room, 0.0)
    return q0 + fresh * above, q1 + fresh * (1 - above)


def check_range(q0: Array, q1: Array, nodes: int) -> None:
    """Raise an error for values that are not probabilities."""
    for name, q in (("q0", q0), ("q1", q1)):
        if q.shape != (nodes,):
            raise MutationError(f"{name} has {q.size} values for {nodes} nodes.")
        bad = np.flatnonzero(~((q >= 0) & (q <= 1)))
        if len(bad):
            raise MutationError(f"{name} of node {bad[0]} is {q[bad[0]]}; a probability lies between 0 and 1.")


def check_conditions(tree: EdgeWeightedTree, mean: Array, q0: Array, q1: Array) -> ConditionReport:
    """Measure Eq. 7, Eq. 8 and the continuity of μ at every node but the root."""
    above = mean[tree.shape.parent]
    error = np.abs(mean - ((1 - above) * q0 + above * (1 - q1)))
    rates = ((q0 + q1) * above, np.abs(mean - above))
    with np.errstate(divide="ignore", invalid="ignore"):
        rarity, continuity = (np.where(rate > ROUNDING, rate / tree.length, 0.0) for rate in rates)
    found: list[float | int] = []
    for values in (error, rarity, continuity):
        values[0] = 0.0
        found += [float(values.max()), int(values.argmax())]
    return ConditionReport(*found)  # type: ignore[arg-type]
