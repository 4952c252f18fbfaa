"""How much a UCB-style learner explores: the constant C in its confidence radius sqrt(C / (1 + n)) (Eq. 17).

The paper proves its bounds for C = 4 log T ("pessimistic") and finds C = 1 ("optimistic") far better in practice.
"""

import math

from zoomrank.errors import ExplorationError, HorizonError

Exploration = str | float


def exploration_constant(exploration: Exploration, horizon: int | None) -> float:
    """C for "optimistic", "pessimistic" (which needs a horizon T) or a positive number.

    >>> exploration_constant("optimistic", None), round(exploration_constant("pessimistic", 300_000), 2)
    (1.0, 50.45)
    """
    if horizon is not None and horizon < 1:
        raise HorizonError(f"A horizon of {horizon} rounds is too short.")
    if exploration == "optimistic":
        return 1.0
    if exploration == "pessimistic":
        if horizon is None:
            raise HorizonError(
                "A pessimistic learner explores 4·log(T): say how many rounds T there will be with horizon=..., "
                "or wrap it in Anytime."
            )
        return 4.0 * math.log(horizon)
    if isinstance(exploration, str):
        raise ExplorationError(f'exploration must be "optimistic", "pessimistic" or a number, not {exploration!r}.')
    if not 0 < exploration < math.inf:
        raise ExplorationError(f"The exploration constant must be a positive number, not {exploration}.")
    return float(exploration)
