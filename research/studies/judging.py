"""Simulated logs whose judgments are compared with the exact truth: kinds of logs, and targets near and far.

A log is asked about all of these targets: the greedy ranking, the most popular documents, a ranking one step from them,
the ranking of another learner, a mixture of two, a policy with more or less randomness, and a ranking far away.

Worlds are small, so that propensities and satisfaction are known exactly: a collection has 16 documents and a ranking
3, and all 3,360 rankings can be enumerated. The satisfaction of a ranking is computed from the model of visitors, and
that of a policy is the mean over its rankings. Logs are judged in worker processes, and results stored in a small file
per part, so that a study can be resumed.
"""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import lru_cache
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from zoomrank.errors import CannotTellError
from zoomrank.files import atomic_file
from zoomrank.judging import ImpressionLog, Judgment, Target, TargetMix, TargetRanker, TargetRankings
from zoomrank.judging.estimators import ESTIMATORS
from zoomrank.judging.judgment import judge_with
from zoomrank.lab.results_folder import ResultsFolder
from zoomrank.lab.simulator import simulate
from zoomrank.rankers import ZoomRank
from zoomrank.spaces import DocumentTree
from zoomrank.types import Array
from zoomrank.users import Independent, UserDistribution, random_peaks, two_peaks

DEPTH, SLOTS = 4, 3
DOCUMENTS = 2**DEPTH
WORLDS = 10  # of a kind; logs cycle through them
_TAUGHT = 500  # visits that a learner was trained on
RANKINGS = np.array(list(permutations(range(DOCUMENTS), SLOTS)))


class JudgedWorld:
    """A query: documents, visitors, and the satisfaction of each ranking."""

    def __init__(self, level: str, number: int) -> None:
        rng = np.random.default_rng([WORLDS, *map(ord, level), number])
        self.tree = DocumentTree.exponential(depth=DEPTH)
        self.users = _visitors(self.tree, level, rng)
        self.satisfies = _satisfaction(self.users)
        self.means = np.asarray(self.users.mean())
        self.popular = np.argsort(-self.means, kind="stable")
        self._learned: dict[int, tuple[ZoomRank, Array]] = {}

    def worth(self, ranking: Array) -> float:
        """Return the share of visitors that a ranking satisfies."""
        return float(self.satisfies[tuple(ranking)])

    def click(self, shown: Array, rng: np.random.Generator) -> Array:
        """Draw the slot of each visitor's first click; the number of slots for none."""
        relevant = np.take_along_axis(self.users.draw(len(shown), rng), shown, axis=1)
        return np.where(relevant.any(axis=1), relevant.argmax(axis=1), SLOTS)

    def learned(self, seed: int) -> tuple[ZoomRank, Array]:
        """Return a learner trained on some visitors of this world, and one of its rankings."""
        if seed not in self._learned:
            ranker = ZoomRank(self.tree, SLOTS, seed=seed)
            simulate(ranker, self.users, _TAUGHT, seed=seed)
            self._learned[seed] = ranker, self.tree.documents.positions(ranker.rank().documents)
        return self._learned[seed]


@lru_cache(maxsize=64)
def world(level: str, number: int) -> JudgedWorld:
    """Return a world of a level of satisfaction: "low" (about .1), "half" or "high" (about .9)."""
    return JudgedWorld(level, number)


def _visitors(tree: DocumentTree, level: str, rng: np.random.Generator) -> UserDistribution:
    if level == "low":
        return random_peaks(tree, values=[0.06, 0.04], background=0.01, seed=rng)
    if level == "half":
        return two_peaks(tree, seed=rng)
    means = rng.uniform(0.05, 0.4, DOCUMENTS)
    means[rng.permutation(DOCUMENTS)[:SLOTS]] = (0.6, 0.55, 0.5)
    return Independent(tree, means)


def _satisfaction(users: UserDistribution) -> Array:
    """Return the satisfaction of each ranking, which does not depend on its order."""
    satisfies = np.zeros((DOCUMENTS,) * SLOTS)
    for ranking in RANKINGS[(np.diff(RANKINGS, axis=1) > 0).all(axis=1)]:
        share = users.satisfaction(users.documents.at(ranking))
        for order in permutations(ranking):
            satisfies[order] = share
    return satisfies


