"""Learners against the floor: visits per second, growth, memory, and calls from Python."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import zoomrank as zr
from research.bench.measure import Row, seconds
from zoomrank.spaces import Eligible
from zoomrank.users.first_click import count_clicks

VISITS = 300_000
SLOTS = 5

RANKERS: dict[str, tuple[Callable[[zr.DocumentTree], zr.Ranked], float]] = {
    "ZoomRank": (lambda tree: zr.ZoomRank(tree, SLOTS, seed=1), 15),
    "RankZoom": (lambda tree: zr.RankZoom(tree, SLOTS, seed=1), 5),
    "RankCorrZoom": (lambda tree: zr.RankCorrZoom(tree, SLOTS, seed=1), 8),
    "RankUCB1": (lambda tree: zr.RankUCB1(tree, SLOTS, seed=1), 8),
    "RankEXP3": (lambda tree: zr.RankEXP3(tree, SLOTS, seed=1, horizon=VISITS), 8),
    "RankGridUCB1": (lambda tree: zr.RankGridUCB1(tree, SLOTS, seed=1), 8),
    "RankGridEXP3": (lambda tree: zr.RankGridEXP3(tree, SLOTS, seed=1), 8),
    "RankContextZoom (scale 1)": (lambda tree: zr.RankContextZoom(tree, SLOTS, seed=1), 20),
    "RankRandom, no learner at all": (lambda tree: zr.RankRandom(tree, SLOTS, seed=1), 0),
    "RankContextZoom (scale 0.2)": (lambda tree: zr.RankContextZoom(tree, SLOTS, seed=1, scale=0.2), 20),
    "RankThompson": (lambda tree: zr.RankThompson(tree, SLOTS, seed=1), 0),
    "RankKLUCB": (lambda tree: zr.RankKLUCB(tree, SLOTS, seed=1), 0),
    "CascadeKLUCB": (lambda tree: zr.CascadeKLUCB(tree, SLOTS, seed=1), 0),
    "RankExploreCommit": (lambda tree: zr.RankExploreCommit(tree, SLOTS, seed=1), 0),
}


GROWING = tuple(name for name, (_, bar) in RANKERS.items() if bar)  # those with a target


def one_rate(
    make: Callable[[zr.DocumentTree], zr.Ranked], users: Any, tree: zr.DocumentTree, visits: int = VISITS
) -> float:
    """Return the visits per second of a new ranker."""
    ranker = make(tree)
    start = time.perf_counter()
    zr.simulate(ranker, users, visits, seed=1)
    return visits / (time.perf_counter() - start)


def rate(make: Callable[[zr.DocumentTree], zr.Ranked], users: Any, tree: zr.DocumentTree, visits: int) -> float:
    """Return the median of three such rates."""
    return float(np.median([one_rate(make, users, tree, visits) for _ in range(3)]))


def floor_rates(users: Any, tree: zr.DocumentTree) -> tuple[float, float]:
    """Return the floors of `bench floor`, for random rankings and for the greedy one, which a trained learner shows."""
    rng = np.random.default_rng(1)
    random = [rng.choice(len(tree), size=SLOTS, replace=False) for _ in range(5)]
    greedy = [tree.documents.positions(users.greedy(SLOTS).documents)] * 5
    rates = []
    for rankings in (random, greedy):
        count_clicks(users.state, rankings[0], 10, rng)
        start = time.perf_counter()
        for ranking in rankings:
            count_clicks(users.state, ranking, 300_000, rng)
        rates.append(300_000 * len(rankings) / (time.perf_counter() - start))
    return rates[0], rates[1]


def learners() -> Iterator[Row]:
    """Two peaks, 5 slots, 300,000 visits, at 32,768 and at 1,048,576 documents.

    The floor is measured again next to every run, since the machine's own speed varies.
    """
    small, large = zr.DocumentTree.exponential(), zr.DocumentTree.exponential(depth=20)
    few, many = zr.users.two_peaks(small, seed=7), zr.users.two_peaks(large, seed=7)
    for name, (make, bar) in RANKERS.items():
        zr.simulate(make(small), few, 10, seed=1)
        speeds, ratios, growths = [], [], []
        for _ in range(5):
            floors, speed, slow = floor_rates(few, small), one_rate(make, few, small), one_rate(make, many, large)
            speeds.append(speed)
            ratios.append([floor / speed for floor in floors])
            growths.append(speed / slow)
        (random, greedy), growth = np.median(ratios, axis=0), float(np.median(growths))
        aim = f"floor / {bar:.0f}" if bar else ""
        measured = f"{np.median(speeds) / 1e3:,.0f} k visits/s = floor / {random:.1f} (greedy rankings: / {greedy:.1f})"
        yield Row(name, measured, aim)
        yield Row(f"{name}, 1,048,576 documents", f"{growth:.1f} × the time", "2 ×" if bar else "")


def growth() -> Iterator[Row]:
    """Measure whether a visit takes longer as the learner learns."""
    tree = zr.DocumentTree.exponential()
    users = zr.users.two_peaks(tree, seed=7)
    for name in GROWING:
        make = RANKERS[name][0]
        zr.simulate(make(tree), users, 10, seed=1)
        short, long = rate(make, users, tree, 30_000), rate(make, users, tree, 3_000_000)
        yield Row(f"{name}, a visit of 3,000,000 against one of 30,000", f"{short / long:.2f} × the time", "1.5 ×")


def footprint() -> Iterator[Row]:
    """Measure memory and files after 50,000 impressions over a million documents, and calls from Python."""
    tree = zr.DocumentTree.exponential(depth=20)
    users = zr.users.two_peaks(tree, seed=7)
    for ranker in (zr.RankCorrZoom(tree, SLOTS, seed=1), zr.ZoomRank(tree, SLOTS, seed=1)):
        zr.simulate(ranker, users, 50_000, seed=1)
        own = sum(
            array.nbytes
            for name, array in ranker.state._asdict().items()
            if isinstance(array, np.ndarray) and name not in zr.bandits.Bandit.not_saved
        )
        what = f"{type(ranker).__name__} after 50,000 impressions over 1,048,576 documents"
        yield Row(what, f"{own / 1e3:,.0f} kB", "1 MB")
        with tempfile.TemporaryDirectory() as folder:
            ranker.save(Path(folder) / "ranker")
            yield Row("its file", f"{(Path(folder) / 'ranker').stat().st_size / 1e3:,.0f} kB", "1 MB")

    def thousand() -> None:
        for _ in range(1000):
            ranker.learn(ranker.rank(), None)

    yield Row("ZoomRank's rank() and learn() from Python", f"{seconds(thousand) * 1e3:.0f} µs", "45 µs")


def eligible() -> Iterator[Row]:
    """Measure the cost of ranking some documents only."""
    tree = zr.DocumentTree.exponential()
    users = zr.users.two_peaks(tree, seed=7)
    ranker = zr.ZoomRank(tree, SLOTS, seed=1)
    zr.simulate(ranker, users, 20_000, seed=1)
    rng = np.random.default_rng(1)
    plain = seconds(lambda: ranker.rank_many(2_000))
    for share in (0.99, 0.5, 0.01):
        some = Eligible.only(tree.documents, np.flatnonzero(rng.random(len(tree)) < share))

        def restricted(some: Eligible = some) -> None:
            ranker.rank_many(2_000, some)

        ratio = seconds(restricted) / plain
        yield Row(f"ranking {share:.0%} of 32,768 documents against all of them", f"{ratio:.1f} × the time")
