"""`TreeThompson`: Thompson sampling on a tree. Draw a value for each child, go to the best draw, repeat.

Every subtree of a slot has a Beta belief from the clicks and skips of all documents below it. The correlation rule of
the paper caps the draws, as it caps indices in `Zooming`. Unlike an index learner it shows different visitors different
documents even before their feedback arrives.

Its propensities are products, over the branches, of the probability that one of several draws from Beta beliefs is the
largest. A draw above its cap counts as the cap, so draws may tie; each of the tied draws is taken with equal
probability. With densities f and distribution functions F, an uncapped draw is the largest with probability
`∫ f(x) ∏ F_other(x) dx`; a draw at its cap c competes with the others there as if each had drawn a uniform number too.

There is no closed form for more than two draws, or with caps. The integral is taken over t = log(x / (1 - x)), where
every density is smooth and log-concave, from the highest left end of all beliefs on, by Gauss-Legendre quadrature in
panels as wide as the sharpest belief allows. No distribution function is evaluated: densities are accumulated on the
way. The result is exact to about 1e-10, and to 1e-9 for beliefs of a million visits. Draws of the same belief and cap
are counted, not repeated, so hundreds of new documents cost as much as one.
"""

from __future__ import annotations

import math
from math import lgamma
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import legendre

from zoomrank.bandits.kernel_interface import Feedback, PhaseClock, endless_clock, register
from zoomrank.bandits.path_zooming.state import (
    VisitCountingBandit,
    VisitCounts,
    count_visit,
    entries_fit,
    fresh_visited,
    subtree_of_entry,
)
from zoomrank.bandits.tree_view import (
    ContextScratch,
    TreeView,
    farthest_from,
    fresh_context_scratch,
    random_best,
    size_of,
    split_mask,
    store_paths,
)
from zoomrank.compiled import Scalar, exp, flat, inlined, separate
from zoomrank.errors import ParameterError
from zoomrank.spaces import DocumentTree
from zoomrank.types import Array, Seed

# The probability that a draw is the largest.

_POINTS = 12
_BEND, _SLOPE = 3.0, 12.0  # most curvature and slope of a log density in one panel
_STRAIGHT = 1e-12  # curvatures below this count as 0
_NOTHING = 37.0  # the ends of a belief: exp(-37) of the density at its top
_FLOOR = -744.0  # smaller draws are 0
_LARGE = 12.0  # above this, Stirling's series is exact
_TIES = 8.0  # like _SLOPE, for tied draws
_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * np.pi)


def _running_weights(points: Array, weights: Array) -> Array:
    """Return the weights that turn values at the points of a panel into integrals from its left end to each point."""
    at = legendre.legvander(points, _POINTS)
    rows = 0.5 * (points[:, None] + 1.0) * np.ones(_POINTS)
    for degree in range(1, _POINTS):
        rows += 0.5 * np.outer(at[:, degree + 1] - at[:, degree - 1], at[:, degree])
    found: Array = rows * weights
    return found


_AT, _WEIGHT = legendre.leggauss(_POINTS)
_RUNNING = _running_weights(_AT, _WEIGHT)


class DrawScratch(NamedTuple):
    """Kinds of draws to compare; draws of the same belief and cap are one kind."""

    times: Array  # number of draws of this kind
    a: Array  # the belief is Beta(a, b)
    b: Array
    draw_cap: Array
    log_scale: Array  # log f(t) is that, plus a · t - (a + b) · log(1 + exp(t))
    begins: Array  # effective support of the belief
    ends: Array
    top: Array  # the cap as a t
    passed: Array  # F of this kind where the integration is
    density: Array  # f of this kind at the points of a panel
    soft: Array  # log(1 + exp(t)) at the points
    product: Array  # of all F but one


def fresh_draw_scratch(widest: int) -> DrawScratch:
    """Allocate scratch space for this many draws."""
    kinds = max(widest, 1)
    a, b, cap, log_scale, begins, ends, top, passed = (np.zeros(kinds) for _ in range(8))
    density, soft, product = np.zeros((kinds, _POINTS)), np.zeros(_POINTS), np.zeros(_POINTS)
    times = np.zeros(kinds, np.int64)
    return DrawScratch(times, a, b, cap, log_scale, begins, ends, top, passed, density, soft, product)


