"""Computations on tree networks: exact probabilities, parameters, symmetries, and the state that clicks are drawn from.

Probabilities are computed by passing messages: up only along the root paths of S, down to all nodes. The message of a
node u is `(log P(Z_S below u | π(u) = 0), log P(Z_S below u | π(u) = 1))`, where Z_S is the event that no document of S
is relevant. Subtrees without a document of S send (0, 0), so they cost nothing on the way up. Being logarithms,
messages do not underflow however many documents are conditioned on.

`chance[u, b]` is the probability that π(u) = 1 if the parent's bit is b; the root's two entries are both μ(root).

Parameters are the mean of every node and the mutation probabilities q0, q1 of Algorithm 1. A child's bit is its
parent's, flipped with probability q_b(u) if the parent's bit is b. With v the parent of u, Section 3.1 requires:

- Eq. 7, the mean is right:      μ(u) = (1 - μ(v)) q0(u) + μ(v) (1 - q1(u))
- Eq. 8, mutations are rare:     q0(u) + q1(u) ≤ D(u, v) / μ(v)

The mean is given for documents, and extended to the nodes above them in one of two ways, both in the paper:

- `average`: a node's mean is the average of its children's (Section 6.1, used in every experiment of the paper).
- `lipschitz`: values that keep |μ(u) - μ(v)| ≤ D(u, v) along every edge (proved possible in Section 7). The lemma
  leaves room; of all values it allows we take the one nearest to the average of the children.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from zoomrank.compiled import allocating, compiled_bulk, compiled_for, exp, inlined
from zoomrank.errors import ContinuityError, MutationError, ParameterError
from zoomrank.spaces import DocumentIds, DocumentTree, EdgeWeightedTree, RootedTree
from zoomrank.spaces.contexts import hash64
from zoomrank.spaces.ids import Positions
from zoomrank.spaces.tree_shape import Shape
from zoomrank.types import Array
from zoomrank.users.first_click import ForestState

if TYPE_CHECKING:
    from zoomrank.users.tree_network import TreeNetwork


ROUNDING = 1e-14  # of mutation probabilities
EXTENSION_ROUNDING = 1e-12


@allocating
def _root_paths(parent: Array, leaves: Array) -> Array:
    """Return all nodes on the root paths of these leaves, ascending.

    Parents have smaller numbers than their children, so paths are merged from the largest number down. (NumPy could
    sort them; compiling that would take longer than anything else here.)
    """
    length = 1
    for leaf in leaves:
        node = leaf
        while node > 0:
            length += 1
            node = parent[node]
    nodes = np.zeros(length, np.int64)  # filled from the end; the root, 0, is the first that is kept
    current = leaves.copy()
    at = length
    largest = np.int64(1)
    while largest > 0:
        largest = np.int64(0)
        for node in current:
            largest = max(largest, node)
        at -= 1
        nodes[at] = largest
        for i in range(len(current)):
            if current[i] == largest:
                current[i] = parent[largest]
    return nodes[at:]


@inlined
def _log_average(p: float, zero: float, one: float) -> float:
    """Return log of (1 - p)·exp(zero) + p·exp(one)."""
    if p <= 0.0:
        return zero
    if p >= 1.0:
        return one
    largest = max(zero, one)
    if largest == -np.inf:
        return largest
    return float(largest + math.log((1 - p) * exp(zero - largest) + p * exp(one - largest)))


@allocating
def _send_up(parent: Array, chance: Array, leaves: Array, nodes: Array) -> tuple[Array, float]:
    """Return the messages of the nodes on the root paths, and log P(Z_S)."""
    message = np.zeros((len(nodes), 2))
    for leaf in leaves:
        message[np.searchsorted(nodes, leaf), 1] = -np.inf  # skipped, so not relevant
    for at in range(len(nodes) - 1, 0, -1):
        node = nodes[at]
        above = np.searchsorted(nodes, parent[node])
        for bit in range(2):
            message[above, bit] += _log_average(chance[node, bit], message[at, 0], message[at, 1])
    return message, _log_average(chance[0, 0], message[0, 0], message[0, 1])


def _seconds_to_merge(_: Array, __: Array, leaves: Array) -> float:
    return 1e-6 * len(leaves) ** 2  # in `_root_paths`


@compiled_for(_seconds_to_merge, bulk=True)
def log_skip_probability(parent: Array, chance: Array, leaves: Array) -> float:
    """Return log P(Z_S), that all these leaves are skipped. Costs |S| times the depth."""
    return _send_up(parent, chance, leaves, _root_paths(parent, leaves))[1]


@compiled_for(_seconds_to_merge, bulk=True)
def posterior(parent: Array, chance: Array, leaves: Array) -> tuple[float, Array]:
    """Return log P(Z_S), and P(π(u) = 1 | Z_S) for every node u."""
    nodes = _root_paths(parent, leaves)
    message, log_probability = _send_up(parent, chance, leaves, nodes)
    relevant = np.empty(len(parent))
    at = 0
    for node in range(len(parent)):
        above = relevant[parent[node]] if node > 0 else 0.0
        p0, p1 = chance[node, 0], chance[node, 1]
        if at < len(nodes) and nodes[at] == node:  # evidence below: weigh the two bits by their messages
            p0 = _weigh(p0, message[at])
            p1 = _weigh(p1, message[at])
            at += 1
        relevant[node] = (1 - above) * p0 + above * p1
    return log_probability, relevant


@inlined
def _weigh(p: float, message: Array) -> float:
    """Return P(bit = 1) given the evidence below, if it was p before."""
    if p <= 0.0 or message[1] == -np.inf:
        return 0.0
    if p >= 1.0 or message[0] == -np.inf:
        return 1.0
    return float(p / (p + (1 - p) * exp(message[0] - message[1])))


def average_of_children(tree: RootedTree, mean: Array) -> Array:
    """Return μ of every node, bottom up."""
    return _averages(tree.shape, mean)


def lipschitz_extension(tree: RootedTree, mean: Array) -> Array:
    """Return μ of every node, L-continuous on all of them; raise an error if it is not so on the documents."""
    if isinstance(tree, DocumentTree):
        tree = EdgeWeightedTree.from_document_tree(tree)
    if not isinstance(tree, EdgeWeightedTree):
        raise ContinuityError("The Lipschitz extension needs distances between nodes: a tree with widths or lengths.")
    low, high = _intervals(tree.shape, tree.length, mean)
    empty = np.flatnonzero(low > high + EXTENSION_ROUNDING)
    if len(empty):
        node = int(empty[-1])  # breadth first: the last is a smallest subtree that shows the conflict
        raise ContinuityError(
            f"The mean relevance is not L-continuous: below {tree.name(node)} two documents differ by more than their "
            f"distance (by {low[node] - high[node]:.3g})."
        )
    return _nearest_to_average(tree.shape, tree.length, mean, low, high)


@compiled_bulk
def _averages(shape: Shape, mean: Array) -> Array:
    values = np.zeros(len(shape.parent))
    for node in range(len(shape.parent) - 1, -1, -1):
        first, end = shape.child_start[node], shape.child_start[node + 1]
        if first == end:
            values[node] = mean[shape.first_document[node]]
        else:
            for child in range(first, end):
                values[node] += values[child]
            values[node] /= end - first
    return values


@compiled_bulk
def _intervals(shape: Shape, length: Array, mean: Array) -> tuple[Array, Array]:
    """Return I(x) = [μ-(x), μ+(x)] of Section 7: the values that the documents below allow."""
    nodes = len(shape.parent)
    low, high = np.full(nodes, -np.inf), np.full(nodes, np.inf)
    for node in range(nodes - 1, -1, -1):
        if shape.child_start[node] == shape.child_start[node + 1]:
            low[node] = high[node] = mean[shape.first_document[node]]
        if node > 0:
            up = shape.parent[node]
            low[up] = max(low[up], low[node] - length[node])
            high[up] = min(high[up], high[node] + length[node])
    return low, high


@compiled_bulk
def _nearest_to_average(shape: Shape, length: Array, mean: Array, low: Array, high: Array) -> Array:
    """Choose values top down: within the interval, within reach of the parent, within the range of μ, nearest to the
    average.
    """
    values = _averages(shape, mean)  # averages lie in the range of μ; so do the interval's ends once cut to it
    smallest, largest = mean.min(), mean.max()
    for node in range(len(shape.parent)):
        if shape.child_start[node] == shape.child_start[node + 1]:
            continue  # a document keeps its mean: the interval is that point
        floor, ceiling = max(low[node], smallest), min(high[node], largest)
        if node > 0:
            up = values[shape.parent[node]]
            floor, ceiling = max(floor, up - length[node]), min(ceiling, up + length[node])
        values[node] = min(max(values[node], floor), ceiling)
    return values


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


def orbits(tree: RootedTree, parameters: Array, shown: Positions) -> Array:
    """Number the documents so that two share a number if the tree, its parameters and S do not distinguish them."""
    leaves = tree.shape.leaf[shown].astype(np.int64)
    with np.errstate(over="ignore"):  # scrambled bits may overflow when run as plain Python
        return np.asarray(_orbits(tree.shape.parent, parameters, leaves))[tree.shape.leaf]


@compiled_bulk
def _orbits(parent: Array, parameters: Array, leaves: Array) -> Array:
    """Number the nodes; equal numbers mean that a parameter-preserving automorphism exchanges the nodes.

    Upwards, a subtree is named by its parameters and the multiset of its children's names; downwards, a node by its own
    name and its parent's position. Parameters are compared to 12 digits, as ties are.
    """
    nodes = len(parent)
    name = np.zeros(nodes, np.uint64)
    for leaf in leaves:
        name[leaf] = np.uint64(1)
    for node in range(nodes - 1, -1, -1):
        own = np.uint64(0x9E3779B97F4A7C15)
        for parameter in parameters[node]:
            own = hash64(own ^ np.uint64(np.int64(parameter * 1e12 + 0.5)))
        name[node] = hash64(name[node] + own)
        if node > 0:
            name[parent[node]] += name[node]
    for node in range(1, nodes):
        name[node] = hash64(name[node] ^ hash64(name[parent[node]]))
    return name


def forest_state(networks: Sequence[TreeNetwork], shares: Array, documents: DocumentIds) -> ForestState:
    """Combine networks for drawing, with their nodes numbered consecutively."""
    starts = np.concatenate([[0], np.cumsum([network.tree.nodes for network in networks])]).astype(np.int64)
    leaves = []
    for start, network in zip(starts[:-1], networks, strict=True):
        leaf = _deciding_nodes(network.tree.shape.parent, network.chance, network.tree.shape.leaf)
        same = network.documents is documents
        leaves.append(start + (leaf if same else leaf[network.documents.positions(documents)]))
    return ForestState(
        cumulative_share=np.cumsum(shares),
        root=starts[:-1].copy(),
        decider=np.stack(leaves).astype(np.uint32),
        parent=np.concatenate([s + n.tree.shape.parent for s, n in zip(starts[:-1], networks, strict=True)]).astype(
            np.uint32
        ),
        chance=np.concatenate([network.chance for network in networks]),
        mark=np.zeros(starts[-1], np.int64),
        path=np.zeros(max(network.tree.depth for network in networks) + 1, np.uint32),
        visitor=np.zeros(2, np.uint64),
    )


@compiled_bulk
def _deciding_nodes(parent: Array, chance: Array, leaf: Array) -> Array:
    """Return, for each leaf, the highest node that it cannot differ from: drawing can stop there."""
    top = np.arange(len(parent))
    for node in range(1, len(parent)):
        if chance[node, 0] == 0.0 and chance[node, 1] == 1.0:
            top[node] = top[parent[node]]
    return top[leaf]
