"""How likely one of several draws from Beta beliefs is the largest: an integral in one dimension, taken numerically.

A draw above its cap counts as the cap, so that several may be equal: then each of these is as likely to be taken.
With densities f and distribution functions F, a draw that is not capped is the largest with probability
`∫ f(x) ∏ F_other(x) dx`; one at its cap c competes with others there as if each had drawn a uniform number as well.

There is no closed form for more than two draws, or with caps. The integral is taken over t = log(x / (1 - x)), where
every density is smooth and log-concave, from the highest left end of all beliefs on, in panels as wide as the sharpest
belief allows, by Gauss and Legendre. No distribution function is evaluated: densities are added up on the way. What is
found is exact to about 1e-10, and 1e-9 for beliefs of a million visits. Draws of the same belief and cap are counted,
not repeated, so that hundreds of new documents cost what one does.
"""

from __future__ import annotations

from math import lgamma
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import legendre

from zoomrank.compiled import Scalar, inlined, separate
from zoomrank.numbers import Array

_POINTS = 12
_BEND, _SLOPE = 3.0, 12.0  # how much of either of a logarithm one panel may hold
_STRAIGHT = 1e-12  # a bend that is none
_NOTHING = 37.0  # the ends of a belief: exp(-37) of the density at its top
_FLOOR = -744.0  # smaller draws are 0
_LARGE = 12.0  # from there on Stirling's series is exact
_TIES = 8.0  # the same as _SLOPE, where draws are equal
_HALF_LOG_TWO_PI = 0.5 * np.log(2.0 * np.pi)


def _running_weights(points: Array, weights: Array) -> Array:
    """What turns values at the points of a panel into integrals from its left end to each of them."""
    at = legendre.legvander(points, _POINTS)
    rows = 0.5 * (points[:, None] + 1.0) * np.ones(_POINTS)
    for degree in range(1, _POINTS):
        rows += 0.5 * np.outer(at[:, degree + 1] - at[:, degree - 1], at[:, degree])
    found: Array = rows * weights
    return found


_AT, _WEIGHT = legendre.leggauss(_POINTS)
_RUNNING = _running_weights(_AT, _WEIGHT)


class DrawScratch(NamedTuple):
    """Kinds of draws that are compared: those of the same belief and cap are one kind."""

    times: Array  # how many draws are of this kind
    a: Array  # Beta(a, b) is what is believed
    b: Array
    draw_cap: Array
    log_scale: Array  # log f(t) is that, plus a · t - (a + b) · log(1 + exp(t))
    begins: Array  # where the belief begins and ends, for all that matters
    ends: Array
    top: Array  # the cap as a t
    passed: Array  # F of this kind where the integration is
    density: Array  # f of this kind at the points of a panel
    soft: Array  # log(1 + exp(t)) at the points
    product: Array  # of all F but one


def fresh_draw_scratch(widest: int) -> DrawScratch:
    """Room for so many draws."""
    kinds = max(widest, 1)
    return DrawScratch(
        times=np.zeros(kinds, np.int64),
        a=np.zeros(kinds),
        b=np.zeros(kinds),
        draw_cap=np.zeros(kinds),
        log_scale=np.zeros(kinds),
        begins=np.zeros(kinds),
        ends=np.zeros(kinds),
        top=np.zeros(kinds),
        passed=np.zeros(kinds),
        density=np.zeros((kinds, _POINTS)),
        soft=np.zeros(_POINTS),
        product=np.zeros(_POINTS),
    )


@inlined
def add_draw(state: Any, kinds: Scalar, a: Scalar, b: Scalar, cap: Scalar) -> tuple[Scalar, Scalar]:
    """Add a draw to those that are compared; returns how many kinds there are now, and of which it is."""
    kind = 0
    while kind < kinds and not (state.a[kind] == a and state.b[kind] == b and state.draw_cap[kind] == cap):
        kind += 1
    if kind == kinds:
        state.a[kind], state.b[kind], state.draw_cap[kind], state.times[kind] = a, b, cap, 0
        kinds += 1
    state.times[kind] += 1
    return kinds, kind


@inlined
def _stirling_error(n: Scalar) -> Scalar:
    """What Stirling's formula lacks of log Γ(n); of large numbers log Γ itself would be rounded too much."""
    if n > _LARGE:
        square = 1.0 / (n * n)
        return (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))) / n
    return lgamma(n) - (n - 0.5) * np.log(n) + n - _HALF_LOG_TWO_PI


@inlined
def _soft(t: Scalar) -> Scalar:
    return max(t, 0.0) + np.log1p(np.exp(-abs(t)))


