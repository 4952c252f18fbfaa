"""Rankers and visitors meet, compiled or written in plain Python."""

import numpy as np
import pytest

import zoomrank as zr
from zoomrank.errors import SlotsError


class _Stubborn:
    """Shows the same documents, and remembers what it was told."""

    def __init__(self, documents: list[int]) -> None:
        self.shown, self.heard = documents, list[int | None]()

    def rank(self) -> list[int]:
        return self.shown

    def learn(self, ranking: list[int], click: int | None) -> None:
        assert ranking is self.shown
        self.heard.append(click)


class _Plain:
    """A compiled ranker as if it were written in Python."""

    def __init__(self, ranker: zr.Ranked) -> None:
        self.rank, self.learn = ranker.rank, ranker.learn


class _Everything(zr.users.PlainUsers):
    def visitor(self, rng: np.random.Generator) -> list[int]:
        return [int(rng.integers(4)), 4]


def test_plain_rankers_meet_compiled_visitors() -> None:
    tree = zr.DocumentTree.exponential(depth=5)
    users = zr.users.two_peaks(tree, seed=0)
    best = users.greedy(3)
    ranker = _Stubborn(best.documents)
    trace = zr.simulate(ranker, users, 4_000, seed=1, delay=7, windows=4)
    assert abs(trace.rate - best.satisfaction) < 0.04
    assert len(ranker.heard) == 3_993
    assert trace.shown == [best.documents] * 4
    counts = [sum(click == slot for click in ranker.heard) for slot in range(3)]
    assert np.abs(trace.clicks.sum(axis=0) - counts).max() <= 7


def test_clicks_are_learned_as_late_as_in_python() -> None:
    tree = zr.DocumentTree.exponential(depth=5)
    users = zr.users.two_peaks(tree, seed=0)
    rankers = zr.RankCorrZoom(tree, 3, seed=1), _Plain(zr.RankCorrZoom(tree, 3, seed=1))
    compiled, plain = [zr.simulate(ranker, users, 600, seed=1, delay=5, windows=20) for ranker in rankers]
    assert compiled.clicks.tolist() == plain.clicks.tolist()
    assert compiled.shown == plain.shown


def test_compiled_rankers_meet_plain_visitors() -> None:
    tree = zr.DocumentTree.exponential(depth=3)
    users = _Everything(tree, sample=1_000)
    trace = zr.simulate(zr.RankCorrZoom(tree, 2, seed=1), users, 2_000, seed=1)
    assert trace.rates[-1] > 0.9
    assert users.greedy(1).documents == [4]
    assert users.draw(50, np.random.default_rng(0))[:, 4].all()
    assert users.clicks([4], 10, seed=0).tolist() == [0] * 10
    assert users.clicks([7], 10, seed=0).tolist() == [1] * 10


def test_mixtures_of_tables_can_be_simulated() -> None:
    tree = zr.DocumentTree.exponential(depth=3)
    tables = [zr.users.RelevanceTable(tree, [[document]]) for document in (1, 6)]
    trace = zr.simulate(zr.RankCorrZoom(tree, 2, seed=1), zr.users.Mixture(tables, [0.5, 0.5]), 3_000, seed=1)
    assert trace.rates[-1] > 0.9


def test_rankings_of_changing_length_are_refused() -> None:
    tree = zr.DocumentTree.exponential(depth=3)

    class Shrinking(_Stubborn):
        def rank(self) -> list[int]:
            self.shown = self.shown[:-1]
            return self.shown

    with pytest.raises(SlotsError, match="has 1 documents, those before it 2"):
        zr.simulate(Shrinking([1, 2, 3]), zr.users.two_peaks(tree, seed=1), 10)
