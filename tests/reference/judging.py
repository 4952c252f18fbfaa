"""Estimates from a log, one impression after the other, as the page on judging derives them; no arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

Chance = Callable[[str, Sequence[int], int], float]  # query, documents above, document: how likely the target shows it


class Visit(NamedTuple):
    """An impression: what was shown, how likely, how many slots she looked at, and the slot that satisfied her."""

    query: str
    shown: Sequence[int]
    propensity: Sequence[float]
    looks: int
    click: int | None


def weight(visit: Visit, slots: int, chance: Chance) -> float:
    """How much likelier the target shows the first slots of a ranking than the log did."""
    found = 1.0
    for slot in range(slots):
        found *= chance(visit.query, visit.shown[:slot], visit.shown[slot]) / visit.propensity[slot]
    return found


def weighted(visits: Sequence[Visit], chance: Chance) -> float:
    clicks = [0.0 if visit.click is None else weight(visit, visit.click + 1, chance) for visit in visits]
    return sum(clicks) / len(visits)


def self_normalised(visits: Sequence[Visit], chance: Chance) -> float:
    """The chance to get to a slot, times that to be satisfied there, slot by slot."""
    share, reached = 0.0, 1.0
    for slot in range(len(visits[0].shown)):
        there = [(visit, weight(visit, slot + 1, chance)) for visit in visits if visit.looks > slot]
        total = sum(one for _, one in there)
        if total == 0:
            break
        share += reached * sum(one for visit, one in there if visit.click == slot) / total
        reached *= sum(one for visit, one in there if visit.looks > slot + 1) / total
    return share


def doubly_robust(
    visits: Sequence[Visit], chance: Chance, own: Sequence[Sequence[float]], before: Sequence[Sequence[float]]
) -> float:
    """What the model expects before anything is shown, corrected in every slot that was looked at."""
    total = 0.0
    for visit, mine, expected in zip(visits, own, before, strict=True):
        total += expected[0]
        for slot in range(visit.looks):
            later = expected[slot + 1] if visit.looks > slot + 1 else 0.0
            gained = (1.0 if visit.click == slot else later) - mine[slot]
            total += weight(visit, slot + 1, chance) * gained
    return total / len(visits)


class FlatModel:
    """Looks and clicks of documents and of all together; each document beside four visits as all went, and all beside
    four that went as usual.
    """

    def __init__(self, usual: float) -> None:
        self.usual = usual
        self.looks: dict[int, int] = {}
        self.clicks: dict[int, int] = {}

    def learn(self, visit: Visit) -> None:
        for slot in range(visit.looks):
            document = visit.shown[slot]
            self.looks[document] = self.looks.get(document, 0) + 1
            self.clicks[document] = self.clicks.get(document, 0) + (slot == visit.click)

    def worth(self, document: int) -> float:
        whole = (sum(self.clicks.values()) + 4 * self.usual) / (sum(self.looks.values()) + 4)
        return (self.clicks.get(document, 0) + 4 * whole) / (self.looks.get(document, 0) + 4)


def predictions(
    visits: Sequence[Visit], chance: Chance, documents: Sequence[int]
) -> tuple[list[list[float]], list[list[float]]]:
    """What a flat model says of the impressions of one query: stretches that double, each predicted from those before.

    What is to be found below a slot is what the stretches before expected there, weighed as those above it were.
    """
    slots = len(visits[0].shown)
    model = FlatModel(1.0 / (2 + slots))
    found, weights = [0.0] * slots, [0.0] * slots
    own, before = [], []
    ends = sorted({0, *(len(visits) >> halving for halving in range(9))})
    for start, end in pairwise(ends):
        some = visits[start:end]

        def expected(visit: Visit, slot: int) -> float:
            above = visit.shown[:slot]
            if weight(visit, slot, chance) == 0:
                return 0.0
            return sum(chance(visit.query, above, one) * model.worth(one) for one in documents)

        earns = [found[slot] / weights[slot] if weights[slot] else expected(some[0], 0) for slot in range(slots)]
        below = [0.0]
        for slot in reversed(range(slots)):
            below.insert(0, 1 - (1 - earns[slot]) * (1 - below[0]))
        for visit in some:
            means = [expected(visit, slot) for slot in range(slots)]
            chances = [model.worth(document) for document in visit.shown]
            own.append([chances[slot] + (1 - chances[slot]) * below[slot + 1] for slot in range(slots)])
            before.append([means[slot] + (1 - means[slot]) * below[slot + 1] for slot in range(slots)] + [0.0])
            for slot in range(slots):
                found[slot] += means[slot] * weight(visit, slot, chance)
                weights[slot] += weight(visit, slot, chance)
        for visit in some:
            model.learn(visit)
    return own, before
