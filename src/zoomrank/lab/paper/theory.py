"""Guarantees of Sections 4 and 5 and Appendix A, to be compared with measurements.

The paper's bounds hide constants and logarithms in Õ(·) and O(·). Here they are set to 1, which favours the bound as
much as possible: where even this is vacuous, the true bound is vacuous, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from zoomrank.errors import ParameterError, SearchTooLargeError
from zoomrank.lab.curves import Results
from zoomrank.lab.recipes import Setting
from zoomrank.lab.registry import world
from zoomrank.lab.report_pages import table
from zoomrank.spaces import DocumentTree
from zoomrank.spaces.covering import covering_dimension, covering_number, zooming_dimension
from zoomrank.spaces.tree_shape import node_depths
from zoomrank.types import Array
from zoomrank.users import UserDistribution

_SEARCH = 2_000  # evaluations for finding the optimum; after that, a bound is used
WORST_CASE = 1 - 1 / np.e  # of OPT: the guarantee of the greedy algorithm


@dataclass(frozen=True)
class Facts:
    """Properties of an instance that do not depend on a ranker."""

    greedy: float  # satisfaction of the (worst) greedy ranking
    optimum: float  # OPT, or a bound on it
    optimum_is_exact: bool
    covering_dimension: float
    zooming_dimension: float
    steepest: float  # the largest |μ(x) - μ(y)| / D(x, y); L-continuity requires at most 1


def facts(tree: DocumentTree, users: UserDistribution, slots: int) -> Facts:
    """Compute the properties of an instance from full information."""
    try:
        optimum, exact = users.optimum(slots, limit=_SEARCH).satisfaction, True
    except SearchTooLargeError:
        optimum, exact = users.optimum_bound(slots), False
    return Facts(
        greedy=users.greedy(slots).satisfaction,
        optimum=optimum,
        optimum_is_exact=exact,
        covering_dimension=covering_dimension(tree).value,
        zooming_dimension=zooming_dimension(tree, users.mean()).value,
        steepest=steepest(tree, users.mean()),
    )


def steepest(tree: DocumentTree, mean: Array) -> float:
    """Return the largest |μ(x) - μ(y)| / D(x, y) of all pairs of documents.

    Documents whose smallest common subtree is u are W(u) apart; the largest difference within u is theirs, or is that
    of a pair further down, which is closer and so steeper still.
    """
    high, low = np.full(tree.nodes, -np.inf), np.full(tree.nodes, np.inf)
    high[tree.shape.leaf] = low[tree.shape.leaf] = mean
    depth = node_depths(tree.shape.parent)
    for level in range(int(depth[-1]), 0, -1):
        nodes = np.flatnonzero(depth == level)
        np.maximum.at(high, tree.shape.parent[nodes], high[nodes])
        np.minimum.at(low, tree.shape.parent[nodes], low[nodes])
    apart = high - low
    inner = apart > 0
    with np.errstate(divide="ignore"):
        return float((apart[inner] / tree.width[inner]).max(initial=0.0))


def guarantee(optimum: float, slots: int, dimension: float, visits: Array | float) -> Array:
    """Return the fraction of satisfied visitors that RankGridEXP3 guarantees: (1 - 1/e) OPT - k T^(-1/(d + 2)).

    With slots · dimension in place of the dimension it is RankContextZoom's.

    References
    ----------
    Eq. 16 and 19 and Section 5 of the paper.
    """
    return np.asarray(WORST_CASE * optimum - slots * np.asarray(visits, float) ** (-1 / (dimension + 2)))


def vacuous_until(optimum: float, slots: int, dimension: float) -> float:
    """Return the number of visits before which that guarantee is below 0."""
    return float((slots / (WORST_CASE * optimum)) ** (dimension + 2))


def regret(tree: DocumentTree, mean: Array, visits: int, bandit: str) -> float:
    """Bound the regret of a bandit for this μ.

    min over δ of δT + Σ over scales r ≥ δ of N(δ, r) · log(T) / r, where N counts what the bandit has to tell apart at
    scale r: documents for "UCB1", balls of radius δ for "GridUCB1", balls of radius r for "zooming".

    References
    ----------
    Eq. `eq:regret-Nr` and Table 2 in Appendix A of the paper.
    """
    if bandit not in ("UCB1", "GridUCB1", "zooming"):
        raise ParameterError(f"No bound is known for {bandit!r}; choose UCB1, GridUCB1 or zooming.")
    badness = mean.max() - mean
    scales = [2.0**-i for i in range(1, 1 + int(np.ceil(np.log2(max(visits, 2)))))]
    rings = {r: np.flatnonzero((badness > r) & (badness <= 2 * r)) for r in scales}

    @cache
    def balls(radius: float, r: float) -> int:
        return covering_number(tree, radius, tree.documents.at(rings[r])).number

    def count(delta: float, r: float) -> int:
        if bandit == "UCB1" or len(rings[r]) == 0:
            return len(rings[r])
        return balls(delta if bandit == "GridUCB1" else r, r)

    best = np.inf
    for delta in scales:
        told_apart = sum(count(delta, r) * np.log(visits) / r for r in scales if r >= delta)
        best = min(best, delta * visits + told_apart)
    return float(best)


def over_instances(instances: Sequence[Facts]) -> Facts:
    """Combine instances: the mean of what figures average, the worst of what is claimed of every instance."""
    return Facts(
        greedy=float(np.mean([one.greedy for one in instances])),
        optimum=float(np.mean([one.optimum for one in instances])),
        optimum_is_exact=all(one.optimum_is_exact for one in instances),
        covering_dimension=max(one.covering_dimension for one in instances),
        zooming_dimension=max(one.zooming_dimension for one in instances),
        steepest=max(one.steepest for one in instances),
    )


_INTRODUCTION = (
    "The bounds of Sections 4 and 5 and of Appendix A with every hidden constant and logarithm taken as 1 (but the "
    "log T that Appendix A prints), which is kinder than the truth: where even this promises nothing, it says "
    "*vacuous*. Dimensions are with α = 1; the regret bounds are those of the first instance.\n\n"
)
_HEADS = (
    "experiment",
    "greedy",
    "OPT",
    "covering dimension",
    "zooming dimension",
    "RankGridEXP3 is sure of",
    "vacuous until visit",
    "RankContextZoom's until",
    "regret per visit of UCB1 / GridUCB1 / zooming in one slot",
)


def theory_table(results: Results, known: Mapping[str, Facts]) -> str:
    """Return a table with a row per experiment whose properties are known."""
    firsts = {name: results.curve(name, results.curves(name)[0]).settings[0] for name in known}
    return _INTRODUCTION + table(_HEADS, (_row(one, firsts[name]) for name, one in known.items()))


def _row(one: Facts, run: Setting) -> tuple[str, ...]:
    dimension = one.covering_dimension
    sure = float(guarantee(one.optimum, run.slots, dimension, run.visits))
    return (
        run.experiment,
        f"{one.greedy:.4f}",
        f"{one.optimum:.4f}" if one.optimum_is_exact else f"≤ {one.optimum:.4f}",
        f"{dimension:.2f}",
        f"{one.zooming_dimension:.2f}",
        f"{sure:.3f}" if sure > 0 else "vacuous",
        f"{vacuous_until(one.optimum, run.slots, dimension):.2g}",
        f"{vacuous_until(one.optimum, run.slots, run.slots * dimension):.2g}",
        _regrets(run),
    )


def _regrets(run: Setting) -> str:
    tree, users = world(run)
    mean = users.mean()
    worst = float(mean.max() - mean.min())  # the most that any bandit can lose in a visit
    bounds = [regret(tree, mean, run.visits, kind) / run.visits for kind in ("UCB1", "GridUCB1", "zooming")]
    return " / ".join(f"{bound:.2f}" if bound < worst else "vacuous" for bound in bounds)
