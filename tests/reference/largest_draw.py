"""How likely one of several capped draws from Beta beliefs is the largest, by its definition: SciPy integrates, and
ties are counted.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import integrate
from scipy.special import betainc, betaln


class Draw(NamedTuple):
    """Beta(a, b), but what is above the cap is the cap."""

    a: float
    b: float
    cap: float


def of_largest(draws: list[Draw], own: int) -> float:
    """The probability that one of the draws is taken: the largest, or one of the largest by chance."""
    others = [draw for place, draw in enumerate(draws) if place != own]
    return _below_cap(draws[own], others) + _at_cap(draws[own], others)


def _below_cap(own: Draw, others: list[Draw]) -> float:
    if own.cap <= 0:
        return 0.0
    scale = float(betaln(own.a, own.b))

    def height(t: float) -> float:  # over t = log(x / (1 - x)), where nothing is infinite
        x = 1 / (1 + math.exp(-t))
        product = math.prod(1.0 if x > cap else float(betainc(a, b, x)) for a, b, cap in others)
        return product * math.exp(-own.a * math.log1p(math.exp(-t)) - own.b * math.log1p(math.exp(t)) - scale)

    end = 36.0 if own.cap >= 1 else float(np.log(own.cap / (1 - own.cap)))
    corners = {float(np.log(cap / (1 - cap))) for _, _, cap in others if 0 < cap < 1}
    steps = sorted({*np.arange(-36.0, end, 2.0), end, *(corner for corner in corners if -36 < corner < end)})
    pieces = zip([-600.0, -36.0, *steps[1:]][: len(steps)], steps, strict=True)
    return float(sum(integrate.quad(height, *piece, epsabs=1e-12, epsrel=1e-10)[0] for piece in pieces))


def _at_cap(own: Draw, others: list[Draw]) -> float:
    if own.cap >= 1:
        return 0.0
    chance, ties = 1 - float(betainc(own.a, own.b, own.cap)), np.ones(1)  # how likely so many others are there, too
    for other in others:
        above = 1 - float(betainc(other.a, other.b, own.cap))
        if other.cap > own.cap:
            chance *= 1 - above
        elif other.cap == own.cap:
            ties = np.convolve(ties, [1 - above, above])
    return chance * float((ties / np.arange(1, len(ties) + 1)).sum())
