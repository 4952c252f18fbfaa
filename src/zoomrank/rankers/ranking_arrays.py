"""Rankings as kernels see them, and what kernels do with those: rank, weigh and learn.

Slots choose from the top down. A click on slot i rewards slot i, the slots above get nothing, and the slots below
stay as if the visit had not happened. Without a click every slot gets nothing. A slot whose pick is below 0 is left
out.

To weigh a ranking is to say how likely each of its documents was in its slot, given those above: its propensity. Who
explores replaces one slot of some rankings, which was chosen before: its document is drawn from the whole tree, and
slots below it choose, knowing that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.propensity import propensity
from zoomrank.bandits.registration import Feedback, arrange, roomy, select, subtree, update_slot
from zoomrank.bandits.state.tree_view import chance_to_draw, draw_document
from zoomrank.compiled import Scalar, compiled, inlined, separate
from zoomrank.dice import rolled
from zoomrank.numbers import Array


class RankingArrays(NamedTuple):
    """Rankings, a row each, with a column per slot."""

    shown: Array  # documents; -1 for one that is gone
    pick: Array  # the document that the slot's strategy picked: the one shown unless that was shown above already; -1
    # where the slot is to learn nothing
    strategy: Array
    chance: Array  # of the strategy, where that matters to its learner
    propensity: Array  # of the document, given those above; not a number if it is not known; no columns if nobody asks


class Manner(NamedTuple):
    """How rankings are made."""

    duplicates: bool  # whether a document may be shown twice
    explore: float = 0.0  # of how many rankings one slot is replaced, as a share
    counts: bool = False  # whether slots learn from what they did not choose
    weighs: bool = True  # whether rankings say how likely they were; to find out may take longer than to make them
    lead: Array = np.zeros(0, np.int64)  # documents of an order that leads, from the best


def empty_rankings(rows: int, slots: int, weighed: bool = True) -> RankingArrays:
    """Room for this many rankings."""
    shown, pick, strategy = (np.zeros((rows, slots), np.int64) for _ in range(3))
    return RankingArrays(shown, pick, strategy, np.zeros((rows, slots)), np.zeros((rows, slots if weighed else 0)))


def given_rankings(shown: Array) -> RankingArrays:
    """Rankings that no slot chose, such as those of another ranker: all that is known are the documents."""
    return RankingArrays(shown, shown, np.zeros_like(shown), np.ones(shown.shape), np.full(shown.shape, np.nan))


@inlined
def _choose(
    state: Any, out: RankingArrays, row: Scalar, slot: Scalar, duplicates: Scalar, rng: np.random.Generator
) -> None:
    """Let a slot choose its document."""
    shown = out.shown[row]
    strategy, chance = select(state, slot, shown, slot, rng)
    node = subtree(state, slot, strategy)
    pick = np.int64(state.first_document[node])
    document = np.int64(-1)
    own = True
    while document < 0:  # twice only if all it could show is shown above: another document, which earns it nothing
        document = draw_document(state, node, shown, 0 if duplicates else slot, rng)
        if own and document >= 0:
            pick = document
        own = False
        node = 0
    shown[slot] = document
    out.pick[row, slot] = pick
    out.strategy[row, slot] = strategy
    out.chance[row, slot] = chance


@inlined
def _arrange(state: Any, out: RankingArrays, row: Scalar, duplicates: Scalar) -> None:
    """Learners may put what they chose in another order, but a ranking of the paper stays as its slots chose it."""
    if not duplicates:
        arrange(state, out.shown[row], out.pick[row], out.strategy[row], out.chance[row])


@inlined
def rank_row(state: Any, out: RankingArrays, row: Scalar, duplicates: Scalar, rng: np.random.Generator) -> None:
    """Rank without weighing: choose slot by slot, from the top down."""
    for slot in range(out.shown.shape[1]):
        _choose(state, out, row, slot, duplicates, rng)
    _arrange(state, out, row, duplicates)


@inlined
def _give(out: RankingArrays, row: Scalar, slot: Scalar, document: Scalar, counts: Scalar) -> None:
    """Fill a slot with what it did not choose; it learns from that if its learner counts any visit."""
    out.shown[row, slot] = document
    out.pick[row, slot] = document if counts else -1
    out.strategy[row, slot] = 0
    out.chance[row, slot] = 1.0


@inlined
def _next_of(lead: Array, shown: Array, slot: Scalar) -> Scalar:
    """The best document of an order that is not shown above; -1 if there is none."""
    for document in lead:
        above = False
        for place in range(slot):
            above = above or shown[place] == document
        if not above:
            return np.int64(document)
    return np.int64(-1)


@inlined
def _own_chance(state: Any, shown: Array, slot: Scalar, how: Manner) -> Scalar:
    """The probability of a document in a slot that is not replaced."""
    leading = _next_of(how.lead, shown, slot)
    if leading >= 0:
        return 1.0 if shown[slot] == leading else 0.0
    return propensity(state, slot, shown, shown[slot], how.duplicates)


@separate
def _weigh(state: Any, shown: Array, weights: Array, how: Manner) -> None:
    """Weigh a ranking in the order in which slots chose; 0 from the first document on that may not be shown.

    A ranking came about without a replaced slot, or with one that is still to come, or with any of those so far.
    """
    slots, chosen, replaced, going = len(shown), 1.0, 0.0, True
    for slot in range(slots):
        weights[slot] = 0.0
        going = going and 0 <= shown[slot] < len(state.leaf)
        if going:
            anyway = chance_to_draw(state, 0, shown[slot], shown, 0 if how.duplicates else slot)
            going = anyway > 0.0
        if going:
            own = _own_chance(state, shown, slot, how)
            weights[slot] = own
            if how.explore > 0.0:
                replaced = replaced * own + chosen * anyway
                chosen *= own
                now = chosen - how.explore / slots * ((slot + 1) * chosen - replaced)
                weights[slot], going = now, now != 0.0
                if going:  # the next slot is weighed given this one
                    chosen, replaced = chosen / now, replaced / now


@inlined
def _fill(state: Any, out: RankingArrays, row: Scalar, how: Manner, rng: np.random.Generator) -> None:
    """Fill a ranking from the top down: slots choose, unless they are replaced or an order leads."""
    shown, slots, replaced = out.shown[row], out.shown.shape[1], np.int64(-1)
    if how.explore > 0.0 and rng.random() < how.explore:
        replaced = np.int64(rng.random() * slots)
    for slot in range(slots):
        document = _next_of(how.lead, shown, slot)
        if slot == replaced:
            document = draw_document(state, 0, shown, 0 if how.duplicates else slot, rng)
        if document >= 0:
            _give(out, row, slot, document, how.counts)
        else:
            _choose(state, out, row, slot, how.duplicates, rng)


@compiled
def rank_rows(state: Any, out: RankingArrays, start: Scalar, how: Manner, dice: Any) -> Scalar:
    """Rank and weigh row after row; stops where there is no room, and says where."""
    rng = rolled(dice)
    for row in range(start, len(out.shown)):
        if not roomy(state):
            return row
        _fill(state, out, row, how, rng)
        if how.weighs:
            _weigh(state, out.shown[row], out.propensity[row], how)
        else:
            out.propensity[row] = np.nan
        if how.explore == 0.0 and len(how.lead) == 0:
            _arrange(state, out, row, how.duplicates)
    return len(out.shown)


@compiled
def weigh_rows(state: Any, shown: Array, weights: Array, how: Manner) -> None:
    """Weigh rankings as if slots had chosen them in this order."""
    for row in range(len(shown)):
        _weigh(state, shown[row], weights[row], how)


@inlined
def learn_row(state: Any, seen: RankingArrays, row: Scalar, click: Scalar) -> None:
    """Learn: every slot down to the click, or all of them."""
    shown = seen.shown[row]
    for slot in range(min(click + 1, seen.shown.shape[1])):
        pick = seen.pick[row, slot]
        if pick < 0:  # nothing is known of this slot, or its document is gone
            continue
        reward = 1 if slot == click and pick == shown[slot] else 0
        update_slot(state, slot, Feedback(seen.strategy[row, slot], pick, seen.chance[row, slot], reward), shown, slot)


@compiled
def learn_rows(state: Any, seen: RankingArrays, clicks: Array, start: Scalar) -> Scalar:
    """Learn row after row; stops where there is no room, and says where."""
    for row in range(start, len(clicks)):
        if not roomy(state):
            return row
        learn_row(state, seen, row, clicks[row])
    return len(clicks)
