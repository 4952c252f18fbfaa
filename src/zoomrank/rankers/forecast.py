"""Forecast of trials: where a ranker will try documents, how often, and at what cost; found by running a copy.

The copy ranks for simulated visitors who click as the ranker's records say, and learns from them. Its random numbers
continue the ranker's, so its first ranking is the one that the next visitor will see.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from zoomrank.bandits.bandit import Prospects
from zoomrank.rankers.slot_bandits import SlotBandits
from zoomrank.types import Array

VISITS = 200  # enough to compare shares, and fast
_FIRST_FEW = 3  # most subtrees listed per slot


@dataclass(frozen=True)
class TriedSubtree:
    """A subtree whose documents are tried.

    Attributes
    ----------
    node : int
        Its number in the tree.
    name : str
        Name of the subtree.
    documents : int
        Number of its documents.
    visits : int
        Number of visits on which one of them is tried.
    """

    node: int
    name: str
    documents: int
    visits: int


@dataclass(frozen=True)
class SlotForecast:
    """Forecast of one slot.

    Attributes
    ----------
    slot : int
        Slot, from 0 at the top.
    share : float
        Share of visits on which its document is on trial.
    cost : float
        Clicks lost per 100 visits, compared with the best record.
    tried : tuple of TriedSubtree
        Subtrees tried most, among those with their own counts.
    """

    slot: int
    share: float
    cost: float
    tried: tuple[TriedSubtree, ...]

    def __str__(self) -> str:
        if self.share == 0:
            return f"slot {self.slot}: nothing on trial"
        most = ", ".join(f"{one.name} ({one.documents} documents) {one.visits} times" for one in self.tried)
        return (
            f"slot {self.slot}: on trial in {self.share:.0%}, {self.cost:.2f} clicks lost per 100 visits; most: {most}"
        )


@dataclass(frozen=True)
class Forecast:
    """Forecast of the trials in all slots, and their cost.

    Attributes
    ----------
    visits : int
        Number of simulated visits.
    slots : tuple of SlotForecast
        Slots from the top down.

    Examples
    --------
    >>> import zoomrank as zr
    >>> ranker = zr.ZoomRank(zr.DocumentTree.exponential(depth=2), slots=1, seed=0)
    >>> for _ in range(50):
    ...     ranking = ranker.rank()
    ...     ranker.learn(ranking, click=0 if ranking.documents == [1] else None)
    >>> print(ranker.forecast(visits=20))
    The next 20 visits:
    slot 0: nothing on trial
    """

    visits: int
    slots: tuple[SlotForecast, ...]

    @property
    def cost(self) -> float:
        """Clicks lost to trials in all slots, per 100 visits."""
        return sum(slot.cost for slot in self.slots)

    def __str__(self) -> str:
        return "\n".join([f"The next {self.visits} visits:", *map(str, self.slots)])


def simulate_trials(ranker: SlotBandits, visits: int) -> Forecast:
    """Run a copy of a ranker, whose bandit keeps records, for some visits."""
    luck = np.random.default_rng(0).random((visits, ranker.slots))
    trials, costs = np.zeros(ranker.slots, np.int64), np.zeros(ranker.slots)
    tried: list[Counter[int]] = [Counter() for _ in range(ranker.slots)]
    twin, before = ranker.copied(), ranker.copied().state  # which has scratch space of its own
    for visit in range(visits):
        ranking = twin.rank_arrays(1)
        shown = ranking.shown[0]
        state = twin.restricted(twin.present)
        prospects = twin.bandit.prospects(state, before, shown, ranking.pick[0], twin.duplicates)
        assert prospects is not None  # noqa: S101  (the caller checks it)
        twin.learn_arrays(ranking, _first_click(luck[visit], prospects))
        trials += prospects.trial
        costs += prospects.cost
        for slot in np.flatnonzero(prospects.trial).tolist():
            tried[slot][int(shown[slot])] += 1
    rows = zip(trials.tolist(), costs.tolist(), tried, strict=True)
    return Forecast(
        visits,
        tuple(
            SlotForecast(slot, trial / visits, 100 * cost / visits, _most(ranker, slot, documents))
            for slot, (trial, cost, documents) in enumerate(rows)
        ),
    )


def _first_click(luck: Array, prospects: Prospects) -> Array:
    """Return the first slot clicked by a visitor with these random numbers; the number of slots if none is."""
    pleased = np.flatnonzero(luck < prospects.chance)
    return np.array([pleased[0] if len(pleased) else len(luck)])


def _most(ranker: SlotBandits, slot: int, documents: Counter[int]) -> tuple[TriedSubtree, ...]:
    """Return the subtrees of the ranker whose documents are tried most."""
    tree, nothing = ranker.tree, np.zeros(0, np.int64)
    counts: Counter[int] = Counter()
    for document, times in documents.items():
        counts[ranker.bandit.strategy_of(ranker.state, slot, nothing, document).node] += times
    first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_FIRST_FEW]
    start, end = tree.shape.first_document, tree.shape.end_document
    return tuple(TriedSubtree(node, tree.name(node), int(end[node]) - int(start[node]), times) for node, times in first)
