"""What kernels see of a one-slot learner: seven pieces, of which every kind of state registers its own bodies.

Kernels see every learner alike, and the ranker above them never asks which kind it holds. One state holds the learners
of all slots of a ranker; `shown[:above]` are the documents above the slot, a context that context-free learners ignore.

- `select(state, slot, shown, above, rng)` chooses a strategy, and says with which probability where that matters;
- `subtree(state, slot, strategy)` is the node below which its document is drawn;
- `update(state, slot, feedback, shown, above)` credits the strategy that made the choice or, if that is no longer
  active, the one that now holds the document it picked;
- `reset(state, slot, horizon)` makes the slot's learner a fresh one;
- `odds(state, slot, shown, above, document)` is the probability that it chooses the strategy that holds a document, the
  node of that strategy where this is above 0, and whether it is `sure` that no strategy is chosen all of whose
  documents, eligible or not, are above;
- `arrange(state, shown, pick, strategy, chance)` may put the documents of a ranking, which is filled, in another order;
- `roomy(state)` says whether the arrays have room for one more visit; Python makes room, kernels cannot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.state.tree_view import draw_document
from zoomrank.compiled import Function, Scalar, compiled, generic, inlined
from zoomrank.numbers import Array

_Kernel = tuple[Callable[..., Any], Callable[[Any], Callable[[Function], Function]]]


class Clock(NamedTuple):
    """Part of every state: when a slot's learner is next made afresh (see `Anytime`)."""

    phase: Array  # i: the phase that each slot is in
    left: Array  # visits left of it; 2^62 for a learner that goes on for ever


def endless(slots: int) -> Clock:
    """Clocks that never ring."""
    return Clock(np.zeros(slots, np.int64), np.full(slots, 2**62))


class Feedback(NamedTuple):
    """What a slot learns from a visit in which it was examined."""

    strategy: int
    pick: int  # the document that the strategy picked
    chance: float  # the probability of the strategy
    reward: int


def _kernel(name: str) -> _Kernel[Any]:
    def no_body(state: Any, *_: Any) -> Any:
        raise TypeError(f"{type(state).__name__} is not the state of a bandit: it has no {name}.")

    no_body.__name__ = name
    return generic(no_body)


select, _on_select = _kernel("select")
subtree, _on_subtree = _kernel("subtree")
update, _on_update = _kernel("update")
reset, _on_reset = _kernel("reset")
odds, _on_odds = _kernel("odds")
arrange, _on_arrange = _kernel("arrange")
roomy, _on_roomy = _kernel("roomy")


def _own_leaf(state: Any, slot: Scalar, strategy: Scalar) -> Scalar:
    return np.int64(state.leaf[strategy])


def _goes_on(state: Any, slot: Scalar, horizon: Scalar) -> None:
    pass


def _as_it_is(state: Any, shown: Array, pick: Array, strategy: Array, chance: Array) -> None:
    pass


def _always(state: Any) -> Scalar:
    return len(state.leaf) > 0


def register(
    state: Any,
    *,
    select: Callable[..., Any],
    odds: Callable[..., Any],
    update: Callable[..., Any],
    subtree: Callable[..., Any] = _own_leaf,
    reset: Callable[..., Any] = _goes_on,
    arrange: Callable[..., Any] = _as_it_is,
    roomy: Callable[..., Any] = _always,
) -> None:
    """Give a kind of state its bodies: plain functions, which are compiled into the kernels that call them.

    Unless said otherwise a strategy is a document, nothing is ever made afresh, rankings stay as slots chose them, and
    there is always room.
    """
    _on_select(state)(select)
    _on_odds(state)(odds)
    _on_update(state)(update)
    _on_subtree(state)(subtree)
    _on_reset(state)(reset)
    _on_arrange(state)(arrange)
    _on_roomy(state)(roomy)


@inlined
def update_slot(state: Any, slot: Scalar, feedback: Feedback, shown: Array, above: Scalar) -> None:
    """Update a slot's learner and its clock; a visit that the slot does not learn from never comes here."""
    update(state, slot, feedback, shown, above)
    state.left[slot] -= 1
    if state.left[slot] == 0:
        state.phase[slot] += 1
        state.left[slot] = 1 << state.phase[slot]
        reset(state, slot, state.left[slot])


@compiled
def select_alone(state: Any, context: Array, rng: np.random.Generator) -> tuple[Scalar, Scalar, Scalar]:
    """Choose with a bandit that is used alone: the strategy, its document, its probability."""
    strategy, chance = select(state, 0, context, len(context), rng)
    return strategy, draw_document(state, subtree(state, 0, strategy), context, 0, rng), chance


@compiled
def update_alone(state: Any, feedback: Feedback, context: Array) -> None:
    """Update a bandit that is used alone."""
    update_slot(state, 0, feedback, context, len(context))


@compiled
def is_roomy(state: Any) -> Scalar:
    """Whether another visit fits; for callers in Python."""
    return bool(roomy(state))
