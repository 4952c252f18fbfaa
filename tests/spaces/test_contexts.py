import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.covers import enumeration_cost
from tests.support.trees import lipschitz_mean, random_tree, seeds
from zoomrank import FiniteMetric
from zoomrank.spaces import context_distance
from zoomrank.spaces.contexts import context_distances, pair_distances
from zoomrank.users import TreeNetwork, check_continuity


@given(seeds, st.integers(1, 4), st.integers(1, 3))
def test_edge_cover_is_the_infimum_over_enumerations(seed: int, ours: int, theirs: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.random((ours + theirs, 2))
    space = FiniteMetric.from_vectors(points)
    one, other = list(range(ours)), list(range(ours, ours + theirs))
    expected = 4 * enumeration_cost(space.distance_matrix()[:ours, ours:].tolist())
    assert context_distance(space, one, other) == pytest.approx(expected, abs=1e-12)
    assert context_distance(space, other, one) == pytest.approx(expected, abs=1e-12)


def test_order_repetition_and_emptiness() -> None:
    line = FiniteMetric.from_function([0, 1, 2, 5], lambda x, y: abs(x - y))
    assert context_distance(line, [0, 5], [5, 0]) == 0.0
    assert context_distance(line, [0, 0, 5], [5, 0]) == 0.0
    assert context_distance(line, [0, 1], [0, 5]) == 4 * 4
    assert context_distance(line, [], []) == 0.0
    assert context_distance(line, [], [0]) == np.inf


def test_contexts_of_different_size_are_no_metric_space() -> None:
    """The paper calls D_c a metric; it is not quite one (its lemma does not need it to be)."""
    line = FiniteMetric.from_function([0, 1, 2], lambda x, y: abs(x - y))
    direct, detour = (
        context_distance(line, [0], [1, 2]),
        context_distance(line, [0], [1]) + context_distance(line, [1], [1, 2]),
    )
    assert direct == 12.0 > detour == 8.0


@given(seeds, st.integers(2, 10))
def test_contextual_lipschitz_lemma(seed: int, nodes: int) -> None:
    """|μ(x | Z_S) - μ(x | Z_S')| ≤ D_c(S, S') where the users are conditionally L-continuous."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, nodes)
    users = TreeNetwork(tree, lipschitz_mean(rng, tree), extension="lipschitz")
    worst = check_continuity(users, tree).ratio
    space = tree.with_width(tree.width * max(worst, 1e-9))  # the smallest multiple for which they are
    size = int(rng.integers(1, len(tree) + 1))
    one, other = (users.documents.at(rng.choice(len(tree), size=size, replace=False)) for _ in range(2))
    difference = np.abs(users.conditional_mean(one) - users.conditional_mean(other)).max()
    assert difference <= context_distance(space, one, other) + 1e-9


def test_pairs_of_documents_and_contexts() -> None:
    line = FiniteMetric.from_function([0, 1, 2], lambda x, y: abs(x - y))
    contexts = [[0], [2]]
    assert context_distances(line, contexts).tolist() == [[0, 8], [8, 0]]
    pairs = pair_distances(line, contexts)
    assert pairs.shape == (6, 6)
    assert pairs[0, 5] == 8 + 2  # (document 0, context 0) and (document 2, context 1)
    assert pairs[0, 2] == 2
