"""Choice of path zooming: a walk down along the best, under the cap of the documents above; its probability; and the
exchange of two shown documents.

*Walk.* Where the best record below a subtree reaches its bound, the subtree is settled and the walk goes to the child
with that record; elsewhere to the child with the best bound. Off the root paths of the documents above, the cap is one
number and the walk is free; entries on those paths are listed first, with the records and bounds of their best
documents. If only some documents are eligible, a search finds the records and bounds of those.

*Probability.* The same walk goes to a given document instead of breaking ties at random, and divides by the number of
tied children at each branch.

*Exchange.* A visitor is satisfied by the set of documents, not by their order, so the order is free to learn with. A
document chosen for a low slot, below a similar one, is only seen by visitors who skipped that one; the low slot cannot
find out its value to all visitors. If it keeps being clicked there, it may be the better of the two. Then the two swap
places, until the document's own record in the high slot says that it is not better. Documents are swapped only above
the first slot with a random choice. There the ranking is the same for every visitor, in any order; and the slots below
choose given the set above. So the propensity of a ranking stays the product of the propensities of its slots.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.kernel_interface import propensity
from zoomrank.bandits.path_zooming.bounds import table_of_logarithms, upper_bound
from zoomrank.bandits.tree_view import (
    chance_of_best_place,
    farthest_from,
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

    limit: Array  # smallest bound above an entry; then the bound below it
    best: Array  # the best capped bound among its children
    seen: Array  # the best capped record below it
    origin: Array  # the place of its parent in this list
    inside: Array  # the place of its first listed child
    reach: Array  # depth that a walk through its parent may reach
    search_entry: Array  # a stack of entries to search
    search_limit: Array  # and the smallest bound above them
    logarithm: Array  # of 1, 2, 3, …


def fresh_path_scratch(room: int) -> PathScratch:
    """Allocate scratch space for this many entries."""
    limit, best, seen, search_limit = (np.zeros(room) for _ in range(4))
    origin, inside, reach, search_entry = (np.zeros(room, np.int64) for _ in range(4))
    return PathScratch(limit, best, seen, origin, inside, reach, search_entry, search_limit, table_of_logarithms())


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
def value_children(state: Any, slot: Scalar, entry: Scalar, cap: Scalar, known: Scalar, some: Scalar) -> Scalar:
    """Value the children of an entry by their records if the entry is settled, else by their bounds; return the best.

    The entry's value is known, so smaller values of children need not be exact.
    """
    at = np.uint64(entry)
    first, fan, top = np.uint64(state.child[at]), np.uint64(state.fan[at]), -1.0
    for step in range(fan):
        state.value[step] = _best_of(state, slot, first + step, cap, max(top, known), False)
        top = max(top, state.value[step])
    hope = min(top, state.worth[at, np.uint64(slot)])
    record = _best_of(state, slot, at, cap, hope, True)
    if record >= hope:
        top = record
        for step in range(fan):
            state.value[step] = _best_of(state, slot, first + step, cap, record, True)
    return top


@inlined
def _walk_freely(
    state: Any, slot: Scalar, entry: Scalar, cap: Scalar, known: Scalar, some: Scalar, rng: np.random.Generator
) -> Scalar:
    """Walk down along the best, under one cap, to an entry that is not split.

    The known value of the entry prunes the search for eligible documents.
    """
    at = np.uint64(entry)
    while state.child[at] != 0:
        ahead = walk_along_favourites(state, slot, at, cap, some)
        if not some or (state.child[ahead] == 0 and size_of(state, np.uint64(state.node[ahead])) > 0):
            at = ahead
        if state.child[at] != 0:
            known = value_children(state, slot, at, cap, known, some)
            at = np.uint64(state.child[at]) + random_best(state.value, np.uint64(state.fan[at]), known, rng)
    return np.int64(at)


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
def follow_paths(state: Any, slot: Scalar, above: Scalar, some: Scalar) -> Scalar:
    """List the entries that hold documents of S and compute their records and bounds under the cap; return how many
    there are. Entries that cannot hold the best are not expanded.

    On its way down a walk meets ever larger values, so entries below the best value so far are out of its way.
    """
    column, size, place = np.uint64(slot), np.uint64(1), np.uint64(0)
    found = -1.0
    state.stack_entry[0], state.stack_depth[0], state.stack_mask[0] = 0, 0, (1 << above) - 1
    state.limit[0], state.reach[0] = state.bound[0, column], -1
    while place < size:
        at = np.uint64(state.stack_entry[place])
        level, mask = state.stack_depth[place], state.stack_mask[place]
        best, seen = -1.0, -1.0
        state.inside[place] = size
        reach = _reach(state, slot, place, level, mask, found, some)
        if reach >= level:
            node, first, limit = np.uint64(state.node[at]), np.uint64(state.child[at]), state.limit[place]
            width = state.width[node]
            if first == 0:
                best = farthest_from(state, node, level, mask)
                seen = min(best, state.record[at, column])
            else:
                split_mask(state, state.below, node, level, mask)
                for step in range(np.uint64(state.fan[at])):
                    if state.below[step] == 0:
                        best = max(best, _best_of(state, slot, first + step, width, max(best, found), False))
                        seen = max(seen, _best_of(state, slot, first + step, width, max(seen, found), True))
                    else:
                        state.stack_entry[size] = first + step
                        state.stack_depth[size] = level + 1
                        state.stack_mask[size] = state.below[step]
                        state.limit[size] = min(limit, state.bound[first + step, column])
                        state.origin[size], state.reach[size] = place, reach
                        size += np.uint64(1)
            found = max(found, seen, min(limit, best))
        state.best[place], state.seen[place] = best, seen
        place += np.uint64(1)
    _carry_up(state, slot, size)
    return size


@inlined
def _carry_up(state: Any, slot: Scalar, size: Scalar) -> None:
    """Compute records and bounds of the listed entries, children before parents."""
    column = np.uint64(slot)
    for back in range(np.uint64(1), size + np.uint64(1)):
        place = size - back
        hope = min(state.bound[np.uint64(state.stack_entry[place]), column], state.best[place])
        state.limit[place] = hope
        if place > 0:
            above_it = np.uint64(state.origin[place])
            state.best[above_it] = max(state.best[above_it], hope)
            state.seen[above_it] = max(state.seen[above_it], state.seen[place])


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
            state.value[step] = _best_of(state, slot, first + step, cap, known, settled)
            state.below[step] = 0
    return known


@inlined
def _select(state: Any, slot: Scalar, shown: Array, above: Scalar, some: Scalar, rng: np.random.Generator) -> Scalar:
    """Choose an entry: along the listed paths while the best is there, then freely."""
    at, cap, known = np.uint64(0), np.inf, -1.0
    if state.correlated and above > 0:
        store_paths(state, shown, above)
        size = follow_paths(state, slot, above, some)
        place, on_path = np.uint64(0), True
        while on_path and state.child[at] != 0:
            first, fan = np.uint64(state.child[at]), np.uint64(state.fan[at])
            cap = state.width[np.uint64(state.node[at])]
            known = value_listed(state, slot, first, fan, cap, place, size)
            chosen = random_best(state.value, fan, known, rng)
            at = first + chosen
            place = np.uint64(state.below[chosen])
            on_path = place != 0
    return _walk_freely(state, slot, at, cap, known, some, rng)


def select_along_paths(
    state: Any, slot: Scalar, shown: Array, above: Scalar, rng: np.random.Generator
) -> tuple[Scalar, Scalar]:
    """Choose an entry, where all documents are eligible."""
    return _select(state, slot, shown, above, False, rng), 1.0


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
    state: Any, slot: Scalar, entry: Scalar, cap: Scalar, known: Scalar, document: Scalar, some: Scalar
) -> tuple[Scalar, Scalar]:
    """Compute the probability below an entry without documents of S; return it and the entry of the document."""
    at, chance = np.uint64(entry), 1.0
    while chance > 0.0 and state.child[at] != 0:
        ahead = walk_along_favourites(state, slot, at, cap, some)
        if not some or (state.child[ahead] == 0 and size_of(state, np.uint64(state.node[ahead])) > 0):
            at = ahead
        if not _holds(state, at, document):
            chance = 0.0
        elif state.child[at] != 0:
            known = value_children(state, slot, at, cap, known, some)
            step = _step_to(state, at, document)
            chance *= chance_of_best_place(state.value, np.uint64(state.fan[at]), known, step)
            at = np.uint64(state.child[at]) + step
    return chance, at


@inlined
def _odds(
    state: Any, slot: Scalar, shown: Array, above: Scalar, document: Scalar, some: Scalar
) -> tuple[Scalar, Scalar, Scalar]:
    at, cap, known, chance, hopeful = np.uint64(0), np.inf, -1.0, 1.0, False
    if state.correlated and above > 0:
        store_paths(state, shown, above)
        size = follow_paths(state, slot, above, some)
        hopeful = max(state.seen[0], state.limit[0]) > 0.0  # a subtree without documents left is capped at 0
        place, on_path = np.uint64(0), True
        while chance > 0.0 and on_path and state.child[at] != 0:
            first, fan = np.uint64(state.child[at]), np.uint64(state.fan[at])
            cap = state.width[np.uint64(state.node[at])]
            known = value_listed(state, slot, first, fan, cap, place, size)
            step = _step_to(state, at, document)
            chance *= chance_of_best_place(state.value, fan, known, step)
            at = first + step
            place = np.uint64(state.below[step])
            on_path = place != 0
    if chance > 0.0:
        more, at = _odds_of_free_walk(state, slot, at, cap, known, document, some)
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


# The exchange.

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
def swap_slots(shown: Array, pick: Array, strategy: Array, other: Array, low: Scalar, high: Scalar) -> None:
    """Swap two slots of a ranking."""
    shown[low], shown[high] = shown[high], shown[low]
    pick[low], pick[high] = pick[high], pick[low]
    strategy[low], strategy[high] = strategy[high], strategy[low]
    other[low], other[high] = other[high], other[low]


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
                swap_slots(shown, pick, strategy, chance, low, high)
