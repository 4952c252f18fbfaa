"""Log loss of a learner on visits that it has not learned from.

The predicted click rate of a document in a slot comes from its visits there and from those of the subtrees that hold
it, from the root down: each counts beside four pseudo-visits at the rate of the one around it. Without visits the
prediction is the slot's overall click rate, so an untrained learner predicts as well as that rate alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zoomrank.compiled import Scalar, compiled, inlined
from zoomrank.numbers import Array

_AROUND = 4.0  # pseudo-visits


@compiled
def log_loss(state: Any, shown: Array, clicks: Array, usual: Array) -> Scalar:
    """Compute the log loss in bits over all examined documents.

    Rows are visits, columns slots, below 0 for unknown documents; `usual` is the click rate of each slot.
    """
    found = 0.0
    for row in range(len(shown)):
        for slot in range(min(clicks[row] + 1, shown.shape[1])):
            if shown[row, slot] >= 0:
                chance = _expected(state, shown[row, slot], slot, usual[slot])
                found -= np.log2(chance if slot == clicks[row] else 1.0 - chance)
    return found


@inlined
def _expected(state: Any, document: Scalar, slot: Scalar, usual: Scalar) -> Scalar:
    """Predict the click probability of a document in a slot."""
    at, chance, going = np.uint64(0), usual, True
    while going:
        plays, clicks = np.float64(state.plays[at, slot]), np.float64(state.clicks[at, slot])
        chance = (clicks + _AROUND * chance) / (plays + _AROUND)
        going = state.child[at] != 0
        if going:
            at = np.uint64(state.child[at])
            while state.end_document[state.node[at]] <= document:
                at += np.uint64(1)
    return chance
