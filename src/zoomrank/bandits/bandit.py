"""Interface of one-slot learners: the class that users hold. The kernels' view is in `kernel_interface`.

A *strategy* is what a learner chooses among: a document, a subtree, or a subtree in certain contexts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.kernel_interface import Feedback, is_roomy, select_alone, update_alone
from zoomrank.bandits.tree_view import LARGEST_CONTEXT, TreeView, view_of
from zoomrank.errors import FeedbackError, ParameterError
from zoomrank.spaces import DocumentId, DocumentTree, Remap
from zoomrank.types import Array, Seed


@dataclass(frozen=True)
class Choice:
    """One choice of a bandit used on its own; pass it to `Bandit.update` with the reward.

    Attributes
    ----------
    document : DocumentId
        Document to show.
    strategy : int
        Number of the strategy that picked it, meaningful to its bandit only.
    chance : float
        Probability of that strategy; 1 if the choice was deterministic.
    context : tuple of DocumentId
        Documents shown before it and skipped.
    """

    document: DocumentId
    strategy: int
    chance: float
    context: tuple[DocumentId, ...]


@dataclass(frozen=True)
class Strategy:
    """Estimates of one strategy of a learner."""

    node: int  # the subtree
    plays: int
    clicks: int
    radius: float
    index: float  # before the cap
    cap: float = float("inf")


class Prospects(NamedTuple):
    """Estimates for the documents of a ranking and the cost of trying them; one number per slot."""

    record: Array  # best record in the slot, under the cap of the documents above; negative if there is none
    trial: Array  # True if its document is shown for its bound, not for its record
    cost: Array  # probability that the trial loses a click
    chance: Array  # probability of a click on its document, if the slot is examined


class Bandit(ABC):
    """One-slot learner over the documents of a tree, usable on its own; `Ranked` runs one per slot.

    A subclass defines the state of several learners side by side (`fresh_state`), how to enlarge it, and registers the
    kernels of that state.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents.
    seed : int, numpy.random.Generator or None
        Seed of a bandit used on its own; a ranker has its own seed.

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

    restrictable: bool = False  # can choose among a subset of the documents
    growable: bool = False  # can move to a tree in which documents were added, removed or moved
    anytime: bool = False  # runs for ever, without a horizon and without resets
    keeps_records: bool = False  # keeps records (observed means) apart from bounds
    counts_visits: bool = False  # learns from another ranker's choices as from its own
    weighs: bool = True  # its rankings carry propensities; if False, they are computed on request
    needs_horizon: bool = False  # requires the number of visits
    setting_names: tuple[str, ...] = ()  # attributes that are its `settings`
    not_saved: frozenset[str] = frozenset(TreeView._fields)  # parts of the state that a file does not need
    derived: frozenset[str] = frozenset()  # parts of the state that follow from the others
    rule: int = 0  # version of the rule by which they follow

    def __init__(self, tree: DocumentTree, seed: Seed = None) -> None:
        self.tree = tree
        self.view = view_of(tree)
        self.rng = np.random.default_rng(seed)
        self._state: Any = None

    @abstractmethod
    def fresh_state(self, slots: int) -> Any:
        """Return the state of this many learners without any visits."""

    @classmethod
    def rebuilt(cls, tree: DocumentTree, settings: dict[str, Any]) -> Bandit:
        """Build the bandit with these `settings`."""
        return cls(tree, **settings)

    @abstractmethod
    def strategy_of(self, state: Any, slot: int, above: Array, document: int) -> Strategy:
        """Return the strategy of a slot's learner that holds a document, given the documents above."""

    def prospects(self, state: Any, before: Any, shown: Array, pick: Array, duplicates: bool) -> Prospects | None:  # noqa: ARG002
        """Return the slots' estimates for the documents of a ranking, with click rates from an earlier state; None if
        the bandit does not keep records.
        """
        return None

    def recompute(self, state: Any) -> None:  # noqa: B027  (most bandits derive nothing)
        """Recompute the `derived` arrays from the others, in a state that an earlier version has saved."""

    def larger(self, state: Any) -> Any:
        """Return the same state with more room; called only after `roomy` returned False."""
        raise NotImplementedError(f"{type(state).__name__} never runs out of room.")

    def restricted(self, state: Any, allowed: Array) -> Any:
        """Return the same state for kernels restricted to eligible documents; `allowed` is `Eligible.counts`."""
        return state._replace(eligible=allowed)

    def clear_caches(self, state: Any) -> None:  # noqa: B027  (most bandits cache nothing)
        """Clear search caches, so that the state depends only on what was learned."""

    def adopted(self, state: Any, movement: Remap) -> Any:
        """Remap the state of a learner of the same kind to this bandit's tree; called only if it is `growable`."""
        raise NotImplementedError(f"{type(self).__name__} cannot move to another tree.")

    @property
    def settings(self) -> dict[str, Any]:
        """Parameters that rebuild this bandit on a tree, as plain numbers and strings."""
        return {name: getattr(self, name) for name in self.setting_names}

    def select(self, context: Iterable[DocumentId] = ()) -> Choice:
        """Choose a document, given the documents shown before it and skipped.

        Parameters
        ----------
        context : iterable of DocumentId
            Documents above, at most 62.

        Returns
        -------
        Choice
            Document to show; pass it to `update`.
        """
        above = tuple(context)
        if len(above) > LARGEST_CONTEXT:
            raise ParameterError(f"A context of {len(above)} documents is too large: pass at most {LARGEST_CONTEXT}.")
        self._make_room()
        strategy, document, chance = select_alone(self._state, self.tree.documents.positions(above), self.rng)
        return Choice(self.tree.documents[document], int(strategy), float(chance), above)

    def update(self, choice: Choice, reward: int) -> None:
        """Learn from the reward of a choice.

        Parameters
        ----------
        choice : Choice
            Return value of `select`, however old.
        reward : int
            1 for a click, 0 for none.
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
