"""`VisitCountingBandit`: base of the bandits that count visits along paths, in all slots (`state/visited.py`).

A strategy is an entry: the smallest subtree with its own counts. Such a bandit needs no horizon, can be restricted to
eligible documents, and moves to other trees as documents are added and removed (`state/moved_visits.py`).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from zoomrank.bandits.interface import Bandit, Strategy
from zoomrank.bandits.state.context_paths import ContextScratch, correlation_cap
from zoomrank.bandits.state.moved_visits import move_visits, own_visits, split_after_move
from zoomrank.bandits.state.visited import enlarged_visits, entry_of, larger_capacity
from zoomrank.compiled import Scalar
from zoomrank.numbers import Array
from zoomrank.spaces import Remap


def subtree_of_entry(state: Any, slot: Scalar, strategy: Scalar) -> Scalar:
    """Return the node of an entry: the registered `subtree`."""
    return np.int64(state.node[strategy])


def entries_fit(state: Any) -> Scalar:
    """Return whether any further visit fits: the registered `roomy`."""
    return state.filled[0] + state.plays.shape[1] * state.widest <= len(state.node)


class VisitCountingBandit(Bandit):
    """Bandit whose state contains `VisitCounts`."""

    anytime = True
    restrictable = True
    growable = True
    counts_visits = True
    not_saved = Bandit.not_saved | frozenset(ContextScratch._fields)
    correlated: bool

    @abstractmethod
    def fresh_state(self, slots: int, more: int = 0) -> Any:
        """Return a state with only the root, and room for `more` entries."""

    @abstractmethod
    def belief(self, state: Any, entry: int, slot: int) -> tuple[float, float]:
        """Return the uncertainty of an entry's mean, and its index."""

    def carry_over(self, state: Any, moved: Any, origin: Array, anew: Array) -> None:
        """Carry over the state beside counts; `origin` has the old entry of each new one, and `anew` marks those whose
        visits changed.
        """

    def adopted(self, state: Any, movement: Remap) -> Any:
        """Remap counts with their subtrees; new documents count in the subtrees that they join."""
        shape = self.tree.shape
        own = own_visits(state, shape.parent, movement)
        apart, children = split_after_move(state, own, shape.parent, shape.child_start, movement)
        moved = self.fresh_state(state.plays.shape[1], children)
        self.carry_over(state, moved, *move_visits(state, own, moved, movement, apart))
        return moved

    def larger(self, state: Any) -> Any:
        """Make room for more entries."""
        return state._replace(**enlarged_visits(state, larger_capacity(state)))

    def strategy_of(self, state: Any, slot: int, above: Array, document: int) -> Strategy:
        """Return the smallest entry that holds the document, with the visits of this slot."""
        entry = int(entry_of(state, document))
        node, plays, clicks = int(state.node[entry]), int(state.plays[entry, slot]), int(state.clicks[entry, slot])
        radius, index = self.belief(state, entry, slot)
        cap = correlation_cap(self.tree, node, above if self.correlated else above[:0])
        return Strategy(node, plays, clicks, radius, index, cap)
