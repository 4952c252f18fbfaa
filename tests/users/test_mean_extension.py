import numpy as np
import pytest
from hypothesis import given

from tests.support.trees import lipschitz_mean, random_tree, seeds, sizes
from zoomrank import DocumentTree, EdgeWeightedTree
from zoomrank.errors import ContinuityError
from zoomrank.users.tree_inference import average_of_children, lipschitz_extension


@given(seeds, sizes)
def test_average_of_the_children(seed: int, nodes: int) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, nodes)
    mean = rng.random(len(tree))
    values = average_of_children(tree, mean)
    for node in range(nodes):
        children = tree.children(node)
        expected = np.mean([values[c] for c in children]) if children else mean[tree.shape.first_document[node]]
        assert values[node] == pytest.approx(expected, abs=1e-15)


@given(seeds, sizes)
def test_lipschitz_extension_is_lipschitz_and_keeps_documents_and_range(seed: int, nodes: int) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, nodes)
    mean = lipschitz_mean(rng, tree)
    values = lipschitz_extension(tree, mean)
    lengths = EdgeWeightedTree.from_document_tree(tree)
    np.testing.assert_array_equal(values[tree.shape.leaf], mean)
    assert values.min() >= mean.min() - 1e-12
    assert values.max() <= mean.max() + 1e-12
    for one in range(nodes):
        for other in range(nodes):
            assert abs(values[one] - values[other]) <= lengths.node_distance(one, other) + 1e-12


def test_a_mean_that_is_not_lipschitz_is_refused() -> None:
    tree = DocumentTree.exponential(depth=2, branching=2, epsilon=0.1)
    with pytest.raises(ContinuityError, match="two documents differ by more than their distance"):
        lipschitz_extension(tree, np.array([0.5, 0.1, 0.1, 0.1]))
