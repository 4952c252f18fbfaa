"""Alternatives on the same visitors: `pip install -e '.[compare]'`, then `python -m bench others`.

Each runs for a few seconds and is counted in visits per second, ranking 5 of 32,768 documents of the two-peak model.
They are used as their documentation shows, one copy per slot; visitors click through the compiled model, whose cost is
negligible.
"""

import importlib.util
import math
import random
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

import zoomrank as zr
from research.bench.learners import RANKERS, rate
from research.bench.measure import Row

SLOTS = 5
SECONDS = 8.0


class Other(Protocol):
    def rank(self) -> list[int]: ...

    def learn(self, click: int) -> None: ...


class ListScan:
    """Textbook zooming: a list of active subtrees that is scanned in every round."""

    def __init__(self, tree: zr.DocumentTree) -> None:
        self.tree = tree
        self.active: list[dict[int, list[int]]] = [{0: [0, 0]} for _ in range(SLOTS)]
        self.played: list[int] = []

    def rank(self) -> list[int]:
        self.played, shown = [], []
        for active in self.active:
            values = {u: (r / n if n else 0.0) + 2 * math.sqrt(1 / (1 + n)) for u, (n, r) in active.items()}
            top = max(values.values())
            u = random.choice([node for node, value in values.items() if value == top])
            self.played.append(u)
            while len(self.tree.children(u)):
                u = random.choice(self.tree.children(u))
            shown.append(int(self.tree.shape.first_document[u]))
        return shown

    def learn(self, click: int) -> None:
        for slot, u in enumerate(self.played[: click + 1]):
            entry = self.active[slot][u]
            entry[0] += 1
            entry[1] += slot == click
            if math.sqrt(1 / (1 + entry[0])) < self.tree.width[u]:
                del self.active[slot][u]
                self.active[slot].update({child: [0, 0] for child in self.tree.children(u)})


class PyXABZooming:
    def __init__(self, tree: zr.DocumentTree) -> None:
        from PyXAB.algos.Zooming import Zooming

        self.documents = len(tree)
        self.bandits = [Zooming(nu=1, rho=0.837, domain=[[0, 1]]) for _ in range(SLOTS)]
        self.round = 0

    def rank(self) -> list[int]:
        self.round += 1
        return [min(int(b.pull(self.round)[0] * self.documents), self.documents - 1) for b in self.bandits]

    def learn(self, click: int) -> None:
        for slot, bandit in enumerate(self.bandits[: click + 1]):
            bandit.receive_reward(self.round, float(slot == click))


class RiverUCB:
    def __init__(self, tree: zr.DocumentTree) -> None:
        from river import bandit

        self.arms = list(range(len(tree)))
        self.bandits = [bandit.UCB(delta=1, seed=slot) for slot in range(SLOTS)]
        self.shown: list[int] = []

    def rank(self) -> list[int]:
        self.shown = [bandit.pull(self.arms) for bandit in self.bandits]
        return self.shown

    def learn(self, click: int) -> None:
        for slot, bandit in enumerate(self.bandits[: click + 1]):
            bandit.update(self.shown[slot], float(slot == click))


class MABWiserUCB1:
    def __init__(self, tree: zr.DocumentTree) -> None:
        from mabwiser.mab import MAB, LearningPolicy

        arms = list(range(len(tree)))
        self.bandits = [MAB(arms, LearningPolicy.UCB1(alpha=1), seed=slot) for slot in range(SLOTS)]
        for bandit in self.bandits:
            bandit.fit([0], [0])
        self.shown: list[int] = []

    def rank(self) -> list[int]:
        self.shown = [bandit.predict() for bandit in self.bandits]
        return self.shown

    def learn(self, click: int) -> None:
        for slot, bandit in enumerate(self.bandits[: click + 1]):
            bandit.partial_fit([self.shown[slot]], [int(slot == click)])


class VowpalWabbitCCB:
    def __init__(self, tree: zr.DocumentTree) -> None:
        import vowpalwabbit

        self.workspace = vowpalwabbit.Workspace("--ccb_explore_adf --quiet")
        self.actions = ["ccb shared |s query", *(f"ccb action |a d{x}" for x in range(len(tree)))]
        self.chosen: list[tuple[int, float]] = []

    def rank(self) -> list[int]:
        slots = self.workspace.predict([*self.actions, *(["ccb slot |z slot"] * SLOTS)])
        self.chosen = [slot[0] for slot in slots]
        return [action for action, _ in self.chosen]

    def learn(self, click: int) -> None:
        labels = []
        for slot, (action, chance) in enumerate(self.chosen):
            seen = f"{action}:{-float(slot == click)}:{chance} " if slot <= click else ""
            labels.append(f"ccb slot {seen}|z slot")
        self.workspace.learn([*self.actions, *labels])


OTHERS: dict[str, tuple[str | None, Callable[[zr.DocumentTree], Other]]] = {
    "zooming that scans a list, plain Python": (None, ListScan),
    "PyXAB Zooming × 5": ("PyXAB", PyXABZooming),
    "river UCB × 5": ("river", RiverUCB),
    "mabwiser UCB1 × 5": ("mabwiser", MABWiserUCB1),
    "Vowpal Wabbit CCB": ("vowpalwabbit", VowpalWabbitCCB),
}


def others() -> Iterator[Row]:
    """Measure visits per second, and how many times more RankCorrZoom does in the same run."""
    tree = zr.DocumentTree.exponential()
    users = zr.users.two_peaks(tree, seed=7)
    make = RANKERS["RankCorrZoom"][0]
    zr.simulate(make(tree), users, 10, seed=1)
    ours = rate(make, users, tree, 300_000)
    yield Row("RankCorrZoom", f"{ours / 1e3:,.0f} k visits/s")
    for name, (package, start) in OTHERS.items():
        if package is not None and importlib.util.find_spec(package) is None:
            yield Row(name, "not installed: pip install -e '.[compare]'")
            continue
        theirs = _visits_per_second(start(tree), users)
        yield Row(name, f"{theirs:,.1f} visits/s: RankCorrZoom does {ours / theirs:,.0f} times as many")


def _visits_per_second(other: Other, users: Any) -> float:
    rng = np.random.default_rng(0)
    visits, start = 0, time.perf_counter()
    while time.perf_counter() - start < SECONDS:
        shown = other.rank()
        other.learn(int(users.first_clicks(np.array(shown, dtype=np.int64), 1, rng)[0]))
        visits += 1
    return visits / (time.perf_counter() - start)
