"""Warm starts: the click log of another ranker, or a prior order, known before the first visit.

The other ranker served the same visitors before: a random one, one that always shows the most popular documents, and
one that learns, RankUCB1. An order is good (popularity, estimated with large errors), or wrong: of other visitors, at
random, or reversed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from zoomrank.documents.logged_impressions import Impression
from zoomrank.lab.catalogue import USERS
from zoomrank.lab.competitors import COMPETITORS, RIVAL
from zoomrank.lab.studies.families import FAMILIES, Family
from zoomrank.numbers import Array
from zoomrank.rankers import FixedRanking, Ranked, Ranking, RankRandom, RankUCB1, ZoomRank
from zoomrank.rankers.leading import LONGEST
from zoomrank.spaces import DocumentTree
from zoomrank.users import UserDistribution

IMPRESSIONS = 5_000
OLD_RANKERS = ("random", "popular", "RankUCB1")
ORDERS = ("good", "of others", "random", "reversed")
WORLDS = ("two-peaks", "uneven", "hundred", "intents", "scattered")
_ERROR = 0.7  # of the logarithm of an estimated popularity


def worlds() -> list[Family]:
    """Return the worlds of the study."""
    return [family for family in FAMILIES if family.name in WORLDS]


def _visitors(tree: DocumentTree, world: np.random.Generator, family: str) -> UserDistribution:
    """Draw the visitors of an instance as the lab draws them; a second call draws others."""
    users = next(one for one in FAMILIES if one.name == family).users
    made: UserDistribution = USERS[users.name](tree, seed=world, **users.given)
    return made


def _old_ranker(old: str, tree: DocumentTree, slots: int, users: UserDistribution, rng: np.random.Generator) -> Ranked:
    if old == "popular":
        best = np.argsort(-np.asarray(users.mean()), kind="stable")[:slots]
        return FixedRanking(tree, tree.documents.at(best))
    if old == "random":
        return RankRandom(tree, slots, seed=rng)
    return RankUCB1(tree, slots, seed=rng, **COMPETITORS[RIVAL].given)


def _log(old: Ranked, users: UserDistribution, rng: np.random.Generator) -> list[Impression]:
    log: list[Impression] = []
    for _ in range(IMPRESSIONS):
        ranking = old.rank()
        click = users.click(ranking.documents, rng)
        old.learn(ranking, click)
        log.append(("", ranking.documents, None if click is None else ranking.documents[click]))
    return log


def warm_started(
    tree: DocumentTree, slots: int, *, seed: Any, world: np.random.Generator, family: str, old: str
) -> Ranked:
    """Return a ranker that has learned the log of another."""
    users = _visitors(tree, world, family)
    ranker = ZoomRank(tree, slots, seed=seed)
    ranker.learn_log(_log(_old_ranker(old, tree, slots, users, world), users, world))
    return ranker


class Led:
    """A ranker that is given a prior order with every visit."""

    meets_others = True

    def __init__(
        self, tree: DocumentTree, slots: int, *, seed: Any, world: np.random.Generator, family: str, order: str
    ) -> None:
        self.ranker = ZoomRank(tree, slots, seed=seed)
        users, others = (_visitors(tree, world, family) for _ in range(2))
        popular = np.asarray(users.mean())
        worth: Mapping[str, Callable[[], Array]] = {
            "good": lambda: popular * np.exp(world.normal(0, _ERROR, len(popular))),
            "of others": lambda: np.asarray(others.mean()),
            "random": lambda: world.random(len(popular)),
            "reversed": lambda: -popular,
        }
        self.order = tree.documents.at(np.argsort(-worth[order](), kind="stable")[:LONGEST])

    def rank(self) -> Ranking:
        """Return the ranking for the next visitor."""
        return self.ranker.rank(order=self.order)

    def learn(self, ranking: Ranking, click: int | None) -> None:
        """Learn from the visitor's feedback."""
        self.ranker.learn(ranking, click)


warm_started.meets_others = True  # type: ignore[attr-defined]
