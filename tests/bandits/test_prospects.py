"""What slots know, and which documents are on trial, against the definitions and the literal twin."""

import numpy as np
import pytest

from tests.bandits.test_twins import LIKENESS, twin_tree
from tests.reference import learners as reference
from zoomrank import DocumentTree, Ranked, SlotExplanation
from zoomrank.bandits import PathZooming

SLOTS = 4


class Watched(reference.PathZooming):
    """The twin, which remembers what its slots chose before documents changed places."""

    chosen: list[int]

    def trial(self, i: int, chosen: list[int]) -> bool:
        """Whether what slot i chose has not the best record, or nobody has clicked it though more is hoped for."""
        above, u = chosen[:i], self.tree.leaves[chosen[i]]
        while u != 0 and u not in self.children(self.tree.parent[u]):
            u = self.tree.parent[u]
        cap = min((self.tree.distance(chosen[i], y) for y in above), default=np.inf)
        own, hope = min(self.seen(u, i, above), cap), self.bound(u, i)
        return own < max(0.0, self.record(0, i, above)) or (self.gains(u) == 0 and hope > own)

    def bound(self, u: int, i: int) -> float:
        """The bound of a subtree, whatever is above."""
        return min(self.known[u, i], max((self.bound(child, i) for child in self.children(u)), default=np.inf))


def compare(tree: DocumentTree, visits: int, restrict: float) -> None:
    """Play; in each ranking, records and trials are those of the twin."""
    plain = twin_tree(tree)
    paths = Watched(plain, SLOTS)
    slow, fast = reference.Ranked(plain, paths.each(), False, 3), Ranked(PathZooming(tree), SLOTS, seed=3)
    rng = np.random.default_rng(11)
    mean = np.where(np.arange(len(tree)) < len(tree) // 3, 0.3 + 0.4 * rng.random(len(tree)), 0.02)
    for _ in range(visits):
        restricted = rng.random() < restrict
        away = rng.choice(len(tree), size=int(rng.integers(len(tree) - SLOTS)) if restricted else 0, replace=False)
        plain.ineligible = set(away.tolist())
        some = tree.documents.at(np.delete(np.arange(len(tree)), away)) if restricted else None
        (shown, picks, chances), ranking = slow.rank(), fast.rank(some)
        told = fast.explain(ranking, some)
        _check_records(told, paths, shown)
        assert [paths.trial(i, shown) for i in range(SLOTS)] == [slot.trial for slot in told]
        relevant = rng.random(len(tree)) < mean
        click = next((slot for slot in range(SLOTS) if relevant[shown[slot]]), SLOTS)
        slow.learn(shown, picks, chances, click)
        fast.learn(ranking, None if click == SLOTS else click)


def _check_records(told: list[SlotExplanation], paths: Watched, shown: list[int]) -> None:
    for i, slot in enumerate(told):
        best = paths.record(0, i, shown[:i])
        assert slot.record == (None if best < 0 else pytest.approx(best, abs=1e-6))


@pytest.mark.parametrize(
    "shape", [shape if shape == "uneven" else pytest.param(shape, marks=pytest.mark.full) for shape in LIKENESS]
)
def test_records_and_trials_are_those_of_the_literal_twin(shape: str) -> None:
    compare(LIKENESS[shape], visits=600, restrict=0.2)
