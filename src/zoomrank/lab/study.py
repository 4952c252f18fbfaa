"""How many impressions a learner needs: ZoomRank and its competitors on many kinds of collections and visitors.

Families differ in what is hard about them: small peaks, a tempting plateau, rare clicks, a metric that is wrong, a
tree that is wide and uneven, few documents, documents far apart that please the same visitors. All parameters are the
same in all families, and were chosen on instances of other seeds than those reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from zoomrank.lab.catalogue import GREEDY
from zoomrank.lab.results import CurveRows, Estimate, Results
from zoomrank.lab.settings import SEED, Curve, Experiment, Recipe, Setting, recipe
from zoomrank.spaces.topology import Array

ROUNDS = 50_000
INSTANCES = 30
MARKS = (1_000, 10_000, 50_000)  # visits by which clicks are counted
SUSTAINED = 0.95  # of greedy, from some look on for good
_RESAMPLES = 2_000

_PAPER_TREE = recipe("exponential", depth=15)
_TWO_PEAKS = recipe("two-peaks")


@dataclass(frozen=True)
class Family:
    """One kind of world."""

    name: str
    title: str
    users: Recipe
    tree: Recipe = _PAPER_TREE
    belief: Recipe | None = None
    perfect: bool = False  # whether the metric is all that the theory asks for
    rounds: int = ROUNDS


FAMILIES = (
    Family("two-peaks", "two peaks", _TWO_PEAKS, perfect=True, rounds=200_000),  # as long as RankCorrZoom needs
    Family("restaurant", "Chinese Restaurant, one network", recipe("chinese-restaurant"), perfect=True),
    Family(
        "restaurant-mixture",
        "Chinese Restaurant, each visitor belongs to a peak",
        recipe("chinese-restaurant", reading="mixture"),
        perfect=True,
    ),
    Family(
        "eight-peaks",
        "eight unequal peaks",
        recipe("peaks", values=(0.5, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1), background=0.01),
        perfect=True,
    ),
    Family("decoy", "two peaks, a quarter of all documents at 0.2", recipe("decoy"), perfect=True),
    Family("rare-clicks", "low click rates", recipe("peaks", values=(0.15, 0.12, 0.1), background=0.005), perfect=True),
    Family("halved", "two peaks, widths halved", _TWO_PEAKS, belief=recipe("scaled", factor=0.5)),
    Family("doubled", "two peaks, widths doubled", _TWO_PEAKS, belief=recipe("scaled", factor=2.0)),
    Family("shuffled-10", "two peaks, 10 % shuffled", _TWO_PEAKS, belief=recipe("shuffled", share=0.1)),
    Family("shuffled-30", "two peaks, 30 % shuffled", _TWO_PEAKS, belief=recipe("shuffled", share=0.3)),
    Family("uneven", "a wide, uneven tree", recipe("peaks", values=(0.5, 0.4, 0.3), background=0.02), recipe("uneven")),
    Family("hundred", "100 documents", recipe("peaks", values=(0.5, 0.4, 0.3)), recipe("hundred")),
    Family("twins", "peaks with echoes far away", recipe("twins")),
)

# Constants of the others are the best of four or more by clicks over all families, on instances of seed 1;
# RankContextZoom takes RankCorrZoom's.
_ZOOMRANK = "ZoomRank"
_PUBLISHED = "RankCorrZoom"
COMPETITORS: Mapping[str, Recipe] = {
    _ZOOMRANK: recipe("ZoomRank"),
    _PUBLISHED: recipe("RankCorrZoom"),
    "RankCorrZoom-tuned": recipe("RankCorrZoom", exploration=0.25),
    "RankZoom-tuned": recipe("RankZoom", exploration=0.25),
    "RankContextZoom-tuned": recipe("RankContextZoom", exploration=0.25, scale=0.2),
    "RankUCB1-tuned": recipe("RankUCB1", exploration=0.003),
    "RankRandom": recipe("RankRandom"),
}
# ZoomRank without one of its ingredients.
ABLATIONS: Mapping[str, Recipe] = {
    "no-lending": recipe("ZoomRank", borrow=0.0),
    "no-growth": recipe("ZoomRank", growth=0.0),
    "no-optimism": recipe("ZoomRank", optimism=0.0),
    "full-optimism": recipe("ZoomRank", optimism=1.0),
    "no-correlation": recipe("ZoomRank", correlated=False),
}


def experiment(family: Family) -> Experiment:
    """All competitors and ablations in one world."""
    rankers = {**COMPETITORS, **ABLATIONS}
    return Experiment(
        name=f"efficiency-{family.name}",
        title=family.title,
        tree=family.tree,
        users=family.users,
        slots=5,
        rounds=family.rounds,
        curves=(
            *(Curve(name, ranker, belief=family.belief) for name, ranker in rankers.items()),
            Curve(GREEDY, recipe(GREEDY)),
        ),
    )


def settings(instances: int = INSTANCES, rounds: int | None = None, seed: int = SEED) -> list[Setting]:
    """All runs, instance by instance."""
    runs = [
        run for family in FAMILIES for run in experiment(family).settings(instances=instances, rounds=rounds, seed=seed)
    ]
    return sorted(runs, key=lambda run: run.instance)


# Measures, each a number per instance


def collected(mine: CurveRows, greedy: CurveRows, visits: int) -> Array:
    """Clicks by some visit, as a share of what greedy collects on average by then."""
    end = min(visits / mine.rounds, 1.0)
    return np.asarray(mine.rate(0.0, end) / greedy.expected[:, 0])


def settled(mine: CurveRows, greedy: CurveRows) -> Array:
    """The look from which on the ranking shown is worth 95 % of greedy for good; infinite if there is none."""
    good = mine.expected >= SUSTAINED * greedy.expected[:, :1] - 1e-12
    since = np.full(len(good), np.inf)
    for instance, row in enumerate(good):
        failures = np.flatnonzero(~row)
        first = 0 if len(failures) == 0 else failures[-1] + 1
        if first < len(row):
            since[instance] = mine.round[first]
    return since


def bootstrap(values: Array, statistic: str = "mean") -> Estimate:
    """A 95 % interval by resampling instances; medians of censored values stay what they are."""
    rng = np.random.default_rng(0)
    samples = values[rng.integers(len(values), size=(_RESAMPLES, len(values)))]
    compute = np.median if statistic == "median" else np.mean
    spread = compute(samples, axis=1)
    low, high = np.quantile(spread, (0.025, 0.975), method="nearest")
    return Estimate(float(compute(values)), float(low), float(high), len(values))


def ratio_of_medians(one: Array, other: Array) -> Estimate:
    """What part of the second's visits the first needs, by pairs of instances; 0 where the second's are infinite."""
    rng = np.random.default_rng(0)
    chosen = rng.integers(len(one), size=(_RESAMPLES, len(one)))
    with np.errstate(invalid="ignore"):
        spread = np.median(one[chosen], axis=1) / np.median(other[chosen], axis=1)
    low, high = np.quantile(np.nan_to_num(spread, nan=np.inf), (0.025, 0.975), method="nearest")
    return Estimate(float(np.median(one) / np.median(other)), float(low), float(high), len(one))


def best_competitor(results: Results, family: Family, visits: int) -> tuple[str, Estimate]:
    """Who of the others collected most by some visit, and ZoomRank's lead over it, in pairs."""
    name = f"efficiency-{family.name}"
    others = [curve for curve in COMPETITORS if curve != _ZOOMRANK]
    mine, greedy, *theirs = results.together(name, _ZOOMRANK, GREEDY, *others)
    shares = [collected(one, greedy, visits) for one in theirs]
    best = int(np.argmax([share.mean() for share in shares]))
    return others[best], bootstrap(collected(mine, greedy, visits) - shares[best])
