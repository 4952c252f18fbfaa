"""Rankings as kernels see them, and what kernels do with those: rank, weigh and learn.

Slots choose from the top down. A click on slot i rewards slot i, the slots above get nothing, and the slots below
stay as if the visit had not happened. Without a click every slot gets nothing. A slot whose pick is below 0 is left
out.

To weigh a ranking is to say how likely each of its documents was in its slot, given those above: its propensity.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.propensity import propensity
from zoomrank.bandits.registration import Feedback, arrange, roomy, select, subtree, update_slot
from zoomrank.bandits.state.tree_view import chance_to_draw, draw_document
from zoomrank.compiled import Scalar, compiled, inlined
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
def _weigh(state: Any, shown: Array, weights: Array, duplicates: Scalar) -> None:
    for slot in range(len(shown)):
        weights[slot] = propensity(state, slot, shown, shown[slot], duplicates)


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
def rank_rows(state: Any, out: RankingArrays, start: Scalar, duplicates: Scalar, dice: Any) -> Scalar:
    """Rank and weigh row after row; stops where there is no room, and says where."""
    rng = rolled(dice)
    for row in range(start, len(out.shown)):
        if not roomy(state):
            return row
        for slot in range(out.shown.shape[1]):
            _choose(state, out, row, slot, duplicates, rng)
        _weigh(state, out.shown[row], out.propensity[row], duplicates)
        _arrange(state, out, row, duplicates)
    return len(out.shown)


@compiled
def weigh_rows(state: Any, shown: Array, weights: Array, duplicates: Scalar) -> None:
    """Weigh rankings as if slots had chosen them in this order; 0 from the first document on that may not be shown."""
    for row in range(len(shown)):
        weights[row] = 0.0
        slot, going = 0, True
        while going and slot < shown.shape[1]:
            document = shown[row, slot]
            going = 0 <= document < len(state.leaf)
            if going:
                going = chance_to_draw(state, 0, document, shown[row], 0 if duplicates else slot) > 0.0
            if going:
                weights[row, slot] = propensity(state, slot, shown[row], document, duplicates)
            slot += 1


@compiled
def learn_rows(state: Any, seen: RankingArrays, clicks: Array, start: Scalar) -> Scalar:
    """Learn row after row; stops where there is no room, and says where."""
    for row in range(start, len(clicks)):
        if not roomy(state):
            return row
        learn_row(state, seen, row, clicks[row])
    return len(clicks)
