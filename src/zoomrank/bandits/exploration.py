"""Exploration of UCB-style learners: the constant C in the confidence radius sqrt(C / (1 + n)) (Eq. 17).

The paper proves its bounds for C = 4 log T ("pessimistic") and finds C = 1 ("optimistic") far better in practice.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.interface import Bandit
from zoomrank.compiled import Scalar, inlined
from zoomrank.errors import ExplorationError, HorizonError
from zoomrank.numbers import Array, Seed
from zoomrank.spaces import DocumentTree

Exploration = str | float


class ExplorationParameters(NamedTuple):
    """Parameters of the confidence radius."""

    constant: Array  # C of the confidence radius, per slot
    pessimistic: bool  # C follows the horizon when a learner is reset


@inlined
def follow_horizon(state: Any, slot: Scalar, horizon: Scalar) -> None:
    """Set C to the paper's value for this horizon, if the learner is pessimistic."""
    if state.pessimistic:
        state.constant[slot] = 4.0 * np.log(horizon)


def exploration_constant(exploration: Exploration, horizon: int | None) -> float:
    """Return C for "optimistic", "pessimistic" (which needs a horizon T) or a positive number."""
    checked_horizon(horizon)
    if exploration == "optimistic":
        return 1.0
    if exploration == "pessimistic":
        if horizon is None:
            raise HorizonError(
                "A pessimistic learner needs a horizon, since C = 4·log(T): pass horizon=..., or wrap it in Anytime."
            )
        return 4.0 * math.log(horizon)
    if isinstance(exploration, str):
        raise ExplorationError(f'exploration must be "optimistic", "pessimistic" or a number, not {exploration!r}.')
    if not 0 < exploration < math.inf:
        raise ExplorationError(f"The exploration constant must be a positive number, not {exploration}.")
    return float(exploration)


def checked_horizon(horizon: int | None) -> int | None:
    """Return the horizon; raise `ParameterError` if it is too short."""
    if horizon is not None and horizon < 1:
        raise HorizonError(f"A horizon of {horizon} visits is too short.")
    return horizon


class UCBBandit(Bandit):
    """A bandit that explores by a confidence radius.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents.
    exploration : str or float
        C in the radius sqrt(C / (1 + n)): "optimistic" is 1, "pessimistic" is 4·log(horizon), or a positive number.
    horizon : int or None
        Number of visits to come; needed by a pessimistic learner only.
    seed : int, numpy.random.Generator or None
        Seed of a bandit used on its own.
    """

    def __init__(
        self,
        tree: DocumentTree,
        *,
        exploration: Exploration = "optimistic",
        horizon: int | None = None,
        seed: Seed = None,
    ) -> None:
        super().__init__(tree, seed)
        self.constant = exploration_constant(exploration, horizon)
        self.exploration, self.horizon = exploration, horizon

    @property
    def settings(self) -> dict[str, Any]:
        """Parameters that rebuild this bandit."""
        return {"exploration": self.exploration, "horizon": self.horizon}

    def exploration_parameters(self, slots: int) -> ExplorationParameters:
        """Return the same radius for every slot."""
        return ExplorationParameters(np.full(slots, self.constant), self.exploration == "pessimistic")