@inlined
def _way_out(a: Scalar, b: Scalar) -> Scalar:
    """How far to the left of its top a density in t is next to nothing; with a and b exchanged, to the right."""
    spread, share = _NOTHING * (1.0 / a + 1.0 / b), a / (a + b)
    way = 0.5 * (spread + np.sqrt(spread * spread + 8.0 * spread))  # too far, and so are all steps of Newton's
    for _ in range(4):
        gone = share * np.exp(-way)
        rest = 1.0 - share + gone
        way -= (a * way + (a + b) * np.log(rest) - _NOTHING) / (a - (a + b) * gone / rest)
    return way


@inlined
def _prepare(state: Any, kind: Scalar) -> None:
    a, b, cap = state.a[kind], state.b[kind], state.draw_cap[kind]
    middle = np.log(a / b)
    highest = 0.5 * np.log(a / (a + b) * b) - _HALF_LOG_TWO_PI
    highest += _stirling_error(a + b) - _stirling_error(a) - _stirling_error(b)
    state.log_scale[kind] = highest - a * middle + (a + b) * _soft(middle)
    state.begins[kind], state.ends[kind] = middle - _way_out(a, b), middle + _way_out(b, a)
    state.top[kind] = np.inf
    if cap <= 0.0:
        state.top[kind] = -np.inf
    elif cap < 1.0:
        state.top[kind] = np.log(cap / (1.0 - cap))


@inlined
def _reach(state: Any, kind: Scalar, x: Scalar) -> Scalar:
    """How wide a panel may be where a belief is like this."""
    both = state.a[kind] + state.b[kind]
    bend, slope = both * x * (1.0 - x), abs(state.a[kind] - both * x)
    if bend > _STRAIGHT:
        return min(_BEND / np.sqrt(bend), _SLOPE / max(slope, 1.0))
    return _SLOPE / max(slope, _STRAIGHT)


@inlined
def _is_on(state: Any, kind: Scalar, t: Scalar) -> Scalar:
    """Whether a draw of a kind may be larger than this."""
    return t < min(state.ends[kind], state.top[kind])


@inlined
def _panel(state: Any, kind: Scalar, t: Scalar, width: Scalar) -> Scalar:
    """The width that a panel may have which begins here, where a belief has not ended."""
    width = min(width, _reach(state, kind, 1.0 / (1.0 + np.exp(-t))), state.ends[kind] - t)
    if t < 0.0 < t + width:  # where most bends are sharpest
        width = min(width, max(-t, _reach(state, kind, 0.5)))
    while width > 1.2 * _reach(state, kind, 1.0 / (1.0 + np.exp(-t - width))):
        width *= 0.7
    return width


@inlined
def _rise(state: Any, kind: Scalar, t: Scalar, soft: Scalar, others: Scalar) -> Scalar:
    """How steeply the logarithm of a power of F rises here: further on it does less so."""
    a, both = state.a[kind], state.a[kind] + state.b[kind]
    if state.passed[kind] > 0.0:
        return others * np.exp(state.log_scale[kind] + a * t - both * soft) / state.passed[kind]
    return others * a


@separate
def _mass(state: Any, kind: Scalar, start: Scalar, end: Scalar) -> Scalar:
    """The integral of a density."""
    found, t = 0.0, start
    a, both, scale = state.a[kind], state.a[kind] + state.b[kind], state.log_scale[kind]
    while t < end:
        half = 0.5 * _panel(state, kind, t, end - t)
        for point in range(_POINTS):
            at = t + half * (1.0 + _AT[point])
            found += half * _WEIGHT[point] * np.exp(scale + a * at - both * _soft(at))
        t = t + 2.0 * half if t + 2.0 * half < end else end
    return found


@inlined
def _share_below(state: Any, kind: Scalar, t: Scalar) -> Scalar:
    """F of a kind, whatever its cap."""
    if t <= state.begins[kind]:
        return 0.0
    if t >= state.ends[kind]:
        return 1.0
    if t < np.log(state.a[kind] / state.b[kind]):
        return _mass(state, kind, state.begins[kind], t)
    return 1.0 - _mass(state, kind, t, state.ends[kind])


@inlined
def _others(state: Any, kind: Scalar, own: Scalar) -> Scalar:
    """How many draws of a kind there are beside the one that is asked about."""
    return state.times[kind] - (1 if kind == own else 0)


@inlined
def _power(base: Scalar, times: Scalar) -> Scalar:
    if times == 1:
        return base
    return 1.0 if times == 0 else max(base, 0.0) ** times


@separate
def _chance_of_none(state: Any, kinds: Scalar) -> Scalar:
    """The probability that all draws are 0 and this one is taken: they are capped there, or too small for a number."""
    chance, draws = 1.0, 0
    for kind in range(kinds):
        draws += state.times[kind]
        if state.draw_cap[kind] > 0.0:
            chance *= _power(_share_below(state, kind, _FLOOR), state.times[kind])
    return chance / draws


