"""Two that do not learn: `Uniform` plays a random document, `Fixed` always the same one in each slot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.interface import (
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
from zoomrank.bandits.state.tree_view import Grove
from zoomrank.compiled import Scalar, flat
from zoomrank.errors import SlotsError
from zoomrank.numbers import Array, Seed
from zoomrank.spaces import DocumentId, DocumentTree


class Pinned(NamedTuple):
    """What `Fixed` knows."""

    pinned: Array  # the document of each slot


UniformState = flat("UniformState", Grove, Clock)
FixedState = flat("FixedState", Grove, Pinned, Clock)


@on_select(UniformState)
def _select_uniform(
    state: Any, slot: Scalar, shown: Array, above: Scalar, rng: np.random.Generator
) -> tuple[Scalar, Scalar]:
    if len(state.eligible) > 0:
        chosen = np.uint32(rng.random() * state.eligible[-1])
        return np.int64(np.searchsorted(state.eligible, chosen, side="right")) - 1, 1.0
    return np.int64(rng.random() * len(state.leaf)), 1.0


@on_select(FixedState)
def _select_fixed(
    state: Any, slot: Scalar, shown: Array, above: Scalar, rng: np.random.Generator
) -> tuple[Scalar, Scalar]:
    return state.pinned[slot], 1.0


@on_subtree(UniformState)
@on_subtree(FixedState)
def _subtree(state: Any, slot: Scalar, strategy: Scalar) -> Scalar:
    return np.int64(state.leaf[strategy])


@on_update(UniformState)
@on_update(FixedState)
def _update(state: Any, slot: Scalar, feedback: Feedback, shown: Array, above: Scalar) -> None:
    pass


@on_reset(UniformState)
@on_reset(FixedState)
def _reset(state: Any, slot: Scalar, horizon: Scalar) -> None:
    pass


@on_roomy(UniformState)
@on_roomy(FixedState)
def _roomy(state: Any) -> Scalar:
    return len(state.leaf) > 0


class _Ignorant(Bandit):
    """Knows nothing of any document."""

    def strategy_of(self, state: Any, slot: int, above: Array, document: int) -> Strategy:  # noqa: ARG002
        """The document itself, of which nothing is known."""
        return Strategy(int(state.leaf[document]), 0, 0, float("nan"), float("nan"))


class Uniform(_Ignorant):
    """A random document every time."""

    restrictable = True

    def transplanted(self, state: Any, tree: DocumentTree) -> tuple[Bandit, Any]:
        """There is nothing to move."""
        moved = Uniform(tree)
        return moved, moved.fresh_state(len(state.left))

    def fresh_state(self, slots: int) -> Any:
        """Nothing to know."""
        return UniformState(*self.grove, *endless(slots))


class Fixed(_Ignorant):
    """Always the same document, one for each slot."""

    def __init__(self, tree: DocumentTree, documents: Sequence[DocumentId], *, seed: Seed = None) -> None:
        super().__init__(tree, seed)
        self.documents = list(documents)
        self._positions = tree.documents.positions(self.documents)

    @property
    def settings(self) -> dict[str, Any]:
        """What rebuilds this bandit."""
        return {"positions": self._positions.tolist()}

    @classmethod
    def rebuilt(cls, tree: DocumentTree, settings: dict[str, Any]) -> Fixed:
        """Make the bandit that had these settings."""
        return cls(tree, tree.documents.at(settings["positions"]))

    def fresh_state(self, slots: int) -> Any:
        """The given documents."""
        if slots != len(self._positions):
            raise SlotsError(f"{len(self._positions)} documents were given for {slots} slots.")
        return FixedState(*self.grove, self._positions, *endless(slots))
