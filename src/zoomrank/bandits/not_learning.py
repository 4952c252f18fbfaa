"""Two bandits that do not learn: `Uniform` plays a random document, `Fixed` always the same one in each slot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.interface import Bandit, Strategy
from zoomrank.bandits.registration import Feedback, PhaseClock, endless_clock, register
from zoomrank.bandits.state.tree_view import TreeView, size_of
from zoomrank.compiled import Scalar, flat
from zoomrank.errors import SlotsError
from zoomrank.numbers import Array, Seed
from zoomrank.spaces import DocumentId, DocumentTree, Remap


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
