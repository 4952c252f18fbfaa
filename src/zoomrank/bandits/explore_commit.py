"""`ExploreThenCommit`: show every document equally often, then the best one for ever.

In the slots of a ranker it is Ranked Explore and Commit (Radlinski, Kleinberg and Joachims 2008): a slot begins when
the one above has committed, and shows random documents until then. Documents are explored in passes, each in a random
order: in `order`, the documents already seen in this pass come first. Only counted visits move them: if feedback is
late, a document may be shown more often, but it counts once per pass like all others.

Ties go to the document that reached its clicks first; since the order of a pass is random, so is the tie-break.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.interface import Bandit, Strategy
from zoomrank.bandits.registration import Feedback, PhaseClock, endless_clock, register
from zoomrank.bandits.state.tree_view import TreeView
from zoomrank.compiled import Scalar, flat, inlined
from zoomrank.errors import ParameterError
from zoomrank.numbers import Array, Seed, whole_number
from zoomrank.spaces import DocumentTree

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

    def __init__(self, tree: DocumentTree, *, looks: int = LOOKS, seed: Seed = None) -> None:
        super().__init__(tree, seed)
        self.looks = whole_number(looks, "looks")
        if self.looks < 1:
            raise ParameterError(f"looks must be 1 or more, not {looks}: the choice needs every document shown once.")

    @property
    def settings(self) -> dict[str, Any]:
        """Parameters that rebuild this bandit."""
        return {"looks": self.looks}

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
