import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.trees import random_parents, random_tree, seeds, sizes
from zoomrank import DocumentTree
from zoomrank.spaces.tree_shape import node_depths


def path_to_root(parents: list[int], node: int) -> list[int]:
    path = [node]
    while parents[path[-1]] >= 0:
        path.append(parents[path[-1]])
    return path


@given(seeds, st.integers(1, 40))
def test_any_parents_become_the_same_tree(seed: int, nodes: int) -> None:
    parents = random_parents(np.random.default_rng(seed), nodes)
    tree = DocumentTree.from_parents(parents, epsilon=0.5)
    leaves = sorted(set(range(nodes)) - set(parents))
    assert sorted(tree.documents) == leaves
    assert tree.nodes == nodes
    assert tree.depth == max(len(path_to_root(parents, leaf)) - 1 for leaf in leaves)
    for one in leaves:
        assert len(list(tree.ancestors(tree.leaf(one)))) == len(path_to_root(parents, one))
        for other in leaves:
            shared = set(path_to_root(parents, one)) & set(path_to_root(parents, other))
            expected = 0.0 if one == other else 0.5 ** (len(shared) - 1)
            assert tree.distance(one, other) == expected


@given(seeds, st.integers(1, 40))
def test_numbering(seed: int, nodes: int) -> None:
    """What every kernel relies on: parents before children, children and documents in ranges."""
    tree = random_tree(np.random.default_rng(seed), nodes)
    shape = tree.shape
    depth = node_depths(shape.parent)
    assert (np.diff(depth) >= 0).all()
    for node in range(nodes):
        children = list(tree.children(node))
        assert children == [c for c in range(1, nodes) if shape.parent[c] == node]
        below = [document for document in tree.documents if node in tree.ancestors(tree.leaf(document))]
        assert tree.below(node) == below
        if not children:
            assert shape.leaf[shape.first_document[node]] == node


@given(seeds, sizes)
def test_distances_agree_and_are_an_ultrametric(seed: int, nodes: int) -> None:
    tree = random_tree(np.random.default_rng(seed), nodes)
    matrix = tree.distance_matrix()
    pairs = [[tree.distance(x, y) for y in tree.documents] for x in tree.documents]
    np.testing.assert_array_equal(matrix, pairs)
    through = np.maximum(matrix[:, None, :], matrix[None, :, :]).min(axis=2)
    assert (matrix <= through).all()


def test_exponential_metric_is_equation_two() -> None:
    tree = DocumentTree.exponential(depth=15, branching=2, epsilon=0.837, constant=2.0)
    assert len(tree) == 32_768
    for one, other, height in ((0, 1, 14), (0, 2, 13), (0, 32_767, 0), (20_000, 20_001, 14)):
        assert tree.distance(one, other) == pytest.approx(2.0 * 0.837**height, rel=1e-15)
    assert tree.distance(7, 7) == 0.0


@pytest.mark.parametrize(("depth", "branching"), [(0, 1), (0, 5), (1, 1), (4, 1), (3, 2), (2, 5)])
def test_complete_trees_equal_those_from_parents(depth: int, branching: int) -> None:
    tree = DocumentTree.exponential(depth=depth, branching=branching, epsilon=0.7)
    again = DocumentTree.from_parents([-1, *tree.shape.parent[1:]], epsilon=0.7)
    assert len(tree) == branching**depth
    for ours, theirs in zip(tree.shape, again.shape, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(tree.width, again.width)


def test_single_document_and_chain() -> None:
    alone = DocumentTree.from_parents([-1], ids=["only"])
    assert list(alone.documents) == ["only"]
    assert alone.distance("only", "only") == 0.0
    chain = DocumentTree.from_parents([-1, 0, 1, 2])
    assert len(chain) == 1
    assert chain.depth == 3
    assert chain.distances(3).tolist() == [0.0]


def test_trees_do_not_change() -> None:
    tree = DocumentTree.exponential(depth=2, branching=2)
    for array in (*tree.shape, tree.width):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_other_widths_leave_the_tree_alone() -> None:
    tree = DocumentTree.exponential(depth=3, branching=2)
    halved = tree.with_width(tree.width / 2)
    assert halved.distance(0, 7) == tree.distance(0, 7) / 2 == 0.5
    assert halved.documents is tree.documents


def test_ids_of_all_kinds() -> None:
    parents = [2, 2, -1, 2, 1, 1]  # leaves are nodes 0, 3, 4, 5
    numbered = DocumentTree.from_parents(parents)
    assert sorted(numbered.documents) == [0, 3, 4, 5]
    assert [numbered.documents.position(np.int64(d)) for d in numbered.documents] == [0, 1, 2, 3]
    named = DocumentTree.from_parents(parents, ids=["zero", ("three", 3), "four", 5])
    assert named.distance("four", 5) == numbered.distance(4, 5)
    assert named.distance("zero", ("three", 3)) == numbered.distance(0, 3)
    assert "four" in named.documents
    assert 4 not in named.documents
    assert list(named.documents[1:3]) == [named.documents[1], named.documents[2]]


def test_a_tree_of_a_million_documents_is_exact_at_its_ends() -> None:
    tree = DocumentTree.exponential(depth=20, branching=2)
    assert tree.distance(0, 2**20 - 1) == 1.0
    assert tree.distance(2**20 - 2, 2**20 - 1) == pytest.approx(0.837**19)
    assert tree.below(0)[-1] == 2**20 - 1
