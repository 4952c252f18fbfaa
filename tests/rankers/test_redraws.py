"""Rankings come as often as they say, and exploring costs no more than it may."""

import numpy as np
import pytest
from research.bench.propensities import KNOWN, costs, disagreement, state_of

import zoomrank as zr
from zoomrank import errors

TREE = zr.DocumentTree.exponential(depth=3)


@pytest.mark.parametrize("name", KNOWN)
def test_rankings_come_as_often_as_they_say(name: str) -> None:
    """All chance begins with fixed seeds; of 48 p-values the smallest would be below this once in a thousand times."""
    for number in (2, 5, 6, 11):
        assert disagreement(state_of(name, number), redraws=20_000) > 2e-5


def test_thompson_says_how_likely_it_was_to_those_who_ask() -> None:
    ranker = zr.RankThompson(TREE, slots=2, seed=0)
    assert np.isnan(ranker.rank().propensities).all()
    weights = ranker.propensities(np.array([[3, 3], [3, 4]]))
    assert weights[:, 0] == pytest.approx(1 / 8)  # nothing is told apart yet
    assert weights[0, 1] == 0.0  # a document is not shown twice, whoever draws


def test_a_replaced_slot_costs_no_more_than_a_slot_earns() -> None:
    for name, lost, earned in costs(visits=5000, redraws=500):
        assert lost <= earned, name


def test_what_a_replaced_slot_teaches() -> None:
    """Those who count visits learn from it as from any; others cannot."""
    for kind, learns in ((zr.ZoomRank, True), (zr.RankCorrZoom, False)):
        made = kind(TREE, slots=3, seed=0).rank_many(2000, explore=0.5).arrays
        replaced = made.pick != made.shown
        assert replaced.any() != learns
        if not learns:
            assert (made.pick[replaced] == -1).all()
            assert (replaced.sum(axis=1) <= 1).all()
            assert replaced.mean(axis=0) == pytest.approx([0.5 / 3] * 3, abs=0.03)  # any slot is as likely


def test_an_order_that_leads_is_certain_and_slots_below_choose_knowing_that() -> None:
    ranker = zr.ZoomRank(TREE, slots=3, seed=0)
    ranking = ranker.rank(order=[6])
    assert ranking.documents[0] == 6
    chosen = ranker.propensities(ranking.arrays.shown)[0, 1:].tolist()
    assert ranking.propensities == [1.0, *chosen]


def test_an_order_that_leads_and_a_slot_that_is_replaced() -> None:
    """Where the slot below the top is replaced, the second of the order comes third."""
    ranker = zr.ZoomRank(TREE, slots=3, seed=0)
    seen = {
        tuple(r.documents): r.propensities for r in (ranker.rank(order=[6, 1, 2], explore=0.6) for _ in range(2000))
    }
    assert {row[2] for row in seen if row[0] == 6 and row[1] not in (1, 2)} == {1}
    total = sum(np.prod(weights) for weights in seen.values())
    assert total == pytest.approx(1.0)
    assert np.prod(seen[6, 1, 2]) == pytest.approx(0.4 + 0.6 / 3 * (1 / 8 + 1 / 7 + 1 / 6), abs=0.02)


@pytest.mark.parametrize("explore", [-0.1, 1.1, float("nan")])
def test_explore_is_a_share(explore: float) -> None:
    with pytest.raises(errors.ParameterError, match="explore must be a share"):
        zr.ZoomRank(TREE, slots=2).rank(explore=explore)
