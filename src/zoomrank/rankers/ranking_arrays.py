"""Rankings as kernels see them, and the two things that kernels do with those: rank and learn.

Slots choose from the top down. A click on slot i rewards slot i, the slots above get nothing, and the slots below
stay as if the visit had not happened. Without a click every slot gets nothing. A slot whose pick is below 0 is left
out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.registration import Feedback, arrange, roomy, select, subtree, update_slot
from zoomrank.bandits.state.tree_view import draw_document
from zoomrank.compiled import Scalar, compiled, inlined
from zoomrank.dice import rolled
from zoomrank.numbers import Array


class RankingArrays(NamedTuple):
    """Rankings, a row each, with a column per slot."""

    shown: Array  # documents; -1 for one that is gone
    pick: Array  # the document that the slot's strategy picked: the one shown unless that was shown above already; -1
    # where the slot is to learn nothing
    strategy: Array
    chance: Array


def empty_rankings(rows: int, slots: int) -> RankingArrays:
    """Room for this many rankings."""
    shown, pick, strategy = (np.zeros((rows, slots), np.int64) for _ in range(3))
    return RankingArrays(shown, pick, strategy, np.zeros((rows, slots)))


@inlined
def rank_row(state: Any, out: RankingArrays, row: Scalar, duplicates: Scalar, rng: np.random.Generator) -> None:
    """Rank: choose slot by slot, from the top down; then learners may put what they chose in another order."""
    shown = out.shown[row]
    for slot in range(out.shown.shape[1]):
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
    if not duplicates:  # a ranking of the paper stays as its slots chose it
        arrange(state, shown, out.pick[row], out.strategy[row], out.chance[row])


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
    """Rank row after row; stops where there is no room, and says where."""
    rng = rolled(dice)
    for row in range(start, len(out.shown)):
        if not roomy(state):
            return row
        rank_row(state, out, row, duplicates, rng)
    return len(out.shown)


@compiled
def learn_rows(state: Any, seen: RankingArrays, clicks: Array, start: Scalar) -> Scalar:
    """Learn row after row; stops where there is no room, and says where."""
    for row in range(start, len(clicks)):
        if not roomy(state):
            return row
        learn_row(state, seen, row, clicks[row])
    return len(clicks)
