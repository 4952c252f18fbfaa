"""The learners against the floor: rounds per second, growth, memory, calls from Python, and compile time."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import zoomrank as zr
from bench.measure import Row, seconds
from zoomrank.users.clicks import count_clicks

ROUNDS = 300_000
SLOTS = 5

RANKERS: dict[str, tuple[Callable[[zr.DocumentTree], zr.Ranked], float]] = {
    "ZoomRank": (lambda tree: zr.ZoomRank(tree, SLOTS, seed=1), 25),
    "RankZoom": (lambda tree: zr.RankZoom(tree, SLOTS, seed=1), 5),
    "RankCorrZoom": (lambda tree: zr.RankCorrZoom(tree, SLOTS, seed=1), 8),
    "RankUCB1": (lambda tree: zr.RankUCB1(tree, SLOTS, seed=1), 8),
    "RankEXP3": (lambda tree: zr.RankEXP3(tree, SLOTS, seed=1, horizon=ROUNDS), 8),
    "RankGridUCB1": (lambda tree: zr.RankGridUCB1(tree, SLOTS, seed=1), 8),
    "RankGridEXP3": (lambda tree: zr.RankGridEXP3(tree, SLOTS, seed=1), 8),
    "RankContextZoom (scale 1)": (lambda tree: zr.RankContextZoom(tree, SLOTS, seed=1), 40),
    "RankRandom, no learner at all": (lambda tree: zr.RankRandom(tree, SLOTS, seed=1), 0),
    "RankContextZoom (scale 0.2)": (lambda tree: zr.RankContextZoom(tree, SLOTS, seed=1, scale=0.2), 40),
}


def one_rate(
    make: Callable[[zr.DocumentTree], zr.Ranked], users: Any, tree: zr.DocumentTree, rounds: int = ROUNDS
) -> float:
    """Rounds per second of a fresh ranker."""
    ranker = make(tree)
    start = time.perf_counter()
    zr.simulate(ranker, users, rounds, seed=1)
    return rounds / (time.perf_counter() - start)


def rate(make: Callable[[zr.DocumentTree], zr.Ranked], users: Any, tree: zr.DocumentTree, rounds: int) -> float:
    """The median of three such rates."""
    return float(np.median([one_rate(make, users, tree, rounds) for _ in range(3)]))


def floor_rate(users: Any, tree: zr.DocumentTree) -> float:
    """The floor of `bench floor`: random fixed rankings of the same visitors."""
    rng = np.random.default_rng(1)
    rankings = [rng.choice(len(tree), size=SLOTS, replace=False) for _ in range(5)]
    count_clicks(users.state, rankings[0], 10, rng)
    start = time.perf_counter()
    for ranking in rankings:
        count_clicks(users.state, ranking, 300_000, rng)
    return 300_000 * len(rankings) / (time.perf_counter() - start)


def learners() -> Iterator[Row]:
    """Two peaks, 5 slots, 300,000 rounds, at 32,768 and at 1,048,576 documents.

    The floor is measured again next to every run, since the machine's own speed comes and goes.
    """
    small, large = zr.DocumentTree.exponential(), zr.DocumentTree.exponential(depth=20)
    few, many = zr.users.two_peaks(small, seed=7), zr.users.two_peaks(large, seed=7)
    for name, (make, bar) in RANKERS.items():
        zr.simulate(make(small), few, 10, seed=1)
        speeds, ratios, growths = [], [], []
        for _ in range(5):
            floor, speed, slow = floor_rate(few, small), one_rate(make, few, small), one_rate(make, many, large)
            speeds.append(speed)
            ratios.append(floor / speed)
            growths.append(speed / slow)
        ratio, growth = float(np.median(ratios)), float(np.median(growths))
        aim = f"floor / {bar:.0f}" if bar else ""
        yield Row(name, f"{np.median(speeds) / 1e3:,.0f} k rounds/s = floor / {ratio:.1f}", aim)
        yield Row(f"{name}, 1,048,576 documents", f"{growth:.1f} × the time", "2 ×" if bar else "")


def growth() -> Iterator[Row]:
    """Whether a round gets slower as the learner knows more."""
    tree = zr.DocumentTree.exponential()
    users = zr.users.two_peaks(tree, seed=7)
    for name in ("ZoomRank", "RankZoom", "RankCorrZoom", "RankUCB1", "RankEXP3", "RankGridUCB1", "RankGridEXP3"):
        make = RANKERS[name][0]
        zr.simulate(make(tree), users, 10, seed=1)
        short, long = rate(make, users, tree, 30_000), rate(make, users, tree, 3_000_000)
        yield Row(f"{name}, a round of 3,000,000 against one of 30,000", f"{short / long:.2f} × the time", "1.5 ×")


def footprint() -> Iterator[Row]:
    """Memory and files after 50,000 impressions over a million documents, and calls from Python."""
    tree = zr.DocumentTree.exponential(depth=20)
    users = zr.users.two_peaks(tree, seed=7)
    for ranker in (zr.ZoomRank(tree, SLOTS, seed=1), zr.RankCorrZoom(tree, SLOTS, seed=1)):
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

    yield Row("rank() and learn() from Python", f"{seconds(thousand) * 1e3:.0f} µs", "60 µs")


FIRST = """
import time
start = time.perf_counter()
import zoomrank as zr
zr.RankCorrZoom(zr.DocumentTree.exponential(), slots=5, seed=1).rank()
print(time.perf_counter() - start)
"""
EVERYTHING = """
import time
start = time.perf_counter()
import zoomrank as zr
tree = zr.DocumentTree.exponential(depth=6)
users = zr.users.two_peaks(tree, seed=1)
for make in (zr.ZoomRank, zr.RankUCB1, zr.RankGridUCB1, zr.RankGridEXP3, zr.RankZoom, zr.RankCorrZoom,
             zr.RankContextZoom, zr.RankRandom, lambda tree, slots: zr.RankEXP3(tree, slots, horizon=100)):
    ranker = make(tree, slots=3)
    ranker.learn(ranker.rank(), 1)
    zr.simulate(ranker, users, 10, seed=1)
users.greedy(3)
print(time.perf_counter() - start)
"""


def compilation() -> Iterator[Row]:
    """From an empty cache, and from a warm one."""
    with tempfile.TemporaryDirectory() as folder:
        for script, what, aim in (
            (EVERYTHING, "compiling every learner on an empty cache", "60 s"),
            (FIRST, "first import", ""),
            (FIRST, "import and first ranking on a warm cache", "2 s"),
        ):
            done = subprocess.run(  # noqa: S603
                [sys.executable, "-c", script],
                env={**os.environ, "NUMBA_CACHE_DIR": folder},
                capture_output=True,
                text=True,
                check=True,
            )
            if what != "first import":
                yield Row(what, f"{float(done.stdout):.1f} s", aim)
