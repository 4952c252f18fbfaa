"""`ExploreThenCommit`: look at every document equally often, then show the best one for ever.

In the slots of a ranker it is Ranked Explore and Commit (Radlinski, Kleinberg and Joachims 2008): a slot begins when
the one above has committed, and shows random documents until then. Documents are looked at in passes, each in a random
order: those that wait stand in `order` behind those that were looked at in this pass. Only counted visits move them:
where feedback is late a document may be shown more often, but counts once a pass like all others.

Ties go to the document that got there first, which chance decides: the order of a pass is random.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.interface import Bandit, Strategy
from zoomrank.bandits.registration import Clock, Feedback, endless, register
from zoomrank.bandits.state.tree_view import TreeView
from zoomrank.compiled import Scalar, flat, inlined
from zoomrank.errors import ParameterError
from zoomrank.numbers import Array, Seed, whole_number
from zoomrank.spaces import DocumentTree

LOOKS = 1  # of each document


class Exploration(NamedTuple):
    """What was looked at and clicked, a row per slot."""

    looks: int  # that each document gets
    passes: Array  # that are over, per slot; as many as looks: it has committed
    seen: Array  # how many documents were looked at in this pass, per slot
    leader: Array  # the document with most clicks so far, per slot
    order: Array  # the documents: those that were looked at in this pass come first
    place: Array  # where each stands there
    clicks: Array  # per document


ExploreCommitState = flat("ExploreCommitState", TreeView, Exploration, Clock)


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
    """Put a document in front of those that wait, and begin another pass if none does."""
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
    chosen = feedback.chance == 1.0  # not drawn while the slot above was still exploring
    if began and chosen and state.passes[slot] < state.looks and state.place[slot, pick] >= state.seen[slot]:
        state.clicks[slot, pick] += np.uint32(feedback.reward)
        first = state.passes[slot] == 0 and state.seen[slot] == 0
        if first or state.clicks[slot, pick] > state.clicks[slot, state.leader[slot]]:
            state.leader[slot] = pick
        _look_away(state, slot, pick)


register(ExploreCommitState, select=_select, odds=_odds, update=_update)


class ExploreThenCommit(Bandit):
    """Every document equally often, in a random order; then, for ever, the one that was clicked most.

    Parameters
    ----------
    tree : DocumentTree
        Where the documents live; only they matter.
    looks : int
        How often each document is looked at before it commits, from 1 on.
    seed : int, numpy.random.Generator or None
        Where chance begins for a bandit that is used alone.

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
            raise ParameterError(f"looks must be 1 or more, not {looks}: what was never looked at cannot be chosen.")

    @property
    def settings(self) -> dict[str, Any]:
        """What rebuilds this bandit."""
        return {"looks": self.looks}

    def strategy_of(self, state: Any, slot: int, above: Array, document: int) -> Strategy:  # noqa: ARG002
        """The document itself; documents are compared by their clicks."""
        plays = int(state.passes[slot]) + int(state.place[slot, document] < state.seen[slot])
        clicks = int(state.clicks[slot, document])
        return Strategy(int(state.leaf[document]), plays, clicks, float("nan"), float(clicks))

    def fresh_state(self, slots: int) -> Any:
        """Nothing was looked at."""
        documents = len(self.tree)
        passes, seen, leader = (np.zeros(slots, np.int64) for _ in range(3))
        order, place = (np.tile(np.arange(documents, dtype=np.uint32), (slots, 1)) for _ in range(2))
        explored = Exploration(self.looks, passes, seen, leader, order, place, np.zeros((slots, documents), np.uint32))
        return ExploreCommitState(*self.view, *explored, *endless(slots))
