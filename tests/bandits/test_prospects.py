"""What slots know, and which documents are on trial, against the definitions and the literal twin."""

from collections.abc import Callable

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

    def exchange(self, shown: list[int], picks: list[int], nodes: list[int], certain: Callable[[int], bool]) -> None:
        self.chosen = shown.copy()
        super().exchange(shown, picks, nodes, certain)

    def trial(self, i: int, chosen: list[int]) -> bool:
        """Whether what slot i chose has not the best record, or nobody has clicked it though more is hoped for."""
        u = self.tree.leaves[chosen[i]]
        while u != 0 and u not in self.children(self.tree.parent[u]):
            u = self.tree.parent[u]
        cap = min((self.tree.distance(chosen[i], y) for y in chosen[:i]), default=np.inf)
        own, hope = min(self.mean[u, i], cap), min(self.value(u, i, []), cap)
        return own < max(0.0, self.record(0, i, chosen[:i])) or (self.gains(u) == 0 and hope > own)


def compared(tree: DocumentTree, visits: int, restrict: float) -> tuple[int, int, int]:
    """Play; returns how many rankings had an exchange, how many had other trials than the twin's, and both."""
    plain = twin_tree(tree)
    paths = Watched(plain, SLOTS)
    slow, fast = reference.Ranked(plain, paths.each(), False, 3), Ranked(PathZooming(tree), SLOTS, seed=3)
    rng = np.random.default_rng(11)
    mean = np.where(np.arange(len(tree)) < len(tree) // 3, 0.3 + 0.4 * rng.random(len(tree)), 0.02)
    exchanged = wrong = wrong_after_exchange = 0
    for _ in range(visits):
        restricted = rng.random() < restrict
        away = rng.choice(len(tree), size=int(rng.integers(len(tree) - SLOTS)) if restricted else 0, replace=False)
        plain.ineligible = set(away.tolist())
        some = tree.documents.at(np.delete(np.arange(len(tree)), away)) if restricted else None
        (shown, picks, chances), ranking = slow.rank(), fast.rank(some)
        told = fast.explain(ranking, some)
        _check_records(told, paths, shown)
        trial = {x: paths.trial(i, paths.chosen) or shown.index(x) < i for i, x in enumerate(paths.chosen)}
        differs = [trial[x] for x in shown] != [slot.trial for slot in told]
        exchanged += shown != paths.chosen
        wrong += differs
        wrong_after_exchange += differs and shown != paths.chosen
        relevant = rng.random(len(tree)) < mean
        click = next((slot for slot in range(SLOTS) if relevant[shown[slot]]), SLOTS)
        slow.learn(shown, picks, chances, click)
        fast.learn(ranking, None if click == SLOTS else click)
    return exchanged, wrong, wrong_after_exchange


def _check_records(told: list[SlotExplanation], paths: Watched, shown: list[int]) -> None:
    for i, slot in enumerate(told):
        best = paths.record(0, i, shown[:i])
        assert slot.record == (None if best < 0 else pytest.approx(best, abs=1e-6))


@pytest.mark.parametrize(
    "shape", [shape if shape == "uneven" else pytest.param(shape, marks=pytest.mark.full) for shape in LIKENESS]
)
def test_records_and_trials_are_those_of_the_literal_twin(shape: str) -> None:
    """Exactly, but for exchanges: a ranking does not say whether there was one, and how it stands may leave a doubt."""
    exchanged, wrong, wrong_after_exchange = compared(LIKENESS[shape], visits=600, restrict=0.2)
    assert exchanged > 20
    assert wrong == wrong_after_exchange
    assert wrong <= exchanged / 20
