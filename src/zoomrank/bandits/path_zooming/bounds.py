"""Records and upper bounds of every visited subtree, kept up to date along root paths.

The record M(u) is the best mean of a single document below u: an observation. The bound H(u) = min(I(u), max H(child))
is limited by the index of every ancestor. A subtree is worth the larger of the two, and settled if that is its record.

After feedback only counts along the root paths of the examined documents change. Bounds are recomputed where visits
have grown by an eighth: at first at every visit, later rarely.

A subtree that has had less than half of its share of visits is neglected, and its neglect is passed down to all within
it. Otherwise a few unlucky visits would be final: documents that look poor beside equally poor neighbours would wait
for each other while all visits go elsewhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.compiled import Scalar, compiled, generic, inlined, separate
from zoomrank.types import Array

TABLE = 4096  # size of the logarithm table
LOG_2 = float(np.log(2.0))
NEGLECTED = float(np.log(4.0))  # neglect of a subtree with half of its share; the excess is passed down
NO_RECORD = -1.0  # record of a subtree without a document of its own entry: below any mean
SETTLING = 300.0  # visits of a slot after which half of the growth and of the margin count: what was just found is used
MARGIN = 0.05  # share by which, at first, a bound must exceed the best record: to gain less is not worth a trial
NEWS = 1.0  # change of a subtree's neglect after which all within it is recomputed


class PathBounds(NamedTuple):
    """Records and bounds, beside the counts of `VisitCounts`."""

    worth: Array  # [entry, slot]: I(u), when last computed
    record: Array  # [entry, slot]: M(u), the best mean of a single document below it; NO_RECORD if there is none
    bound: Array  # [entry, slot]: H(u), the upper bound of its best document
    favourite: Array  # [entry, slot]: the child with the best record if u is settled, else the best bound; 0 if several
    want: Array  # [entry, slot]: neglect, when its children were last recomputed
    due: Array  # [entry]: the visits at which its children's bounds are recomputed


def fresh_bounds(room: int, slots: int) -> PathBounds:
    """Return infinite bounds."""
    shape = (room, slots)
    worth, record, bound = (np.full(shape, value, np.float32) for value in (np.inf, NO_RECORD, np.inf))
    favourite, neglect = np.zeros(shape, np.uint32), np.zeros(shape, np.float32)
    return PathBounds(worth, record, bound, favourite, neglect, np.zeros(room, np.uint32))


def table_of_logarithms() -> Array:
    """Return the logarithms of 1, 2, 3, …"""
    return np.asarray(np.log(np.maximum(np.arange(TABLE), 1)))


@inlined
def upper_bound(mean: Scalar, visits: Scalar, confidence: Scalar) -> Scalar:
    """Bound a click probability from above: the end q of Wilson's interval, where n (q - p)² = 2c q (1 - q)."""
    a, mean = confidence / visits, min(mean, 1.0)  # lent clicks are rounded
    return (mean + a + np.sqrt(a * a + 2.0 * mean * (1.0 - mean) * a)) / (1.0 + 2.0 * a)


def _no_body(state: Any, *_: Any) -> Any:
    raise TypeError(f"{type(state).__name__} is not the state of a bandit that keeps bounds along paths.")


evidence_of, on_evidence = generic(_no_body)  # visits and clicks that count in a slot, possibly with a loan


@inlined
def own_evidence(state: Any, entry: Scalar, slot: Scalar, without: Scalar, share: Scalar) -> tuple[Scalar, Scalar]:
    """Return the visits and clicks that count in a slot: its own, and some of the other slots, whose clicks count by a
    share; without those of the documents above in a mask.
    """
    at, column = np.uint64(entry), np.uint64(slot)
    plays, clicks = np.float64(state.plays[at, column]), np.float64(state.clicks[at, column])
    total, gains = np.float64(state.total[at]), np.float64(state.gains[at])
    row = np.uint64(0)
    while without:
        document = np.uint64(state.own_entry[row])
        if without & 1 and document != 0:
            plays -= np.float64(state.plays[document, column])
            clicks -= np.float64(state.clicks[document, column])
            total -= np.float64(state.total[document])
            gains -= np.float64(state.gains[document])
        without >>= 1
        row += np.uint64(1)
    others = total - plays
    if others > 0.0:
        lent = min(state.borrow, others)
        clicks += share * lent * (gains - clicks) / others
        plays += lent
    return plays, clicks


@inlined
def _evidence(state: Any, entry: Scalar, slot: Scalar) -> tuple[Scalar, Scalar]:
    """Return the visits and clicks that count in a slot, whatever is above."""
    plays, clicks = evidence_of(state, entry, slot, 0, 1.0)
    return plays, clicks


