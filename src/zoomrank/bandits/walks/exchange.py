"""Exchange: try a document of a ranking in a higher slot, in place of a similar document, at no loss of clicks.

A visitor is satisfied by the set of documents, not by their order, so the order is free to learn with. A document
chosen for a low slot, below a similar one, is only seen by visitors who skipped that one; the low slot cannot find out
its value to all visitors. If it keeps being clicked there, it may be the better of the two. Then the two swap places,
until the document's own record in the high slot says that it is not better.

Documents are swapped only above the first slot with a random choice. There the ranking is the same for every visitor,
in any order; and the slots below choose given the set above. So the propensity of a ranking stays the product of the
propensities of its slots.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zoomrank.bandits.propensity import propensity
from zoomrank.bandits.state.path_bounds import upper_bound
from zoomrank.compiled import Scalar, inlined, separate
from zoomrank.numbers import Array

FAMILIAR = 8  # visits in its own slot before a document is tried elsewhere: fewer are no evidence
TRIAL = 1.0  # the c of its bound in the high slot: wider than while choosing, since a trial costs nothing


@inlined
def _nearest_above(state: Any, shown: Array, low: Scalar) -> tuple[Scalar, Scalar]:
    """Find the highest slot whose document is nearest to that of a slot below, and the smallest node with both.

    Documents are numbered in tree order: the nearest is one of the two neighbours, or shares the smallest node with
    one.
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
    """Return whether a document adds enough in its slot, and may have a better record in the slot above."""
    here, there = np.float64(state.plays[document, low]), np.float64(state.plays[document, high])
    added = np.float64(state.clicks[document, low]) / here
    promising = added * (1.0 - record) > state.margin * record
    if promising and there > 0.0:
        mean = np.float64(state.clicks[document, high]) / there
        promising = there < here and upper_bound(mean, there, TRIAL) > record
    return promising


@inlined
def exchange_partner(state: Any, shown: Array, pick: Array, strategy: Array, low: Scalar) -> Scalar:
    """Return the slot above to swap documents with; the slot itself if there is none.

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
    """Swap two elements."""
    kept = values[one]
    values[one] = values[other]
    values[other] = kept


@separate
def are_deterministic(state: Any, shown: Array, first: Scalar, last: Scalar) -> Scalar:
    """Return whether some slots choose deterministically, given those above. Checks the lowest first: it is most often
    random.
    """
    slot: Scalar = np.int64(last)
    while slot >= first and propensity(state, slot, shown, shown[slot], False) == 1.0:
        slot -= 1
    return slot < first


def exchange_similar(state: Any, shown: Array, pick: Array, strategy: Array, chance: Array) -> None:
    """Swap similar documents, slot by slot from the top down: the registered `arrange`.

    Both learn in their new slots. Slots below choose the same in whatever order those above them are.
    """
    if state.exchange:
        certain: Scalar = 0  # number of top slots known to be deterministic
        for low in range(np.uint64(1), np.uint64(len(shown))):
            high = exchange_partner(state, shown, pick, strategy, low)
            if high != low:
                if not are_deterministic(state, shown, certain, low):
                    break
                certain = np.int64(low) + 1
                swap(shown, low, high)
                swap(pick, low, high)
                swap(strategy, low, high)
                swap(chance, low, high)
