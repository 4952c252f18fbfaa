"""Questions that studies put to ZoomRank and its competitors, and the runs that each takes.

Efficiency: how many impressions a ranker needs, on every family of worlds, and which of ZoomRank's ingredients matter.
Tuning: which constants suit each ranker best over all families, found on instances of another seed than those reported.
Queries: what similar queries gain by learning from each other, and what is lost where they only seem similar.
Warm start: what the log of another ranker or an order gains, and what a wrong order costs.
Convergence: whether ZoomRank converges to greedy in the long run.
Judging: whether judgments by a log are right; its logs are not runs of rankers (see `judging`).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from research.rivals.cascade_lin_ts import CascadeLinTS
from research.rivals.cascade_lsb import CascadeLSB
from research.rivals.hier_ts import HierTS
from research.rivals.subsampled_greedy import SubsampledGreedy
from research.rivals.top_rank import TopRank
from research.rivals.vowpal_wabbit import VowpalWabbit
from research.studies.families import FAMILIES, Family
from research.studies.queries import RELATIONS, Lent, copied, one_for_all, oracle, query_users
from research.studies.warm_start import OLD_RANKERS, ORDERS, Led, warm_started, worlds
from zoomrank.lab.curves import VISITS
from zoomrank.lab.evaluation import COMPETITORS, OURS
from zoomrank.lab.recipes import ALL_VISITS, SEED, Curve, Experiment, Recipe, Setting, recipe
from zoomrank.lab.registry import GREEDY

# ZoomRank without one of its ingredients; "bare" keeps only counts along paths, the bound, witnesses and records.
_WITHOUT: Mapping[str, Mapping[str, Any]] = {
    "lending": {"borrow": 0.0},
    "growth": {"growth": 0.0},
    "optimism": {"optimism": 0.0},
    "prior": {"prior": 0.0},
    "correlation": {"correlated": False},
}
_BARE = {key: value for ingredient in _WITHOUT.values() for key, value in ingredient.items()}
ABLATIONS: Mapping[str, Recipe] = {
    **{f"no-{name}": recipe("ZoomRank", **ingredient) for name, ingredient in _WITHOUT.items()},
    "bare": recipe("ZoomRank", **_BARE),
}
ABLATED_INSTANCES = 10  # enough for means over all families; twice as many where a family takes twice as many
EFFICIENCY_SEED = 4242  # instances of seed 2013 were used while ZoomRank was developed

# Candidates for each ranker; COMPETITORS and RIVALS have the best of these.
TUNING_SEED = 1
QUERIES_SEED = 6161  # other seeds were used during development
CANDIDATES: Mapping[str, Recipe] = {
    str(candidate): candidate
    for candidate in (
        recipe("ZoomRank"),
        *(recipe("ZoomRank", confidence=value) for value in (0.15, 0.4)),
        *(recipe("ZoomRank", optimism=value) for value in (0.25, 0.06)),
        *(recipe("RankCorrZoom", exploration=value) for value in (0.5, 0.25, 0.12, 0.06)),
        *(recipe("RankZoom", exploration=value) for value in (0.5, 0.25, 0.12, 0.06)),
        *(recipe("RankContextZoom", exploration=value, scale=0.2) for value in (0.25, 0.06)),
        *(recipe("RankContextZoom", exploration=value, scale=0.05) for value in (0.25, 0.06)),
        *(recipe("RankUCB1", exploration=value) for value in (0.01, 0.003, 0.001, 0.0003)),
        *(recipe("RankKLUCB", exploration=value) for value in (1.0, 0.1, 0.01, 0.001)),
        *(recipe("CascadeKLUCB", exploration=value) for value in (0.1, 0.01, 0.003, 0.001)),
        *(recipe("RankThompson", prior=value) for value in (1.0, 0.3, 0.1, 0.03)),
        *(
            recipe(rival, noise=noise, spread=spread)
            for rival in (CascadeLinTS, HierTS)
            for noise, spread in ((0.5, 0.2), (0.2, 0.1), (0.1, 0.1), (0.1, 0.05), (0.05, 0.01), (0.02, 0.004))
        ),
        *(recipe(CascadeLSB, alpha=alpha, noise=0.3) for alpha in (1.0, 0.5, 0.3, 0.1)),
        *(recipe(CascadeLSB, alpha=0.3, noise=noise) for noise in (1.0, 0.6, 0.15)),
        *(recipe(CascadeLSB, alpha=0.3, cover=cover, noise=0.3) for cover in (0.8, 0.5)),
        recipe(CascadeLSB, alpha=0.3, noise=0.3, topics="shelves"),
        *(
            recipe(SubsampledGreedy, factor=factor, horizon=ALL_VISITS, shared=shared)
            for factor in (0.2, 0.5, 1.0)
            for shared in (False, True)
        ),
        *(recipe(TopRank, horizon=ALL_VISITS, scale=scale) for scale in (1.0, 0.3, 0.2, 0.1)),
        *(recipe(VowpalWabbit, options=options) for options in ("--epsilon 0.1", "--epsilon 0.02", "--squarecb")),
    )
}

# Rivals of this study alone, from `research.rivals`, with the constants that suit them best on short lists: found by
# `python -m research study tuning --visits 2000 --instances 3 --families ten shelves shop halves duplicates popular
# nearly-all nearly-none`.
RIVALS: Mapping[str, Recipe] = {
    "CascadeLinTS-tuned": recipe(CascadeLinTS, noise=0.1, spread=0.1),
    "CascadeLSB-tuned": recipe(CascadeLSB, alpha=0.3, noise=0.3),
    "HierTS-tuned": recipe(HierTS, noise=0.05, spread=0.01),
    "SubsampledGreedy-tuned": recipe(SubsampledGreedy, factor=1.0, horizon=ALL_VISITS, shared=False),
    "TopRank-tuned": recipe(TopRank, horizon=ALL_VISITS, scale=0.2),
    "VowpalWabbit-tuned": recipe(VowpalWabbit, options="--epsilon 0.02"),
}
SCALABLE = ("SubsampledGreedy-tuned",)  # runs in all families; the others go through all documents in every visit
SLOW = {RIVALS["VowpalWabbit-tuned"].name: 1_000}  # most visits: milliseconds each
_ON_SHORT_LISTS = {rival.name for name, rival in RIVALS.items() if name not in SCALABLE}


def rivals_of(family: Family) -> dict[str, Recipe]:
    """Return the rivals that run in a family, as far as they are installed."""
    return {name: rival for name, rival in RIVALS.items() if _runs_in(rival, family)}


def candidates_of(family: Family) -> dict[str, Recipe]:
    """Return the candidates that run in a family, as far as they are installed."""
    return {name: candidate for name, candidate in CANDIDATES.items() if _runs_in(candidate, family)}


def _runs_in(ranker: Recipe, family: Family) -> bool:
    if ranker.name in SLOW and importlib.util.find_spec("vowpalwabbit") is None:
        return False
    return family.short or ranker.name not in _ON_SHORT_LISTS


_GREEDILY = Curve(GREEDY, recipe(GREEDY))


def experiment(family: Family) -> Experiment:
    """Return the experiment of all competitors and ablations in one world."""
    return _experiment("efficiency", family, {**COMPETITORS, **rivals_of(family), **ABLATIONS}, family.visits)


def _with_order(ranker: Recipe, family: Family) -> Recipe:
    """Return the ranker with the caller's order of the family, if it takes one."""
    if family.order is None or ranker.name != OURS:
        return ranker
    return recipe(Led, family=family.name, order=family.order, **ranker.given)


