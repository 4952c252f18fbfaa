"""Tree over many arms, so that none is scanned: every node summarises its eight children.

UCB1 keeps maxima in it and walks down to the best arm; EXP3 keeps sums and walks down to a random one. Eight children
fill one cache line, so a walk over a million arms touches seven cache lines.
"""

from typing import Any, NamedTuple

import numpy as np

from zoomrank.compiled import Scalar, inlined
from zoomrank.types import Array

FAN = 8


class Arms(NamedTuple):
    """Trees over arms, a row per slot; level 0 are the arms themselves."""

    arms: Array  # number of arms, per slot
    levels: Array  # number of levels, per slot
    level_start: Array  # start of each level, per slot
    level_size: Array  # number of nodes of each level, per slot


def fresh_arms(slots: int, most: int) -> tuple[Arms, int]:
    """Allocate trees over this many arms in every slot; return them and the number of nodes."""
    levels, size, nodes = 1, most, most
    while size > 1:
        size = -(-size // FAN)
        nodes += size
        levels += 1
    shape = (slots, levels)
    counts = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
    return Arms(*counts, np.zeros(shape, np.int64), np.zeros(shape, np.int64)), nodes


@inlined
def lay_out(state: Any, slot: Scalar, arms: Scalar, below: Array) -> None:
    """Set the start and size of each level of the tree over this many arms; store in `below` how many each node has."""
    state.arms[slot] = arms
    size, start, level, most = arms, 0, 0, 1
    going = True
    while going:
        state.level_start[slot, level], state.level_size[slot, level] = start, size
        left = arms
        for node in range(start, start + size):
            below[slot, node] = min(most, left)
            left -= most
        going = size > 1
        start += size
        size = (size + FAN - 1) // FAN
        level += 1
        most *= FAN
    state.levels[slot] = level