@inlined
def add_draw(state: Any, kinds: Scalar, a: Scalar, b: Scalar, cap: Scalar) -> tuple[Scalar, Scalar]:
    """Add a draw to compare; return the number of kinds and the draw's kind."""
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
    """Compute the error of Stirling's formula for log Γ(n); for large n, log Γ itself would lose too many digits."""
    if n > _LARGE:
        square = 1.0 / (n * n)
        return (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))) / n
    return lgamma(n) - (n - 0.5) * math.log(n) + n - _HALF_LOG_TWO_PI


@inlined
def _soft(t: Scalar) -> Scalar:
    return max(t, 0.0) + math.log1p(exp(-abs(t)))


@inlined
def _way_out(a: Scalar, b: Scalar) -> Scalar:
    """Compute the distance to the left of its top at which a density in t is negligible; swap a and b for the right."""
    spread, share = _NOTHING * (1.0 / a + 1.0 / b), a / (a + b)
    way = 0.5 * (spread + np.sqrt(spread * spread + 8.0 * spread))  # an overestimate, and so are all Newton steps
    for _ in range(4):
        gone = share * exp(-way)
        rest = 1.0 - share + gone
        way -= (a * way + (a + b) * math.log(rest) - _NOTHING) / (a - (a + b) * gone / rest)
    return way


@inlined
def _prepare(state: Any, kind: Scalar) -> None:
    a, b, cap = state.a[kind], state.b[kind], state.draw_cap[kind]
    middle = math.log(a / b)
    highest = 0.5 * math.log(a / (a + b) * b) - _HALF_LOG_TWO_PI
    highest += _stirling_error(a + b) - _stirling_error(a) - _stirling_error(b)
    state.log_scale[kind] = highest - a * middle + (a + b) * _soft(middle)
    state.begins[kind], state.ends[kind] = middle - _way_out(a, b), middle + _way_out(b, a)
    state.top[kind] = np.inf
    if cap <= 0.0:
        state.top[kind] = -np.inf
    elif cap < 1.0:
        state.top[kind] = math.log(cap / (1.0 - cap))


@inlined
def _reach(state: Any, kind: Scalar, x: Scalar) -> Scalar:
    """Compute the largest panel width for a belief at x."""
    both = state.a[kind] + state.b[kind]
    bend, slope = both * x * (1.0 - x), abs(state.a[kind] - both * x)
    if bend > _STRAIGHT:
        return min(_BEND / np.sqrt(bend), _SLOPE / max(slope, 1.0))
    return _SLOPE / max(slope, _STRAIGHT)


@inlined
def _is_on(state: Any, kind: Scalar, t: Scalar) -> Scalar:
    """Return whether a draw of a kind may exceed t."""
    return t < min(state.ends[kind], state.top[kind])


@inlined
def _panel(state: Any, kind: Scalar, t: Scalar, width: Scalar) -> Scalar:
    """Compute the width of the panel that begins at t, where the belief has not ended."""
    width = min(width, _reach(state, kind, 1.0 / (1.0 + exp(-t))), state.ends[kind] - t)
    if t < 0.0 < t + width:  # curvature is largest at 0
        width = min(width, max(-t, _reach(state, kind, 0.5)))
    while width > 1.2 * _reach(state, kind, 1.0 / (1.0 + exp(-t - width))):
        width *= 0.7
    return width


@inlined
def _rise(state: Any, kind: Scalar, t: Scalar, soft: Scalar, others: Scalar) -> Scalar:
    """Compute the slope of the log of a power of F at t; it decreases further on."""
    a, both = state.a[kind], state.a[kind] + state.b[kind]
    if state.passed[kind] > 0.0:
        return others * exp(state.log_scale[kind] + a * t - both * soft) / state.passed[kind]
    return others * a


@separate
def _mass(state: Any, kind: Scalar, start: Scalar, end: Scalar) -> Scalar:
    """Integrate a density."""
    found, t = 0.0, start
    a, both, scale = state.a[kind], state.a[kind] + state.b[kind], state.log_scale[kind]
    while t < end:
        half = 0.5 * _panel(state, kind, t, end - t)
        for point in range(_POINTS):
            at = t + half * (1.0 + _AT[point])
            found += half * _WEIGHT[point] * exp(scale + a * at - both * _soft(at))
        t = t + 2.0 * half if t + 2.0 * half < end else end
    return found


@inlined
def _share_below(state: Any, kind: Scalar, t: Scalar) -> Scalar:
    """Compute F of a kind, ignoring its cap."""
    if t <= state.begins[kind]:
        return 0.0
    if t >= state.ends[kind]:
        return 1.0
    if t < math.log(state.a[kind] / state.b[kind]):
        return _mass(state, kind, state.begins[kind], t)
    return 1.0 - _mass(state, kind, t, state.ends[kind])


