"""Exact answers against brute force over all relevance vectors, and both samplers against the exact answers."""

from itertools import combinations

import numpy as np
import pytest

import zoomrank as zr
from tests.reference import relevance
from tests.support.seeds import seeds
from tests.support.trees import random_network, random_parents
from zoomrank import DocumentTree
from zoomrank.errors import ImpossibleEventError
from zoomrank.spaces import DocumentIds
from zoomrank.users import Independent, Mixture, TreeNetwork, UserDistribution


def table_of(users: TreeNetwork) -> relevance.Table:
    shape = users.tree.shape
    parents = [int(p) for p in shape.parent]
    return relevance.network_table(
        parents, float(users.chance[0, 0]), users.q0.tolist(), users.q1.tolist(), [int(n) for n in shape.leaf]
    )


def check_everything(users: UserDistribution, table: relevance.Table, rng: np.random.Generator) -> None:
    documents = len(users)
    subsets = [s for size in range(documents + 1) for s in combinations(range(documents), size)]
    for skipped in (subsets[i] for i in rng.choice(len(subsets), size=min(8, len(subsets)), replace=False)):
        names = users.documents.at(skipped)
        probability = relevance.skip_probability(table, skipped)
        assert users.satisfaction(names) == pytest.approx(1 - probability, abs=1e-12)
        if probability < 1e-9:
            continue
        expected = [relevance.conditional_mean(table, skipped, x) for x in range(documents)]
        np.testing.assert_allclose(users.conditional_mean(names), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        users.mean(), [relevance.conditional_mean(table, [], x) for x in range(documents)], atol=1e-12
    )
    slots = int(rng.integers(1, min(3, documents) + 1))
    best = users.greedy(slots, tie_budget=10_000)
    assert best.every_tie
    assert best.satisfaction == pytest.approx(relevance.worst_greedy(table, documents, slots), abs=1e-12)
    assert users.satisfaction(best.documents) == pytest.approx(best.satisfaction, abs=1e-12)
    optimum = users.optimum(slots)
    assert optimum.satisfaction == pytest.approx(relevance.best(table, documents, slots), abs=1e-12)
    assert users.satisfaction(optimum.documents) == pytest.approx(optimum.satisfaction, abs=1e-12)


@pytest.mark.parametrize("batch", seeds(3, 10))
def test_three_hundred_random_trees(batch: int) -> None:
    for seed in range(30):
        rng = np.random.default_rng([batch, seed])
        users = random_network(rng, nodes=int(rng.integers(1, 10)))
        check_everything(users, table_of(users), rng)


@pytest.mark.parametrize("seed", seeds(10, 40))
def test_mixtures_of_different_trees_over_the_same_documents(seed: int) -> None:
    rng = np.random.default_rng([99, seed])
    users = [random_network(rng, nodes=7)]
    while len(users) < 3:
        other = random_network(rng, nodes=7)
        if set(other.documents) == set(users[0].documents):
            users.append(other)
    shares = rng.dirichlet([1, 1, 1])
    tables = []
    for network in users:
        place = network.documents.positions(users[0].documents)
        theirs = table_of(network)
        tables.append({tuple(vector[p] for p in place): probability for vector, probability in theirs.items()})
    check_everything(Mixture(users, shares), relevance.mix(tables, shares.tolist()), rng)


def test_symmetric_ties_are_all_followed_cheaply() -> None:
    """All documents alike: every greedy ranking has the same value, and symmetry shows it without trying them all."""
    tree = DocumentTree.exponential(depth=10, branching=2)
    users = TreeNetwork(tree, np.full(1024, 0.3), looseness=1.0)
    best = users.greedy(slots=3)
    assert best.every_tie
    assert (
        not Mixture([users, Independent(tree, np.full(1024, 0.1))], [0.5, 0.5]).greedy(slots=3, tie_budget=5).every_tie
    )


def test_ties_everywhere() -> None:
    """Equal means on uneven trees: which of the tied documents comes first decides what is left to win."""
    different = 0
    for seed in range(120):
        rng = np.random.default_rng([55, seed])
        tree = DocumentTree.from_parents(random_parents(rng, nodes=int(rng.integers(4, 11))), epsilon=0.5)
        if len(tree) < 2:
            continue
        users = TreeNetwork(tree, np.full(len(tree), 0.3), looseness=1.0)
        table, slots = table_of(users), min(3, len(tree))
        worst = relevance.worst_greedy(table, len(tree), slots)
        ids = DocumentIds(len(tree), [tree.documents[int(i)] for i in rng.permutation(len(tree))])
        for same in (users, Mixture([users], [1.0], ids), Mixture([users, users], [0.5, 0.5], ids)):
            best = same.greedy(slots)
            assert best.every_tie
            assert best.satisfaction == pytest.approx(worst, abs=1e-12)
        different += relevance.best(table, len(tree), slots) > worst + 1e-6
    assert different >= 10


def test_certain_satisfaction_is_one_and_not_nan() -> None:
    tree = DocumentTree.exponential(depth=2)
    for seed in range(100):
        shares = np.random.default_rng(seed).dirichlet(np.ones(3))
        users = Mixture([Independent(tree, [1, 0.2, 0.1, 0.1])] * 3, shares)
        assert users.greedy(1).satisfaction == pytest.approx(1.0)


