"""Small worlds in which propensities and satisfaction are known exactly.

A collection has 16 documents and a ranking 3, so that all 3,360 rankings can be enumerated: the satisfaction of a
ranking is computed from the model of visitors, and that of a policy is the mean over its rankings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache
from itertools import permutations

import numpy as np

from zoomrank.judging import ImpressionLog, Target
from zoomrank.lab.simulator import simulate
from zoomrank.numbers import Array
from zoomrank.rankers import ZoomRank
from zoomrank.spaces import DocumentTree
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
