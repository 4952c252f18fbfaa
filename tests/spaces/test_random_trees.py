import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.trees import seeds
from zoomrank import FiniteMetric
from zoomrank.errors import MetricError
from zoomrank.spaces import random_tree


@given(seeds, st.integers(1, 12))
def test_trees_dominate_and_have_no_chains(seed: int, points: int) -> None:
    rng = np.random.default_rng(seed)
    space = FiniteMetric.from_vectors(rng.random((points, 3)), ids=[f"d{i}" for i in range(points)])
    tree = random_tree(space, rng)
    assert sorted(map(str, tree.documents)) == sorted(map(str, space.documents))
    place = tree.documents.positions(space.documents)
    assert (tree.distance_matrix()[np.ix_(place, place)] >= space.distance_matrix()).all()
    assert all(len(tree.children(node)) != 1 for node in range(tree.nodes))


@pytest.mark.parametrize("points", [16, 64])
def test_expected_stretch_is_logarithmic(points: int) -> None:
    """FRT's bound is 8 ln N up to lower terms; a path and a random cloud stay well within it."""
    rng = np.random.default_rng(points)
    path = FiniteMetric.from_function(range(points), lambda x, y: abs(x - y))
    cloud = FiniteMetric.from_vectors(rng.random((points, 2)))
    off_diagonal = ~np.eye(points, dtype=bool)
    for space in (path, cloud):
        total = np.zeros((points, points))
        for _ in range(300):
            tree = random_tree(space, rng)
            place = tree.documents.positions(space.documents)
            total += tree.distance_matrix()[np.ix_(place, place)]
        stretch = (total / 300)[off_diagonal] / space.distance_matrix()[off_diagonal]
        assert 1.0 <= stretch.mean() <= stretch.max() <= 8 * np.log(points)


def test_the_random_scale_has_the_right_distribution() -> None:
    """Whether {a, b} is a cluster is decided by β < 1.5 alone, which has probability log2(1.5)."""
    space = FiniteMetric.from_matrix([[0, 1, 1.5], [1, 0, 1.5], [1.5, 1.5, 0]], ids="abc")
    rng = np.random.default_rng(0)
    close = [random_tree(space, rng).distance("a", "b") == 1.0 for _ in range(4000)]
    assert np.mean(close) == pytest.approx(np.log2(1.5), abs=0.04)


def test_infinite_distances_are_refused() -> None:
    with pytest.raises(MetricError, match="infinite"):
        random_tree(FiniteMetric.from_bounds("ab", {}), np.random.default_rng(0))
