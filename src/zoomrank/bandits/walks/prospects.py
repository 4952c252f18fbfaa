"""Path zooming's estimates for a ranking: proven documents, documents on trial, and the cost of trials.

A document is proven in a slot if it has the best record there and was clicked. Any other is on trial: it is shown for
its bound. The cost of a trial is the expected loss compared with the best record.

After an exchange a document is in another slot than the one that chose it. The original choices are found by undoing
exchanges. The document that went up is on trial at no cost; the other keeps its status in the slot that chose it. The
walk ignores records once it has found a better bound, so the best record is searched for here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zoomrank.bandits.interface import Prospects
from zoomrank.bandits.state.path_bounds import NO_RECORD, estimated_mean
from zoomrank.bandits.state.tree_view import shown_below, size_of
from zoomrank.bandits.state.visited import entry_of
from zoomrank.bandits.walks.exchange import are_deterministic, exchange_partner, swap
from zoomrank.compiled import Scalar, compiled, inlined
from zoomrank.numbers import Array


@inlined
def _push_children(state: Any, slot: Scalar, entry: Scalar, limit: Scalar, size: Scalar) -> Scalar:
    """Push the children of an entry on the stack, the one with the best record on top; return the stack size."""
    column, top = np.uint64(slot), np.uint64(size)
    first = np.uint64(state.child[np.uint64(entry)])
    for child in range(first, first + np.uint64(state.fan[np.uint64(entry)])):
        state.search_entry[top], state.search_limit[top] = child, limit
        below = top - np.uint64(1)
        if child != first and state.record[np.uint64(state.search_entry[below]), column] > state.record[child, column]:
            state.search_entry[top], state.search_entry[below] = state.search_entry[below], child
        top += np.uint64(1)
    return top


@inlined
def best_record(state: Any, slot: Scalar, shown: Array, above: Scalar) -> Scalar:
    """Find the best record of the documents that may be shown in a slot, under the cap of those above; NO_RECORD if
    none.

    A branch-and-bound search. A limit below 0 marks entries that may hold documents of S: subtrees off their paths are
    capped by the width of the node where they branch off.
    """
    found, column, size = NO_RECORD, np.uint64(slot), np.uint64(1)
    capped = state.correlated and above > 0
    state.search_entry[0], state.search_limit[0] = 0, -1.0 if capped else np.inf
    while size > 0:
        size -= np.uint64(1)
        at, limit = np.uint64(state.search_entry[size]), state.search_limit[size]
        node = np.uint64(state.node[at])
        on_path = limit < 0.0 and shown_below(state, node, shown, above) > 0
        if on_path:
            limit = state.width[node]  # the largest distance of its documents to S
        elif limit < 0.0:
            limit = state.width[np.uint64(state.parent[node])]
        value = min(limit, np.float64(state.record[at, column]))
        if value > found and size_of(state, node) > 0:
            if on_path and state.child[at] != 0:
                size = _push_children(state, slot, at, -1.0, size)
            elif len(state.eligible) > 0 and state.child[at] != 0:
                size = _push_children(state, slot, at, limit, size)
            else:
                found = value
    return found


@inlined
def _distance_above(state: Any, document: Scalar, shown: Array, above: Scalar) -> Scalar:
    """Return the cap of a single document: its distance to the nearest of those above."""
    distance = np.inf
    if state.correlated and above > 0:
        node = np.uint64(state.leaf[np.uint64(document)])
        while shown_below(state, node, shown, above) == 0 and node != 0:
            node = np.uint64(state.parent[node])
        distance = state.width[node]
    return distance


@inlined
def _is_trial(state: Any, slot: Scalar, entry: Scalar, cap: Scalar, best: Scalar) -> Scalar:
    """Return whether a document, with the entry that holds it, is on trial in a slot."""
    at, column = np.uint64(entry), np.uint64(slot)
    own, hope = min(cap, np.float64(state.record[at, column])), min(cap, np.float64(state.bound[at, column]))
    return own < 0.0 or own < best or (state.gains[at] == 0 and hope > own)


@inlined
def _undo_exchanges(state: Any, chosen: Array, pick: Array, entry: Array, place: Array, end: Scalar) -> Scalar:
    """Undo exchanges above a slot: the last first, and only where the higher slot has a better record for the document
    that made way. Return the lowest slot that took part.
    """
    lowest = 0
    for back in range(1, end):
        low = end - back
        for high in range(low):
            lower, upper = state.record[entry[low], high], state.record[entry[high], high]
            done = lower > upper  # the higher slot has a better record of the lower document
            if done:
                _swap_all(chosen, pick, entry, place, low, high)
                done = exchange_partner(state, chosen, pick, entry, np.uint64(low)) == high
                if not done:
                    _swap_all(chosen, pick, entry, place, low, high)
            if done:
                lowest = max(lowest, low)
                break
    return lowest


@inlined
def _swap_all(chosen: Array, pick: Array, entry: Array, place: Array, low: Scalar, high: Scalar) -> None:
    swap(chosen, low, high)
    swap(pick, low, high)
    swap(entry, low, high)
    swap(place, low, high)


@compiled
def slot_prospects(state: Any, before: Any, shown: Array, pick: Array, duplicates: Scalar) -> Prospects:
    """Compute the prospects of a ranking; an earlier state, or the same, gives the click rates."""
    slots = len(shown)
    record, cost, chance, trial = np.empty(slots), np.zeros(slots), np.empty(slots), np.zeros(slots, np.bool_)
    chosen, picked, entry, place = shown.copy(), pick.copy(), np.empty(slots, np.int64), np.arange(slots)
    for slot in range(slots):
        entry[slot] = entry_of(state, shown[slot])
        record[slot] = best_record(state, slot, shown, slot)
        seen = estimated_mean(before, entry_of(before, shown[slot]), slot)
        chance[slot] = min(_distance_above(before, shown[slot], shown, slot), seen)
    end, lowest = slots, slots
    while state.exchange and not duplicates and lowest > 0:
        lowest = _undo_exchanges(state, chosen, picked, entry, place, end)
        if lowest == 0 or are_deterministic(state, chosen, 0, lowest):
            break
        end = lowest  # a random choice there: nothing was exchanged, so restart above it
        for slot in range(slots):
            chosen[slot], picked[slot], place[slot] = shown[slot], pick[slot], slot
            entry[slot] = entry_of(state, shown[slot])
    examined = 1.0
    for slot in range(slots):
        stands, cap = place[slot], _distance_above(state, chosen[slot], chosen, slot)
        best = best_record(state, slot, chosen, slot)
        trial[stands] = stands < slot
        if _is_trial(state, slot, entry[slot], cap, best):
            trial[stands] = True
            cost[stands] = examined * max(0.0, best - min(cap, estimated_mean(state, entry[slot], slot)))
        seen = estimated_mean(before, entry_of(before, chosen[slot]), slot)
        examined *= 1.0 - min(_distance_above(before, chosen[slot], chosen, slot), seen)
    return Prospects(record, trial, cost, chance)
