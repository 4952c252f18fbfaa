"""`TreeNetwork`: the Bayesian tree network of Section 3.1. Relevance is inherited from topic to subtopic, with
mutations.

The root's bit is 1 with probability μ(root); a child's bit is its parent's, flipped with a small probability
(Algorithm 1). Leaves are documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from zoomrank.compiled import compiled
from zoomrank.errors import MeanError, MutationError, ParameterError
from zoomrank.numbers import Array, Seed
from zoomrank.spaces import DocumentId, DocumentIds, DocumentTree, EdgeWeightedTree, RootedTree
from zoomrank.spaces.ids import Positions
from zoomrank.spaces.scrambling import scramble
from zoomrank.users.distribution import UserDistribution, mean_array
from zoomrank.users.first_click import ForestState, lazy_relevance, whole_relevance
from zoomrank.users.networks.mean_extension import average_of_children, lipschitz_extension
from zoomrank.users.networks.message_passing import log_skip_probability, posterior
from zoomrank.users.networks.mutations import (
    ConditionReport,
    check_conditions,
    check_range,
    example_mutations,
    loosened_mutations,
)

EXTENSIONS = {"average": average_of_children, "lipschitz": lipschitz_extension}


class TreeNetwork(UserDistribution):
    """Visitors whose relevance vectors come from one tree network with a given mean.

    `extension` says how means are carried up the tree (see `extension.py`); `looseness` makes children more
    independent of their parents than the paper's example rule does, as far as its theory allows (see `mutation.py`).
    Means must lie in (0, ½], as Theorem 3.1 has it, unless `beyond_theory`.

    >>> tree = DocumentTree.exponential(depth=2, branching=2, epsilon=0.5)
    >>> users = TreeNetwork(tree, mean=[0.5, 0.25, 0.1, 0.1])
    >>> round(users.mean(0), 12), round(users.conditional_mean(shown=[1], document=0), 3)
    (0.5, 0.333)
    """

    def __init__(
        self,
        tree: RootedTree,
        mean: Mapping[Any, float] | Iterable[float] | Array,
        *,
        extension: str = "average",
        looseness: float = 0.0,
        beyond_theory: bool = False,
    ) -> None:
        leaves = mean_array(tree.documents, mean)
        if not beyond_theory:
            check_theory(tree.documents, leaves)
        if extension not in EXTENSIONS:
            raise ParameterError(f"extension must be one of {sorted(EXTENSIONS)}, not {extension!r}.")
        node_mean = EXTENSIONS[extension](tree, leaves)
        if looseness:
            q0, q1 = loosened_mutations(_with_lengths(tree), node_mean, looseness)
        else:
            q0, q1 = example_mutations(tree.shape, node_mean)
        self._assemble(tree, float(node_mean[0]), q0, q1)

    @classmethod
    def from_mutations(
        cls,
        tree: RootedTree,
        root_mean: float,
        q0: Sequence[float] | Array,
        q1: Sequence[float] | Array,
        *,
        mean: Mapping[Any, float] | Sequence[float] | None = None,
        beyond_theory: bool = False,
    ) -> TreeNetwork:
        """Build from mutation probabilities, one of each per node in the tree's numbering (the root's are ignored).

        A tree made from a caller's parents says in `given_numbers` how the caller calls its nodes. Unless
        `beyond_theory`, the resulting means must lie in (0, ½] and mutations be as rare as Eq. 8 demands. If
        a `mean` is given it must be what the mutations lead to (Eq. 7).
        """
        up, down = np.array(q0, dtype=np.float64), np.array(q1, dtype=np.float64)
        check_range(up, down, tree.nodes)
        if not 0 <= root_mean <= 1:
            raise MeanError(f"The mean of the root is {root_mean}; it must lie in [0, 1].")
        network = cls.__new__(cls)
        network._assemble(tree, float(root_mean), up, down)
        if mean is not None:
            wanted, got = mean_array(tree.documents, mean), network.mean()
            worst = int(np.abs(wanted - got).argmax())
            if abs(wanted[worst] - got[worst]) > 1e-9:
                raise MutationError(
                    f"These mutations give {tree.documents[worst]!r} the mean {got[worst]:.6g}, not "
                    f"{wanted[worst]:.6g} (Eq. 7 of the paper)."
                )
        if not beyond_theory:
            check_theory(tree.documents, network.mean())
            report = network.conditions()
            high = int(network.node_mean.argmax())
            if network.node_mean[high] > 0.5:
                raise MeanError(
                    f"The mean of {tree.name(high)} is {network.node_mean[high]:.6g}; the theory needs (0, ½]."
                )
            if report.continuity_ratio > 1 + 1e-9:
                raise MutationError(
                    f"The mean of {tree.name(report.continuity_node)} differs from its parent's by "
                    f"{report.continuity_ratio:.4g} times their distance: not L-continuous, as Theorem 3.1 needs it."
                )
            if not report.hold:
                node = report.rarity_node
                raise MutationError(
                    f"Mutations at {tree.name(node)} are {report.rarity_ratio:.4g} times too frequent: "
                    f"q0 + q1 = {up[node] + down[node]:.4g} (Eq. 8 of the paper). "
                    "Pass beyond_theory=True to do without the guarantee."
                )
        return network

    def _assemble(self, tree: RootedTree, root_mean: float, q0: Array, q1: Array) -> None:
        super().__init__(tree.documents)
        self.tree = tree
        self.q0, self.q1 = q0, q1
        self.chance = np.stack([q0, 1.0 - q1], axis=1)  # P(π(u) = 1 | parent's bit)
        self.chance[0] = root_mean
        self.chance.flags.writeable = False

    def conditions(self) -> ConditionReport:
        """How well the mutation probabilities meet the two conditions of Section 3.1 in this tree's metric."""
        return check_conditions(_with_lengths(self.tree), self.node_mean, self.q0, self.q1)

    @cached_property
    def node_mean(self) -> Array:
        """μ(u) of every node."""
        return np.asarray(posterior(self.tree.shape.parent, self.chance, np.empty(0, np.int64))[1])

    def log_skip_probability(self, shown: Positions) -> float:
        """Log P(Z_S), at the cost of |S| root paths."""
        return float(log_skip_probability(self.tree.shape.parent, self.chance, self._leaves(shown)))

    def given_skipped(self, shown: Positions) -> tuple[float, Array]:
        """Log P(Z_S) and μ(· | Z_S), by one pass over the tree."""
        log_probability, relevant = posterior(self.tree.shape.parent, self.chance, self._leaves(shown))
        return float(log_probability), relevant[self.tree.shape.leaf]

    def draw(self, visitors: int, rng: np.random.Generator) -> Array:
        """Whole relevance vectors."""
        return np.asarray(whole_relevance(self.state, visitors, rng))

    def lazy_relevance(self, documents: Iterable[DocumentId], visitors: int, seed: Seed = None) -> Array:
        """Relevance of these documents only, drawn as clicks are: a row per visitor."""
        positions = self.documents.positions(documents)
        return np.asarray(lazy_relevance(self.state, positions, visitors, np.random.default_rng(seed)))

    @cached_property
    def state(self) -> ForestState:
        """What clicks are drawn from."""
        return forest_state([self], np.ones(1), self.documents)

    def symmetry_classes(self, shown: Positions) -> Array:
        """Documents share a number if an automorphism of the tree that keeps all parameters and S exchanges them."""
        return orbits(self.tree, self.chance, shown)

    def _leaves(self, shown: Positions) -> Array:
        return self.tree.shape.leaf[shown].astype(np.int64)


