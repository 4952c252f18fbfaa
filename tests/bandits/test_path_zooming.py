"""Path zooming forgives bad luck: what was neglected is looked at again, however it looked."""

import numpy as np
import pytest

from zoomrank import DocumentTree
from zoomrank.bandits import PathZooming
from zoomrank.bandits.path_zooming.walk import STALE
from zoomrank.rankers import Ranked


def visits_until_forgiven(bandit: PathZooming, most: int) -> int:
    """The right half of the tree is unlucky for a hundred visits; from then on everybody likes it, and four in ten like
    the left half. Returns how many visits it takes until the right half is shown again, ten times in a row.
    """
    rng, in_a_row = np.random.default_rng(1), 0
    for visit in range(most):
        choice = bandit.select()
        right = choice.document >= len(bandit.tree) // 2
        unlucky = right and visit < 100
        bandit.update(choice, reward=int(not unlucky and (right or rng.random() < 0.4)))
        in_a_row = in_a_row + 1 if right and not unlucky else 0
        if in_a_row == 10:
            return visit
    return most


@pytest.mark.parametrize("depth", [2, 4])
def test_a_subtree_whose_documents_all_had_bad_luck_is_looked_at_again(depth: int) -> None:
    tree = DocumentTree.exponential(depth=depth)
    assert visits_until_forgiven(PathZooming(tree, seed=1), 20_000) < 20_000
    assert visits_until_forgiven(PathZooming(tree, growth=0.0, seed=1), 20_000) == 20_000


@pytest.mark.parametrize("seed", range(3))
def test_a_walk_is_used_again_only_where_it_would_be_the_same(seed: int) -> None:
    """Feedback comes late and in any order, so that documents are learned in slots where they do not stand now."""
    tree = DocumentTree.exponential(depth=5)
    ranker = Ranked(PathZooming(tree), 4, seed=seed)
    rng = np.random.default_rng(seed)
    mean, waiting, remembered = np.where(np.arange(32) < 8, 0.6 * rng.random(32), 0.02), [], 0
    for _ in range(600):
        forgetful = ranker.copied()
        forgetful.state.givens[:] = STALE
        remembered += int((ranker.state.givens[1:] != STALE).sum())
        ranking = ranker.rank_arrays(1)
        assert ranking.shown.tolist() == forgetful.rank_arrays(1).shown.tolist()
        waiting.append((ranking, np.flatnonzero([*(rng.random(4) < mean[ranking.shown[0]]), True])[:1]))
        if len(waiting) > 8:
            ranking, click = waiting.pop(int(rng.integers(8)))
            ranker.learn_arrays(ranking, click)
            assert (ranker.state.givens[: click[0] + 1] == STALE).all()  # these slots counted a visit
    assert remembered > 200
