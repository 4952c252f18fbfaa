"""What a learner says of visits that it has not learned from: how likely it thought what visitors did.

What is expected of a document in a slot is what was seen there of it, and of the subtrees that hold it, from the root
down: each counts beside four visits that went as the one around it did. Where nothing was seen, everything is as likely
as it is in that slot on the whole; so a learner that knows nothing says the same as somebody who knows that alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zoomrank.compiled import Scalar, compiled, inlined
from zoomrank.numbers import Array

_AROUND = 4.0  # visits


@compiled
def surprise(state: Any, shown: Array, clicks: Array, usual: Array) -> Scalar:
    """The bits of surprise at what was clicked and what was not, of all documents that visitors looked at.

    Rows are visits, columns slots, below 0 where nothing is known; `usual` is how often each slot is clicked.
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
    """The chance of a click on a document in a slot, as far as a learner knows."""
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