@inlined
def _others(state: Any, kind: Scalar, own: Scalar) -> Scalar:
    """Count the draws of a kind beside the one in question."""
    return state.times[kind] - (1 if kind == own else 0)


@inlined
def _power(base: Scalar, times: Scalar) -> Scalar:
    if times == 1:
        return base
    return 1.0 if times == 0 else max(base, 0.0) ** times


@separate
def _chance_of_none(state: Any, kinds: Scalar) -> Scalar:
    """Compute the probability that all draws are 0 (capped there, or underflow) and this one is taken."""
    chance, draws = 1.0, 0
    for kind in range(kinds):
        draws += state.times[kind]
        if state.draw_cap[kind] > 0.0:
            chance *= _power(_share_below(state, kind, _FLOOR), state.times[kind])
    return chance / draws


@inlined
def _next_panel(state: Any, kinds: Scalar, own: Scalar, t: Scalar, width: Scalar) -> tuple[Scalar, Scalar]:
    """Return the width of the panel that begins at t, and whether another draw may still be larger."""
    soft, is_open = _soft(t), False
    rise = abs(state.a[own] - (state.a[own] + state.b[own]) / (1.0 + exp(-t)))  # of the whole product
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
    """Multiply the product in a panel by F of this many draws of a kind, and advance F to the panel's end."""
    a, both, scale = state.a[kind], state.a[kind] + state.b[kind], state.log_scale[kind]
    density, total = state.density[kind], 0.0
    for point in range(_POINTS):
        at = t + half * (1.0 + _AT[point])
        density[point] = exp(scale + a * at - both * state.soft[point])
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
    """Compute the probability that a draw is the largest and lies between two ends; advance `passed` (F) from the first
    end to the second.

    Where no other draw can be larger, the result is the whole remaining mass, and none is left for the cap.
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
    """Compute the probability that a draw is at its cap and is taken, with `passed` = F there: of tied draws, the one
    with the largest uniform s wins.
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
    """Compute the probability that one draw of a kind is taken: the largest, or one of the tied largest."""
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


# The learner.

PRIOR = 1.0
_NEVER_ZERO = 0.02  # with a smaller prior, draws may underflow
PATIENCE = 1  # visits without a click before a subtree is split


class ThompsonParameters(NamedTuple):
    """Parameters of `TreeThompson`."""

    prior: float
    correlated: bool


ThompsonState = flat(
    "ThompsonState", TreeView, VisitCounts, ThompsonParameters, ContextScratch, DrawScratch, PhaseClock
)


def _select(state: Any, slot: Scalar, shown: Array, above: Scalar, rng: np.random.Generator) -> tuple[Scalar, Scalar]:
    if not state.correlated:
        above = 0
    store_paths(state, shown, above)
    column, at = np.uint64(slot), np.uint64(0)
    depth, mask, cap = 0, (1 << above) - 1, np.inf
    while state.child[at] != 0:
        first, node = np.uint64(state.child[at]), np.uint64(state.node[at])
        fan, start = np.uint64(state.fan[at]), np.uint64(state.child_start[node])
        if mask != 0:
            cap = state.width[node]
            split_mask(state, state.below, node, depth, mask)
        top = -1.0
        for step in range(fan):
            state.value[step] = -1.0
            if size_of(state, start + step) == 0:
                continue
            won, lost = _belief(state, first + step, column)
            limit = _limit(state, start + step, depth, mask, step, cap)
            state.value[step] = min(rng.beta(won, lost), limit)
            top = max(top, state.value[step])
        chosen = random_best(state.value, fan, top, rng)
        at = first + chosen
        depth += 1
        if mask != 0:
            mask = state.below[chosen]
    return np.int64(at), 1.0


@inlined
def _belief(state: Any, entry: Scalar, column: Scalar) -> tuple[Scalar, Scalar]:
    """Return the two parameters of the Beta belief of an entry."""
    plays, clicks = state.plays[entry, column], state.clicks[entry, column]
    return state.prior + clicks, 1.0 + (plays - clicks)


@inlined
def _limit(state: Any, child: Scalar, depth: Scalar, mask: Scalar, step: Scalar, cap: Scalar) -> Scalar:
    """Compute the cap of a child's draw: from the documents above inside it, or else the width of the parent."""
    if mask != 0 and state.below[step] != 0:
        return farthest_from(state, child, depth + 1, state.below[step])
    return cap


