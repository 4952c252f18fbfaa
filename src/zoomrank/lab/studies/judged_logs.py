"""Simulated logs whose judgments are compared with the exact truth: kinds of logs, and targets near and far.

A log is asked about all of these targets: the greedy ranking, the most popular documents, a ranking one step from them,
the ranking of another learner, a mixture of two, a policy with more or less randomness, and a ranking far away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zoomrank.errors import CannotTellError
from zoomrank.judging import ImpressionLog, Judgment, Target, TargetMix, TargetRanker, TargetRankings
from zoomrank.judging.estimators import ESTIMATORS
from zoomrank.judging.judgment import judge_with
from zoomrank.lab.studies.judged_worlds import (
    DOCUMENTS,
    SLOTS,
    WORLDS,
    EpsilonGreedy,
    JudgedWorld,
    Policy,
    PolicyTarget,
    Softmax,
    logged,
    standard_scores,
    world,
    worth_of,
)
from zoomrank.numbers import Array
from zoomrank.rankers import ZoomRank

QUERIES = 20  # of the kind that has many
LEVELS = ("half", "low", "high")  # of its queries, in turn
_EXPLORE = 0.2
_STEP = [0, 1, SLOTS]  # positions in an order: its best documents, except for the last slot
_MIDDLE = [0, SLOTS, 1]
_SCALE, _SHARPER = 1.5, 2.0  # of scores
_BEFORE, _AT_ONCE = 2_000, 20  # visits of a learner before its log begins; batch size of its learning

Row = dict[str, Any]


class LogKind(NamedTuple):
    """A kind of logs."""

    name: str
    title: str
    level: str
    impressions: int
    queries: int = 1


KINDS = (
    LogKind("softmax", "softmax over popularity", "half", 5_000),
    LogKind("softmax-low", "the same, few are satisfied", "low", 5_000),
    LogKind("softmax-high", "the same, most are satisfied", "high", 8_000),
    LogKind("mostly", "popular, 0.2 of each slot at random", "half", 15_000),
    LogKind("learning", "a learner that explores 0.2 and goes on learning", "half", 15_000),
    LogKind("zoomrank", "ZoomRank, which explores 0.2 and goes on learning", "half", 30_000),
    LogKind("queries", f"{QUERIES} queries, softmax", "all", 10_000, QUERIES),
    LogKind("certain", "deterministic: popular, always", "half", 1_500),
)


class JudgedTarget(NamedTuple):
    """A target, and the share that it satisfies."""

    target: Target
    truth: float


class SimulatedLog(NamedTuple):
    """A log, the share that its policy satisfies, and rankings that are asked about only in logs of this kind."""

    log: ImpressionLog
    itself: float
    own: dict[str, list[Array]]


def judge_log(kind: LogKind, number: int, seed: int) -> list[Row]:
    """Simulate a log and judge every target, by every estimator."""
    rng = np.random.default_rng([seed, *map(ord, kind.name), number])
    worlds = worlds_of(kind, number)
    simulated = _simulated(kind, worlds, rng)
    rows: list[Row] = []
    for name, asked in _targets(simulated, worlds, number).items():
        row: Row = {"log": number, "target": name}
        try:
            found = judge_with(ESTIMATORS, simulated.log, asked.target, worlds[0].tree)
        except CannotTellError as error:
            rows.append({**row, "refused": str(error)})
            continue
        row |= {"truth": asked.truth, "apart": asked.truth - simulated.itself}
        rows += [{**row, "estimator": estimator, **_rows(one)} for estimator, one in found.items()]
    return rows


def worlds_of(kind: LogKind, number: int) -> list[JudgedWorld]:
    """Return the worlds of the queries of a log."""
    levels = LEVELS if kind.queries > 1 else (kind.level,)
    return [world(levels[query % len(levels)], (number + query) % WORLDS) for query in range(kind.queries)]


def _rows(found: Judgment) -> Row:
    return {"share": [*found.target], "difference": [*found.difference], "sample": found.sample}


def _simulated(kind: LogKind, worlds: list[JudgedWorld], rng: np.random.Generator) -> SimulatedLog:
    if kind.name in ("learning", "zoomrank"):
        return _of_learner(kind, worlds[0], rng)
    if kind.name.startswith("softmax") or kind.queries > 1:
        return _of_policies(kind, worlds, [Softmax(_SCALE * standard_scores(one)) for one in worlds], rng)
    explore = 0.0 if kind.name == "certain" else _EXPLORE
    return _of_policies(kind, worlds, [EpsilonGreedy(one.popular, explore) for one in worlds], rng)


def _of_policies(
    kind: LogKind, worlds: list[JudgedWorld], policies: Sequence[Policy], rng: np.random.Generator
) -> SimulatedLog:
    """Simulate the log of a policy for each query."""
    query = rng.integers(kind.queries, size=kind.impressions)
    shown, click = np.zeros((kind.impressions, SLOTS), np.int64), np.zeros(kind.impressions, np.int64)
    propensity = np.zeros(shown.shape)
    for number, (one, policy) in enumerate(zip(worlds, policies, strict=True)):
        rows = np.flatnonzero(query == number)
        shown[rows], propensity[rows] = policy.draw(len(rows), rng)
        click[rows] = one.click(shown[rows], rng)
    shares = [policy.worth(one) for one, policy in zip(worlds, policies, strict=True)]
    return SimulatedLog(logged(query, shown, propensity, click), float(np.mean(shares)), {})


class _ClickRateLearner:
    """Learner that shows the documents with the highest click rates, and explores."""

    def __init__(self, one: JudgedWorld) -> None:
        self._world = one
        self._looks, self._clicks = np.full(DOCUMENTS, 2.0), np.full(DOCUMENTS, 0.5)
        self._known: dict[tuple[int, ...], float] = {}

    @property
    def order(self) -> Array:
        """Documents, the best first."""
        return np.argsort(-self._clicks / self._looks, kind="stable")

    def visit(self, rng: np.random.Generator) -> tuple[Array, Array, Array, float]:
        """Serve a batch of visitors and learn; return the rankings, their propensities, the clicks, and the
        satisfaction.
        """
        policy, best = EpsilonGreedy(self.order, _EXPLORE), tuple(self.order[:SLOTS])
        shown, propensity = policy.draw(_AT_ONCE, rng)
        click = self._world.click(shown, rng)
        slots = np.arange(SLOTS)
        np.add.at(self._looks, shown[slots <= click[:, None]], 1.0)
        np.add.at(self._clicks, shown[slots == click[:, None]], 1.0)
        if best not in self._known:  # the satisfaction depends on these only
            self._known[best] = policy.worth(self._world)
        return shown, propensity, click, self._known[best]


class _ZoomRank:
    """ZoomRank, exploring as a collection of the service may."""

    def __init__(self, one: JudgedWorld, rng: np.random.Generator) -> None:
        self._world = one
        self._ranker = ZoomRank(one.tree, SLOTS, seed=rng)

    @property
    def order(self) -> Array:
        """Documents shown without exploration, followed by the most popular."""
        best = self._ranker.copied().rank_arrays(1).shown[0]
        return np.concatenate([best, self._world.popular[~np.isin(self._world.popular, best)]])

    def visit(self, rng: np.random.Generator) -> tuple[Array, Array, Array, float]:
        """Serve a batch of visitors and learn; the satisfaction is that of the rankings shown."""
        rankings = self._ranker.rank_arrays(_AT_ONCE, explore=_EXPLORE)
        click = self._world.click(rankings.shown, rng)
        self._ranker.learn_arrays(rankings, click)
        worth = self._world.satisfies[tuple(rankings.shown.T)].mean()
        return rankings.shown, rankings.propensity, click, float(worth)


def _of_learner(kind: LogKind, one: JudgedWorld, rng: np.random.Generator) -> SimulatedLog:
    """Simulate the log of a learner that keeps learning, and add its rankings at the start as targets."""
    learner = _ClickRateLearner(one) if kind.name == "learning" else _ZoomRank(one, rng)
    for _ in range(0, _BEFORE, _AT_ONCE):
        learner.visit(rng)
    order = learner.order
    visits = [learner.visit(rng) for _ in range(0, kind.impressions, _AT_ONCE)]
    shown, propensity, click = (np.concatenate(column) for column in list(zip(*visits, strict=True))[:3])
    log = logged(np.zeros(len(shown), np.int64), shown, propensity, click)
    own = {"as the log began": [order[:SLOTS]], "one step from the beginning": [order[_STEP]]}
    return SimulatedLog(log, float(np.mean([visit[3] for visit in visits])), own)


def _targets(simulated: SimulatedLog, worlds: list[JudgedWorld], number: int) -> dict[str, JudgedTarget]:
    """Return all targets of a log."""
    fixed = {
        "greedy": [one.users.documents.positions(one.users.greedy(SLOTS).documents) for one in worlds],
        "popular": [one.popular[:SLOTS] for one in worlds],
        "one step from that": [one.popular[_STEP] for one in worlds],
        "another in the middle": [one.popular[_MIDDLE] for one in worlds],
        "of another learner": [one.learned(number % WORLDS)[1] for one in worlds],
        "far away": [one.popular[-SLOTS:] for one in worlds],
        **simulated.own,
    }
    asked = {name: _fixed(simulated.log, worlds, rankings) for name, rankings in fixed.items()}
    halves = [asked["greedy"], asked["another in the middle"]]
    mix = TargetMix([half.target for half in halves], [0.5, 0.5])
    sharper = [Softmax(_SHARPER * standard_scores(one)) for one in worlds]
    rankers = {str(query): one.learned(number % WORLDS)[0] for query, one in enumerate(worlds)}
    shares = [worth_of(one, ranker.propensities) for one, ranker in zip(worlds, rankers.values(), strict=True)]
    return {
        **asked,
        "that learner itself": JudgedTarget(TargetRanker(simulated.log, rankers), float(np.mean(shares))),
        "a mix": JudgedTarget(mix, sum(half.truth for half in halves) / 2),
        "sharper softmax": _policies(worlds, sharper),
    }


def _fixed(log: ImpressionLog, worlds: list[JudgedWorld], rankings: list[Array]) -> JudgedTarget:
    by_query = {str(number): [str(document) for document in ranking] for number, ranking in enumerate(rankings)}
    shares = [one.worth(ranking) for one, ranking in zip(worlds, rankings, strict=True)]
    return JudgedTarget(TargetRankings(log, by_query), float(np.mean(shares)))


def _policies(worlds: list[JudgedWorld], policies: list[Softmax]) -> JudgedTarget:
    shares = [policy.worth(one) for one, policy in zip(worlds, policies, strict=True)]
    return JudgedTarget(PolicyTarget({str(number): one for number, one in enumerate(policies)}), float(np.mean(shares)))
