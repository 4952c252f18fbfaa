"""An order that the caller has: the first visitors see it, clicks overrule it, and a wrong one is soon given up."""

from typing import Any

import pytest

import zoomrank as zr
from zoomrank import errors
from zoomrank.rankers.slot_bandits import LONGEST, order_leads, order_positions

TREE = zr.DocumentTree.exponential(depth=6)
ORDER = [40, 7, 21, 3, 60]


def visited(ranker: zr.Ranked, order: list[Any], liked: int | None, visits: int, **how: Any) -> list[list[Any]]:
    """What some visitors see, all of whom like one document, or none."""
    seen = []
    for _ in range(visits):
        ranking = ranker.rank(order=order, **how)
        ranker.learn(ranking, ranking.documents.index(liked) if liked in ranking.documents else None)
        seen.append(ranking.documents)
    return seen


def test_a_new_learner_begins_with_the_order() -> None:
    ranker = zr.ZoomRank(TREE, slots=3, seed=0)
    assert ranker.rank(order=ORDER).documents == [40, 7, 21]
    assert ranker.rank(order=["gone", 40, 40, 7, "gone", 21]).documents == [40, 7, 21]  # unknown ones are skipped
    assert sorted(ranker.rank(eligible=[7, 21, 30], order=ORDER).documents) == [7, 21, 30]
    few = ranker.rank(order=[40]).documents
    assert few[0] == 40
    assert len(set(few)) == 3


def test_clicks_overrule_it() -> None:
    ranker = zr.ZoomRank(TREE, slots=3, seed=0)
    seen = visited(ranker, ORDER, liked=21, visits=5)
    assert seen[0] == [40, 7, 21]
    assert seen[-1][0] == 21
    assert visited(zr.ZoomRank(TREE, slots=3, seed=0), ORDER, liked=3, visits=9)[-1][0] == 3  # it was not on top


def test_a_wrong_one_is_given_up_and_a_good_one_after_a_while() -> None:
    ranker = zr.ZoomRank(TREE, slots=1, seed=0)
    visited(ranker, ORDER, liked=None, visits=9)
    assert order_leads(ranker, 10)
    visited(ranker, ORDER, liked=None, visits=1)
    assert not order_leads(ranker, 10)
    assert order_leads(ranker, 11)
    good = zr.ZoomRank(TREE, slots=1, seed=0)
    visited(good, ORDER, liked=40, visits=99)
    assert order_leads(good, 10)
    visited(good, ORDER, liked=40, visits=1)
    assert not order_leads(good, 10)
    assert visited(good, [], liked=40, visits=20)[-1] == [40]  # it has been learned


def test_an_order_that_is_not_believed_changes_nothing() -> None:
    ours, theirs = zr.ZoomRank(TREE, slots=3, seed=5), zr.ZoomRank(TREE, slots=3, seed=5)
    assert visited(ours, ORDER, liked=9, visits=50, believed=0) == [
        visited(theirs, [], liked=9, visits=1, believed=0)[0] for _ in range(50)
    ]


def test_what_counts_of_it_is_its_beginning() -> None:
    assert order_positions(TREE.documents, range(60)) == list(range(LONGEST))


def test_it_is_refused_in_words() -> None:
    with pytest.raises(errors.ParameterError, match="UCB1 cannot learn from what an order shows; ZoomRank and"):
        zr.RankUCB1(TREE, slots=2).rank(order=ORDER)
