"""Many arms, none of them ever scanned: a tree over the arms of which every node sums up its eight children.

UCB1 keeps maxima in it and walks down to the best arm; EXP3 keeps sums and walks down to a random one. Eight children
stand side by side in one line of the processor's cache, so a walk over a million arms touches seven of those.
"""

from typing import Any, NamedTuple

import numpy as np

from zoomrank.compiled import Scalar, inlined
from zoomrank.numbers import Array

FAN = 8


class Arms(NamedTuple):
    """Trees over arms, a row per slot; level 0 are the arms themselves."""

    arms: Array  # how many, per slot
    levels: Array  # how many levels, per slot
    level_start: Array  # where each level begins, per slot
    level_size: Array  # and how many nodes it has


def fresh_arms(slots: int, most: int) -> tuple[Arms, int]:
    """Room for this many arms in every slot, and how many nodes that takes."""
    levels, size, nodes = 1, most, most
    while size > 1:
        size = -(-size // FAN)
        nodes += size
        levels += 1
    shape = (slots, levels)
    counts = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
    return Arms(*counts, np.zeros(shape, np.int64), np.zeros(shape, np.int64)), nodes


@inlined
def lay_out(state: Any, slot: Scalar, arms: Scalar) -> None:
    """Decide where each level of the tree over this many arms stands."""
    state.arms[slot] = arms
    size, start, level = arms, 0, 0
    state.level_start[slot, 0] = 0
    state.level_size[slot, 0] = arms
    while size > 1:
        start += size
        size = (size + FAN - 1) // FAN
        level += 1
        state.level_start[slot, level] = start
        state.level_size[slot, level] = size
    state.levels[slot] = level + 1
