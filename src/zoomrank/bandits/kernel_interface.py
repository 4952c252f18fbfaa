"""Kernel interface of a one-slot learner: six functions, registered by each type of state; and propensities.

Kernels treat all learners alike; the ranker never asks for the type. One state holds the learners of all slots of a
ranker; `shown[:above]` are the documents above the slot, a context that context-free learners ignore.

- `select(state, slot, shown, above, rng)` chooses a strategy, and returns its probability where that matters;
- `subtree(state, slot, strategy)` is the node below which its document is drawn;
- `update(state, slot, feedback, shown, above)` credits the strategy that made the choice or, if that is no longer
  active, the one that now holds the document it picked;
- `reset(state, slot, horizon)` resets the slot's learner, for this many visits; 0: for as many as before;
- `odds(state, slot, shown, above, document)` is the probability that it chooses the strategy that holds a document, the
  node of that strategy where this is above 0, and whether it is `sure` that no strategy is chosen all of whose
  documents, eligible or not, are above;
- `roomy(state)` returns whether the arrays have room for one more visit; Python enlarges them, kernels cannot.

The *propensity* of a document is its probability in a slot, given the documents above. Only ties and draws inside a
subtree are random, so there is a closed form, except for `TreeThompson`, whose draws take integrals. Either the slot's
strategy holds the document, which is then drawn from its subtree; or all documents of the strategy are shown above, and
then the document may be drawn from the whole tree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.tree_view import chance_to_draw, draw_document, is_exhausted
from zoomrank.compiled import Scalar, compiled, generic, inlined, separate
from zoomrank.types import Array

_ADD_BODY: dict[str, Callable[[type], Callable[..., Any]]] = {}  # for each kernel, what registers a body


class PhaseClock(NamedTuple):
    """Part of every state: the time until a slot's learner is reset (see `Anytime`)."""

    phase: Array  # i: current phase of each slot
    left: Array  # visits left in the phase; 2^62 for a learner without phases


def endless_clock(slots: int) -> PhaseClock:
    """Return clocks that never run out."""
    return PhaseClock(np.zeros(slots, np.int64), np.full(slots, 2**62))


class Feedback(NamedTuple):
    """Feedback to a slot from a visit in which it was examined."""

    strategy: int
    pick: int  # the document that the strategy picked
    chance: float  # the probability of the strategy
    reward: int


def _kernel(name: str) -> Callable[..., Any]:
    def no_body(state: Any, *_: Any) -> Any:
        raise TypeError(f"{type(state).__name__} is not the state of a bandit: no {name} is registered for it.")

    no_body.__name__ = name
    kernel, _ADD_BODY[name] = generic(no_body)
    return kernel


select = _kernel("select")
subtree = _kernel("subtree")
update = _kernel("update")
reset = _kernel("reset")
odds = _kernel("odds")
roomy = _kernel("roomy")


def _own_leaf(state: Any, slot: Scalar, strategy: Scalar) -> Scalar:
    return np.int64(state.leaf[strategy])


def _goes_on(state: Any, slot: Scalar, horizon: Scalar) -> None:
    pass


def _always(state: Any) -> Scalar:
    return len(state.leaf) > 0


_DEFAULTS: dict[str, Callable[..., Any]] = {
    "subtree": _own_leaf,
    "reset": _goes_on,
    "roomy": _always,
}


def register(state: Any, **kernels: Callable[..., Any]) -> None:
    """Register the functions of a state type, compiled into the kernels that call them: `select`, `odds`, `update`, and
    those of the others that are not the default.

    By default a strategy is a document, a learner is never reset, and there is always room.
    """
    for name, body in {**_DEFAULTS, **kernels}.items():
        _ADD_BODY[name](state)(body)


@inlined
def update_slot(state: Any, slot: Scalar, feedback: Feedback, shown: Array, above: Scalar) -> None:
    """Update a slot's learner and its clock; not called for visits that the slot does not learn from."""
    update(state, slot, feedback, shown, above)
    state.left[slot] -= 1
    if state.left[slot] == 0:
        state.phase[slot] += 1
        state.left[slot] = 1 << state.phase[slot]
        reset(state, slot, state.left[slot])


@compiled
def reset_all(state: Any, horizon: Scalar) -> None:
    """Reset the learners of all slots: the start of a fresh state."""
    for slot in range(len(state.left)):
        reset(state, slot, horizon)


@compiled
def select_alone(state: Any, context: Array, rng: np.random.Generator) -> tuple[Scalar, Scalar, Scalar]:
    """Choose with a bandit used on its own; return the strategy, its document, and its probability."""
    strategy, chance = select(state, 0, context, len(context), rng)
    return strategy, draw_document(state, subtree(state, 0, strategy), context, 0, rng), chance


@compiled
def update_alone(state: Any, feedback: Feedback, context: Array) -> None:
    """Update a bandit used on its own."""
    update_slot(state, 0, feedback, context, len(context))


def is_roomy(state: Any) -> bool:
    """Return whether another visit fits; for callers in Python."""
    return bool(roomy(state))


# Propensities.


@separate
def _odds(state: Any, slot: Scalar, shown: Array, above: Scalar, document: Scalar) -> Any:
    return odds(state, slot, shown, above, document)


@separate
def _chance_of_none_left(state: Any, slot: Scalar, shown: Array, above: Scalar, sure: Scalar) -> Scalar:
    """Compute the probability of a strategy all of whose documents are shown above: one of those that hold them."""
    taken = 0.0
    for place in range(above):
        leaf = np.uint64(state.leaf[np.uint64(shown[place])])
        if not sure or is_exhausted(state, state.parent[leaf], shown, above):
            chance, node, _ = _odds(state, slot, shown, above, shown[place])
            if chance > 0.0 and is_exhausted(state, node, shown, above):
                first, end = state.first_document[np.uint64(node)], state.end_document[np.uint64(node)]
                counted = False
                for other in range(place):  # count a strategy once: by its first document
                    counted = counted or first <= shown[other] < end
                taken += 0.0 if counted else chance
    return taken


@separate
def propensity(state: Any, slot: Scalar, shown: Array, document: Scalar, duplicates: Scalar) -> Scalar:
    """Compute the probability of a document in a slot, given those that `shown` has above; NaN if unknown."""
    above = 0 if duplicates else slot  # documents that cannot be shown again
    anyway = chance_to_draw(state, 0, document, shown, above)
    found = 0.0
    if anyway > 0.0:
        chance, node, sure = _odds(state, slot, shown, slot, document)
        found = chance
        if chance > 0.0:
            found = chance * chance_to_draw(state, node, document, shown, above)
        if chance < 1.0 and (not sure or len(state.eligible) > 0):
            found += anyway * _chance_of_none_left(state, slot, shown, above, sure)
    return found
