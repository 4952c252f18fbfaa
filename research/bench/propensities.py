"""Check that rankings occur as often as their propensities say: `python -m bench propensities`.

A ranker that has learned for a while draws many rankings without learning. Those with the same beginning are a group:
the next documents are compared with the propensities of all documents there, by χ². Some rankers explore, some may show
only some documents, or one twice. Also measured: the cost of `explore` in exact satisfaction, against what a slot
earns; and the time to compute propensities.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

import zoomrank as zr
from research.bench.measure import Row, seconds
from zoomrank.rankers.registry import RANKERS, WITHOUT_HORIZON
from zoomrank.spaces import DocumentId
from zoomrank.types import Array

STATES, REDRAWS, SLOTS = 20, 100_000, 3
KNOWN = list(WITHOUT_HORIZON)
_ENOUGH, _FEWEST = 50, 5.0  # minimum rankings of a group; minimum expected count of a cell
_TREES = (
    zr.DocumentTree.exponential(depth=3),
    zr.DocumentTree.exponential(depth=2, branching=4, epsilon=0.6),
    zr.DocumentTree.from_parents([-1, 0, 0, 0, 1, 1, 1, 2, 2, 5, 5, 8, 8], epsilon=0.5),
)


@dataclass(frozen=True)
class State:
    """A trained ranker, and how it is asked for rankings."""

    ranker: zr.Ranked
    explore: float
    eligible: list[DocumentId] | None


def state_of(name: str, number: int) -> State:
    """Return one of many states of a ranker."""
    rng = np.random.default_rng([number, 5])
    tree = _TREES[number % len(_TREES)]
    kind: Any = RANKERS[name]
    phases = {} if kind.bandit_kind.anytime else {"anytime": True}
    ranker: zr.Ranked = kind(tree, SLOTS, seed=number, duplicates=number % 7 == 6, **phases)
    users = zr.users.Independent(tree, 0.6 * rng.random(len(tree)) ** 3)
    zr.simulate(ranker, users, visits=1 + int(4.0 ** (1 + number % 5)), seed=number)
    some = None
    if kind.bandit_kind.restrictable and number % 4 == 3:
        some = tree.documents.at(np.sort(rng.permutation(len(tree))[: len(tree) // 2]))
    return State(ranker, 0.3 if number % 3 == 2 else 0.0, some)


def disagreement(state: State, redraws: int) -> float:
    """Return the p-value of the drawn rankings given their propensities."""
    made = state.ranker.rank_many(redraws, state.eligible, state.explore).arrays
    if state.ranker.bandit.weighs:
        again = state.ranker.propensities(made.shown[:1000], state.eligible, state.explore)
        np.testing.assert_allclose(made.propensity[:1000], again, rtol=1e-12)
    statistic, freedom = 0.0, 0
    for slot in range(SLOTS):
        above, group = np.unique(made.shown[:, :slot], axis=0, return_inverse=True)
        for number, prefix in enumerate(above):
            shown = made.shown[group.ravel() == number, slot]
            if len(shown) >= _ENOUGH:
                more, cells = _chi_squared(state, prefix, shown)
                statistic, freedom = statistic + more, freedom + cells - 1
    return float(stats.chi2.sf(statistic, freedom)) if freedom else 1.0


def _chi_squared(state: State, prefix: Array, shown: Array) -> tuple[float, int]:
    """Compare the documents below a prefix; small cells are merged, with the next larger cell if still small."""
    documents = len(state.ranker.tree)
    rows = np.column_stack([np.tile(prefix, (documents, 1)), np.arange(documents)])
    rows = np.column_stack([rows, np.zeros((documents, SLOTS - rows.shape[1]), np.int64)])
    chances = state.ranker.propensities(rows, state.eligible, state.explore)[:, len(prefix)]
    np.testing.assert_allclose(chances.sum(), 1.0, rtol=1e-9)
    expected, seen = chances * len(shown), np.bincount(shown, minlength=documents)
    if seen[expected == 0.0].any():
        return float("inf"), len(seen)  # a document with propensity 0 was shown
    order = np.argsort(expected)
    expected, seen = expected[order], seen[order]
    few = int((expected < _FEWEST).sum())
    few += expected[:few].sum() < _FEWEST
    expected = np.append(expected[few:], expected[:few].sum())
    seen = np.append(seen[few:], seen[:few].sum())
    cells = expected > 0.0
    return float(((seen - expected)[cells] ** 2 / expected[cells]).sum()), int(cells.sum())


def propensities() -> Iterator[Row]:
    """Check every ranker that the service offers."""
    found = []
    for name in KNOWN:
        worst = [disagreement(state_of(name, number), REDRAWS) for number in range(STATES)]
        found += worst
        yield Row(f"{name}: the smallest p of {STATES} states", f"{min(worst):.3f}")
    uniform = stats.kstest([p for p in found if p < 1.0], "uniform").pvalue
    yield Row(f"all: the smallest p, times {len(found)}", f"{min(1.0, len(found) * min(found)):.2f}", "0.05 or more")
    yield Row("all: whether p-values are uniform (Kolmogorov and Smirnov)", f"p = {uniform:.2f}", "0.01 or more")
    for name, lost, earned in costs():
        yield Row(
            f"{name}: clicks that a replaced slot costs, of a hundred visitors",
            f"{100 * lost:.1f}",
            f"{100 * earned:.1f}, what a slot earns",
        )

    for count in (5, 20):
        took = weighing(zr.ZoomRank, count)
        yield Row(f"ZoomRank, 32,768 documents: to weigh a ranking of {count} slots", f"{1e6 * took:.1f} µs")
    took = weighing(zr.RankThompson, 5, 100)
    yield Row("RankThompson, by integrals, for those who ask: 5 slots", f"{1e6 * took:.0f} µs")


WORLDS: dict[str, Any] = {"two peaks": zr.users.two_peaks, "Chinese Restaurant": zr.users.chinese_restaurant}


def costs(visits: int = 20_000, redraws: int = 2000) -> Iterator[tuple[str, float, float]]:
    """Measure the satisfaction lost by replacing a slot of every ranking, and what a slot earns on average."""
    tree = zr.DocumentTree.exponential(depth=10)
    for name, make in WORLDS.items():
        users = make(tree, seed=1)
        for ranker in (zr.ZoomRank(tree, 5, seed=1), zr.RankCorrZoom(tree, 5, seed=1)):
            zr.simulate(ranker, users, visits, seed=1)
            plain, replaced = (_satisfaction(ranker, users, explore, redraws) for explore in (0.0, 1.0))
            yield f"{type(ranker).__name__}, {name}", plain - replaced, plain / ranker.slots


def weighing(kind: type[zr.ZoomRank | zr.RankThompson], slots: int, rows: int = 2000) -> float:
    """Return the seconds for computing the propensities of a ranking, with a trained ranker."""
    tree = zr.DocumentTree.exponential()
    ranker = kind(tree, slots, seed=1)
    zr.simulate(ranker, zr.users.two_peaks(tree, seed=1), 20_000, seed=1)
    shown = ranker.rank_arrays(rows).shown
    return seconds(lambda: ranker.propensities(shown)) / rows


def _satisfaction(ranker: zr.Ranked, users: zr.users.UserDistribution, explore: float, redraws: int) -> float:
    """Return the mean exact satisfaction of rankings."""
    made = ranker.rank_many(redraws, explore=explore)
    shown, times = np.unique(made.arrays.shown, axis=0, return_counts=True)
    worth = [users.satisfaction(ranker.tree.documents.at(row)) for row in shown]
    return float(np.dot(worth, times) / redraws)
