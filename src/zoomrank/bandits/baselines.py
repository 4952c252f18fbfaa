"""Baselines: `Uniform` plays a random document, `Fixed` always the same one in each slot, and `ExploreThenCommit` shows
every document equally often, then the best one for ever.

In the slots of a ranker the last is Ranked Explore and Commit (Radlinski, Kleinberg and Joachims 2008): a slot begins
when the one above has committed, and shows random documents until then. Documents are explored in passes, each in a
random order: in `order`, the documents already seen in this pass come first. Only counted visits move them: if feedback
is late, a document may be shown more often, but it counts once per pass like all others. Ties go to the document that
reached its clicks first; since the order of a pass is random, so is the tie-break.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.bandit import Bandit, Strategy
from zoomrank.bandits.kernel_interface import Feedback, PhaseClock, endless_clock, register
from zoomrank.bandits.tree_view import TreeView, size_of
from zoomrank.compiled import Scalar, flat, inlined
from zoomrank.errors import ParameterError, SlotsError
from zoomrank.spaces import DocumentId, DocumentTree, Remap
from zoomrank.types import Array, Seed, whole_number


class FixedParameters(NamedTuple):
    """Documents that `Fixed` shows."""

    pinned: Array  # the document of each slot


UniformState = flat("UniformState", TreeView, PhaseClock)
FixedState = flat("FixedState", TreeView, FixedParameters, PhaseClock)


def _select_uniform(
    state: Any, slot: Scalar, shown: Array, above: Scalar, rng: np.random.Generator
) -> tuple[Scalar, Scalar]:
    if len(state.eligible) > 0:
        chosen = np.uint32(rng.random() * state.eligible[-1])
        return np.int64(np.searchsorted(state.eligible, chosen, side="right")) - 1, 1.0
    return np.int64(rng.random() * len(state.leaf)), 1.0


def _select_fixed(
    state: Any, slot: Scalar, shown: Array, above: Scalar, rng: np.random.Generator
) -> tuple[Scalar, Scalar]:
    return state.pinned[slot], 1.0


def _odds_uniform(
    state: Any, slot: Scalar, shown: Array, above: Scalar, document: Scalar
) -> tuple[Scalar, Scalar, Scalar]:
    leaf = np.int64(state.leaf[document])
    return size_of(state, leaf) / size_of(state, 0), leaf, False


def _odds_fixed(
    state: Any, slot: Scalar, shown: Array, above: Scalar, document: Scalar
) -> tuple[Scalar, Scalar, Scalar]:
    return 1.0 if document == state.pinned[slot] else 0.0, np.int64(state.leaf[document]), False


def _learn_nothing(state: Any, slot: Scalar, feedback: Feedback, shown: Array, above: Scalar) -> None:
    pass


register(UniformState, select=_select_uniform, odds=_odds_uniform, update=_learn_nothing)
register(FixedState, select=_select_fixed, odds=_odds_fixed, update=_learn_nothing)


class _NonLearningBandit(Bandit):
    """Base of the bandits that do not learn."""

    anytime = True

    def strategy_of(self, state: Any, slot: int, above: Array, document: int) -> Strategy:  # noqa: ARG002
        """Return the document as a strategy without counts."""
        return Strategy(int(state.leaf[document]), 0, 0, float("nan"), float("nan"))


class Uniform(_NonLearningBandit):
    """A random document every time: the weakest baseline.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents.
    seed : int, numpy.random.Generator or None
        Seed of a bandit used on its own.

    References
    ----------
    Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*, JMLR 14 (2013), Section 6: the random
    baseline.
    """

    restrictable = True
    growable = True

    def adopted(self, state: Any, movement: Remap) -> Any:  # noqa: ARG002
        """Return a fresh state, since there is nothing to remap."""
        return self.fresh_state(len(state.left))

    def fresh_state(self, slots: int) -> Any:
        """Return an empty state."""
        return UniformState(*self.view, *endless_clock(slots))


class Fixed(_NonLearningBandit):
    """Always the same document, one for each slot.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents.
    documents : sequence of DocumentId
        Documents to show, slot by slot.
    seed : int, numpy.random.Generator or None
        Not used.

    References
    ----------
    Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*, JMLR 14 (2013), Section 6: the greedy
    optimum, which learners are measured by, is a fixed ranking.
    """

    def __init__(self, tree: DocumentTree, documents: Sequence[DocumentId], *, seed: Seed = None) -> None:
        super().__init__(tree, seed)
        self.documents = list(documents)
        self._positions = tree.documents.positions(self.documents)

    @property
    def settings(self) -> dict[str, Any]:
        """Parameters that rebuild this bandit."""
        return {"positions": self._positions.tolist()}

    @classmethod
    def rebuilt(cls, tree: DocumentTree, settings: dict[str, Any]) -> Fixed:
        """Build the bandit with these settings."""
        return cls(tree, tree.documents.at(settings["positions"]))

    def fresh_state(self, slots: int) -> Any:
        """Return a state with the given documents."""
        if slots != len(self._positions):
            raise SlotsError(f"{len(self._positions)} documents were given for {slots} slots: pass one per slot.")
        return FixedState(*self.view, self._positions, *endless_clock(slots))


# Explore, then commit.

LOOKS = 1  # of each document


class ExploreCommitCounts(NamedTuple):
    """Exploration progress and clicks, a row per slot."""

    looks: int  # per document
    passes: Array  # completed, per slot; a slot commits after as many as looks
    seen: Array  # number of documents seen in this pass, per slot
    leader: Array  # the document with most clicks so far, per slot
    order: Array  # the documents: those seen in this pass come first
    place: Array  # position of each document in `order`
    clicks: Array  # per document


ExploreCommitState = flat("ExploreCommitState", TreeView, ExploreCommitCounts, PhaseClock)


def _select(state: Any, slot: Scalar, shown: Array, above: Scalar, rng: np.random.Generator) -> tuple[Scalar, Scalar]:
    documents = len(state.leaf)
    if slot > 0 and state.passes[slot - 1] < state.looks:
        document, chance = np.int64(rng.random() * documents), 1.0 / documents
    elif state.passes[slot] < state.looks:
        waiting = documents - state.seen[slot]
        document, chance = np.int64(state.order[slot, state.seen[slot] + np.int64(rng.random() * waiting)]), 1.0
    else:
        document, chance = np.int64(state.leader[slot]), 1.0
    return document, chance


def _odds(state: Any, slot: Scalar, shown: Array, above: Scalar, document: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    documents, chance = len(state.leaf), 0.0
    if slot > 0 and state.passes[slot - 1] < state.looks:
        chance = 1.0 / documents
    elif state.passes[slot] < state.looks:
        if state.place[slot, document] >= state.seen[slot]:
            chance = 1.0 / (documents - state.seen[slot])
    elif document == state.leader[slot]:
        chance = 1.0
    return chance, np.int64(state.leaf[document]), False


@inlined
def _look_away(state: Any, slot: Scalar, document: Scalar) -> None:
    """Mark a document as seen in this pass; start the next pass if it was the last."""
    at, front = state.place[slot, document], state.seen[slot]
    other = state.order[slot, front]
    state.order[slot, at], state.place[slot, other] = other, at
    state.order[slot, front], state.place[slot, document] = document, front
    state.seen[slot] += 1
    if state.seen[slot] == len(state.leaf):
        state.seen[slot] = 0
        state.passes[slot] += 1


def _update(state: Any, slot: Scalar, feedback: Feedback, shown: Array, above: Scalar) -> None:
    pick = feedback.pick
    began = slot == 0 or state.passes[slot - 1] == state.looks
    chosen = feedback.chance == 1.0  # False if it was drawn while the slot above was still exploring
    if began and chosen and state.passes[slot] < state.looks and state.place[slot, pick] >= state.seen[slot]:
        state.clicks[slot, pick] += np.uint32(feedback.reward)
        first = state.passes[slot] == 0 and state.seen[slot] == 0
        if first or state.clicks[slot, pick] > state.clicks[slot, state.leader[slot]]:
            state.leader[slot] = pick
        _look_away(state, slot, pick)


register(ExploreCommitState, select=_select, odds=_odds, update=_update)


class ExploreThenCommit(Bandit):
    """Show every document equally often in a random order; then always the one with most clicks.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents; its distances are not used.
    looks : int
        Number of times each document is shown before the bandit commits, at least 1.
    seed : int, numpy.random.Generator or None
        Seed of a bandit used on its own.

    Examples
    --------
    >>> bandit = ExploreThenCommit(DocumentTree.exponential(depth=2), seed=0)
    >>> for _ in range(4):
    ...     choice = bandit.select()
    ...     bandit.update(choice, reward=int(choice.document == 3))
    >>> bandit.select().document
    3

    References
    ----------
    Radlinski, Kleinberg and Joachims, *Learning diverse rankings with multi-armed bandits*, ICML 2008: Ranked Explore
    and Commit, of which Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*, JMLR 14 (2013), Section
    6.2, say that it would learn nothing among many documents.
    """

    anytime = True
    setting_names = ("looks",)

    def __init__(self, tree: DocumentTree, *, looks: int = LOOKS, seed: Seed = None) -> None:
        super().__init__(tree, seed)
        self.looks = whole_number(looks, "looks")
        if self.looks < 1:
            raise ParameterError(f"looks must be 1 or more, not {looks}: the choice needs every document shown once.")

    def strategy_of(self, state: Any, slot: int, above: Array, document: int) -> Strategy:  # noqa: ARG002
        """Return the arm of the document; documents are compared by their clicks."""
        plays = int(state.passes[slot]) + int(state.place[slot, document] < state.seen[slot])
        clicks = int(state.clicks[slot, document])
        return Strategy(int(state.leaf[document]), plays, clicks, float("nan"), float(clicks))

    def fresh_state(self, slots: int) -> Any:
        """Return a state in which no document was shown."""
        documents = len(self.tree)
        passes, seen, leader = (np.zeros(slots, np.int64) for _ in range(3))
        order, place = (np.tile(np.arange(documents, dtype=np.uint32), (slots, 1)) for _ in range(2))
        explored = ExploreCommitCounts(
            self.looks, passes, seen, leader, order, place, np.zeros((slots, documents), np.uint32)
        )
        return ExploreCommitState(*self.view, *explored, *endless_clock(slots))
