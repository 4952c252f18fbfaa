import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference import covers
from tests.support.trees import random_tree, seeds
from zoomrank import DocumentTree, FiniteMetric
from zoomrank.errors import MeanError, ParameterError
from zoomrank.spaces import (
    contextual_covering_dimension,
    contextual_zooming_dimension,
    covering_dimension,
    covering_number,
    zooming_dimension,
)


@given(seeds, st.integers(1, 9), st.floats(0.01, 1.2))
def test_covering_numbers_equal_brute_force(seed: int, points: int, radius: float) -> None:
    rng = np.random.default_rng(seed)
    space = FiniteMetric.from_vectors(rng.random((points, 2)))
    answer = covering_number(space, radius)
    assert answer.exact
    assert answer.number == covers.covering_number(space.distance_matrix().tolist(), radius)


@given(seeds, st.integers(1, 14), st.floats(0.01, 1.2))
def test_subtrees_are_balls(seed: int, nodes: int, radius: float) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, nodes)
    matrix = tree.distance_matrix()
    assert covering_number(tree, radius).number == covers.covering_number(matrix.tolist(), radius)
    some = np.flatnonzero(rng.random(len(tree)) < 0.5)
    if len(some):
        expected = covers.covering_number(matrix[np.ix_(some, some)].tolist(), radius)
        assert covering_number(tree, radius, among=tree.documents.at(some)).number == expected


def test_large_spaces_are_bounded_from_above() -> None:
    space = FiniteMetric.from_function(range(100), lambda x, y: abs(x - y))
    answer = covering_number(space, radius=2)
    assert not answer.exact
    assert 20 <= answer.number <= 40
    with pytest.raises(ParameterError, match="radius"):
        covering_number(space, radius=0)


@pytest.mark.parametrize(("branching", "epsilon"), [(2, 0.837), (3, 0.5), (5, 0.9)])
def test_dimension_of_the_exponential_tree(branching: int, epsilon: float) -> None:
    tree = DocumentTree.exponential(depth=5, branching=branching, epsilon=epsilon)
    assert covering_dimension(tree).value == pytest.approx(math.log(branching) / math.log(1 / epsilon))
    assert covering_dimension(tree, constant=len(tree)).value == 0.0
    as_matrix = FiniteMetric.from_matrix(DocumentTree.exponential(3, branching, epsilon).distance_matrix())
    assert covering_dimension(as_matrix).value == pytest.approx(math.log(branching) / math.log(1 / epsilon))


def test_dimension_of_what_is_too_wide() -> None:
    line = FiniteMetric.from_function(range(5), lambda x, y: abs(x - y))
    assert covering_dimension(line).value == math.inf  # radius 1 already takes two balls
    assert covering_dimension(line, constant=5).value == 0.0
    with pytest.raises(ParameterError, match="constant"):
        covering_dimension(line, constant=0)


def high_and_low(
    depth: int, high: int, low: int, epsilon: float
) -> tuple[DocumentTree, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """The example of Appendix A: a high-reward branch of small and a low-reward branch of large branching."""
    parents, branch = [-1], [0]
    level = [0]
    for d in range(depth):
        below = []
        for node in level:
            for child in range(2 if d == 0 else (high if branch[node] == 1 else low)):
                below.append(len(parents))
                parents.append(node)
                branch.append(1 + child if d == 0 else branch[node])
        level = below
    tree = DocumentTree.from_parents(parents, epsilon=epsilon)
    best = next(node for node in level if branch[node] == 1)
    near = 1 - tree.distances(best)
    mean = np.array([near[i] if branch[d] == 1 else 0.0 for i, d in enumerate(tree.documents)])
    return tree, mean


def test_zooming_dimension_looks_only_where_rewards_are_high() -> None:
    tree, mean = high_and_low(depth=6, high=2, low=6, epsilon=0.5)
    covering = covering_dimension(tree).value
    zooming = zooming_dimension(tree, mean).value
    assert covering > 2
    assert zooming <= math.log(2) / math.log(2) + 0.01
    matrix = FiniteMetric.from_matrix(DocumentTree.exponential(3, 3, 0.5).distance_matrix())
    assert zooming_dimension(matrix, np.linspace(0, 0.5, 27)).value <= covering_dimension(matrix).value + 1e-9


def test_zooming_dimension_is_the_definition() -> None:
    rng = np.random.default_rng(5)
    tree = random_tree(rng, 14)
    mean = rng.random(len(tree))
    badness = mean.max() - mean
    expected = 0.0
    for i in range(40):
        r = 2.0**-i
        ring = [x for x in range(len(tree)) if r < badness[x] <= 2 * r]
        if ring:
            number = covers.covering_number(tree.distance_matrix()[np.ix_(ring, ring)].tolist(), r)
            expected = max(
                expected, math.inf if r >= 1 and number > 1 else math.log(number) / math.log(1 / r) if r < 1 else 0
            )
    assert zooming_dimension(tree, mean).value == pytest.approx(expected)


def test_contextual_dimensions() -> None:
    tree = DocumentTree.exponential(depth=2, branching=2, epsilon=0.25, constant=0.1)
    contexts = [[0], [1], [3]]
    means = np.array([[0.0, 0.1, 0.2, 0.3], [0.1, 0.0, 0.2, 0.3], [0.3, 0.2, 0.1, 0.0]])
    contextual = contextual_covering_dimension(tree, contexts).value
    assert contextual >= covering_dimension(tree).value > 0
    assert contextual_zooming_dimension(tree, contexts, means).value <= contextual + 1e-9
    one = contextual_zooming_dimension(tree, contexts[:1], means[:1])
    assert one.value == pytest.approx(zooming_dimension(tree, means[0]).value)
    with pytest.raises(MeanError, match="shape"):
        contextual_zooming_dimension(tree, contexts, means[:2])
    with pytest.raises(MeanError, match=r"\[0, 1\]"):
        zooming_dimension(tree, np.array([0.0, 10.0, -5.0, 3.0]))
    with pytest.raises(ParameterError, match="contexts is empty"):
        contextual_covering_dimension(tree, [])


def test_widths_of_chains_are_nobodys_distance() -> None:
    tree = DocumentTree.from_parents([-1, 0, 0, 1, 3, 3], width=[1, 0.9, 0, 0.1, 0, 0])
    matrix = FiniteMetric.from_matrix(tree.distance_matrix())
    assert covering_dimension(tree).value == pytest.approx(covering_dimension(matrix).value)


def test_what_is_not_exact_says_so() -> None:
    rng = np.random.default_rng(0)
    assert covering_dimension(FiniteMetric.from_vectors(rng.random((16, 2)) / 2)).exact
    assert not covering_dimension(FiniteMetric.from_vectors(rng.random((30, 2)) / 2)).exact
    assert covering_number(FiniteMetric.from_vectors(rng.random((4, 2))), 1.0, among=[]).number == 0
