import numpy as np
import pytest
from hypothesis import given

from tests.support.trees import random_parents, random_tree, seeds, sizes
from zoomrank import DocumentTree, EdgeWeightedTree, FiniteMetric
from zoomrank.errors import WidthError


def by_hand(parents: list[int], length: list[float], one: int, other: int) -> float:
    def above(node: int) -> dict[int, float]:
        far, reached = 0.0, {node: 0.0}
        while parents[node] >= 0:
            far += length[node]
            node = parents[node]
            reached[node] = far
        return reached

    ours, theirs = above(one), above(other)
    return min(ours[node] + theirs[node] for node in ours.keys() & theirs.keys())


@given(seeds, sizes)
def test_shortest_paths(seed: int, nodes: int) -> None:
    rng = np.random.default_rng(seed)
    parents = random_parents(rng, nodes)
    length = [0.0 if parent < 0 else float(rng.choice([0.0, rng.random()])) for parent in parents]
    tree = EdgeWeightedTree.from_parents(parents, length=length)
    for one in tree.documents:
        expected = [by_hand(parents, length, one, other) for other in tree.documents]
        np.testing.assert_allclose(tree.distances(one), expected, atol=1e-12)
        np.testing.assert_allclose([tree.distance(one, other) for other in tree.documents], expected, atol=1e-12)


@given(seeds, sizes)
def test_widths_and_lengths_are_two_views_of_an_ultrametric(seed: int, nodes: int) -> None:
    tree = random_tree(np.random.default_rng(seed), nodes)
    lengths = EdgeWeightedTree.from_document_tree(tree)
    np.testing.assert_allclose(lengths.distance_matrix(), tree.distance_matrix(), atol=1e-12)


@given(seeds, sizes)
def test_diameters(seed: int, nodes: int) -> None:
    rng = np.random.default_rng(seed)
    parents = random_parents(rng, nodes)
    length = [0.0 if parent < 0 else float(rng.choice([0.0, rng.random()])) for parent in parents]
    tree = EdgeWeightedTree.from_parents(parents, length=length)
    hull = tree.to_document_tree()
    assert isinstance(hull, DocumentTree)
    for node in range(tree.nodes):
        places = tree.documents.positions(tree.below(node))
        farthest = tree.distance_matrix()[np.ix_(places, places)].max()
        assert hull.width[node] == pytest.approx(farthest, abs=1e-12)
    assert (hull.distance_matrix() >= tree.distance_matrix() - 1e-12).all()


@given(seeds, sizes)
def test_distances_make_a_metric_space(seed: int, nodes: int) -> None:
    rng = np.random.default_rng(seed)
    parents = random_parents(rng, nodes)
    length = [0.0 if parent < 0 else float(rng.uniform(0.1, 1)) for parent in parents]
    tree = EdgeWeightedTree.from_parents(parents, length=length)
    assert len(FiniteMetric.from_matrix(tree.distance_matrix())) == len(tree)
    assert tree.given_numbers is not None
    assert sorted(tree.given_numbers) == list(range(nodes))
    assert [tree.given_numbers[tree.leaf(d)] for d in tree.documents] == list(tree.documents)


def test_inner_nodes_have_distances() -> None:
    tree = EdgeWeightedTree.from_parents([-1, 0, 0, 2, 2], length=[0, 0.5, 0.1, 0.2, 0.3])
    assert tree.node_distance(0, tree.leaf(3)) == pytest.approx(0.3)
    assert tree.node_distance(tree.leaf(1), tree.leaf(1)) == 0.0


def test_refusals() -> None:
    with pytest.raises(WidthError, match="edge above node 1"):
        EdgeWeightedTree.from_parents([-1, 0], length=[0, -1])
    with pytest.raises(WidthError, match="edge above node 0"):  # as the caller numbers them
        EdgeWeightedTree.from_parents([1, -1, 1], length=[-1, 0, 1])
    with pytest.raises(WidthError, match="root"):
        EdgeWeightedTree.from_parents([-1, 0], length=[1, 1])
    with pytest.raises(WidthError, match=r"Lengths of shape \(1,\) were given for 2 nodes"):
        EdgeWeightedTree.from_parents([-1, 0], length=[1])