def test_many_slots() -> None:
    tree = DocumentTree.exponential(depth=11)
    users = Independent(tree, np.random.default_rng(0).random(len(tree)) / 1000)
    best = users.greedy(1500)
    assert len(set(best.documents)) == 1500
    assert users.satisfaction([]) == 0.0


def test_conditioning_on_thousands_of_documents_does_not_underflow() -> None:
    tree = DocumentTree.exponential(depth=15, branching=2)
    users = Independent(tree, np.full(len(tree), 0.1))
    shown = list(range(20_000))
    assert users.conditional_mean(shown, 30_000) == pytest.approx(0.1)
    assert users.log_skip_probability(np.arange(20_000)) == pytest.approx(20_000 * np.log(0.9))


def test_conditioning_on_what_almost_never_happens() -> None:
    """The larger message belongs to a bit that cannot be: the smaller one must not have underflowed."""
    tree = DocumentTree.from_parents([-1] + [0] * 400)
    q1 = np.full(401, 0.1)
    users = TreeNetwork.from_mutations(tree, 1.0, np.zeros(401), q1, beyond_theory=True)
    assert users.log_skip_probability(np.arange(399)) == pytest.approx(399 * np.log(0.1))
    assert users.conditional_mean(list(users.documents)[:399])[399] == pytest.approx(0.9)


def test_nobody_is_left_to_ask() -> None:
    tree = DocumentTree.exponential(depth=1, branching=2)
    users = Independent(tree, [1.0, 0.5])
    with pytest.raises(ImpossibleEventError, match="Every visitor finds one of 0 relevant"):
        users.conditional_mean([0])
    assert users.greedy(2).satisfaction == users.optimum(2).satisfaction == 1.0


def both_samplers(users: TreeNetwork | Mixture, visitors: int) -> None:
    """Empirical frequencies of whole vectors, of lazily drawn bits and of first clicks, against the exact ones."""
    documents = list(users.documents)
    error = 5 * np.sqrt(0.25 / visitors)
    whole = users.sample(visitors, seed=1)
    assert np.abs(whole.mean(axis=0) - users.mean()).max() < error
    ranking = [documents[i] for i in np.random.default_rng(3).permutation(len(documents))[:4]]
    clicks = users.clicks(ranking, visitors, seed=2)
    columns = users.documents.positions(ranking)
    eager = np.where(whole[:, columns].any(axis=1), whole[:, columns].argmax(axis=1), len(ranking))
    for slot in range(len(ranking)):
        exact = users.satisfaction(ranking[: slot + 1]) - users.satisfaction(ranking[:slot])
        assert abs(np.mean(clicks == slot) - exact) < error
        assert abs(np.mean(eager == slot) - exact) < error


@pytest.mark.parametrize("seed", seeds(3, 8))
def test_both_samplers_match_the_means(seed: int) -> None:
    rng = np.random.default_rng([7, seed])
    users = random_network(rng, nodes=12)
    both_samplers(users, 40_000)
    other = random_network(rng, nodes=12)
    while set(other.documents) != set(users.documents):
        other = random_network(rng, nodes=12)
    mixture = Mixture([users, other], [0.3, 0.7])
    both_samplers(mixture, 40_000)
    both_samplers(Mixture([other, users], [0.7, 0.3], mixture.documents), 40_000)


@pytest.mark.parametrize("seed", seeds(2, 6))
def test_lazily_drawn_bits_have_the_whole_joint_distribution(seed: int) -> None:
    rng = np.random.default_rng([8, seed])
    users = random_network(rng, nodes=8)
    table = table_of(users)
    visitors = 40_000
    drawn = users.lazy_relevance(users.documents, visitors, seed=4)
    whole = users.sample(visitors, seed=5)
    for rows in (drawn, whole):
        vectors, counts = np.unique(rows.astype(int), axis=0, return_counts=True)
        seen = {tuple(map(int, v)): c / visitors for v, c in zip(vectors, counts, strict=True)}
        for vector, probability in table.items():
            assert abs(seen.get(vector, 0.0) - probability) < 5 * np.sqrt(0.25 / visitors)
        assert set(seen) <= {vector for vector, probability in table.items() if probability > 0}


def test_same_seed_same_visitors() -> None:
    users = random_network(np.random.default_rng(0), nodes=12)
    ranking = list(users.documents)[:2]
    np.testing.assert_array_equal(users.clicks(ranking, 500, seed=3), users.clicks(ranking, 500, seed=3))
    np.testing.assert_array_equal(users.sample(50, seed=3), users.sample(50, seed=3))


@pytest.mark.parametrize("reading", ["network", "mixture", "twins"])
def test_a_seed_is_a_queue_of_people(reading: str) -> None:
    """Whatever they are shown: what a visitor clicks on follows from whom she is, drawn in whole from the same seed."""
    tree = DocumentTree.exponential(depth=6, branching=2, epsilon=0.7)
    users: UserDistribution = (
        zr.users.twins(tree, neighbours=8, seed=3)
        if reading == "twins"
        else zr.users.two_peaks(tree, seed=3, reading=reading)
    )
    people = users.draw(2_000, np.random.default_rng(8))
    rng = np.random.default_rng(9)
    for _ in range(5):
        ranking = rng.choice(len(tree), size=4, replace=False)
        relevant = np.hstack([people[:, ranking], np.ones((len(people), 1), bool)])
        clicks = users.first_clicks(ranking, len(people), np.random.default_rng(8))
        np.testing.assert_array_equal(clicks, relevant.argmax(axis=1))
