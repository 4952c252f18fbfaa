"""Warm starts: the click log of another ranker, or a prior order, known before the first visit.

The other ranker served the same visitors before: a random one, one that always shows the most popular documents, and
one that learns, RankUCB1. An order is good (popularity, estimated with large errors), or wrong: of other visitors, at
random, or reversed. The report says how many visits a log saves, and how many clicks an order gains or costs.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from research.studies.families import FAMILIES, Family
from research.studies.measures import SUSTAINED, bootstrap, ratio_of_medians
from zoomrank.documents.click_log import Impression
from zoomrank.errors import ResultsError
from zoomrank.lab.curves import CurveRows, Results, collected
from zoomrank.lab.evaluation import COMPETITORS, RIVAL
from zoomrank.lab.registry import GREEDY, USERS
from zoomrank.lab.report_pages import table
from zoomrank.rankers import FixedRanking, Ranked, Ranking, RankRandom, RankUCB1, ZoomRank
from zoomrank.rankers.slot_bandits import LONGEST
from zoomrank.spaces import DocumentTree
from zoomrank.types import Array
from zoomrank.users import UserDistribution

IMPRESSIONS = 5_000
OLD_RANKERS = ("random", "popular", "RankUCB1")
ORDERS = ("good", "of others", "random", "reversed")
WORLDS = ("two-peaks", "uneven", "hundred", "intents", "scattered")
_ERROR, _LARGE_ERROR = 0.7, 2.0  # of the logarithm of an estimated popularity


def worlds() -> list[Family]:
    """Return the worlds of the study."""
    return [family for family in FAMILIES if family.name in WORLDS]


def _visitors(tree: DocumentTree, world: np.random.Generator, family: str) -> UserDistribution:
    """Draw the visitors of an instance as the lab draws them; a second call draws others."""
    users = next(one for one in FAMILIES if one.name == family).users
    make = USERS.get(users.name) or pkgutil.resolve_name(users.name)
    made: UserDistribution = make(tree, seed=world, **users.given)
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
        self,
        tree: DocumentTree,
        slots: int,
        *,
        seed: Any,
        world: np.random.Generator,
        family: str,
        order: str,
        **settings: Any,
    ) -> None:
        self.ranker = ZoomRank(tree, slots, seed=seed, **settings)
        users, others = (_visitors(tree, world, family) for _ in range(2))
        popular = np.asarray(users.mean())
        worth: Mapping[str, Callable[[], Array]] = {
            "good": lambda: popular * np.exp(world.normal(0, _ERROR, len(popular))),
            "middling": lambda: popular * np.exp(world.normal(0, _LARGE_ERROR, len(popular))),
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


_RUNNING = 5  # checkpoints


def reached(mine: CurveRows, level: Array) -> Array:
    """Return the checkpoint from which several rankings in a row reach a level, per instance; infinite if there is
    none.
    """
    good = mine.expected >= level[:, None] - 1e-12
    since = np.full(len(good), np.inf)
    for instance, row in enumerate(good):
        runs = np.flatnonzero(np.convolve(row, np.ones(_RUNNING), "valid") > _RUNNING - 0.5)
        if len(runs):
            since[instance] = mine.visits[runs[0]]
    return since


def known_before_sections(folder: Path, command: str, results: Results, families: Sequence[Family]) -> Iterable[str]:  # noqa: ARG001
    """Return the page, section by section."""
    there = [family for family in worlds() if results.comparable(f"log-{family.name}", "alone", *OLD_RANKERS, GREEDY)]
    if not there:
        raise ResultsError(f"{folder} has no family in which all learners have run: nothing to report yet.")
    yield "# What is known before the first visitor comes"
    yield f"Made by `{command}`. All learners meet the same visitors; intervals are 95 %, by resampling instances."
    yield f"## The log of {IMPRESSIONS:,} impressions of another ranker"
    yield (
        f"Visits until {_RUNNING} looks in a row show rankings that are worth {SUSTAINED:.0%} of what the learner "
        "without a log shows in the last tenth of its visits: the median, and in brackets the part of the visits that "
        "the learner without a log needs. Below, clicks by 1,000 visits as a share of greedy's."
    )
    yield table(("world", "alone", *(f"log of {old}" for old in OLD_RANKERS)), map(_visits_row, *_both(results, there)))
    yield table(("world", "alone", *(f"log of {old}" for old in OLD_RANKERS)), map(_clicks_row, *_both(results, there)))
    yield "## A prior order"
    yield (
        "Clicks of the first 1,000 visits, as a share of those of the learner that has no order. A good order is that "
        "of popularity, estimated badly; the others are wrong."
    )
    yield table(("world", *ORDERS, "instances"), (_order_row(results, family) for family in there))


def _both(results: Results, there: Sequence[Family]) -> tuple[list[Results], Sequence[Family]]:
    return [results] * len(there), there


def _visits_row(results: Results, family: Family) -> tuple[str, ...]:
    alone, *others = results.together(f"log-{family.name}", "alone", *OLD_RANKERS)
    last = alone.visits > 0.9 * alone.visits[-1]
    level = SUSTAINED * alone.expected[:, last].mean(axis=1)
    without = reached(alone, level)
    cells = []
    for one in others:
        mine = reached(one, level)
        part = ratio_of_medians(mine, without)
        parts = [_told(number, ".2f") for number in (part.mean, part.low, part.high)]
        cells.append(f"{_told(float(np.median(mine)))} ({parts[0]} [{parts[1]}, {parts[2]}])")
    return family.title, _told(float(np.median(without))), *cells


def _told(number: float, how: str = ",.0f") -> str:
    """Format a number; infinite means never reached."""
    return format(number, how) if number < 1e6 else "∞"


def _clicks_row(results: Results, family: Family) -> tuple[str, ...]:
    *learners, greedy = results.together(f"log-{family.name}", "alone", *OLD_RANKERS, GREEDY)
    return family.title, *(f"{collected(one, greedy, 1_000).mean():.3f}" for one in learners)


def _order_row(results: Results, family: Family) -> tuple[str, ...]:
    alone, *others = results.together(f"order-{family.name}", "alone", *ORDERS)
    without = alone.rate(0.0, 1.0)
    cells = []
    for one in others:
        part = bootstrap((one.rate(0.0, 1.0) - without) / without.mean())
        cells.append(f"{1 + part.mean:.2f} [{1 + part.low:.2f}, {1 + part.high:.2f}]")
    return family.title, *cells, str(len(without))