def _experiment(study: str, family: Family, rankers: Mapping[str, Recipe], visits: int) -> Experiment:
    curves = (Curve(name, _with_order(ranker, family), belief=family.belief) for name, ranker in rankers.items())
    return Experiment(
        name=f"{study}-{family.name}",
        title=family.title,
        tree=family.tree,
        users=family.users,
        slots=family.slots,
        visits=visits,
        curves=(*curves, _GREEDILY),
    )


def _runs(one: Experiment, family: Family, instances: int, visits: int | None, seed: int) -> list[Setting]:
    """Return the runs of an experiment, each in the world that its family has for the instance."""
    if family.early and visits is not None:
        visits = min(visits, one.visits)
    runs = one.settings(instances=family.instances(instances), visits=visits, seed=seed)
    return [_in_world(run, *family.world(run.instance)) for run in runs]


def _in_world(run: Setting, tree: Recipe, users: Recipe) -> Setting:
    return replace(run, tree=tree, users=users, visits=min(run.visits, SLOW.get(run.ranker.name, run.visits)))


def _efficiency(instances: int, visits: int | None, seed: int, families: Sequence[Family]) -> list[Setting]:
    runs: list[Setting] = []
    for family in families:
        ablated = family.instances(ABLATED_INSTANCES)
        mine = _runs(experiment(family), family, instances, visits, seed)
        runs += [run for run in mine if run.curve not in ABLATIONS or run.instance < ablated]
    return runs


def _tuning(instances: int, visits: int | None, seed: int, families: Sequence[Family]) -> list[Setting]:
    tried = (
        (_experiment("tuning", family, candidates_of(family), min(VISITS, family.visits)), family)
        for family in families
    )
    return [run for one, family in tried for run in _runs(one, family, instances, visits, seed)]


def _long(name: str, title: str, tree: Recipe, users: Recipe, slots: int = 2) -> Experiment:
    return Experiment(
        name=f"convergence-{name}",
        title=title,
        tree=tree,
        users=users,
        slots=slots,
        visits=3_000_000,
        curves=(Curve(OURS, COMPETITORS[OURS]), _GREEDILY),
    )


_SMALL_TREE = recipe("exponential", depth=7)
_SMALL = ("two peaks, 128 documents, one network", _SMALL_TREE, recipe("two-peaks"))
CONVERGENCE = (  # the small worlds of the paper, and shorter and longer rankings in the first of them
    _long("small-1", *_SMALL, 1),
    _long("small", *_SMALL),
    *(_long(f"small-{slots}", *_SMALL, slots) for slots in (5, 10)),
    _long(
        "small-mixture",
        "two peaks, 128 documents, each visitor belongs to a peak",
        _SMALL_TREE,
        recipe("two-peaks", reading="mixture"),
    ),
    _long(
        "three-documents",
        "the three documents of Section 5.1",
        recipe("three-documents"),
        recipe("three-documents"),
    ),
)


