"""The theory of Sections 2 and 3, checked exhaustively on small instances and by sampling on large ones."""

from itertools import combinations

import numpy as np
import pytest

from tests.reference import relevance
from tests.support.seeds import seeds
from tests.support.trees import lipschitz_mean, random_network, random_tree
from tests.users.test_tree_network import table_of
from zoomrank import DocumentTree, FiniteMetric
from zoomrank.errors import ParameterError, UnknownDocumentError
from zoomrank.spaces import EdgeWeightedTree, StretchedSpace
from zoomrank.users import (
    CheckSampling,
    ExpressivenessBound,
    Independent,
    MetricNetwork,
    Mixture,
    TreeNetwork,
    check_continuity,
    check_correlation,
    two_peaks,
)


@pytest.mark.parametrize("seed", seeds(4, 12))
@pytest.mark.parametrize("conditional", [True, False])
def test_checks_equal_brute_force(seed: int, conditional: bool) -> None:
    rng = np.random.default_rng([1, seed])
    users = random_network(rng, nodes=int(rng.integers(4, 9)))
    tree, table, documents = users.tree, table_of(users), range(len(users))
    assert isinstance(tree, DocumentTree)
    sets = [s for size in range(len(users)) for s in combinations(documents, size)] if conditional else [()]
    continuity = correlation = 0.0
    for skipped in sets:
        if relevance.skip_probability(table, skipped) < 1e-12:
            continue
        means = [relevance.conditional_mean(table, skipped, x) for x in documents]
        for x, y in combinations(documents, 2):
            far = tree.distance(users.documents[x], users.documents[y])
            continuity = max(continuity, abs(means[x] - means[y]) / far)
            correlation = max(correlation, relevance.discorrelation(table, skipped, x, y) / far)
    found = check_continuity(users, tree, conditional=conditional)
    assert found.exhaustive
    assert found.ratio == pytest.approx(continuity, abs=1e-6)
    assert found.holds == (continuity <= 1 + 1e-9)
    assert check_correlation(users, tree, conditional=conditional).ratio == pytest.approx(correlation, abs=1e-6)


