"""A log of another ranker as a warm start: counted as one's own visits are, and refused where that makes no sense."""

from typing import Any

import numpy as np
import pytest

import zoomrank as zr
from zoomrank import errors

TREE = zr.DocumentTree.exponential(depth=6)


def log_of(old: Any, users: Any, visits: int, seed: int = 0) -> list[tuple[str, list[Any], Any]]:
    """What visitors did whom another ranker served."""
    rng = np.random.default_rng(seed)
    log = []
    for _ in range(visits):
        ranking = old.rank()
        click = users.click(ranking.documents, rng)
        old.learn(ranking, click)
        log.append(("", ranking.documents, None if click is None else ranking.documents[click]))
    return log


def same(one: zr.Ranked, other: zr.Ranked) -> bool:
    """Whether two rankers have learned the same, bit for bit."""
    return all(np.array_equal(array, other.learned[name]) for name, array in one.learned.items())


@pytest.mark.parametrize("kind", [zr.ZoomRank, zr.RankThompson])
def test_a_log_of_ones_own_visits_makes_the_same_learner(kind: Any) -> None:
    users = zr.users.two_peaks(TREE, seed=1)
    old = kind(TREE, slots=3, seed=1)
    new = kind(TREE, slots=3, seed=2)
    log = log_of(old, users, 5000)  # more than are learned at once
    assert new.learn_log(log) == 5000
    for ranker in (old, new):
        ranker.prepare_room()
    assert same(old, new)


def test_what_an_old_ranker_never_showed_is_found_all_the_same() -> None:
    users = zr.users.two_peaks(TREE, seed=3)
    best = users.greedy(2)
    worst = [document for document in TREE.documents if document not in best.documents][:2]
    ranker = zr.ZoomRank(TREE, slots=2, seed=0)
    ranker.learn_log(log_of(zr.FixedRanking(TREE, worst), users, 5000))
    zr.simulate(ranker, users, 10_000, seed=4)
    assert users.satisfaction(ranker.rank().documents) > 0.95 * best.satisfaction


def test_longer_rankings_shorter_ones_and_unknown_documents() -> None:
    given, told = zr.ZoomRank(TREE, slots=3, seed=0), zr.ZoomRank(TREE, slots=3, seed=0)
    with pytest.raises(errors.UnknownDocumentError, match=r"Impression 1 shows 'gone'.*unknown=\"skip\""):
        given.learn_log([("", [1, "gone", 3], 3)])
    given.learn_log(
        [("", [1, "gone", 3], 3), ("", [4, 5, 6, 7], 7), ("", [8], None), ("", ["gone", 9], "gone")], "skip"
    )
    arrays = told.rank_arrays(4)
    shown = np.array([[1, 0, 3], [4, 5, 6], [8, 0, 0], [0, 9, 0]])
    pick = np.array([[1, -1, 3], [4, 5, 6], [8, -1, -1], [-1, -1, -1]])
    told.learn_arrays(arrays._replace(shown=shown, pick=pick), np.array([2, 3, 3, 0]))
    assert same(given, told)
    assert int(given.learned["total"][0]) == 6


def test_it_is_refused_in_words() -> None:
    with pytest.raises(errors.ParameterError, match=r"UCB1 cannot learn from.*ZoomRank and RankThompson can"):
        zr.RankUCB1(TREE, slots=2).learn_log([("", [1, 2], None)])
    with pytest.raises(errors.ParameterError, match="'refuse' or 'skip', not 'maybe'"):
        zr.ZoomRank(TREE, slots=2).learn_log([("", [1, 2], None)], "maybe")
    with pytest.raises(errors.FeedbackError, match="a click on 5, which was not shown"):
        zr.ZoomRank(TREE, slots=2).learn_log([("", [1, 2], 5)])
