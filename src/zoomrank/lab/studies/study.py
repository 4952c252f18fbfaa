"""How many impressions a learner needs: ZoomRank and its competitors on many kinds of collections and visitors.

Families differ in what is hard about them: small peaks, a tempting plateau, rare clicks, a metric that is wrong, a
tree that is wide and uneven, few documents, documents far apart that please the same visitors. All parameters are the
same in all families. They are chosen by the study called tuning, on instances of another seed than those reported, with
about as many candidates for every ranker; a third study looks at whether ZoomRank gets to greedy in the long run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

import numpy as np

from zoomrank.lab.catalogue import GREEDY
from zoomrank.lab.paper.experiments import EXPERIMENTS
from zoomrank.lab.recipes import SEED, Curve, Experiment, Recipe, Setting, recipe
from zoomrank.lab.results import CurveRows, Estimate, Results
from zoomrank.numbers import Array
from zoomrank.spaces import DocumentId, DocumentTree
from zoomrank.users import UserDistribution

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

_ZOOMRANK = "ZoomRank"
_PUBLISHED = "RankCorrZoom"
COMPETITORS: Mapping[str, Recipe] = {
    _ZOOMRANK: recipe("ZoomRank"),
    _PUBLISHED: recipe("RankCorrZoom"),
    "RankCorrZoom-tuned": recipe("RankCorrZoom", exploration=0.25),
    "RankZoom-tuned": recipe("RankZoom", exploration=0.25),
    "RankContextZoom-tuned": recipe("RankContextZoom", exploration=0.25, scale=0.05),
    "RankUCB1-tuned": recipe("RankUCB1", exploration=0.003),
    "RankKLUCB-tuned": recipe("RankKLUCB", exploration=0.001),
    "CascadeKLUCB-tuned": recipe("CascadeKLUCB", exploration=0.001),
    "RankThompson-tuned": recipe("RankThompson", prior=0.3),
    "RankRandom": recipe("RankRandom"),
}
# ZoomRank without one of its ingredients; and a bare one, which counts along paths and believes witnesses, with one.
_BARE = {"borrow": 0.0, "growth": 0.0, "optimism": 0.0, "prior": 0.0, "correlated": False}
_ALONE = {
    "lending": "borrow",
    "growth": "growth",
    "optimism": "optimism",
    "prior": "prior",
    "correlation": "correlated",
}
ABLATIONS: Mapping[str, Recipe] = {
    **{f"no-{name}": recipe("ZoomRank", **{key: _BARE[key]}) for name, key in _ALONE.items()},
    "full-optimism": recipe("ZoomRank", optimism=1.0),
    "bare": recipe("ZoomRank", **_BARE),
    **{
        f"only-{name}": recipe("ZoomRank", **{other: value for other, value in _BARE.items() if other != key})
        for name, key in _ALONE.items()
    },
}
ABLATED_INSTANCES = 10  # means over all families need no more

# What each ranker is tried with; those of COMPETITORS are the best of these, see docs/efficiency/tuning.md.
TUNING_SEED = 1
CANDIDATES: Mapping[str, Recipe] = {
    str(candidate): candidate
    for candidate in (
        recipe("ZoomRank"),
        *(recipe("ZoomRank", confidence=value) for value in (0.25, 1.0)),
        *(recipe("ZoomRank", optimism=value) for value in (0.25, 0.06)),
        *(recipe("RankCorrZoom", exploration=value) for value in (0.5, 0.25, 0.12, 0.06)),
        *(recipe("RankZoom", exploration=value) for value in (0.5, 0.25, 0.12, 0.06)),
        *(recipe("RankContextZoom", exploration=value, scale=0.2) for value in (0.25, 0.06)),
        *(recipe("RankContextZoom", exploration=value, scale=0.05) for value in (0.25, 0.06)),
        *(recipe("RankUCB1", exploration=value) for value in (0.01, 0.003, 0.001, 0.0003)),
        *(recipe("RankKLUCB", exploration=value) for value in (1.0, 0.1, 0.01, 0.001)),
        *(recipe("CascadeKLUCB", exploration=value) for value in (0.1, 0.01, 0.003, 0.001)),
        *(recipe("RankThompson", prior=value) for value in (1.0, 0.3, 0.1, 0.03)),
    )
}
_GREEDILY = Curve(GREEDY, recipe(GREEDY))


def taxonomy_family(file: str) -> Family:
    """A world on a real taxonomy: a file with a path such as "Animals > Birds" in each line."""
    users = recipe("peaks", values=(0.5, 0.4, 0.3), background=0.02)
    return Family("taxonomy", f"the taxonomy in {PurePath(file).name}", users, recipe("taxonomy", file=file))


def experiment(family: Family) -> Experiment:
    """All competitors and ablations in one world."""
    return _experiment("efficiency", family, {**COMPETITORS, **ABLATIONS}, family.rounds)


def _experiment(study: str, family: Family, rankers: Mapping[str, Recipe], rounds: int) -> Experiment:
    curves = (Curve(name, ranker, belief=family.belief) for name, ranker in rankers.items())
    return Experiment(
        name=f"{study}-{family.name}",
        title=family.title,
        tree=family.tree,
        users=family.users,
        slots=5,
        rounds=rounds,
        curves=(*curves, _GREEDILY),
    )


def _efficiency(instances: int, rounds: int | None, seed: int, families: Sequence[Family]) -> list[Setting]:
    runs = [
        run for family in families for run in experiment(family).settings(instances=instances, rounds=rounds, seed=seed)
    ]
    return [run for run in runs if run.curve not in ABLATIONS or run.instance < ABLATED_INSTANCES]


def _tuning(instances: int, rounds: int | None, seed: int, families: Sequence[Family]) -> list[Setting]:
    tried = (_experiment("tuning", family, CANDIDATES, ROUNDS) for family in families)
    return [run for one in tried for run in one.settings(instances=instances, rounds=rounds, seed=seed)]


LONG = 3_000_000  # visits of the study of convergence
CONVERGENCE = tuple(
    replace(
        EXPERIMENTS[name],
        name=f"convergence-{name}",
        rounds=LONG,
        curves=(Curve(_ZOOMRANK, recipe(_ZOOMRANK)), _GREEDILY),
    )
    for name in ("small", "small-mixture", "three-documents")
)


def _convergence(instances: int, rounds: int | None, seed: int, families: Sequence[Family]) -> list[Setting]:  # noqa: ARG001
    return [run for one in CONVERGENCE for run in one.settings(instances=instances, rounds=rounds, seed=seed)]


@dataclass(frozen=True)
class Study:
    """A sweep that answers one question."""

    title: str
    instances: int
    seed: int
    runs: Callable[[int, int | None, int, Sequence[Family]], list[Setting]]

    def settings(
        self, instances: int, rounds: int | None, seed: int, families: Sequence[Family] = FAMILIES
    ) -> list[Setting]:
        """All runs, instance by instance."""
        return sorted(self.runs(instances, rounds, seed, families), key=lambda run: run.instance)


STUDIES: Mapping[str, Study] = {
    "efficiency": Study("how many impressions ZoomRank and its competitors need", INSTANCES, SEED, _efficiency),
    "tuning": Study("which parameters are best over all families", 4, TUNING_SEED, _tuning),
    "convergence": Study("whether ZoomRank gets to greedy in 3 million visits", 4, SEED, _convergence),
}


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


def blind_chances(tree: DocumentTree, users: UserDistribution, best: Sequence[DocumentId], visits: int) -> list[float]:
    """How likely it is that so many visitors, all shown documents at random, never click for the sake of one of the
    best documents: on it, or near it where that makes others more relevant than most. No learner can know of a peak
    before somebody has clicked on it.
    """
    mean, shape = users.mean(), tree.shape
    usual = float(np.median(mean))
    chances = []
    for document in best:
        place = tree.documents.position(document)
        node = int(shape.leaf[place])
        raised, inner = max(0.0, float(mean[place]) - usual), 1
        while node != 0:
            node = int(shape.parent[node])
            size = int(shape.end_document[node]) - int(shape.first_document[node])
            raised += (size - inner) * max(0.0, float(mean[place]) - float(tree.width[node]) - usual)
            inner = size
        chances.append(float(np.exp(-len(best) * visits * raised / len(tree))))
    return chances
