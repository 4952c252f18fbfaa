import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.trees import lipschitz_mean, random_tree, seeds, sizes
from zoomrank import DocumentTree, EdgeWeightedTree
from zoomrank.errors import MeanError, MutationError, ParameterError
from zoomrank.users import TreeNetwork


@given(seeds, sizes, st.floats(0, 1))
def test_both_conditions_hold_by_construction(seed: int, nodes: int, looseness: float) -> None:
    """Eq. 9 satisfies Eq. 7 and 8 on any L-continuous mean, and so does every loosened version of it."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, nodes)
    mean = lipschitz_mean(rng, tree)
    users = TreeNetwork(tree, mean, extension="lipschitz", looseness=looseness)
    assert users.conditions().hold
    np.testing.assert_allclose(users.mean(), mean, atol=1e-12)
    again = TreeNetwork.from_mutations(tree, float(users.node_mean[0]), users.q0, users.q1, mean=list(mean))
    np.testing.assert_array_equal(again.chance, users.chance)


def test_looser_networks_are_less_correlated() -> None:
    tree = DocumentTree.exponential(depth=3, branching=2)
    mean = np.full(8, 0.3)
    satisfaction = [TreeNetwork(tree, mean, looseness=l).satisfaction([0, 7]) for l in (0.0, 0.5, 1.0)]  # noqa: E741
    assert satisfaction[0] == pytest.approx(0.3)  # one and the same bit everywhere
    assert satisfaction[0] < satisfaction[1] < satisfaction[2]


def test_violations_are_named() -> None:
    tree = DocumentTree.from_parents([-1, 0, 0], width=[0.1, 0, 0])
    zero, some = [0.0] * 3, [0.0, 0.4, 0.0]
    with pytest.raises(MutationError, match="8 times too frequent"):
        TreeNetwork.from_mutations(tree, 0.5, some, some)
    TreeNetwork.from_mutations(tree, 0.5, some, some, beyond_theory=True)
    with pytest.raises(MutationError, match=r"Eq\. 7"):
        TreeNetwork.from_mutations(tree, 0.5, zero, zero, mean=[0.5, 0.4])
    with pytest.raises(MutationError, match=r"q1 of node 2 is 1\.5"):
        TreeNetwork.from_mutations(tree, 0.5, zero, [0, 0, 1.5])
    with pytest.raises(MutationError, match="q0 has 2 values for 3 nodes"):
        TreeNetwork.from_mutations(tree, 0.5, [0, 0], zero)
    with pytest.raises(MeanError, match="root"):
        TreeNetwork.from_mutations(tree, 1.5, zero, zero)
    with pytest.raises(MeanError, match=r"theory needs \(0, ½\]"):
        TreeNetwork.from_mutations(tree, 0.8, zero, zero)
    with pytest.raises(MeanError, match=r"The mean of node 1 is 0\.9"):
        TreeNetwork.from_mutations(
            DocumentTree.from_parents([-1, 0, 1], width=[1, 1, 0]), 0.4, [0, 0.9, 0], [0, 0.1, 0.9], beyond_theory=False
        )
    lengths = EdgeWeightedTree.from_parents([-1, 0, 0], length=[0, 0.003, 0.003])
    with pytest.raises(MutationError, match=r"differs from its parent's by 99 times"):
        TreeNetwork.from_mutations(lengths, 0.01, [0, 0.3, 0.3], zero)
    with pytest.raises(ParameterError, match="looseness"):
        TreeNetwork(tree, [0.5, 0.5], looseness=2)


def test_zero_means_can_be_loosened() -> None:
    tree = DocumentTree.from_parents([-1, 0, 0, 1, 1], width=[1, 0, 0, 0, 0])
    users = TreeNetwork(tree, [0.2, 0.0, 0.0], looseness=1.0, beyond_theory=True)
    np.testing.assert_allclose(users.mean(), [0.2, 0.0, 0.0], atol=1e-12)
