"""`Anytime`: run a learner without a horizon by the doubling trick (Section 4.3). Phase i is a fresh learner for 2^i
counted visits.
"""

from __future__ import annotations

from typing import Any

from zoomrank.bandits.bandit import Bandit, Strategy
from zoomrank.bandits.exp3 import EXP3
from zoomrank.errors import ParameterError
from zoomrank.types import Array, Seed


class Anytime(Bandit):
    """Anytime version of a bandit: each phase's length is the horizon of that phase.

    Parameters
    ----------
    bandit : Bandit
        The bandit of each phase; it is reset after 1, 2, 4, 8, … visits.
    seed : int, numpy.random.Generator or None
        Seed of a bandit used on its own.

    Examples
    --------
    >>> from zoomrank import DocumentTree
    >>> bandit = Anytime(EXP3(DocumentTree.exponential(depth=2)), seed=0)  # no horizon
    >>> bandit.update(bandit.select(), reward=1)

    References
    ----------
    Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*, JMLR 14 (2013), Section 4.3: the doubling
    trick.
    """

    anytime = True
    setting_names = ("bandit",)

    def __init__(self, bandit: Bandit, *, seed: Seed = None) -> None:
        if bandit.anytime:
            raise ParameterError("This bandit is anytime already: use it without Anytime.")
        super().__init__(bandit.tree, seed)
        self.bandit = bandit
        self.not_saved = bandit.not_saved

    def fresh_state(self, slots: int) -> Any:
        """Return the state of phase 0, which lasts one visit."""
        bandit = self.bandit
        if isinstance(bandit, EXP3) and bandit.horizon is None:
            bandit = EXP3(bandit.tree, horizon=1)
        state = bandit.fresh_state(slots)
        state.left[:] = 1
        return state

    def strategy_of(self, state: Any, slot: int, above: Array, document: int) -> Strategy:
        """Return the strategy of the current phase's bandit."""
        return self.bandit.strategy_of(state, slot, above, document)

    def restricted(self, state: Any, allowed: Array) -> Any:
        """Restrict the wrapped bandit's state."""
        return self.bandit.restricted(state, allowed)

    def clear_caches(self, state: Any) -> None:
        """Clear the wrapped bandit's search caches."""
        self.bandit.clear_caches(state)

    def larger(self, state: Any) -> Any:
        """Enlarge the wrapped bandit's state."""
        return self.bandit.larger(state)
