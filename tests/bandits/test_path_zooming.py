"""Path zooming forgives bad luck: what was neglected is looked at again, however it looked."""

import numpy as np
import pytest

from zoomrank import DocumentTree
from zoomrank.bandits import PathZooming


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
