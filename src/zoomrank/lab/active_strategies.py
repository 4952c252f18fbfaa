"""Final number of strategies of a ranker: the active subtrees, or pairs with contexts, of each slot."""

from __future__ import annotations

from typing import Any

import numpy as np

from zoomrank.bandits.contextual_zooming import ContextualState
from zoomrank.bandits.state.pair_tree import ACTIVE
from zoomrank.bandits.zooming import ZoomState

Counts = tuple[int, ...]


def active_strategies(ranker: Any) -> Counts | None:
    """Count the active strategies of each slot; None for rankers that do not zoom.

    For contextual zooming, only pairs of contexts that have occurred are counted; others are not stored.

    >>> from zoomrank import DocumentTree, RankZoom
    >>> active_strategies(RankZoom(DocumentTree.exponential(depth=3), slots=2))
    (1, 1)
    """
    state = getattr(ranker, "state", None)
    if isinstance(state, ZoomState):
        return tuple(_subtrees(state, slot) for slot in range(len(state.used)))
    if isinstance(state, ContextualState):  # nothing is above the first slot: it has a plain zoom tree
        return (_subtrees(state, 0), *(_pairs(state, slot) for slot in range(1, len(state.pair_used))))
    return None


def _subtrees(state: Any, slot: int) -> int:
    return int(np.count_nonzero(state.child[slot, : state.used[slot]] == 0))


def _pairs(state: Any, slot: int) -> int:
    return int(np.count_nonzero(state.pair["known_for"][slot, : state.pair_used[slot]] == ACTIVE))