def _convergence(instances: int, visits: int | None, seed: int, families: Sequence[Family]) -> list[Setting]:  # noqa: ARG001
    return [run for one in CONVERGENCE for run in one.settings(instances=instances, visits=visits, seed=seed)]


SIBLINGS = (1, 5, 20, 100)
_QUERY_TREE = recipe("exponential", depth=12)
WRONG_ORDERS = 2  # factor on instances for the cost of a wrong order
NEGATIVE_CONTROLS = 20  # factor on instances for measuring small losses


def query_experiment(relation: str, first: bool = False) -> Experiment:
    """Return the experiment of a query whose siblings have learned before; `first`: the first visit only."""
    curves = [Curve("alone", recipe("ZoomRank"))]
    curves += [Curve(f"lent-{n}", recipe(Lent, relation=relation, siblings=n)) for n in SIBLINGS]
    others = {"one-for-all": one_for_all, "copied": copied, "oracle": oracle}
    curves += [Curve(name, recipe(make, relation=relation, siblings=20)) for name, make in others.items()]
    return Experiment(
        name=f"queries-{relation}{'-first' if first else ''}",
        title=RELATIONS[relation].title,
        tree=_QUERY_TREE,
        users=recipe(query_users, relation=relation),
        slots=5,
        visits=1 if first else 10_000,
        curves=(*curves, _GREEDILY),
    )


def _queries(instances: int, visits: int | None, seed: int, families: Sequence[Family]) -> list[Setting]:  # noqa: ARG001
    runs: list[Setting] = []
    for name, relation in RELATIONS.items():
        for first in (True, False):
            one = query_experiment(name, first)
            longest = one.visits if visits is None else min(visits, one.visits)
            runs += one.settings(instances=instances, visits=longest, seed=seed)
            if relation.negative and not first:
                compared = one.settings(
                    ["alone", "lent-20", GREEDY], instances=NEGATIVE_CONTROLS * instances, visits=longest, seed=seed
                )
                runs += [run for run in compared if run.instance >= instances]
    return runs


KNOWN_BEFORE_SEED = 7171  # other seeds were used during development


def known_before_experiments(family: Family) -> tuple[Experiment, Experiment]:
    """Return the experiments of learners that begin with a log of another ranker, and with an order."""
    world: dict[str, Any] = {"title": family.title, "tree": family.tree, "users": family.users, "slots": family.slots}
    alone = Curve("alone", recipe("ZoomRank"))
    logs = (Curve(old, recipe(warm_started, family=family.name, old=old)) for old in OLD_RANKERS)
    orders = (Curve(order, recipe(Led, family=family.name, order=order)) for order in ORDERS)
    return (
        Experiment(name=f"log-{family.name}", visits=30_000, curves=(alone, *logs, _GREEDILY), **world),
        Experiment(name=f"order-{family.name}", visits=1_000, curves=(alone, *orders), **world),
    )


def _known_before(instances: int, visits: int | None, seed: int, families: Sequence[Family]) -> list[Setting]:  # noqa: ARG001
    runs: list[Setting] = []
    for family in worlds():
        log, order = known_before_experiments(family)
        runs += log.settings(instances=instances, visits=visits, seed=seed)
        shorter = order.visits if visits is None else min(visits, order.visits)
        runs += order.settings(instances=WRONG_ORDERS * instances, visits=shorter, seed=seed)
    return runs


JUDGING_SEED = 8181  # other seeds were used during development


def _judging(instances: int, visits: int | None, seed: int, families: Sequence[Family]) -> list[Setting]:  # noqa: ARG001
    return []


@dataclass(frozen=True)
class Study:
    """A sweep that answers one question."""

    title: str
    instances: int
    seed: int
    runs: Callable[[int, int | None, int, Sequence[Family]], list[Setting]]

    def settings(
        self, instances: int, visits: int | None, seed: int, families: Sequence[Family] = FAMILIES
    ) -> list[Setting]:
        """Return all runs, instance by instance."""
        return sorted(self.runs(instances, visits, seed, families), key=lambda run: run.instance)


STUDIES: Mapping[str, Study] = {
    "efficiency": Study("how many impressions ZoomRank and its competitors need", 30, EFFICIENCY_SEED, _efficiency),
    "tuning": Study("which parameters are best over all families", 4, TUNING_SEED, _tuning),
    "queries": Study("what similar queries are worth to each other", 30, QUERIES_SEED, _queries),
    "warm-start": Study("what an old log or an order is worth to begin with", 30, KNOWN_BEFORE_SEED, _known_before),
    "convergence": Study("whether ZoomRank gets to greedy in 3 million visits", 4, SEED, _convergence),
    "judging": Study("whether what a log tells of other rankings is true", 500, JUDGING_SEED, _judging),
}
