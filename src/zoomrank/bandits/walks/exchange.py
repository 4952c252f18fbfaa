"""Exchange: try a document of a ranking in a higher slot, where a document like it stands. That costs no click.

Whether a visitor is satisfied depends on which documents she is shown, not on their order: so the order is free to
learn with. A document that was chosen for a low slot, below one that is like it, is only ever seen by visitors who had
skipped that one. What it would be worth to everybody, the low slot cannot find out. If it goes on being clicked there,
it may be the better of the two. Then they change places, until its own record in the high slot says that it is not.

Documents change places only above the first slot in which chance has a say. There the ranking is the same for every
visitor, in whatever order; and below it slots chose what they show, given those above. So how likely a ranking is stays
the product of how likely its slots chose as they did.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zoomrank.bandits.propensity import propensity
from zoomrank.bandits.state.path_bounds import upper_bound
from zoomrank.compiled import Scalar, inlined, separate
from zoomrank.numbers import Array

FAMILIAR = 8  # visits in its own slot before a document is tried elsewhere: fewer say nothing of what it earns there
TRIAL = 1.0  # the c of its bound in the high slot: wider than while choosing, since a trial costs nothing


@inlined
def _nearest_above(state: Any, shown: Array, low: Scalar) -> tuple[Scalar, Scalar]:
    """The highest slot whose document is nearest to that of a slot below, and the smallest node that holds both.

    Documents below a node are neighbours: the nearest is one of the two next to it, or with those below the same node.
    """
    document, left, right = shown[low], np.int64(-1), np.int64(len(state.leaf))
    for slot in range(low):
        if shown[slot] < document:
            left = max(left, shown[slot])
        else:
            right = min(right, shown[slot])
    node = np.uint64(state.parent[np.uint64(state.leaf[np.uint64(document)])])
    while node != 0 and left < state.first_document[node] and right >= state.end_document[node]:
        node = np.uint64(state.parent[node])
    high = np.uint64(0)
    while shown[high] < state.first_document[node] or shown[high] >= state.end_document[node]:
        high += np.uint64(1)
    return high, node


@inlined
def _may_be_better(state: Any, document: Scalar, low: Scalar, high: Scalar, record: Scalar) -> Scalar:
    """Whether a document adds enough in its slot, and may yet have a better record in the slot above."""
    here, there = np.float64(state.plays[document, low]), np.float64(state.plays[document, high])
    added = np.float64(state.clicks[document, low]) / here
    promising = added * (1.0 - record) > state.margin * record
    if promising and there > 0.0:
        mean = np.float64(state.clicks[document, high]) / there
        promising = there < here and upper_bound(mean, there, TRIAL) > record
    return promising


@inlined
def place_to_take(state: Any, shown: Array, pick: Array, strategy: Array, low: Scalar) -> Scalar:
    """The slot above whose document should change places with that of a slot; the slot itself if none should.

    Entries that hold several documents stay, and so do documents that fill in.
    """
    place, lower = np.uint64(low), np.uint64(strategy[low])
    known = state.plays[lower, low] >= FAMILIAR and state.clicks[lower, low] > 0
    if known and shown[low] == pick[low] and state.fan[lower] == 0:
        high, node = _nearest_above(state, shown, low)
        upper = np.uint64(strategy[high])
        if shown[high] == pick[high] and state.fan[upper] == 0:
            record = np.float64(state.record[upper, high])
            if state.width[node] < record and _may_be_better(state, lower, low, high, record):
                place = high
    return place


@inlined
def swap(values: Array, one: Scalar, other: Scalar) -> None:
    """Let two places of a row change what they hold."""
    kept = values[one]
    values[one] = values[other]
    values[other] = kept


@separate
def are_certain(state: Any, shown: Array, first: Scalar, last: Scalar) -> Scalar:
    """Whether chance has no say in what some slots choose, given those above. The lowest first: there it mostly has."""
    slot: Scalar = np.int64(last)
    while slot >= first and propensity(state, slot, shown, shown[slot], False) == 1.0:
        slot -= 1
    return slot < first


def exchange_alike(state: Any, shown: Array, pick: Array, strategy: Array, chance: Array) -> None:
    """Exchange documents that are alike, slot by slot from the top down: the body of `arrange`.

    Both learn where they then stand. Slots below choose the same in whatever order those above them are.
    """
    if state.exchange:
        certain: Scalar = 0  # slots from the top that are known to be
        for low in range(np.uint64(1), np.uint64(len(shown))):
            high = place_to_take(state, shown, pick, strategy, low)
            if high != low:
                if not are_certain(state, shown, certain, low):
                    break
                certain = np.int64(low) + 1
                swap(shown, low, high)
                swap(pick, low, high)
                swap(strategy, low, high)
                swap(chance, low, high)
