"""Trees from vectors: wide enough, shallow whatever the data, the same every time."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform

from zoomrank import errors
from zoomrank.documents import clustering
from zoomrank.documents.clustering import LINKED_PART, deepest_allowed, linked, tree_from_vectors
from zoomrank.spaces import DocumentTree
from zoomrank.types import Array

RNG = np.random.default_rng(7)


def blobs(count: int, dimensions: int = 8, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    centres = 4 * rng.standard_normal((20, dimensions))
    return (centres[rng.integers(20, size=count)] + rng.standard_normal((count, dimensions))).astype(np.float32)


def assert_wide_enough(tree: DocumentTree, vectors: Array, pairs: int = 2000) -> None:
    """Documents go by their rows; close pairs, which random ones are not, are the neighbours in the tree."""
    rng = np.random.default_rng(1)
    drawn = [tuple(pair) for pair in rng.integers(len(vectors), size=(pairs, 2)).tolist()]
    for x, y in [*drawn, *list(pairwise(tree.documents))[:pairs]]:
        assert tree.distance(x, y) >= np.linalg.norm(vectors[x].astype(float) - vectors[y].astype(float))


def general_bound(count: int) -> float:
    return float(
        np.log(max(1.0, count / LINKED_PART)) / np.log(1 / clustering.LARGEST_SHARE) + deepest_allowed(LINKED_PART) + 1
    )


@pytest.mark.parametrize("count", [2, 3, 300, 2500])
@pytest.mark.parametrize("normalise", [True, False])
def test_no_subtree_is_narrower_than_its_documents_are_apart(count: int, normalise: bool) -> None:
    vectors = blobs(count)
    before = vectors.copy()
    tree, rows = tree_from_vectors(vectors, normalise=normalise)
    assert np.array_equal(vectors, before)
    assert sorted(rows.tolist()) == list(range(count))
    assert list(tree.documents) == rows.tolist()
    if normalise:
        vectors = vectors / np.linalg.norm(vectors.astype(float), axis=1).astype(np.float32)[:, None]
    assert_wide_enough(tree, vectors)
    assert (tree.width[tree.shape.leaf] == 0).all()


def test_vectors_of_the_caller_stay_as_they_are() -> None:
    vectors = blobs(50).astype(np.float64)
    before = vectors.copy()
    tree_from_vectors(vectors)
    assert np.array_equal(vectors, before)


def test_blobs_are_found() -> None:
    centres = 50 * np.eye(10)[:5]
    vectors = np.repeat(centres, 600, axis=0) + RNG.standard_normal((3000, 10))
    tree, _ = tree_from_vectors(vectors, normalise=False)
    inside = np.mean([tree.distance(600 * blob, 600 * blob + i) for blob in range(5) for i in range(1, 100)])
    across = np.mean([tree.distance(0, 600 * blob + i) for blob in range(1, 5) for i in range(100)])
    assert inside < across / 2


def test_the_same_seed_gives_the_same_tree() -> None:
    vectors = blobs(3000)
    one, other = (tree_from_vectors(vectors, seed=5)[0] for _ in range(2))
    assert one.fingerprint == other.fingerprint
    assert one.fingerprint != tree_from_vectors(vectors, seed=6)[0].fingerprint


def nasty(name: str, count: int) -> Array:
    vectors = np.zeros((count, 2))
    if name == "outlier":
        vectors = np.random.default_rng(0).standard_normal((count, 2))
        vectors[17] = 1e6
    elif name == "chain":
        vectors[:, 0] = 1.3 ** (np.arange(count) % 1000)
        vectors[:, 1] = np.arange(count) // 1000
    elif name == "doubling":
        vectors[:, 0] = 2.0 ** (np.arange(count) % 500)
    elif name == "two":
        vectors[::20] = 1.0
    elif name == "far":
        vectors = 1e7 + np.random.default_rng(0).standard_normal((count, 2))
    return vectors


@pytest.mark.parametrize("count", [1500, 5000])
@pytest.mark.parametrize("name", ["equal", "outlier", "chain", "doubling", "two", "far"])
def test_depth_is_logarithmic_whatever_the_data(name: str, count: int) -> None:
    vectors = nasty(name, count)
    tree, _ = tree_from_vectors(vectors, normalise=False)
    assert tree.depth <= (deepest_allowed(count) if count <= 2000 else general_bound(count))
    assert_wide_enough(tree, vectors, 300)
    if name == "equal":
        assert tree.depth == 1
        assert tree.width[0] == 0


@pytest.mark.parametrize("name", ["outlier", "doubling"])
def test_halving_bounds_the_depth_where_centres_do_not_help(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustering, "_centres", lambda sample, branching, seed: sample[:1])
    vectors = nasty(name, 5000)
    tree, _ = tree_from_vectors(vectors, normalise=False)
    assert tree.depth <= np.ceil(np.log2(5000 / LINKED_PART)) + deepest_allowed(LINKED_PART)
    assert_wide_enough(tree, vectors, 300)


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=2, max_size=40))
@settings(max_examples=50)
def test_linked_trees_are_as_wide_as_their_farthest_documents(points: list[tuple[int, int]]) -> None:
    distances = pdist(np.array(points, float))
    parents, widths = linked(distances)
    tree = DocumentTree.from_parents(parents, width=widths)
    matrix = squareform(distances)
    assert tree.depth <= deepest_allowed(len(points))
    for node in range(tree.nodes):
        below = tree.below(node)
        assert tree.width[node] == matrix[np.ix_(below, below)].max()


def test_progress_is_told_and_ends_with_everything() -> None:
    told: list[int] = []
    tree_from_vectors(blobs(2500), progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 2500
    tree_from_vectors(nasty("equal", 2500), normalise=False, progress=told.append)
    assert told[-1] == 2500


@pytest.mark.parametrize(
    ("rows", "value", "says"),
    [
        ([3], np.nan, "1 of the vectors .* not finite .* rows 3"),
        (range(10), np.inf, "10 of the vectors .* not finite .* rows 0, 1, 2, 3, 4, …"),
        ([5, 6], 0.0, "2 of the vectors .* are zero .* rows 5, 6"),
        ([2], 1e20, "1 of the vectors .* too long"),
    ],
)
def test_vectors_that_place_nothing(rows: list[int], value: float, says: str) -> None:
    vectors = blobs(30)
    vectors[list(rows)] = value
    with pytest.raises(errors.VectorError, match=says):
        tree_from_vectors(vectors)


def test_not_vectors() -> None:
    for bad in (np.zeros(3), np.zeros((2, 0)), np.array([["a"]]), np.zeros((1, 2, 3))):
        with pytest.raises(errors.VectorError):
            tree_from_vectors(bad)
    with pytest.raises(errors.EmptyCollectionError):
        tree_from_vectors(np.zeros((0, 3)))
    with pytest.raises(errors.ParameterError, match="branching must be 2 or more"):
        tree_from_vectors(blobs(3), branching=1)
    assert len(tree_from_vectors(np.ones((1, 3)))[0]) == 1
    assert tree_from_vectors(np.zeros((3, 2)), normalise=False)[0].width[0] == 0  # zero is a place like any other
    assert len(tree_from_vectors(np.eye(3, dtype=np.int8))[0]) == 3
