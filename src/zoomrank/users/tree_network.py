"""`TreeNetwork`: the Bayesian tree network of Section 3.1: relevance is inherited along a tree, with mutations.

The root's bit is 1 with probability μ(root); a child's bit is its parent's, flipped with a small probability
(Algorithm 1). Leaves are documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np

from zoomrank.errors import MeanError, MutationError, ParameterError
from zoomrank.spaces import DocumentId, DocumentIds, DocumentTree, EdgeWeightedTree, RootedTree
from zoomrank.spaces.ids import Positions
from zoomrank.types import Array, Seed
from zoomrank.users.distribution import UserDistribution, mean_array
from zoomrank.users.first_click import ForestState, lazy_relevance, whole_relevance
from zoomrank.users.tree_inference import (
    ConditionReport,
    average_of_children,
    check_conditions,
    check_range,
    example_mutations,
    forest_state,
    lipschitz_extension,
    log_skip_probability,
    loosened_mutations,
    orbits,
    posterior,
)

EXTENSIONS = {"average": average_of_children, "lipschitz": lipschitz_extension}


class TreeNetwork(UserDistribution):
    """Visitors whose relevance vectors come from one tree network with a given mean.

    Parameters
    ----------
    tree : RootedTree
        The tree along which relevance is inherited; its leaves are the documents.
    mean : mapping, sequence or array of float
        μ(x), by document or in the order of `tree.documents`.
    extension : {"average", "lipschitz"}
        The means of inner nodes: averages of their children's, or values that are L-continuous on all nodes.
    looseness : float
        Independence of children from their parents, from 0, the paper's example rule, to 1, the most that its theory
        allows.
    beyond_theory : bool
        Whether means may lie outside (0, ½], where Theorem 3.1 says nothing.

    Attributes
    ----------
    q0, q1 : ndarray
        The probability that each node's bit is flipped, if its parent's is 0 or 1.
    chance : ndarray
        `chance[u, b]` is the probability that the bit of node u is 1 if its parent's is b.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 3.1, Algorithm 1, Eq. 7 to 9; averages in Section 6.1.

    Examples
    --------
    >>> tree = DocumentTree.exponential(depth=2, branching=2, epsilon=0.5)
    >>> users = TreeNetwork(tree, mean=[0.5, 0.25, 0.1, 0.1])
    >>> round(users.mean(0), 12), round(users.conditional_mean(shown=[1], document=0), 3)
    (0.5, 0.333)
    """

    def __init__(
        self,
        tree: RootedTree,
        mean: Mapping[DocumentId, float] | Iterable[float] | Array,
        *,
        extension: str = "average",
        looseness: float = 0.0,
        beyond_theory: bool = False,
    ) -> None:
        leaves = mean_array(tree.documents, mean)
        if not beyond_theory:
            check_mean_range(tree.documents, leaves)
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
        mean: Mapping[DocumentId, float] | Sequence[float] | None = None,
        beyond_theory: bool = False,
    ) -> TreeNetwork:
        """Build a network from mutation probabilities.

        Parameters
        ----------
        tree : RootedTree
            The tree along which relevance is inherited. If it was made from the caller's parents, `given_numbers` has
            the caller's numbers of its nodes.
        root_mean : float
            The probability that the root's bit is 1.
        q0, q1 : sequence of float
            The probability that each node's bit is flipped, if its parent's is 0 or 1; in the tree's own numbering. The
            root's are ignored.
        mean : mapping or sequence of float, optional
            The mean that the mutations must lead to (Eq. 7); an error if they do not.
        beyond_theory : bool
            Whether means may lie outside (0, ½], and mutations be more frequent than Eq. 8 allows.

        Returns
        -------
        TreeNetwork
            The visitors.

        References
        ----------
        Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 3.1, Algorithm 1, Eq. 7 and 8.
        """
        up, down = np.array(q0, dtype=np.float64), np.array(q1, dtype=np.float64)
        check_range(up, down, tree.nodes)
        if not 0 <= root_mean <= 1:
            raise MeanError(f"The mean of the root is {root_mean}; it must lie in [0, 1].")
        network = cls.__new__(cls)
        network._assemble(tree, float(root_mean), up, down)
        if mean is not None:
            network._check_mean(mean_array(tree.documents, mean))
        if not beyond_theory:
            network._check_theory()
        return network

    def _assemble(self, tree: RootedTree, root_mean: float, q0: Array, q1: Array) -> None:
        super().__init__(tree.documents)
        self.tree = tree
        self.q0, self.q1 = q0, q1
        self.chance = np.stack([q0, 1.0 - q1], axis=1)  # P(π(u) = 1 | parent's bit)
        self.chance[0] = root_mean
        self.chance.flags.writeable = False

    def _check_mean(self, wanted: Array) -> None:
        """Raise an error for mutations that do not lead to this mean (Eq. 7)."""
        got = self.mean()
        worst = int(np.abs(wanted - got).argmax())
        if abs(wanted[worst] - got[worst]) > 1e-9:
            raise MutationError(
                f"These mutations give {self.documents[worst]!r} the mean {got[worst]:.6g}, not "
                f"{wanted[worst]:.6g} (Eq. 7 of the paper)."
            )

    def _check_theory(self) -> None:
        """Raise an error for means and mutations that Theorem 3.1 does not cover."""
        check_mean_range(self.documents, self.mean())
        report, name = self.conditions(), self.tree.name
        high = int(self.node_mean.argmax())
        if self.node_mean[high] > 0.5:
            raise MeanError(f"The mean of {name(high)} is {self.node_mean[high]:.6g}; the theory needs (0, ½].")
        if report.continuity_ratio > 1 + 1e-9:
            raise MutationError(
                f"The mean of {name(report.continuity_node)} differs from its parent's by "
                f"{report.continuity_ratio:.4g} times their distance: not L-continuous, as Theorem 3.1 needs it."
            )
        if not report.hold:
            node = report.rarity_node
            raise MutationError(
                f"Mutations at {name(node)} are {report.rarity_ratio:.4g} times too frequent: "
                f"q0 + q1 = {self.q0[node] + self.q1[node]:.4g} (Eq. 8 of the paper). "
                "Pass beyond_theory=True to do without the guarantee."
            )

    def conditions(self) -> ConditionReport:
        """Measure how well the mutation probabilities meet the two conditions of the theory, in this tree's metric.

        Returns
        -------
        ConditionReport
            For each condition the worst node, and its violation; `hold` is true if both hold.

        References
        ----------
        Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 3.1, Eq. 7 and 8.
        """
        return check_conditions(_with_lengths(self.tree), self.node_mean, self.q0, self.q1)

    @cached_property
    def node_mean(self) -> Array:
        """Mean μ(u) of every node.

        Returns
        -------
        ndarray
            A probability for each node, in the tree's own numbering.
        """
        return np.asarray(posterior(self.tree.shape.parent, self.chance, np.empty(0, np.int64))[1])

    def log_skip_probability(self, shown: Positions) -> float:
        """Return log P(Z_S), at the cost of |S| root paths."""
        return float(log_skip_probability(self.tree.shape.parent, self.chance, self._leaves(shown)))

    def given_skipped(self, shown: Positions) -> tuple[float, Array]:
        """Return log P(Z_S) and μ(· | Z_S), by one pass over the tree."""
        log_probability, relevant = posterior(self.tree.shape.parent, self.chance, self._leaves(shown))
        return float(log_probability), relevant[self.tree.shape.leaf]

    def draw(self, visitors: int, rng: np.random.Generator) -> Array:
        """Draw whole relevance vectors."""
        return np.asarray(whole_relevance(self.state, visitors, rng))

    def lazy_relevance(self, documents: Iterable[DocumentId], visitors: int, seed: Seed = None) -> Array:
        """Draw visitors, but only the relevance of some documents to each, as clicks are drawn.

        Parameters
        ----------
        documents : iterable of DocumentId
            The documents.
        visitors : int
            Number of visitors to draw.
        seed : int, Generator or None
            The seed of the random numbers.

        Returns
        -------
        ndarray of bool
            A row for each visitor, a column for each of the documents; equal to that of `sample` with this seed.
        """
        positions = self.documents.positions(documents)
        return np.asarray(lazy_relevance(self.state, positions, visitors, np.random.default_rng(seed)))

    @cached_property
    def state(self) -> ForestState:
        """State that clicks are drawn from."""
        return forest_state([self], np.ones(1), self.documents)

    def symmetry_classes(self, shown: Positions) -> Array:
        """Number documents so that two share a number if an automorphism that keeps all parameters and S exchanges
        them.
        """
        return orbits(self.tree, self.chance, shown)

    def _leaves(self, shown: Positions) -> Array:
        return self.tree.shape.leaf[shown].astype(np.int64)


def check_mean_range(documents: DocumentIds, mean: Array) -> None:
    """Raise an error for means outside (0, ½], which Theorem 3.1 does not cover."""
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