@inlined
def estimated_mean(state: Any, entry: Scalar, slot: Scalar) -> Scalar:
    """Estimate the click rate of a document of an entry in a slot: its record if it has its own entry, else the mean of
    the visits that count and those of the parent; 0 without visits.
    """
    at = np.uint64(entry)
    mean: Scalar = np.float64(state.record[at, np.uint64(slot)])
    if state.fan[at] != 0 or mean < 0.0:
        plays, clicks = _evidence(state, at, slot)
        if at != 0:
            around, gained = _evidence(state, np.uint64(state.up[at]), slot)
            plays += state.prior
            clicks += state.prior * gained / max(around, 1.0)
        mean = clicks / plays if plays > 0.0 else 0.0
    return mean


@inlined
def _logarithm(state: Any, visits: Scalar) -> Scalar:
    """Look up the natural logarithm of a number of visits, to three digits or more; much faster than computing it."""
    at, doublings = np.uint64(visits), 0.0
    while at >= np.uint64(TABLE):
        at >>= np.uint64(4)
        doublings += 4.0
    return state.logarithm[at] + LOG_2 * doublings


@inlined
def _neglect(state: Any, entry: Scalar, slot: Scalar, plays: Scalar, around: Scalar) -> Scalar:
    """Compute the neglect of a subtree: the logarithm of twice its share of its parent's visits over its own, plus the
    excess neglect of its parent.
    """
    above, share = np.uint64(state.up[np.uint64(entry)]), state.share[np.uint64(state.node[np.uint64(entry)])]
    neglect = _logarithm(state, np.uint64(around)) - _logarithm(state, np.uint64(plays)) + np.float64(share)
    if entry != 0:
        neglect += max(0.0, np.float64(state.want[above, np.uint64(slot)]) - NEGLECTED)
    return max(0.0, neglect)


@inlined
def _slot_confidence(state: Any, slot: Scalar) -> Scalar:
    """Return the confidence of a slot: exploring costs least at the bottom; all slots build on what the top shows."""
    return state.confidence * ((np.float64(slot) + 1.0) / np.float64(state.bound.shape[1]))


@inlined
def index_of(
    state: Any, entry: Scalar, slot: Scalar, evidence: tuple[Scalar, Scalar], around: tuple[Scalar, Scalar]
) -> tuple[Scalar, Scalar, Scalar]:
    """Compute I(u), a bound plus a share of the spread, less a margin, from the visits that count and those of the
    parent; return it, the mean, and the neglect.
    """
    at = np.uint64(entry)
    plays, clicks = evidence
    if at != 0:
        plays += state.prior
        clicks += state.prior * around[1] / max(around[0], 1.0)
    bound, mean, neglect = np.inf, NO_RECORD, 0.0  # visits only in slots that do not count are like none
    if plays >= 1.0:
        neglect = _neglect(state, at, slot, plays, around[0])
        mean = clicks / plays
        new = SETTLING / (np.float64(state.plays[0, np.uint64(slot)]) + 1.0 + SETTLING)
        confidence = _slot_confidence(state, slot) * (1.0 + state.growth * (1.0 - new) * neglect)
        bound = upper_bound(mean, plays, confidence)
        bound += state.optimism * np.float64(state.spread[np.uint64(state.node[at])])
        bound *= 1.0 - MARGIN * new
    return bound, mean, neglect


@inlined
def _refresh_index(
    state: Any, entry: Scalar, slot: Scalar, evidence: tuple[Scalar, Scalar], around: tuple[Scalar, Scalar]
) -> Scalar:
    """Store I(u), and the record of a single document; return the neglect."""
    at, column = np.uint64(entry), np.uint64(slot)
    state.worth[at, column], mean, neglect = index_of(state, at, column, evidence, around)
    if state.fan[at] == 0:
        state.record[at, column] = mean
    return neglect


@inlined
def _refresh_bound(state: Any, entry: Scalar, slot: Scalar) -> Scalar:
    """Recompute M(u) and H(u) of an entry from its own index and its children; return whether they changed."""
    at, column = np.uint64(entry), np.uint64(slot)
    first = np.uint64(state.child[at])
    top, hopeful, record, proven = np.inf, first, state.record[at, column], first
    if first != 0:
        top, record = state.bound[first, column], state.record[first, column]
        for step in range(np.uint64(1), np.uint64(state.fan[at])):
            value, seen = state.bound[first + step, column], state.record[first + step, column]
            if value > top:
                top, hopeful = value, first + step
            elif value == top:
                hopeful = np.uint64(0)
            if seen > record:
                record, proven = seen, first + step
            elif seen == record:
                proven = np.uint64(0)
    value = min(state.worth[at, column], top)
    state.favourite[at, column] = proven if record >= value else hopeful
    changed = value != state.bound[at, column] or record != state.record[at, column]
    state.bound[at, column], state.record[at, column] = value, record
    return changed


