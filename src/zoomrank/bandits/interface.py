"""What a one-slot learner is: kernels on its state, and the class that a person holds.

A *strategy* is what a learner chooses among: a document, a subtree, or a subtree in certain contexts. Kernels see every
learner alike, and the ranker above them never asks which kind it holds. One state holds the learners of all slots of a
ranker; `shown[:above]` are the documents above the slot, a context that context-free learners ignore.

- `select(state, slot, shown, above, rng)` chooses a strategy, and says with which probability where that matters;
- `subtree(state, slot, strategy)` is the node below which its document is drawn;
- `update(state, slot, feedback, shown, above)` credits the strategy that made the choice or, if that is no longer
  active, the one that now holds the document it picked;
- `reset(state, slot, horizon)` makes the slot's learner a fresh one;
- `roomy(state)` says whether the arrays have room for one more round; Python makes room, kernels cannot.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.state.tree_view import Grove, draw_document, grove
from zoomrank.compiled import Function, Scalar, compiled, generic, inlined
from zoomrank.errors import FeedbackError, ParameterError
from zoomrank.numbers import Array, Seed
from zoomrank.spaces import DocumentId, DocumentTree

LARGEST_CONTEXT = 62  # documents above a slot: they are the bits of a mask


class Clock(NamedTuple):
    """Part of every state: when a slot's learner is next made afresh (see `Anytime`)."""

    phase: Array  # i: the phase that each slot is in
    left: Array  # rounds left of it; 2^62 for a learner that goes on for ever


def endless(slots: int) -> Clock:
    """Clocks that never ring."""
    return Clock(np.zeros(slots, np.int64), np.full(slots, 2**62))


class Feedback(NamedTuple):
    """What a slot learns from a round in which it was examined."""

    strategy: int
    pick: int  # the document that the strategy picked
    chance: float  # the probability of the strategy
    reward: int


def _kernel(name: str) -> tuple[Callable[..., Any], Callable[[Any], Callable[[Function], Function]]]:
    def no_body(state: Any, *_: Any) -> Any:
        raise TypeError(f"{type(state).__name__} is not the state of a bandit: it has no {name}.")

    no_body.__name__ = name
    return generic(no_body)


select, on_select = _kernel("select")
subtree, on_subtree = _kernel("subtree")
update, on_update = _kernel("update")
reset, on_reset = _kernel("reset")
roomy, on_roomy = _kernel("roomy")


@inlined
def learn_from(state: Any, slot: Scalar, feedback: Feedback, shown: Array, above: Scalar) -> None:
    """Update a slot's learner and its clock; a round that the slot does not learn from never comes here."""
    update(state, slot, feedback, shown, above)
    state.left[slot] -= 1
    if state.left[slot] == 0:
        state.phase[slot] += 1
        state.left[slot] = 1 << state.phase[slot]
        reset(state, slot, state.left[slot])


@compiled
def _select_alone(state: Any, context: Array, rng: np.random.Generator) -> tuple[Scalar, Scalar, Scalar]:
    strategy, chance = select(state, 0, context, len(context), rng)
    return strategy, draw_document(state, subtree(state, 0, strategy), context, 0, rng), chance


@compiled
def _update_alone(state: Any, feedback: Feedback, context: Array) -> None:
    learn_from(state, 0, feedback, context, len(context))


@compiled
def is_roomy(state: Any) -> Scalar:
    """Whether another round fits; for callers in Python."""
    return bool(roomy(state))


@dataclass(frozen=True)
class Choice:
    """One choice of a bandit that is used alone; give it back to `update` with the reward."""

    document: DocumentId
    strategy: int
    chance: float
    context: tuple[DocumentId, ...]


@dataclass(frozen=True)
class Strategy:
    """What a learner knows of one of its strategies."""

    node: int  # the subtree
    plays: int
    clicks: int
    radius: float
    index: float  # before the cap
    cap: float = float("inf")


class Bandit(ABC):
    """A one-slot learner over the documents of a tree, usable alone; `Ranked` makes one of it for each slot.

    A subclass says how to lay out the state of several learners side by side (`fresh_state`) and how to grow it.
    """

    def __init__(self, tree: DocumentTree, seed: Seed = None) -> None:
        self.tree = tree
        self.grove = grove(tree)
        self.rng = np.random.default_rng(seed)
        self._state: Any = None

    @abstractmethod
    def fresh_state(self, slots: int) -> Any:
        """The state of this many learners that have seen nothing."""

    restrictable: bool = False  # whether it can choose among some documents only
    anytime: bool = False  # whether it goes on exploring for ever, without a horizon and without being made afresh
    not_saved: frozenset[str] = frozenset(Grove._fields)  # parts of the state that a file does not need

    @classmethod
    def rebuilt(cls, tree: DocumentTree, settings: dict[str, Any]) -> Bandit:
        """Make the bandit that had these `settings`."""
        return cls(tree, **settings)

    @abstractmethod
    def strategy_of(self, state: Any, slot: int, above: Array, document: int) -> Strategy:
        """What a slot's learner knows of the strategy that holds a document, below the documents above."""

    def larger(self, state: Any) -> Any:
        """The same state with more room; only called after `roomy` said no."""
        raise NotImplementedError(f"{type(state).__name__} never runs out of room.")

    def forget_searches(self, state: Any) -> None:  # noqa: B027  (most have nothing to let go of)
        """Let go of what choosing has remembered: the state then depends on what was learned alone."""

    def transplanted(self, state: Any, tree: DocumentTree) -> tuple[Bandit, Any]:  # noqa: ARG002
        """This bandit and its state on a tree that has grown from its own, with all that was learned."""
        raise ParameterError(
            f"{type(self).__name__} cannot take new documents in; ZoomRank, RankThompson and RankRandom can. "
            "Make a new ranker."
        )

    @property
    def settings(self) -> dict[str, Any]:
        """The parameters that rebuild this bandit on a tree: plain numbers and words."""
        return {}

    def select(self, context: Iterable[DocumentId] = ()) -> Choice:
        """Choose a document, given the documents that were shown before it and skipped."""
        above = tuple(context)
        if len(above) > LARGEST_CONTEXT:
            raise ParameterError(f"A context of {len(above)} documents is too large; {LARGEST_CONTEXT} is the most.")
        self._make_room()
        strategy, document, chance = _select_alone(self._state, self.tree.documents.positions(above), self.rng)
        return Choice(self.tree.documents[document], int(strategy), float(chance), above)

    def update(self, choice: Choice, reward: int) -> None:
        """Learn from the reward of a choice, 0 or 1."""
        if reward not in (0, 1):
            raise FeedbackError(f"A reward is 0 or 1, not {reward!r}.")
        pick = self.tree.documents.position(choice.document)
        self._make_room()
        feedback = Feedback(choice.strategy, pick, choice.chance, int(reward))
        _update_alone(self._state, feedback, self.tree.documents.positions(choice.context))

    def _make_room(self) -> None:
        if self._state is None:
            self._state = self.fresh_state(1)
        while not is_roomy(self._state):
            self._state = self.larger(self._state)
