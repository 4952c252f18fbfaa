"""Visitors who look like life: who likes what, at which chances."""

import numpy as np
import pytest

import zoomrank as zr
from zoomrank.errors import MeanError, ParameterError

TREE = zr.DocumentTree.exponential(depth=9)


def test_an_intent_is_a_category_and_some_strays() -> None:
    users = zr.users.intents(TREE, count=3, sizes=(16, 16), kinds=3_000, seed=4)
    assert users.weights.reshape(3, -1).sum(axis=1) == pytest.approx(np.array([6, 3, 2]) / 11)
    starts, columns = users.state.row_start, users.state.relevant
    for intent in range(3):
        first, last = starts[3_000 * intent], starts[3_000 * (intent + 1)]
        share = np.bincount(columns[first:last], minlength=len(TREE)) / 3_000
        liked = np.flatnonzero(share)
        blocks, sizes = np.unique(liked // 16, return_counts=True)
        category = share[16 * blocks[np.argmax(sizes)] :][:16]
        assert sizes.max() == 16
        assert len(liked) == 16 + 5
        assert category.min() > 0.2 - 0.03
        assert category.max() < 0.9 + 0.03
        assert np.ptp(category) > 0.3  # the documents of a category differ
        strays = np.setdiff1d(liked, 16 * blocks[np.argmax(sizes)] + np.arange(16))
        assert share[strays] == pytest.approx(np.full(5, 0.5), abs=0.04)


def test_intents_are_about_different_categories_while_there_are_enough() -> None:
    enough = zr.users.intents(TREE, count=32, sizes=(16, 16), liked=(1, 1), strays=0, kinds=1, seed=4)
    assert (enough.mean() > 0).all()  # 32 categories of 16 documents: each has its intent
    more = zr.users.intents(TREE, count=40, sizes=(16, 16), liked=(1, 1), strays=0, kinds=1, seed=4)
    assert len(more.weights) == 40


def test_strays_are_no_more_than_there_are_documents_elsewhere() -> None:
    small = zr.DocumentTree.from_parents([-1, 0, 0, 1, 1, 1, 1, 2])
    users = zr.users.intents(small, count=1, sizes=(4, 4), liked=(1, 1), stray_chance=1, kinds=1, seed=1)
    assert users.mean().tolist() == [1.0] * 5


def test_groups_may_be_anywhere() -> None:
    users = zr.users.scattered(TREE, groups=8, size=64, exponent=0.7, seed=2)
    assert users.weights[0] / users.weights[7] == pytest.approx(8**0.7)
    rows = np.split(users.state.relevant, users.state.row_start[1:-1])
    assert [len(set(row.tolist())) for row in rows] == [64] * 8
    halves = [int((row < 256).sum()) for row in rows]  # a tree that knew of them would have them on one side
    assert 16 < min(halves) <= max(halves) < 48


def test_needles_are_few_and_liked_little() -> None:
    users = zr.users.needles(TREE, seed=2)
    mean = users.mean()
    high = np.sort(mean)[::-1]
    assert high[7] >= 0.05
    assert high[0] <= 0.08
    assert high[8:] == pytest.approx(np.full(len(TREE) - 8, 0.004))
    two = TREE.documents.at(np.argsort(-mean)[:2])
    assert users.satisfaction(two) == pytest.approx(1 - (1 - high[0]) * (1 - high[1]))  # independently


@pytest.mark.parametrize("model", [zr.users.intents, zr.users.scattered, zr.users.needles])
def test_the_same_seed_the_same_visitors(model: object) -> None:
    one, again, other = (model(TREE, seed=seed).mean() for seed in (1, 1, 2))  # type: ignore[operator]
    assert (one == again).all()
    assert (one != other).any()


def test_refusals() -> None:
    with pytest.raises(ParameterError, match="No category of the tree has 3 to 3 documents"):
        zr.users.intents(TREE, sizes=(3, 3))
    with pytest.raises(ParameterError, match="count is 0"):
        zr.users.intents(TREE, count=0)
    with pytest.raises(ParameterError, match=r"liked is 0\.9, 0\.2; these must"):
        zr.users.intents(TREE, liked=(0.9, 0.2))
    with pytest.raises(ParameterError, match=r"stray_chance is 1\.5"):
        zr.users.intents(TREE, stray_chance=1.5)
    with pytest.raises(ParameterError, match="600 documents cannot be drawn from 512"):
        zr.users.scattered(TREE, size=600)
    with pytest.raises(ParameterError, match="600 documents"):
        zr.users.needles(TREE, count=600)
    with pytest.raises(MeanError):
        zr.users.needles(TREE, background=-0.1)