@pytest.mark.parametrize("looseness", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("seed", seeds(4, 10))
def test_theorem_3_1(seed: int, looseness: float) -> None:
    """Tree networks are conditionally L-correlated with respect to 3·D_μ, and unconditionally to D_μ."""
    rng = np.random.default_rng([2, seed])
    tree = random_tree(rng, nodes=int(rng.integers(4, 13)))
    mean = lipschitz_mean(rng, tree)
    users = TreeNetwork(tree, mean, extension="lipschitz", looseness=looseness)
    assert users.conditions().hold
    bound = ExpressivenessBound(tree, mean, factor=3.0)
    assert check_correlation(users, bound).holds
    assert check_correlation(users, bound.closure()).holds  # the remark after the theorem
    assert check_correlation(users, ExpressivenessBound(tree, mean, factor=1.0), conditional=False).holds


def test_theorem_3_1_on_a_tree_with_any_edge_lengths() -> None:
    rng = np.random.default_rng(3)
    tree = EdgeWeightedTree.from_parents([-1, 0, 0, 1, 1, 1, 2, 6], length=[0, 0.1, 0.2, 0.05, 0.1, 0.3, 0.1, 0.1])
    mean = np.full(len(tree), 0.02)
    for document in tree.documents:
        mean = np.maximum(mean, rng.uniform(0.02, 0.5) - tree.distances(document))
    users = TreeNetwork(tree, mean, extension="lipschitz", looseness=1.0)
    assert check_correlation(users, ExpressivenessBound(tree, mean)).holds


def test_theorem_3_1_sampled_at_full_scale() -> None:
    tree = DocumentTree.exponential()
    users = two_peaks(tree, seed=7, reading="mutations")
    found = check_correlation(
        users, ExpressivenessBound(tree, users.mean()), sampling=CheckSampling(sets=20, documents=3)
    )
    assert found.holds
    assert not found.exhaustive
    assert found.sets == 21
    assert found.pair is not None


def test_a_sampled_check_finds_what_is_wrong() -> None:
    tree = DocumentTree.exponential(depth=6, branching=2, epsilon=0.5)
    unrelated = Independent(tree, np.full(64, 0.5))
    found = check_correlation(unrelated, tree, sampling=CheckSampling(sets=5))
    assert not found.holds
    assert found.ratio == pytest.approx(0.5 / 0.5**5)  # neighbours differ half of the time
    assert found.pair is not None
    assert tree.distance(*found.pair) == found.distance == 0.5**5


@pytest.mark.parametrize("seed", range(6))
def test_extension_to_arbitrary_metrics(seed: int) -> None:
    """Algorithm 2 over a fixed sample of trees: L-correlated with respect to 3c·D_μ, c the average stretch."""
    rng = np.random.default_rng([4, seed])
    space = FiniteMetric.from_vectors(0.2 * rng.random((6, 2)))
    mean = np.full(6, 0.05)
    for document in space.documents:
        mean = np.maximum(mean, rng.uniform(0.05, 0.5) - space.distances(document))
    users = MetricNetwork(space, mean).frozen(trees=60, seed=seed)
    stretch = np.zeros((6, 6))
    for component in users.components:
        assert isinstance(component, TreeNetwork)
        assert isinstance(component.tree, DocumentTree)
        place = component.documents.positions(space.documents)
        stretch += component.tree.distance_matrix()[np.ix_(place, place)] / 60
    off_diagonal = ~np.eye(6, dtype=bool)
    c = float((stretch[off_diagonal] / space.distance_matrix()[off_diagonal]).max())
    np.testing.assert_allclose(users.mean(), mean, atol=1e-12)
    assert check_correlation(users, ExpressivenessBound(space, mean, factor=3 * c)).holds


@pytest.mark.parametrize("seed", seeds(4, 10))
def test_equivalence_lemma(seed: int) -> None:
    """Conditionally L-continuous with respect to D: conditionally L-correlated with respect to 2·D."""
    rng = np.random.default_rng([5, seed])
    users = random_network(rng, nodes=int(rng.integers(4, 9)))
    tree = users.tree
    assert isinstance(tree, DocumentTree)
    least = check_continuity(users, tree).ratio  # D times this is the smallest multiple that makes it L-continuous
    if 0 < least < np.inf:
        assert check_continuity(users, StretchedSpace(tree, least)).holds
        assert check_correlation(users, StretchedSpace(tree, 2 * least)).holds
        assert check_correlation(users, tree).ratio >= least - 1e-9  # and correlation is the stronger notion


def test_the_factor_two_of_the_equivalence_lemma_is_needed() -> None:
    tree = DocumentTree.from_parents([-1, 0, 0], width=[1, 0, 0])
    users = Independent(tree, [0.01, 0.01])
    least = check_continuity(users, tree).ratio
    assert check_correlation(users, StretchedSpace(tree, 2 * least)).holds
    assert check_correlation(users, StretchedSpace(tree, 1.9 * least)).ratio > 1


def test_the_bound_is_equation_10() -> None:
    rng = np.random.default_rng(0)
    tree = random_tree(rng, nodes=12)
    mean = rng.uniform(0.1, 0.5, len(tree))
    bound = ExpressivenessBound(tree, mean, factor=3.0)
    for i, x in enumerate(tree.documents):
        for j, y in enumerate(tree.documents):
            expected = 3 * tree.distance(x, y) * min(1 / mean.min(), 3 / (mean[i] + mean[j]))
            assert bound.distance(x, y) == pytest.approx(expected)


def test_a_single_document_and_tiny_distances() -> None:
    alone = DocumentTree.exponential(depth=0)
    assert check_continuity(Independent(alone, [0.3]), alone, sampling=CheckSampling(exhaustive=False)).holds
    close = DocumentTree.from_parents([-1, 0, 0], width=[1e-12, 0, 0])
    assert not check_correlation(Independent(close, [1e-10, 1e-10]), close).holds


@pytest.mark.parametrize("seed", seeds(4, 10))
def test_mixture_lemma(seed: int) -> None:
    """A mixture is conditionally L-continuous wherever all its components are."""
    rng = np.random.default_rng([6, seed])
    tree = random_tree(rng, nodes=9)
    parts = [
        TreeNetwork(tree, lipschitz_mean(rng, tree), extension="lipschitz", looseness=float(rng.random()))
        for _ in range(3)
    ]
    worst = max(check_continuity(part, tree).ratio for part in parts)
    mixture = Mixture(parts, rng.dirichlet([1, 1, 1]))
    assert check_continuity(mixture, tree).ratio <= worst + 1e-9


def test_the_printed_proof_for_arbitrary_metrics_has_a_gap() -> None:
    """Its first step bounds P[π(x) ≠ π(y) | Z_S] by the plain average over trees; skipping S reweights the trees."""
    rng = np.random.default_rng([4, 3])
    space = FiniteMetric.from_vectors(0.4 * rng.random((6, 2)))
    mean = np.full(6, 0.05)
    for document in space.documents:
        mean = np.maximum(mean, rng.uniform(0.05, 0.5) - space.distances(document))
    users = MetricNetwork(space, mean).frozen(trees=20, seed=3)

    def differ(some: Mixture | TreeNetwork, skipped: tuple[int, ...], x: int, y: int) -> float:
        given_x, given_y = some.conditional_mean(skipped, x), some.conditional_mean(skipped, y)
        return float(given_x - given_y + 2 * some.conditional_mean([*skipped, x], y) * (1 - given_x))

    excess = 0.0
    for skipped in combinations(range(6), 3):
        for x, y in combinations(set(range(6)) - set(skipped), 2):
            plain = float(np.mean([differ(c, skipped, x, y) for c in users.components if isinstance(c, TreeNetwork)]))
            excess = max(excess, differ(users, skipped, x, y) / plain)
    assert excess > 1.01


def test_the_evaluation_rule_is_not_quite_the_theory() -> None:
    """Averages of children, as in Section 6.1, mutate more often than Eq. 8 allows, and D is not quite respected."""
    tree = DocumentTree.exponential()
    users = two_peaks(tree, seed=2)
    assert isinstance(users, TreeNetwork)
    report = users.conditions()
    assert report.consistency_error < 1e-12
    assert report.rarity_ratio == pytest.approx(3.567, abs=0.001)
    assert check_continuity(users, tree, conditional=False).holds
    assert 1.0 < check_continuity(users, tree, sampling=CheckSampling(sets=30, documents=3)).ratio < 2.0


def test_refusals() -> None:
    tree = DocumentTree.exponential(depth=5, branching=2)
    users = Independent(tree, np.full(32, 0.1))
    with pytest.raises(ParameterError, match="too many"):
        check_continuity(users, tree, sampling=CheckSampling(exhaustive=True))
    with pytest.raises(ParameterError, match="at least 1"):
        check_continuity(users, tree, sampling=CheckSampling(sets=0))
    with pytest.raises(UnknownDocumentError, match="different documents"):
        check_continuity(users, DocumentTree.exponential(depth=4, branching=2))
    with pytest.raises(ParameterError, match="above 0"):
        ExpressivenessBound(tree, np.zeros(32))
    with pytest.raises(ParameterError, match="positive"):
        StretchedSpace(tree, 0)