def forest_state(networks: Sequence[TreeNetwork], shares: Array, documents: DocumentIds) -> ForestState:
    """Lay networks side by side for drawing, their nodes numbered through."""
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


@compiled
def _deciding_nodes(parent: Array, chance: Array, leaf: Array) -> Array:
    """For each leaf, the highest node that it cannot differ from: where nothing mutates on the way down, as in all of
    the background, drawing can stop there.
    """
    top = np.arange(len(parent))
    for node in range(1, len(parent)):
        if chance[node, 0] == 0.0 and chance[node, 1] == 1.0:
            top[node] = top[parent[node]]
    return top[leaf]


def orbits(tree: RootedTree, parameters: Array, shown: Positions) -> Array:
    """Number the documents so that only those share a number that the tree, its parameters and S cannot tell apart."""
    leaves = tree.shape.leaf[shown].astype(np.int64)
    with np.errstate(over="ignore"):  # scrambled bits may overflow when run as plain Python
        return np.asarray(_orbits(tree.shape.parent, parameters, leaves))[tree.shape.leaf]


def check_theory(documents: DocumentIds, mean: Array) -> None:
    """Refuse means outside (0, ½], where Theorem 3.1 says nothing."""
    bad = np.flatnonzero(~((mean > 0) & (mean <= 0.5)))
    if len(bad):
        raise MeanError(
            f"The mean relevance of {documents[bad[0]]!r} is {mean[bad[0]]:.6g}; the theory needs (0, ½]. "
            "Pass beyond_theory=True to do without its guarantees."
        )


def _with_lengths(tree: RootedTree) -> EdgeWeightedTree:
    if isinstance(tree, DocumentTree):
        return EdgeWeightedTree.from_document_tree(tree)
    if isinstance(tree, EdgeWeightedTree):
        return tree
    raise ParameterError("The conditions of Section 3.1 need distances: a tree with widths or lengths.")


@compiled
def _orbits(parent: Array, parameters: Array, leaves: Array) -> Array:
    """A number per node; equal numbers mean that a parameter-preserving automorphism exchanges the nodes.

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
            own = scramble(own ^ np.uint64(np.int64(parameter * 1e12 + 0.5)))
        name[node] = scramble(name[node] + own)
        if node > 0:
            name[parent[node]] += name[node]
    for node in range(1, nodes):
        name[node] = scramble(name[node] ^ scramble(name[parent[node]]))
    return name
