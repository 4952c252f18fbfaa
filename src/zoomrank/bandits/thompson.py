"""`TreeThompson`: Thompson sampling on a tree. Draw what each child may be worth, go where the draw is best, repeat.

Every subtree of a slot has a Beta belief, of the clicks and skips of all documents below it. The correlation rule of
the paper caps what is drawn, as it caps indices in `Zooming`. Unlike an index learner it shows different visitors
different things, also before it has heard from them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.interface import (
    LARGEST_CONTEXT,
    Bandit,
    Clock,
    Feedback,
    Strategy,
    endless,
    on_reset,
    on_roomy,
    on_select,
    on_subtree,
    on_update,
)
from zoomrank.bandits.state.tree_view import Grove, size_of
from zoomrank.bandits.state.visited import (
    Visited,
    count_visit,
    entry_of,
    fresh_visited,
    growth,
    is_roomy,
    more_visited,
    roomier,
    transplant,
)
from zoomrank.bandits.zooming import (
    Paths,
    correlation_cap,
    farthest_from,
    fresh_paths,
    one_of_the_best,
    remember_paths,
    share_out,
)
from zoomrank.compiled import Scalar, flat
from zoomrank.errors import ParameterError
from zoomrank.numbers import Array, Seed
from zoomrank.spaces import DocumentTree

PATIENCE = 1  # visits without a click before a subtree's children are told apart


class Belief(NamedTuple):
    """The parameters of `TreeThompson`."""

    prior: float
    correlated: bool


ThompsonState = flat("ThompsonState", Grove, Visited, Belief, Paths, Clock)


@on_select(ThompsonState)
def _select(state: Any, slot: Scalar, shown: Array, above: Scalar, rng: np.random.Generator) -> tuple[Scalar, Scalar]:
    if not state.correlated:
        above = 0
    remember_paths(state, shown, above)
    column, at = np.uint64(slot), np.uint64(0)
    depth, mask, cap = 0, (1 << above) - 1, np.inf
    while state.child[at] != 0:
        first, node = np.uint64(state.child[at]), np.uint64(state.node[at])
        fan, start = np.uint64(state.fan[at]), np.uint64(state.child_start[node])
        if mask != 0:
            cap = state.width[node]
            share_out(state, state.below, node, depth, mask)
        top = -1.0
        for step in range(fan):
            state.value[step] = -1.0
            if size_of(state, start + step) == 0:
                continue
            plays, clicks = state.plays[first + step, column], state.clicks[first + step, column]
            limit = cap
            if mask != 0 and state.below[step] != 0:
                limit = farthest_from(state, start + step, depth + 1, state.below[step])
            state.value[step] = min(rng.beta(state.prior + clicks, 1.0 + (plays - clicks)), limit)
            top = max(top, state.value[step])
        chosen = one_of_the_best(state.value, fan, top, rng)
        at = first + chosen
        depth += 1
        if mask != 0:
            mask = state.below[chosen]
    return np.int64(at), 1.0


@on_update(ThompsonState)
def _update(state: Any, slot: Scalar, feedback: Feedback, shown: Array, above: Scalar) -> None:
    count_visit(state, slot, feedback.pick, feedback.reward)


@on_subtree(ThompsonState)
def _subtree(state: Any, slot: Scalar, strategy: Scalar) -> Scalar:
    return np.int64(state.node[strategy])


@on_reset(ThompsonState)
def _reset(state: Any, slot: Scalar, horizon: Scalar) -> None:
    """Nothing is made afresh."""


@on_roomy(ThompsonState)
def _roomy(state: Any) -> Scalar:
    return is_roomy(state)


class TreeThompson(Bandit):
    """Beliefs start as Beta(`prior`, 1): the smaller, the less is expected of what was never seen."""

    anytime = True
    restrictable = True

    def __init__(self, tree: DocumentTree, *, prior: float = 1.0, correlated: bool = True, seed: Seed = None) -> None:
        super().__init__(tree, seed)
        if not 0 < prior < np.inf:
            raise ParameterError(f"prior must be a positive number, not {prior}.")
        self.prior, self.correlated = float(prior), bool(correlated)

    not_saved = Bandit.not_saved | frozenset(Paths._fields)

    @property
    def settings(self) -> dict[str, Any]:
        """What rebuilds this bandit."""
        return {"prior": self.prior, "correlated": self.correlated}

    def transplanted(self, state: Any, tree: DocumentTree) -> tuple[Bandit, Any]:
        """The same beliefs; new documents join the subtrees that they are in."""
        moved = TreeThompson(tree, **self.settings)
        fresh = moved.fresh_state(state.plays.shape[1], len(state.node) + len(tree) - len(self.tree))
        transplant(state, fresh, growth(tree))
        return moved, fresh

    def fresh_state(self, slots: int, more: int = 0) -> Any:
        """Nothing seen but that there is a root."""
        visited = fresh_visited(self.tree, slots, PATIENCE, more)
        paths = fresh_paths(self.tree, LARGEST_CONTEXT if slots == 1 else slots, visited.widest)
        return ThompsonState(*self.grove, *visited, self.prior, self.correlated, *paths, *endless(slots))

    def larger(self, state: Any) -> Any:
        """Room for more entries."""
        return state._replace(**more_visited(state, roomier(state)))

    def strategy_of(self, state: Any, slot: int, above: Array, document: int) -> Strategy:
        """The smallest subtree that was told apart and holds the document; its index is the mean of the belief."""
        entry = int(entry_of(state, document))
        plays, clicks = int(state.plays[entry, slot]), int(state.clicks[entry, slot])
        a, b = self.prior + clicks, 1.0 + plays - clicks
        spread = float(np.sqrt(a * b / (a + b + 1.0)) / (a + b))
        cap = correlation_cap(self.tree, int(state.node[entry]), above if self.correlated else above[:0])
        return Strategy(int(state.node[entry]), plays, clicks, spread, a / (a + b), cap)