@inlined
def _next_panel(state: Any, kinds: Scalar, own: Scalar, t: Scalar, width: Scalar) -> tuple[Scalar, Scalar]:
    """The width of the panel that begins here, and whether some other draw may still be larger."""
    soft, is_open = _soft(t), False
    rise = abs(state.a[own] - (state.a[own] + state.b[own]) / (1.0 + np.exp(-t)))  # of the whole product
    for kind in range(kinds):
        if _is_on(state, kind, t):
            width = min(_panel(state, kind, t, width), state.top[kind] - t)
            others = _others(state, kind, own)
            if others > 0:
                is_open = True
                rise += _rise(state, kind, t, soft, others)
    if width * rise > _SLOPE:
        width = _SLOPE / rise
    return width, is_open


@inlined
def _multiply(state: Any, kind: Scalar, t: Scalar, half: Scalar, others: Scalar) -> None:
    """Multiply the product, in a panel, by F of so many draws of a kind, and move F on to its end."""
    a, both, scale = state.a[kind], state.a[kind] + state.b[kind], state.log_scale[kind]
    density, total = state.density[kind], 0.0
    for point in range(_POINTS):
        at = t + half * (1.0 + _AT[point])
        density[point] = np.exp(scale + a * at - both * state.soft[point])
        total += _WEIGHT[point] * density[point]
    if others > 0:
        for point in range(_POINTS):
            running = 0.0
            for each in range(_POINTS):
                running += _RUNNING[point, each] * density[each]
            state.product[point] *= _power(state.passed[kind] + half * running, others)
    state.passed[kind] += half * total


@separate
def _chance_on_the_way(state: Any, kinds: Scalar, own: Scalar, start: Scalar, end: Scalar) -> Scalar:
    """The probability that a draw is the largest and lies between two ends, `passed` being F at the first; moves that
    on to the second. Where no other can be larger any more it is all that is left, and nothing is left for the cap.
    """
    found, t = 0.0, start
    while t < end:
        width, is_open = _next_panel(state, kinds, own, t, end - t)
        if not is_open:
            found += max(1.0 - state.passed[own], 0.0)
            state.passed[own] = 1.0
            return found
        half = 0.5 * width
        for point in range(_POINTS):
            state.product[point] = half * _WEIGHT[point]
            state.soft[point] = _soft(t + half * (1.0 + _AT[point]))
        for kind in range(kinds):
            if _is_on(state, kind, t):
                _multiply(state, kind, t, half, _others(state, kind, own))
        for point in range(_POINTS):
            found += state.density[own, point] * state.product[point]
        t = t + width if t + width < end else end
    return found


@separate
def _chance_at_cap(state: Any, kinds: Scalar, own: Scalar) -> Scalar:
    """The probability that a draw is at its cap and is taken, `passed` being F there: of equal draws the one with the
    largest s, which is uniform.
    """
    cap = state.draw_cap[own]
    chance, tied = max(1.0 - state.passed[own], 0.0), 0
    for kind in range(kinds):
        if state.draw_cap[kind] > cap:
            chance *= _power(state.passed[kind], state.times[kind])
        elif state.draw_cap[kind] == cap:
            tied += _others(state, kind, own)
    if tied == 0 or chance == 0.0:
        return chance
    found, s, height = 0.0, 1.0, 1.0
    while s > 0.0 and height > 1e-17:
        steep = 0.0  # of the logarithm, here
        for kind in range(kinds):
            if state.draw_cap[kind] == cap:
                rest = 1.0 - state.passed[kind]
                steep += _others(state, kind, own) * rest / (1.0 - rest * (1.0 - s))
        width = min(s, _TIES / max(steep, _TIES))
        for point in range(_POINTS):
            below, height = 1.0 - s + 0.5 * width * (1.0 + _AT[point]), 1.0
            for kind in range(kinds):
                if state.draw_cap[kind] == cap:
                    height *= _power(1.0 - (1.0 - state.passed[kind]) * below, _others(state, kind, own))
            found += 0.5 * width * _WEIGHT[point] * height
        s -= width
    return chance * found


@separate
def chance_of_largest(state: Any, kinds: Scalar, own: Scalar) -> Scalar:
    """The probability that one draw of a kind is taken of all that were added: the largest, or one of the largest."""
    if kinds == 1:
        return 1.0 / state.times[0]
    start = _FLOOR
    for kind in range(kinds):
        _prepare(state, kind)
        if state.draw_cap[kind] > 0.0:
            start = max(start, min(state.begins[kind], state.top[kind]))
    found = 0.0
    if start == _FLOOR:
        found = _chance_of_none(state, kinds)
    if state.draw_cap[own] > 0.0:
        end = min(state.ends[own], state.top[own])
        start = min(start, end)
        for kind in range(kinds):
            if state.draw_cap[kind] > 0.0:
                state.passed[kind] = _share_below(state, kind, start)
        found += _chance_on_the_way(state, kinds, own, start, end)
        if state.top[own] < state.ends[own]:
            found += _chance_at_cap(state, kinds, own)
    return found