@inlined
def _refresh_children(state: Any, entry: Scalar, slot: Scalar, around: tuple[Scalar, Scalar]) -> None:
    """Recompute the children of an entry, and everything below those whose neglect changed enough."""
    column, first = np.uint64(slot), np.uint64(state.child[np.uint64(entry)])
    if first != 0:
        for child in range(first, first + np.uint64(state.fan[np.uint64(entry)])):
            neglect = _refresh_index(state, child, slot, _evidence(state, child, slot), around)
            passed = np.float64(state.want[child, column])
            news = abs(neglect - passed) >= NEWS and max(neglect, passed) > NEGLECTED
            if news:
                state.want[child, column] = neglect
            if news and state.child[child] != 0:
                _refresh_below(state, child, slot)
            else:
                _refresh_bound(state, child, slot)


@separate
def _refresh_below(state: Any, entry: Scalar, slot: Scalar) -> None:
    """Recompute everything below an entry: neglect on the way down, bounds on the way up."""
    column, size = np.uint64(slot), np.uint64(1)
    state.search_entry[0] = entry
    while size > 0:
        size -= np.uint64(1)
        done = state.search_entry[size] < 0
        at = np.uint64(~state.search_entry[size] if done else state.search_entry[size])
        first = np.uint64(state.child[at])
        if done or first == 0:  # everything below it is done
            _refresh_bound(state, at, slot)
        else:
            around = _evidence(state, at, slot)
            state.search_entry[size] = ~np.int64(at)
            for child in range(first, first + np.uint64(state.fan[at])):
                size += np.uint64(1)
                neglect = _refresh_index(state, child, slot, _evidence(state, child, slot), around)
                state.want[child, column] = neglect
                state.search_entry[size] = np.int64(child)
            size += np.uint64(1)


@inlined
def refresh_subtree(state: Any, entry: Scalar) -> None:
    """Recompute M(u) and H(u) for an entry, all below it, and those above it."""
    for slot in range(np.uint64(state.bound.shape[1])):
        at = np.uint64(entry)
        evidence, around = _evidence(state, at, slot), _evidence(state, np.uint64(state.up[at]), slot)
        state.want[at, slot] = _refresh_index(state, at, slot, evidence, around)
        _refresh_below(state, at, slot)
        while at != 0:
            at = np.uint64(state.up[at])
            _refresh_bound(state, at, slot)


@inlined
def refresh_path(state: Any, entry: Scalar) -> Scalar:
    """Recompute M(u) and H(u) from an entry up to the root: for the children of entries whose visits have grown by an
    eighth since, and for all ancestors of a change. Return whether there are any.
    """
    at, last, some, going = np.uint64(entry), np.uint64(0), False, True
    while going:
        if state.total[at] >= state.due[at]:
            last, some = at, True
        going = at != 0
        at = np.uint64(state.up[at])
    if some:
        for slot in range(np.uint64(state.bound.shape[1])):
            at, waiting, going = np.uint64(entry), True, True
            while going:
                news = False
                if waiting and state.total[at] >= state.due[at]:
                    evidence, record = _evidence(state, at, slot), state.record[at, slot]
                    neglect = _refresh_index(state, at, slot, evidence, _evidence(state, np.uint64(state.up[at]), slot))
                    state.want[at, slot] = neglect
                    news = record != state.record[at, slot]
                    _refresh_children(state, at, slot, evidence)
                waiting = waiting and at != last
                changed = _refresh_bound(state, at, slot)
                going = at != 0 and (waiting or news or changed)
                at = np.uint64(state.up[at])
        at, going = np.uint64(entry), True
        while going:
            if state.total[at] >= state.due[at]:
                state.due[at] = state.total[at] + (state.total[at] >> np.uint32(3)) + np.uint32(1)
            going = at != last
            at = np.uint64(state.up[at])
    return some


@compiled
def refresh_all_bounds(state: Any) -> None:
    """Recompute every M(u) and H(u), children before parents."""
    for back in range(state.filled[0]):
        for slot in range(state.bound.shape[1]):
            _refresh_bound(state, state.filled[0] - 1 - back, slot)


@compiled
def refresh_entries(state: Any, anew: Array) -> None:
    """Recompute some entries, parents before children, as if their visits had just come in."""
    for entry in range(state.filled[0]):
        if anew[entry]:
            above = np.uint64(state.up[entry])
            for slot in range(state.bound.shape[1]):
                evidence, around = _evidence(state, entry, slot), _evidence(state, above, slot)
                state.want[entry, slot] = _refresh_index(state, entry, slot, evidence, around)
            state.due[entry] = state.total[entry] + (state.total[entry] >> np.uint32(3)) + np.uint32(1)
