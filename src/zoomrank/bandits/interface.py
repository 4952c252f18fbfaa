"""What a one-slot learner is: the class that a person holds. What kernels see of it stands in `registration.py`.

A *strategy* is what a learner chooses among: a document, a subtree, or a subtree in certain contexts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.registration import Feedback, is_roomy, select_alone, update_alone
from zoomrank.bandits.state.context_paths import LARGEST_CONTEXT
from zoomrank.bandits.state.tree_view import TreeView, view_of
from zoomrank.errors import FeedbackError, ParameterError
from zoomrank.numbers import Array, Seed
from zoomrank.spaces import DocumentId, DocumentTree, Movement


@dataclass(frozen=True)
class Choice:
    """One choice of a bandit that is used alone; give it back to `Bandit.update` with the reward.

    Attributes
    ----------
    document : DocumentId
        What to show.
    strategy : int
        The number of the strategy that picked it, which means something to its bandit alone.
    chance : float
        The probability of that strategy, 1 where chance plays no part.
    context : tuple of DocumentId
        The documents that were shown before it and skipped.

    Examples
    --------
    >>> from zoomrank.bandits import Uniform
    >>> choice = Uniform(DocumentTree.exponential(depth=3), seed=0).select()
    >>> choice.document, choice.chance, choice.context
    (5, 1.0, ())
    """

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


class Prospects(NamedTuple):
    """What slots know of the documents that stand in them, and what trying some of those costs; a number per slot."""

    record: Array  # the best that the slot knows, under the cap of the documents above; below 0 if it knows none
    trial: Array  # whether its document is shown for what is hoped of it, not for its record
    cost: Array  # the chance that a click is lost by that
    chance: Array  # of a click on its document, if the slot is examined


class Bandit(ABC):
    """A one-slot learner over the documents of a tree, usable alone; `Ranked` makes one of it for each slot.

    A subclass says how to lay out the state of several learners side by side (`fresh_state`) and how to enlarge it,
    and registers the kernels of that state.

    Parameters
    ----------
    tree : DocumentTree
        Where the documents live.
    seed : int, numpy.random.Generator or None
        Where chance begins for a bandit that is used alone; a ranker brings its own.

    Examples
    --------
    >>> from zoomrank.bandits import UCB1
    >>> bandit = UCB1(DocumentTree.exponential(depth=3), seed=0)
    >>> choice = bandit.select()
    >>> bandit.update(choice, reward=1)

    References
    ----------
    Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*, JMLR 14 (2013), Section 4.1: a ranker asks
    nothing of the bandits in its slots but that they choose a document and take a reward for it.
    """

    restrictable: bool = False  # whether it can choose among some documents only
    growable: bool = False  # whether it can move to a tree in which documents have come, gone or moved
    anytime: bool = False  # whether it goes on for ever, without a horizon and without being made afresh
    keeps_records: bool = False  # whether it tells what is known of documents from what is hoped of them
    counts_visits: bool = False  # whether it learns from what another ranker showed as from what it chose itself
    weighs: bool = True  # whether its rankings say how likely they were; else whoever asks is told
    needs_horizon: bool = False  # whether it has to be told how many visits there will be
    not_saved: frozenset[str] = frozenset(TreeView._fields)  # parts of the state that a file does not need

    def __init__(self, tree: DocumentTree, seed: Seed = None) -> None:
        self.tree = tree
        self.view = view_of(tree)
        self.rng = np.random.default_rng(seed)
        self._state: Any = None

    @abstractmethod
    def fresh_state(self, slots: int) -> Any:
        """The state of this many learners that have seen nothing."""

    @classmethod
    def rebuilt(cls, tree: DocumentTree, settings: dict[str, Any]) -> Bandit:
        """Make the bandit that had these `settings`."""
        return cls(tree, **settings)

    @abstractmethod
    def strategy_of(self, state: Any, slot: int, above: Array, document: int) -> Strategy:
        """What a slot's learner knows of the strategy that holds a document, below the documents above."""

    def prospects(self, state: Any, before: Any, shown: Array, pick: Array, duplicates: bool) -> Prospects | None:  # noqa: ARG002
        """What slots know of the documents of a ranking, and what an earlier state says of its visitors; None if it
        does not tell what is known from what is hoped.
        """
        return None

    def larger(self, state: Any) -> Any:
        """The same state with more room; only called after `roomy` said no."""
        raise NotImplementedError(f"{type(state).__name__} never runs out of room.")

    def restricted(self, state: Any, allowed: Array) -> Any:
        """The same state for kernels that may show some documents only; `allowed` is `Eligible.counts`."""
        return state._replace(eligible=allowed)

    def forget_searches(self, state: Any) -> None:  # noqa: B027  (most have nothing to let go of)
        """Let go of what choosing has remembered: the state then depends on what was learned alone."""

    def transplanted(self, state: Any, tree: DocumentTree, movement: Movement) -> tuple[Bandit, Any]:
        """This bandit and its state on another tree, to which its own has moved; only called if it is `growable`."""
        bandit = self.rebuilt(tree, self.settings)
        return bandit, bandit.adopted(state, movement)

    def adopted(self, state: Any, movement: Movement) -> Any:
        """The state of a learner of the same kind that moves to this bandit's tree; only called if it is `growable`."""
        raise NotImplementedError(f"{type(self).__name__} cannot move to another tree.")

    @property
    def settings(self) -> dict[str, Any]:
        """The parameters that rebuild this bandit on a tree: plain numbers and words."""
        return {}

    def select(self, context: Iterable[DocumentId] = ()) -> Choice:
        """Choose a document, given the documents that were shown before it and skipped.

        Parameters
        ----------
        context : iterable of DocumentId
            The documents above: at most 62.

        Returns
        -------
        Choice
            The document to show, to be given back to `update`.

        Examples
        --------
        >>> from zoomrank.bandits import Zooming
        >>> bandit = Zooming(DocumentTree.exponential(depth=3), correlated=True, seed=0)
        >>> bandit.select(context=[3, 5]).context
        (3, 5)
        """
        above = tuple(context)
        if len(above) > LARGEST_CONTEXT:
            raise ParameterError(f"A context of {len(above)} documents is too large; {LARGEST_CONTEXT} is the most.")
        self._make_room()
        strategy, document, chance = select_alone(self._state, self.tree.documents.positions(above), self.rng)
        return Choice(self.tree.documents[document], int(strategy), float(chance), above)

    def update(self, choice: Choice, reward: int) -> None:
        """Learn from the reward of a choice.

        Parameters
        ----------
        choice : Choice
            What `select` returned, however long ago.
        reward : int
            1 for a click, 0 for none.

        Examples
        --------
        >>> from zoomrank.bandits import Zooming
        >>> bandit = Zooming(DocumentTree.exponential(depth=3), seed=0)
        >>> bandit.update(bandit.select(), reward=1)
        """
        if reward not in (0, 1):
            raise FeedbackError(f"A reward is 0 or 1, not {reward!r}.")
        pick = self.tree.documents.position(choice.document)
        self._make_room()
        feedback = Feedback(choice.strategy, pick, choice.chance, int(reward))
        update_alone(self._state, feedback, self.tree.documents.positions(choice.context))

    def _make_room(self) -> None:
        if self._state is None:
            self._state = self.fresh_state(1)
        while not is_roomy(self._state):
            self._state = self.larger(self._state)