@inlined
def _is_sure(state: Any, above: Scalar, mask: Scalar) -> Scalar:
    """Return whether no subtree is chosen all of whose documents are shown above: such a subtree is capped at 0, and
    another one is not, at every branch on the way down.
    """
    return above == 0 or (mask != 0 and len(state.eligible) == 0 and farthest_from(state, 0, 0, mask) > 0.0)


def _odds(state: Any, slot: Scalar, shown: Array, above: Scalar, document: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """Walk to the document like `_select`, multiplying the probability of every step."""
    shown_above = above
    if not state.correlated:
        above = 0
    store_paths(state, shown, above)
    column, at = np.uint64(slot), np.uint64(0)
    depth, mask, cap, chance = 0, (1 << above) - 1, np.inf, 1.0
    sure = _is_sure(state, shown_above, mask) and state.prior >= _NEVER_ZERO
    while chance > 0.0 and state.child[at] != 0:
        first, node = np.uint64(state.child[at]), np.uint64(state.node[at])
        fan, start = np.uint64(state.fan[at]), np.uint64(state.child_start[node])
        if mask != 0:
            cap = state.width[node]
            split_mask(state, state.below, node, depth, mask)
        kinds, own = 0, 0
        chosen: Scalar = np.uint64(0)
        for step in range(fan):
            if size_of(state, start + step) == 0:
                continue
            won, lost = _belief(state, first + step, column)
            limit = _limit(state, start + step, depth, mask, step, cap)
            kinds, kind = add_draw(state, kinds, won, lost, limit)
            if state.first_document[start + step] <= document < state.end_document[start + step]:
                own, chosen = kind, step
        chance *= chance_of_largest(state, kinds, own)
        at = first + chosen
        depth += 1
        if mask != 0:
            mask = state.below[chosen]
    return chance, np.int64(state.node[at]), sure


def _update(state: Any, slot: Scalar, feedback: Feedback, shown: Array, above: Scalar) -> None:
    count_visit(state, slot, feedback.pick, feedback.reward)


register(ThompsonState, select=_select, odds=_odds, update=_update, subtree=subtree_of_entry, roomy=entries_fit)


class TreeThompson(VisitCountingBandit):
    """Thompson sampling on a tree: at each branch, go where a draw from the belief is best.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents, of any shape.
    prior : float
        Beliefs start as Beta(`prior`, 1): the smaller, the lower the expected value of unseen documents. Above 0.
    correlated : bool
        Cap draws by the distance to the documents shown above (the correlation rule).
    seed : int, numpy.random.Generator or None
        Seed of a bandit used on its own.

    Examples
    --------
    >>> bandit = TreeThompson(DocumentTree.exponential(depth=3), seed=0)
    >>> len({bandit.select().document for _ in range(50)})  # of eight: a new draw for every visitor
    8

    References
    ----------
    Thompson, *On the likelihood that one unknown probability exceeds another*, Biometrika 25 (1933), here along a
    tree; the correlation rule is Eq. 23 of Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*, JMLR
    14 (2013).
    """

    weighs = False  # computing propensities takes 50 times as long as choosing
    not_saved = VisitCountingBandit.not_saved | frozenset(DrawScratch._fields)
    setting_names = ("prior", "correlated")

    def __init__(self, tree: DocumentTree, *, prior: float = PRIOR, correlated: bool = True, seed: Seed = None) -> None:
        super().__init__(tree, seed)
        if not 0 < prior < np.inf:
            raise ParameterError(f"prior must be a positive number, not {prior}.")
        self.prior, self.correlated = float(prior), bool(correlated)

    def fresh_state(self, slots: int, more: int = 0) -> Any:
        """Return a state with only the root, and room for `more` entries."""
        visited = fresh_visited(self.tree, slots, PATIENCE, more)
        scratch, draws = fresh_context_scratch(self.tree, slots, visited.widest), fresh_draw_scratch(visited.widest)
        return ThompsonState(*self.view, *visited, self.prior, self.correlated, *scratch, *draws, *endless_clock(slots))

    def belief(self, state: Any, entry: int, slot: int) -> tuple[float, float]:
        """Return the standard deviation of the belief, and its mean."""
        plays, clicks = int(state.plays[entry, slot]), int(state.clicks[entry, slot])
        a, b = self.prior + clicks, 1.0 + plays - clicks
        return float(np.sqrt(a * b / (a + b + 1.0)) / (a + b)), a / (a + b)
