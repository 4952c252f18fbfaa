import numpy as np
import pytest

from zoomrank import FiniteMetric
from zoomrank.errors import MetricError, UnknownDocumentError

LINE = FiniteMetric.from_function([0.0, 1.0, 4.0], lambda x, y: abs(x - y))


def test_three_ways_to_the_same_space() -> None:
    expected = [[0, 1, 4], [1, 0, 3], [4, 3, 0]]
    np.testing.assert_array_equal(LINE.distance_matrix(), expected)
    np.testing.assert_array_equal(FiniteMetric.from_matrix(expected).distance_matrix(), expected)
    vectors = FiniteMetric.from_vectors(np.array([[0.0], [1.0], [4.0]]), ids=["a", "b", "c"], scale=2.0)
    assert vectors.distance("a", "c") == 8.0
    assert LINE.distances(1.0).tolist() == [1, 0, 3]


def test_broken_triangles_are_named() -> None:
    with pytest.raises(
        MetricError, match=r"D\('x', 'z'\) = 9.0 is more than D\('x', 'y'\) \+ D\('y', 'z'\) = 2.0 \+ 3.0"
    ):
        FiniteMetric.from_matrix([[0, 2, 9, 8], [2, 0, 3, 8], [9, 3, 0, 8], [8, 8, 8, 0]], ids=["x", "y", "z", "w"])
    with pytest.raises(MetricError, match="triangle"):
        FiniteMetric.from_vectors(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), metric="cosine")
    with pytest.raises(MetricError, match="triangle"):
        FiniteMetric.from_matrix([[0, 1, np.inf], [1, 0, 1], [np.inf, 1, 0]])


def test_rounding_is_not_a_broken_triangle() -> None:
    points = np.random.default_rng(0).random((60, 1)) * 1e-3 + 1e3
    FiniteMetric.from_vectors(points)


@pytest.mark.parametrize(
    ("matrix", "says"),
    [
        ([[0, 1], [2, 0]], "symmetric"),
        ([[0, 0], [0, 0]], r"D\(0, 1\) = 0"),
        ([[1, 1], [1, 0]], "distance 0 from itself"),
        ([[0, -1], [-1, 0]], "negative"),
        ([[0, float("nan")], [float("nan"), 0]], "not a number"),
        ([[0, 1]], "square"),
    ],
)
def test_what_is_no_metric(matrix: list[list[float]], says: str) -> None:
    with pytest.raises(MetricError, match=says):
        FiniteMetric.from_matrix(matrix)


def test_closure_of_partial_bounds() -> None:
    bounds = {("a", "b"): 0.3, ("b", "c"): 0.2, ("a", "c"): 0.9, ("c", "b"): 0.25}
    space = FiniteMetric.from_bounds(["a", "b", "c", "d"], bounds)
    assert space.distance("a", "c") == pytest.approx(0.5)  # by way of b
    assert space.distance("b", "c") == pytest.approx(0.2)  # the tighter of two bounds
    assert space.distance("a", "d") == np.inf
    assert FiniteMetric.from_bounds("ab", {}).distance("a", "b") == np.inf
    with pytest.raises(MetricError, match="positive"):
        FiniteMetric.from_bounds("ab", {("a", "b"): 0.0})
    with pytest.raises(MetricError, match="itself"):
        FiniteMetric.from_bounds("ab", {("a", "a"): 0.1})
    with pytest.raises(UnknownDocumentError, match="'z'"):
        FiniteMetric.from_bounds("ab", {("a", "z"): 0.1})
