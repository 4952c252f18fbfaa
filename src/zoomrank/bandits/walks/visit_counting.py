"""`VisitCounting`: what bandits have in common that count visits along paths, in all slots (`state/visited.py`).

A strategy is an entry: the smallest subtree that is told apart. Such a bandit goes on for ever, can be restricted to
eligible documents, and moves to other trees as documents come and go (`state/moved_visits.py`).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from zoomrank.bandits.interface import Bandit, Strategy
from zoomrank.bandits.state.context_paths import ContextScratch, correlation_cap
from zoomrank.bandits.state.moved_visits import move_visits, own_visits, told_apart_after
from zoomrank.bandits.state.visited import entry_of, more_visited, roomier
from zoomrank.compiled import Scalar
from zoomrank.numbers import Array
from zoomrank.spaces import Movement


def subtree_of_entry(state: Any, slot: Scalar, strategy: Scalar) -> Scalar:
    """The body of `subtree`."""
    return np.int64(state.node[strategy])


def entries_fit(state: Any) -> Scalar:
    """Whether another visit fits, whatever it visits: the body of `roomy`."""
    return state.filled[0] + state.plays.shape[1] * state.widest <= len(state.node)


class VisitCounting(Bandit):
    """A bandit whose state is `VisitCounts`, and what follows from those."""

    anytime = True
    restrictable = True
    growable = True
    counts_visits = True
    not_saved = Bandit.not_saved | frozenset(ContextScratch._fields)
    correlated: bool

    @abstractmethod
    def fresh_state(self, slots: int, more: int = 0) -> Any:
        """Nothing seen but that there is a root; room for so many entries more."""

    @abstractmethod
    def belief(self, state: Any, entry: int, slot: int) -> tuple[float, float]:
        """How uncertain the mean of an entry is, and its index."""

    def carry_over(self, state: Any, moved: Any, origin: Array, anew: Array) -> None:
        """Take along what there is beside counts; `origin` says which entry each of the moved state was, and `anew`
        which have other visits now.
        """

    def adopted(self, state: Any, movement: Movement) -> Any:
        """The counts go along with the subtrees that they are of; new documents join those that they are in."""
        shape = self.tree.shape
        own = own_visits(state, shape.parent, movement)
        apart, children = told_apart_after(state, own, shape.parent, shape.child_start, movement)
        moved = self.fresh_state(state.plays.shape[1], children)
        self.carry_over(state, moved, *move_visits(state, own, moved, movement, apart))
        return moved

    def larger(self, state: Any) -> Any:
        """Room for more entries."""
        return state._replace(**more_visited(state, roomier(state)))

    def strategy_of(self, state: Any, slot: int, above: Array, document: int) -> Strategy:
        """The smallest subtree that was told apart and holds the document, with the visits of this slot."""
        entry = int(entry_of(state, document))
        node, plays, clicks = int(state.node[entry]), int(state.plays[entry, slot]), int(state.clicks[entry, slot])
        radius, index = self.belief(state, entry, slot)
        cap = correlation_cap(self.tree, node, above if self.correlated else above[:0])
        return Strategy(node, plays, clicks, radius, index, cap)
