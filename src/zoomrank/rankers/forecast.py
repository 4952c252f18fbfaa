"""What a ranker is about to try: where, how often, and what that costs. Found out by going on with a copy of it.

The copy meets visitors who click as the ranker's own records say, and learns from them. Its own random numbers go on
where the ranker's are, so the first of its rankings is the one that the next visitor will see.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from zoomrank.bandits.interface import Prospects
from zoomrank.numbers import Array
from zoomrank.rankers.slot_bandits import SlotBandits

VISITS = 200  # enough to tell a share from another, and quickly done
_FIRST_FEW = 3  # of the subtrees that are tried in a slot


@dataclass(frozen=True)
class TriedSubtree:
    """A part of the collection of which documents are tried.

    Attributes
    ----------
    node : int
        Its number in the tree.
    name : str
        What the tree calls it.
    documents : int
        How many documents it holds.
    visits : int
        On how many visits one of them is tried.

    Examples
    --------
    >>> import zoomrank as zr
    >>> ranker = zr.ZoomRank(zr.DocumentTree.exponential(depth=4), slots=1, seed=0)
    >>> everything, = ranker.forecast(visits=10).slots[0].tried
    >>> everything.documents, everything.visits
    (16, 10)
    """

    node: int
    name: str
    documents: int
    visits: int


@dataclass(frozen=True)
class SlotForecast:
    """What a slot is about to try.

    Attributes
    ----------
    slot : int
        Which slot, from 0 at the top.
    share : float
        The share of visits on which its document is on trial.
    cost : float
        The clicks that this costs, per 100 visits: what the best that is known would have earned more.
    tried : tuple of TriedSubtree
        What is tried most, the first few; parts of the collection that are told apart now.

    Examples
    --------
    >>> import zoomrank as zr
    >>> ranker = zr.ZoomRank(zr.DocumentTree.exponential(depth=4), slots=1, seed=0)
    >>> slot = ranker.forecast(visits=10).slots[0]
    >>> slot.share, slot.cost  # nothing better is known
    (1.0, 0.0)
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
    """What a ranker is about to try in its slots, and what that costs.

    Attributes
    ----------
    visits : int
        How many were gone through.
    slots : tuple of SlotForecast
        From the top down.

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
        """The clicks that trials cost in all slots, per 100 visits."""
        return sum(slot.cost for slot in self.slots)

    def __str__(self) -> str:
        return "\n".join([f"The next {self.visits} visits:", *map(str, self.slots)])


def dry_run(ranker: SlotBandits, visits: int) -> Forecast:
    """Let a copy of a ranker, whose bandit keeps records, go on for some visits."""
    luck = np.random.default_rng(0).random((visits, ranker.slots))
    trials, costs = np.zeros(ranker.slots, np.int64), np.zeros(ranker.slots)
    tried: list[Counter[int]] = [Counter() for _ in range(ranker.slots)]
    twin = ranker.copied()
    for visit in range(visits):
        ranking = twin.rank_arrays(1)
        shown = ranking.shown[0]
        state = twin.restricted(twin.present)
        prospects = twin.bandit.prospects(state, ranker.state, shown, ranking.pick[0], twin.duplicates)
        assert prospects is not None  # noqa: S101  (the caller has made sure)
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
    """The first slot whose document pleases a visitor with such luck; the number of slots if none does."""
    pleased = np.flatnonzero(luck < prospects.chance)
    return np.array([pleased[0] if len(pleased) else len(luck)])


def _most(ranker: SlotBandits, slot: int, documents: Counter[int]) -> tuple[TriedSubtree, ...]:
    """The subtrees that the ranker tells apart of which documents are tried most."""
    tree, nothing = ranker.tree, np.zeros(0, np.int64)
    counts: Counter[int] = Counter()
    for document, times in documents.items():
        counts[ranker.bandit.strategy_of(ranker.state, slot, nothing, document).node] += times
    first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_FIRST_FEW]
    start, end = tree.shape.first_document, tree.shape.end_document
    return tuple(TriedSubtree(node, tree.name(node), int(end[node]) - int(start[node]), times) for node, times in first)
