import numpy as np
import pytest

from tests.reference import relevance
from zoomrank import DocumentTree
from zoomrank.errors import DuplicateDocumentError, UnknownDocumentError, WeightError
from zoomrank.users import Independent, Mixture, RelevanceTable

TREE = DocumentTree.exponential(depth=2, branching=2)


def random_table(rng: np.random.Generator) -> tuple[RelevanceTable, relevance.Table]:
    vectors = (rng.random((6, 4)) < 0.4).astype(int)
    weights = rng.random(6)
    users = RelevanceTable(TREE, [np.flatnonzero(v).tolist() for v in vectors], weights)
    tables = [{tuple(int(bit) for bit in v): 1.0} for v in vectors]
    return users, relevance.mix(tables, (weights / weights.sum()).tolist())


@pytest.mark.parametrize("seed", range(30))
def test_exact_answers_equal_brute_force(seed: int) -> None:
    users, table = random_table(np.random.default_rng(seed))
    for skipped in ([], [0], [1, 3], [0, 1, 2]):
        probability = relevance.skip_probability(table, skipped)
        assert users.satisfaction(skipped) == pytest.approx(1 - probability, abs=1e-12)
        if probability > 0:
            expected = [relevance.conditional_mean(table, skipped, x) for x in range(4)]
            np.testing.assert_allclose(users.conditional_mean(skipped), expected, atol=1e-12)
    assert users.greedy(2).satisfaction == pytest.approx(relevance.worst_greedy(table, 4, 2), abs=1e-12)
    assert users.optimum(2).satisfaction == pytest.approx(relevance.best(table, 4, 2), abs=1e-12)


def test_both_samplers() -> None:
    users, _ = random_table(np.random.default_rng(3))
    visitors = 40_000
    error = 5 * np.sqrt(0.25 / visitors)
    assert np.abs(users.sample(visitors, seed=0).mean(axis=0) - users.mean()).max() < error
    clicks = users.clicks([2, 0, 3], visitors, seed=1)
    for slot in range(3):
        exact = users.satisfaction([2, 0, 3][: slot + 1]) - users.satisfaction([2, 0, 3][:slot])
        assert abs(np.mean(clicks == slot) - exact) < error


def test_components_of_different_kinds_mix() -> None:
    table, _ = random_table(np.random.default_rng(3))
    users = Mixture([table, Independent(TREE, [0.1, 0.2, 0.3, 0.4])], [0.5, 0.5])
    clicks = users.clicks([0, 1], 40_000, seed=0)
    assert abs(np.mean(clicks < 2) - users.satisfaction([0, 1])) < 0.0125
    assert users.state is None


def test_refusals() -> None:
    with pytest.raises(WeightError, match="at least one row"):
        RelevanceTable(TREE, [])
    with pytest.raises(WeightError, match="Row 1 has the weight -1"):
        RelevanceTable(TREE, [[0], [1]], [1, -1])
    with pytest.raises(WeightError, match="no visitors"):
        RelevanceTable(TREE, [[0]], [0])
    with pytest.raises(WeightError, match="1 weights were given for 2 rows"):
        RelevanceTable(TREE, [[0], [1]], [1])
    with pytest.raises(UnknownDocumentError, match="No document has the id 9"):
        RelevanceTable(TREE, [[9]])
    with pytest.raises(DuplicateDocumentError, match="named twice"):
        RelevanceTable(TREE, [[1, 1]])
    with pytest.raises(WeightError, match="add up to 1"):
        Mixture([Independent(TREE, [0.1] * 4)], [0.5])
    with pytest.raises(WeightError, match="0 or more"):
        Mixture([Independent(TREE, [0.1] * 4)] * 2, [-1, 2])
    with pytest.raises(WeightError, match="at least one component"):
        Mixture([], [])
    other = DocumentTree.from_parents([-1, 0, 0], ids=["a", "b"])
    with pytest.raises(UnknownDocumentError, match="same documents"):
        Mixture([Independent(TREE, [0.1] * 4), Independent(other, [0.1] * 2)], [0.5, 0.5])
