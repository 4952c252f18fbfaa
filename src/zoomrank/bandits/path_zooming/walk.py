"""Choice of path zooming: a walk down along the best, given the documents above; and its probability.

*Walk.* Where the best record below a subtree reaches its bound, the subtree is settled and the walk goes to the child
with that record; elsewhere to the child with the best bound. Off the root paths of the documents above, the cap is one
number and the walk is free; entries on those paths are listed first, with the records and bounds of their best
documents. If only some documents are eligible, a search finds the records and bounds of those.

*Probability.* The same walk goes to a given document instead of breaking ties at random, and divides by the number of
tied children at each branch.

*Memory.* A walk below documents that were all seen before reads counts that leave their own visits out. So most visits
change nothing that a lower slot reads, and its last walk is used again.

*Redundancy.* A visitor who reaches a slot has skipped the documents S above, so what they earned says little about
what similar documents add. In a subtree that holds documents of S, their own visits do not count, each of them counts
as `prior` visits without a click instead, and the clicks that other slots lend count by `REDUNDANT` (but not at the
root, which holds everything). Its other children take their prior from this evidence. All of this can only lower
records and bounds; those further down stay as they are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.path_zooming.bounds import evidence_of, index_of, table_of_logarithms
from zoomrank.bandits.tree_view import (
    best_places,
    chance_of_best_place,
    farthest_from,
    largest_context,
    random_best,
    size_of,
    split_mask,
    store_paths,
)
from zoomrank.compiled import Scalar, generic, inlined, separate
from zoomrank.types import Array


class PathScratch(NamedTuple):
    """List of the entries that hold documents of S, parents before children, beside the stack of `ContextScratch`; and
    a logarithm table.
    """

    own_entry: Array  # the entry of each document of S alone; 0 if it has none
    limit: Array  # the bound below an entry, given S
    index_given: Array  # I(u), given S; UNKNOWN until it is needed
    around_plays: Array  # its visits that count, given S,
    around_clicks: Array  # and its clicks
    best: Array  # the best capped bound among its children
    seen: Array  # the best capped record below it
    origin: Array  # the place of its parent in this list
    inside: Array  # the place of its first listed child
    reach: Array  # depth that a walk through its parent may reach
    search_entry: Array  # a stack of entries to search
    search_limit: Array  # and the smallest bound above them
    logarithm: Array  # of 1, 2, 3, …


class LastWalks(NamedTuple):
    """The last walk of each slot. It is not repeated until something that it read has changed."""

    chosen: Array  # [slot]: the entry where it ended
    given: Array  # [slot, place]: the documents above,
    givens: Array  # [slot]: and their number; STALE if it has to be repeated


def no_walks(slots: int) -> LastWalks:
    """Return no walks."""
    given = np.zeros((slots, largest_context(slots)), np.int64)
    return LastWalks(np.zeros(slots, np.int64), given, np.full(slots, STALE, np.int64))


STALE = -1
UNKNOWN = -2.0  # an index that has not been computed
REDUNDANT = 0.1  # share of the clicks lent by other slots that counts beside a document above


def fresh_path_scratch(room: int) -> PathScratch:
    """Allocate scratch space for this many entries."""
    limit, index, plays, clicks, best, seen, search_limit = (np.zeros(room) for _ in range(7))
    own, origin, inside, reach, search_entry = (np.zeros(room, np.int64) for _ in range(5))
    logarithm = table_of_logarithms()
    return PathScratch(
        own, limit, index, plays, clicks, best, seen, origin, inside, reach, search_entry, search_limit, logarithm
    )


@separate
def _best_eligible(state: Any, slot: Scalar, entry: Scalar, cap: Scalar, threshold: Scalar, seen: Scalar) -> Scalar:
    """Find the best record (or, if not `seen`, the best bound) of the eligible documents below an entry, under one cap;
    inexact if below the threshold.

    Branches whose record or bound is not above the best so far are pruned. Favourites are searched first, which finds
    good values early.
    """
    found, column, size = -1.0, np.uint64(slot), np.uint64(1)
    state.search_entry[0], state.search_limit[0] = entry, cap
    while size > 0:
        size -= np.uint64(1)
        at = np.uint64(state.search_entry[size])
        most = min(state.search_limit[size], state.record[at, column] if seen else state.bound[at, column])
        if most < threshold or most <= found or size_of(state, np.uint64(state.node[at])) == 0:
            continue
        first = np.uint64(state.child[at])
        if first == 0:
            found = most
            continue
        favourite = np.uint64(state.favourite[at, column])
        for turn in range(2):
            for child in range(first, first + np.uint64(state.fan[at])):
                if (child == favourite) == (turn == 1):
                    state.search_entry[size], state.search_limit[size] = child, most
                    size += np.uint64(1)
    return found


def _no_body(state: Any, *_: Any) -> Any:
    raise TypeError(f"{type(state).__name__} is not the state of a bandit that walks along paths.")


_best_of, on_best_of = generic(_no_body)  # one version for all documents, one for eligible documents


@inlined
def best_of_all(state: Any, slot: Scalar, entry: Scalar, cap: Scalar, threshold: Scalar, seen: Scalar) -> Scalar:
    """Return the stored record or bound of an entry without documents of S."""
    at, column = np.uint64(entry), np.uint64(slot)
    return min(cap, state.record[at, column] if seen else state.bound[at, column])


def best_of_eligible(state: Any, slot: Scalar, entry: Scalar, cap: Scalar, threshold: Scalar, seen: Scalar) -> Scalar:
    """Return the same for its eligible documents; inexact if below the threshold."""
    value = best_of_all(state, slot, entry, cap, threshold, seen)
    if value >= threshold:
        value = _best_eligible(state, slot, entry, cap, threshold, seen)
    return value


@inlined
def walk_along_favourites(state: Any, slot: Scalar, entry: Scalar, cap: Scalar, some: Scalar) -> Scalar:
    """Walk down while one child is better than all others and the cap does not matter.

    A record may lead to a subtree that is not settled, and there to another document than its own. If its own document
    is not eligible, the record should not have led there, so with eligible documents the walk ends before that.
    """
    at, column, going, by_record = np.uint64(entry), np.uint64(slot), True, False
    while going:
        favourite = np.uint64(state.favourite[at, column])
        going = state.child[at] != 0 and favourite != 0
        if going:
            settled = state.record[at, column] >= state.bound[at, column]
            value = state.record[favourite, column] if settled else state.bound[favourite, column]
            going = value <= cap and (settled or not by_record or not some)
            if going:
                at, by_record = favourite, settled
    return at


@inlined
def _ahead(state: Any, slot: Scalar, entry: Scalar, cap: Scalar, limit: Scalar, some: Scalar) -> Scalar:
    """Return where favourites lead from an entry; the entry itself if its bound is limited, or if only some documents
    are eligible and favourites do not lead to one of them.
    """
    at = np.uint64(entry)
    if limit >= state.bound[at, np.uint64(slot)]:
        ahead = walk_along_favourites(state, slot, at, cap, some)
        if not some or (state.child[ahead] == 0 and size_of(state, np.uint64(state.node[ahead])) > 0):
            at = ahead
    return at


@inlined
def value_children(
    state: Any, slot: Scalar, entry: Scalar, cap: Scalar, known: Scalar, limit: Scalar, some: Scalar
) -> Scalar:
    """Value the children of an entry by their records if the entry is settled, else by their bounds; return the best.

    The entry's value is known, so smaller values of children need not be exact. Its bound is at most the limit.
    """
    at = np.uint64(entry)
    first, fan, top = np.uint64(state.child[at]), np.uint64(state.fan[at]), -1.0
    for step in range(fan):
        state.value[step] = _best_of(state, slot, first + step, cap, max(top, known), False)
        top = max(top, state.value[step])
    hope = min(top, state.worth[at, np.uint64(slot)], limit)
    record = _best_of(state, slot, at, cap, hope, True)
    if record >= hope:
        top = record
        for step in range(fan):
            state.value[step] = _best_of(state, slot, first + step, cap, record, True)
    return top


@inlined
def _choose_child(state: Any, fan: Scalar, known: Scalar, rng: np.random.Generator) -> tuple[Scalar, Scalar]:
    """Return the place of a child with the best value, and whether that was drawn among several."""
    ties, chosen = best_places(state.value, fan, known)
    if ties > 1:
        chosen = random_best(state.value, fan, known, rng)
    return chosen, ties > 1


@inlined
def _walk_freely(
    state: Any,
    slot: Scalar,
    entry: Scalar,
    cap: Scalar,
    known: Scalar,
    limit: Scalar,
    some: Scalar,
    rng: np.random.Generator,
) -> tuple[Scalar, Scalar]:
    """Walk down along the best, under one cap, to an entry that is not split; return whether there was a draw, too.

    The known value of the entry prunes the search for eligible documents; its bound is at most the limit.
    """
    at, drawn = np.uint64(entry), False
    while state.child[at] != 0:
        ahead = _ahead(state, slot, at, cap, limit, some)
        limit = limit if ahead == at else np.inf
        at = ahead
        if state.child[at] != 0:
            known = value_children(state, slot, at, cap, known, limit, some)
            chosen, tied = _choose_child(state, np.uint64(state.fan[at]), known, rng)
            at, drawn = np.uint64(state.child[at]) + chosen, drawn or tied
        limit = np.inf
    return np.int64(at), drawn


@inlined
def _find_own_entries(state: Any, above: Scalar) -> None:
    """Find the entry of each document above, if it has one of its own."""
    for row in range(np.uint64(above)):
        at, level = np.uint64(0), np.uint64(1)
        while state.child[at] != 0:
            start = np.uint64(state.child_start[np.uint64(state.node[at])])
            at = np.uint64(state.child[at]) + np.uint64(state.path[row, level]) - start
            level += np.uint64(1)
        own = np.int64(at) if state.fan[at] == 0 else np.int64(0)
        for other in range(row):
            own = np.int64(0) if state.own_entry[other] == own else own  # rankings may repeat a document
        state.own_entry[row] = own


@inlined
def _skipped(state: Any, slot: Scalar, place: Scalar, mask: Scalar) -> None:
    """Count the visits and clicks that matter to a listed entry, given the documents of S in it."""
    at = np.uint64(state.stack_entry[place])
    plays, clicks = evidence_of(state, at, slot, mask, REDUNDANT if at != 0 else 1.0)
    held, left = 0, mask
    while left:
        held += left & 1
        left >>= 1
    state.around_plays[place], state.around_clicks[place] = plays + state.prior * np.float64(held), clicks
    state.index_given[place] = UNKNOWN


@inlined
def _index_given(state: Any, slot: Scalar, place: Scalar) -> Scalar:
    """Return I(u) of a listed entry, given S, which is computed when it is needed."""
    index: Scalar = np.float64(state.index_given[place])
    if index == UNKNOWN:
        origin = np.uint64(state.origin[place])
        evidence = state.around_plays[place], state.around_clicks[place]
        around = state.around_plays[origin], state.around_clicks[origin]
        index, _, _ = index_of(state, np.uint64(state.stack_entry[place]), slot, evidence, around)
        state.index_given[place] = index
    return index


@inlined
def _limited(state: Any, slot: Scalar, place: Scalar, value: Scalar) -> Scalar:
    """Return a bound below a listed entry, not above what the entry and those above it allow."""
    at, going = np.uint64(place), True
    while going:
        stored = np.float64(state.bound[np.uint64(state.stack_entry[at]), np.uint64(slot)])
        value = min(value, stored, _index_given(state, slot, at))
        going = at != 0
        at = np.uint64(state.origin[at])
    return value


@inlined
def _index_beside(state: Any, slot: Scalar, place: Scalar, child: Scalar) -> tuple[Scalar, Scalar]:
    """Compute I(u) and the mean of a child, without documents of S, of a listed entry."""
    evidence = evidence_of(state, child, slot, 0, REDUNDANT if place != 0 else 1.0)
    around = state.around_plays[place], state.around_clicks[place]
    index, mean, _ = index_of(state, child, slot, evidence, around)
    return index, mean


@inlined
def _bound_beside(state: Any, slot: Scalar, place: Scalar, child: Scalar, cap: Scalar, threshold: Scalar) -> Scalar:
    """Return the bound of a child, without documents of S, of a listed entry; inexact if below the threshold."""
    value = _best_of(state, slot, child, cap, threshold, False)
    if value > 0.0 and value >= threshold:
        index, _ = _index_beside(state, slot, place, child)
        value = min(value, index)
    return value


@inlined
def _record_beside(state: Any, slot: Scalar, place: Scalar, child: Scalar, cap: Scalar, threshold: Scalar) -> Scalar:
    """Return its record; inexact if below the threshold."""
    value = _best_of(state, slot, child, cap, threshold, True)
    if value > 0.0 and value >= threshold and state.fan[np.uint64(child)] == 0:
        _, mean = _index_beside(state, slot, place, child)
        value = min(value, mean)
    return value


@inlined
def _promising_depth(state: Any, slot: Scalar, entry: Scalar, depth: Scalar, mask: Scalar, threshold: Scalar) -> Scalar:
    """Return how deep, along the path of the only document of S below an entry, another subtree has a record or bound
    of at least the threshold; -1: nowhere. Bounds above do not count, since a record may override them.
    """
    at, column, row, level = np.uint64(entry), np.uint64(slot), np.uint64(0), np.int64(depth)
    while (mask >> np.int64(row)) != 1:
        row += np.uint64(1)
    node, found = np.uint64(state.node[at]), np.int64(-1)
    going: Scalar = threshold > 0.0
    if not going:
        found = level
    while going:
        first = np.uint64(state.child[at])
        going = first != 0 and state.width[node] >= threshold
        if going:
            inner = np.uint64(state.path[row, np.uint64(level + 1)])
            on_path = first + inner - np.uint64(state.child_start[node])
            for child in range(first, first + np.uint64(state.fan[at])):
                if child != on_path and max(state.bound[child, column], state.record[child, column]) >= threshold:
                    found = level
            at, node, level, going = on_path, inner, level + 1, found < 0
        elif first == 0 and state.fan[at] > 0:  # the position of the document of S in it is unknown
            found = level
    return found


@inlined
def _reach(state: Any, slot: Scalar, place: Scalar, depth: Scalar, mask: Scalar, found: Scalar, some: Scalar) -> Scalar:
    """Return the depth that a walk through a listed entry may reach; less than its own if only documents of S there
    reach the best value. With a single document of S, the depth computed from above is reused.
    """
    at, column = np.uint64(state.stack_entry[place]), np.uint64(slot)
    node, reach = np.uint64(state.node[at]), np.int64(-1)
    promising = max(state.bound[at, column], state.record[at, column]) >= found
    if promising and state.width[node] >= found and (not some or size_of(state, node) > 0):
        reach = np.int64(state.reach[place])
        if mask & (mask - 1) != 0:
            reach = np.int64(depth)
        elif reach < depth:
            reach = _promising_depth(state, slot, at, depth, mask, found)
    return reach


@inlined
def _value_of_last(state: Any, slot: Scalar, above: Scalar) -> Scalar:
    """Return the record of the document that the slot chose last, given S: the best is not below it. -1 if it has none,
    or if siblings are in S.
    """
    at, value = np.uint64(state.chosen[np.uint64(slot)]), -1.0
    if state.fan[at] == 0:
        node = np.uint64(state.node[at])
        level = np.uint64(state.leaf_depth[np.uint64(state.first_document[node])])
        going, held = size_of(state, node) > 0, False
        while going:
            for row in range(np.uint64(above)):
                held = held or state.path[row, level] == node
            going = not held and node != 0
            if going:
                node, level = np.uint64(state.parent[node]), level - np.uint64(1)
        if held and node != state.node[at] and node != state.node[np.uint64(state.up[at])]:
            value = min(np.float64(state.width[node]), np.float64(state.record[at, np.uint64(slot)]))
    return value


@inlined
def follow_paths(state: Any, slot: Scalar, shown: Array, above: Scalar, some: Scalar, whole: Scalar) -> Scalar:
    """List the entries that hold documents of S and compute their records and bounds given S; return how many there
    are. Entries that cannot hold the best are not expanded, unless the list is wanted as a `whole`.

    On its way down a walk meets ever larger values, so entries below the best value so far are out of its way.
    """
    store_paths(state, shown, above)
    _find_own_entries(state, above)
    column, size, place = np.uint64(slot), np.uint64(1), np.uint64(0)
    found = -1.0 if whole else _value_of_last(state, slot, above)
    state.stack_entry[0], state.stack_depth[0], state.stack_mask[0] = 0, 0, (1 << above) - 1
    state.reach[0], state.origin[0] = -1, 0
    while place < size:
        at = np.uint64(state.stack_entry[place])
        level, mask = state.stack_depth[place], state.stack_mask[place]
        best, seen = -1.0, -1.0
        state.inside[place] = size
        reach = _reach(state, slot, place, level, mask, found, some)
        if reach >= level:
            node, first = np.uint64(state.node[at]), np.uint64(state.child[at])
            width = state.width[node]
            _skipped(state, slot, place, mask)
            if first == 0:
                best = farthest_from(state, node, level, mask)
                seen = min(best, state.record[at, column])
            else:
                split_mask(state, state.below, node, level, mask)
                for step in range(np.uint64(state.fan[at])):
                    if state.below[step] == 0:
                        enough = max(seen, found)
                        seen = max(seen, _record_beside(state, slot, place, first + step, width, enough))
                for step in range(np.uint64(state.fan[at])):
                    if state.below[step] == 0:
                        enough = max(best, seen, found)  # records come first: they leave few bounds to compute
                        best = max(best, _bound_beside(state, slot, place, first + step, width, enough))
                    else:
                        state.stack_entry[size] = first + step
                        state.stack_depth[size] = level + 1
                        state.stack_mask[size] = state.below[step]
                        state.origin[size], state.reach[size] = place, reach
                        size += np.uint64(1)
            if not whole:
                found = max(found, seen)
                if best > found:
                    found = max(found, _limited(state, slot, place, best))
        else:
            state.index_given[place] = -1.0  # nothing here is the best
        state.best[place], state.seen[place] = best, seen
        place += np.uint64(1)
    _carry_up(state, slot, size, found)
    return size


@inlined
def _carry_up(state: Any, slot: Scalar, size: Scalar, found: Scalar) -> None:
    """Compute records and bounds of the listed entries, children before parents; bounds below `found` are inexact."""
    column = np.uint64(slot)
    for back in range(np.uint64(1), size + np.uint64(1)):
        place = size - back
        hope = min(state.best[place], np.float64(state.bound[np.uint64(state.stack_entry[place]), column]))
        if hope >= found:
            hope = min(hope, _index_given(state, slot, place))
        state.limit[place] = hope
        if place > 0:
            above_it = np.uint64(state.origin[place])
            state.best[above_it] = max(state.best[above_it], hope)
            state.seen[above_it] = max(state.seen[above_it], state.seen[place])


@inlined
def rates_given(state: Any, slot: Scalar, shown: Array, above: Scalar, entry: Scalar) -> tuple[Scalar, Scalar]:
    """Return the best record given the documents above; and the mean of an entry given them, infinite if they do not
    matter to it.
    """
    at, mean, some = np.uint64(entry), np.inf, len(state.eligible) > 0
    if not state.correlated or above == 0:
        return _best_of(state, slot, 0, np.inf, -1.0, True), mean
    for place in range(follow_paths(state, slot, shown, above, some, True)):
        listed = np.uint64(state.stack_entry[place])
        around = state.around_plays[place], state.around_clicks[place]
        if listed == at:
            origin = np.uint64(state.origin[place])
            over = state.around_plays[origin], state.around_clicks[origin]
            _, mean, _ = index_of(state, at, slot, around, over)
        elif at != 0 and listed == np.uint64(state.up[at]):
            _, mean = _index_beside(state, slot, place, at)
    return state.seen[0], max(mean, 0.0)


@inlined
def value_listed(
    state: Any, slot: Scalar, first: Scalar, fan: Scalar, cap: Scalar, place: Scalar, size: Scalar
) -> Scalar:
    """Value the children of a listed entry by their records if it is settled, else by their bounds; return the best.

    `state.below` then has each child's place in the list, 0 if it is not listed.
    """
    listed = np.uint64(state.inside[place])
    settled = state.seen[place] >= state.limit[place]
    known = state.seen[place] if settled else state.best[place]
    for step in range(fan):
        if listed < size and np.uint64(state.stack_entry[listed]) == first + step:
            state.value[step] = state.seen[listed] if settled else state.limit[listed]
            state.below[step] = listed
            listed += np.uint64(1)
        else:
            child = first + step
            state.value[step] = (
                _record_beside(state, slot, place, child, cap, known)
                if settled
                else _bound_beside(state, slot, place, child, cap, known)
            )
            state.below[step] = 0
    return known


@inlined
def _select(state: Any, slot: Scalar, shown: Array, above: Scalar, some: Scalar, rng: np.random.Generator) -> Scalar:
    """Choose an entry: along the listed paths while the best is there, then freely."""
    at, cap, known, limit, drawn = np.uint64(0), np.inf, -1.0, np.inf, False
    if state.correlated and above > 0:
        size = follow_paths(state, slot, shown, above, some, False)
        place, on_path = np.uint64(0), True
        while on_path and state.child[at] != 0:
            first, fan = np.uint64(state.child[at]), np.uint64(state.fan[at])
            cap = state.width[np.uint64(state.node[at])]
            known = value_listed(state, slot, first, fan, cap, place, size)
            chosen, tied = _choose_child(state, fan, known, rng)
            at, drawn = first + chosen, drawn or tied
            on_path = state.below[chosen] != 0
            if not on_path:
                limit, _ = _index_beside(state, slot, place, at)
            place = np.uint64(state.below[chosen])
    entry, tied = _walk_freely(state, slot, at, cap, known, limit, some, rng)
    if above > 0 and not some:
        _remember(state, slot, shown, above, entry, drawn or tied)
    return entry


@inlined
def _remember(state: Any, slot: Scalar, shown: Array, above: Scalar, entry: Scalar, drawn: Scalar) -> None:
    """Remember where a walk ended, unless another draw could lead elsewhere."""
    column = np.uint64(slot)
    state.chosen[column], state.givens[column] = entry, STALE if drawn else above
    for place in range(np.uint64(above)):
        state.given[column, place] = shown[place]


@inlined
def _is_remembered(state: Any, slot: Scalar, shown: Array, above: Scalar) -> Scalar:
    """Return whether the last walk of a slot would be the same again."""
    same: Scalar = state.givens[np.uint64(slot)] == above
    for place in range(np.uint64(above)):
        same = same and state.given[np.uint64(slot), place] == shown[place]
    return same


@inlined
def forget_walks(state: Any, slot: Scalar, document: Scalar, entry: Scalar, refreshed: Scalar) -> None:
    """Forget the walks that read what a visit to a document in a slot, counted in this entry, has changed.

    Its own visits do not count where it stands above; so a walk of another slot, below it, read other counts only.
    """
    for other in range(np.uint64(len(state.givens))):
        same: Scalar = False
        if not refreshed and state.fan[np.uint64(entry)] == 0 and other != np.uint64(slot):
            for place in range(state.givens[other]):
                same = same or state.given[other, np.uint64(place)] == document
        if not same:
            state.givens[other] = STALE


def select_along_paths(
    state: Any, slot: Scalar, shown: Array, above: Scalar, rng: np.random.Generator
) -> tuple[Scalar, Scalar]:
    """Choose an entry, where all documents are eligible."""
    entry: Scalar = state.chosen[np.uint64(slot)]
    if above == 0 or not _is_remembered(state, slot, shown, above):
        entry = _select(state, slot, shown, above, False, rng)
    return entry, 1.0


def select_eligible(
    state: Any, slot: Scalar, shown: Array, above: Scalar, rng: np.random.Generator
) -> tuple[Scalar, Scalar]:
    """Choose an entry that has an eligible document."""
    return _select(state, slot, shown, above, True, rng), 1.0


# The probability of the walk.


@inlined
def _holds(state: Any, entry: Scalar, document: Scalar) -> Scalar:
    node = np.uint64(state.node[np.uint64(entry)])
    return state.first_document[node] <= document < state.end_document[node]


@inlined
def _step_to(state: Any, entry: Scalar, document: Scalar) -> Scalar:
    """Return the position of the child of an entry that holds a document."""
    first, step = np.uint64(state.child[np.uint64(entry)]), np.uint64(0)
    while not _holds(state, first + step, document):
        step += np.uint64(1)
    return step


@inlined
def _odds_of_free_walk(
    state: Any,
    slot: Scalar,
    entry: Scalar,
    cap: Scalar,
    known: Scalar,
    limit: Scalar,
    document: Scalar,
    some: Scalar,
) -> tuple[Scalar, Scalar]:
    """Compute the probability below an entry without documents of S; return it and the entry of the document."""
    at, chance = np.uint64(entry), 1.0
    while chance > 0.0 and state.child[at] != 0:
        ahead = _ahead(state, slot, at, cap, limit, some)
        limit = limit if ahead == at else np.inf
        at = ahead
        if not _holds(state, at, document):
            chance = 0.0
        elif state.child[at] != 0:
            known = value_children(state, slot, at, cap, known, limit, some)
            step = _step_to(state, at, document)
            chance *= chance_of_best_place(state.value, np.uint64(state.fan[at]), known, step)
            at = np.uint64(state.child[at]) + step
        limit = np.inf
    return chance, at


@inlined
def _odds(
    state: Any, slot: Scalar, shown: Array, above: Scalar, document: Scalar, some: Scalar
) -> tuple[Scalar, Scalar, Scalar]:
    at, cap, known, limit, chance, hopeful = np.uint64(0), np.inf, -1.0, np.inf, 1.0, False
    if state.correlated and above > 0:
        size = follow_paths(state, slot, shown, above, some, False)
        hopeful = max(state.seen[0], state.limit[0]) > 0.0  # a subtree without documents left is capped at 0
        place, on_path = np.uint64(0), True
        while chance > 0.0 and on_path and state.child[at] != 0:
            first, fan = np.uint64(state.child[at]), np.uint64(state.fan[at])
            cap = state.width[np.uint64(state.node[at])]
            known = value_listed(state, slot, first, fan, cap, place, size)
            step = _step_to(state, at, document)
            chance *= chance_of_best_place(state.value, fan, known, step)
            at = first + step
            on_path = state.below[step] != 0
            if not on_path:
                limit, _ = _index_beside(state, slot, place, at)
            place = np.uint64(state.below[step])
    if chance > 0.0:
        more, at = _odds_of_free_walk(state, slot, at, cap, known, limit, document, some)
        chance *= more
    return chance, np.int64(state.node[at]), hopeful


def odds_along_paths(
    state: Any, slot: Scalar, shown: Array, above: Scalar, document: Scalar
) -> tuple[Scalar, Scalar, Scalar]:
    """Compute `odds` when all documents are eligible."""
    return _odds(state, slot, shown, above, document, False)


def odds_of_eligible(
    state: Any, slot: Scalar, shown: Array, above: Scalar, document: Scalar
) -> tuple[Scalar, Scalar, Scalar]:
    """Compute `odds` when only some documents are eligible."""
    return _odds(state, slot, shown, above, document, True)