class Policy(ABC):
    """Randomised policy that shows rankings slot by slot, with known probabilities."""

    @abstractmethod
    def chances(self, above: Array) -> Array:
        """Return the probability of each document in the next slot, below those above: a row for each of them."""

    def draw(self, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw rankings; return them with the propensity of each document in its slot."""
        shown, propensity = np.zeros((count, SLOTS), np.int64), np.zeros((count, SLOTS))
        for slot in range(SLOTS):
            chances = self.chances(shown[:, :slot])
            luck = rng.random((count, 1)) * chances.sum(axis=1, keepdims=True)
            shown[:, slot] = np.minimum((chances.cumsum(axis=1) <= luck).sum(axis=1), DOCUMENTS - 1)
            propensity[:, slot] = chances[np.arange(count), shown[:, slot]]
        return shown, propensity

    def propensities(self, shown: Array) -> Array:
        """Return the probability of each document of a ranking in its slot, given those above."""
        rows = np.arange(len(shown))
        each = [self.chances(shown[:, :slot])[rows, shown[:, slot]] for slot in range(shown.shape[1])]
        return np.column_stack(each)

    def worth(self, world: JudgedWorld) -> float:
        """Return the exact share of visitors that it satisfies."""
        return worth_of(world, self.propensities)


def worth_of(world: JudgedWorld, propensities: Callable[[Array], Array]) -> float:
    """Return the exact share of visitors that a policy satisfies, given all its propensities."""
    return float(propensities(RANKINGS).prod(axis=1) @ world.satisfies[tuple(RANKINGS.T)])


class Softmax(Policy):
    """Policy that prefers documents of higher score, among the remaining ones."""

    def __init__(self, scores: Array) -> None:
        self._odds = np.exp(scores)

    def chances(self, above: Array) -> Array:
        """Return probabilities in proportion to the odds."""
        odds = np.tile(self._odds, (len(above), 1))
        np.put_along_axis(odds, above, 0.0, axis=1)
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))


class EpsilonGreedy(Policy):
    """Policy that shows the first remaining document of an order, or with probability `explore` any other."""

    def __init__(self, order: Array, explore: float) -> None:
        self._place = np.argsort(order)
        self._explore = explore

    def chances(self, above: Array) -> Array:
        """Return nearly 1 for the first remaining document."""
        left = np.ones((len(above), DOCUMENTS), bool)
        np.put_along_axis(left, above, False, axis=1)
        chances = left * self._explore / left.sum(axis=1, keepdims=True)
        first = np.where(left, self._place, DOCUMENTS).argmin(axis=1)
        chances[np.arange(len(above)), first] += 1.0 - self._explore
        return np.asarray(chances)


class PolicyTarget(Target):
    """A policy for each query as a target, for a log of `logged`, whose documents are numbered as in the tree."""

    def __init__(self, policies: dict[str, Policy]) -> None:
        super().__init__(SLOTS, policies)
        self._policies = policies

    def propensities(self, query: str, shown: Array) -> Array:
        """Return the policy's propensities."""
        return self._policies[query].propensities(shown)

    def expected(self, query: str, above: Array, worth: Array, otherwise: float) -> Array:
        """Return the mean over all documents."""
        del otherwise  # there are no others
        return np.asarray(self._policies[query].chances(above) @ worth)


def logged(query: Array, shown: Array, propensity: Array, click: Array) -> ImpressionLog:
    """Build a log of impressions whose queries and documents are named by their numbers."""
    queries = [str(number) for number in range(int(query.max()) + 1)]
    documents = [str(document) for document in range(DOCUMENTS)]
    looks = np.minimum(click + 1, SLOTS)
    return ImpressionLog(queries, documents, query, shown, propensity, looks, click)


def standard_scores(world: JudgedWorld) -> Array:
    """Return the popularity of documents, standardised to a spread of 1."""
    odds = np.log(world.means / (1.0 - world.means))
    return np.asarray((odds - odds.mean()) / odds.std())


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


AT_ONCE = 25  # logs per part
_FOLDER = "judged"


def carry_out(folder: ResultsFolder, workers: int) -> Iterator[tuple[str, int]]:
    """Carry out the missing parts; yield the name of each finished part, and the total number."""
    manifest = folder.manifest
    (folder.path / _FOLDER).mkdir(exist_ok=True)
    parts = [(kind, start) for start in range(0, manifest["instances"], AT_ONCE) for kind in kinds_of(manifest)]
    missing = [part for part in parts if not (folder.path / _FOLDER / _name(*part)).exists()]
    with ProcessPoolExecutor(workers) as pool:
        coming = {}
        for kind, start in missing:
            numbers = range(start, min(start + AT_ONCE, manifest["instances"]))
            coming[pool.submit(_part, kind, numbers, manifest["seed"])] = _name(kind, start)
        for done in as_completed(coming):
            name = coming[done]
            rows, seconds = done.result()
            with atomic_file(folder.path / _FOLDER / name) as file:
                file.write(json.dumps(rows).encode())
            folder.note_time(name, seconds)
            yield name, len(missing)


def kinds_of(manifest: Mapping[str, Any]) -> list[LogKind]:
    """Return the kinds of logs, possibly shortened for a quick look."""
    longest = manifest["visits"] or max(kind.impressions for kind in KINDS)
    return [kind._replace(impressions=min(kind.impressions, longest)) for kind in KINDS]


def results_so_far(folder: ResultsFolder) -> dict[str, list[Row]]:
    """Return the results so far, kind by kind."""
    return {
        kind.name: [
            row
            for file in sorted((folder.path / _FOLDER).glob(f"{kind.name}.*.json"))
            for row in json.loads(file.read_text(encoding="utf-8"))
        ]
        for kind in kinds_of(folder.manifest)
    }


def _part(kind: LogKind, numbers: range, seed: int) -> tuple[list[Row], float]:
    start = time.perf_counter()
    return [row for number in numbers for row in judge_log(kind, number, seed)], time.perf_counter() - start


def _name(kind: LogKind, start: int) -> str:
    return f"{kind.name}.{start}.json"
