"""Evaluation of rankers on judged or liked documents: visitors follow real labels, their clicks are simulated.

Every topic is a separate world, in which rankers start without data. Clicks are counted as shares of what the greedy
optimum collects there. Rankers are compared with rankings that do not learn, because they are given what learning
rankers must find out: the greedy optimum, the documents in the order of their popularity, and the same re-ranked for
diversity by maximal marginal relevance; with random ones, which are given nothing; and, if it is known, with the order
that a search engine had. Ties are broken at random, by instance: in tree order, similar documents are neighbours.

References
----------
Carbonell and Goldstein, The use of MMR, diversity-based reranking for reordering documents and producing summaries,
SIGIR 1998.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import numpy as np

from zoomrank.errors import CatalogueError, ParameterError
from zoomrank.lab.curves import VISITS, Results, collected, collected_so_far
from zoomrank.lab.recipes import ALL_VISITS, SEED, Curve, Experiment, Recipe, Setting, recipe
from zoomrank.lab.registry import (
    GREEDY,
    RANKERS,
    JudgedTopic,
    kept_tree,
    kept_users,
    require_slots,
    store_topic,
    topic_file,
)
from zoomrank.lab.run import MARKS
from zoomrank.lab.sweep import Local, SweepObserver, sweep
from zoomrank.rankers import FixedRanking
from zoomrank.spaces import DocumentId, DocumentTree
from zoomrank.spaces.ids import Positions
from zoomrank.types import Array, rounded_for_ties

if TYPE_CHECKING:
    from zoomrank.lab.results_folder import ResultsFolder

# The rankers that ZoomRank is compared with. Each has the constants that suit it best, the same in all worlds: found by
# `python -m research study tuning` on instances that are not among those reported (docs/efficiency/tuning.md).
OURS = "ZoomRank"
PUBLISHED = "RankCorrZoom"  # the best of the paper, as published
RIVAL = "RankUCB1-tuned"  # the best that does not use the tree

COMPETITORS: Mapping[str, Recipe] = {
    OURS: recipe("ZoomRank"),
    PUBLISHED: recipe("RankCorrZoom"),
    "RankCorrZoom-tuned": recipe("RankCorrZoom", exploration=0.12),
    "RankZoom-tuned": recipe("RankZoom", exploration=0.06),
    "RankContextZoom-tuned": recipe("RankContextZoom", exploration=0.25, scale=0.05),
    RIVAL: recipe("RankUCB1", exploration=0.003),
    "RankKLUCB-tuned": recipe("RankKLUCB", exploration=0.001),
    "CascadeKLUCB-tuned": recipe("CascadeKLUCB", exploration=0.003),
    "RankThompson-tuned": recipe("RankThompson", prior=0.1),
    "RankRandom": recipe("RankRandom"),
}

KIND = "evaluation"  # in the manifest of its results
INSTANCES = 3
DEFAULT_RANKERS = (OURS, PUBLISHED, RIVAL)
_PREFIX = "topic-"  # of the names of experiments
TRADEOFF = 0.5  # λ of maximal marginal relevance
POPULARITY, DIVERSIFIED, CHANCE = "Popularity", "MMR", "RankRandom"
SEARCH_ORDER = "SearchOrder"  # only where topics have one
GIVEN = (GREEDY, POPULARITY, DIVERSIFIED, CHANCE)  # part of every evaluation


def evaluate(
    topics: Sequence[JudgedTopic],
    path: str | Path,
    rankers: Sequence[str] = DEFAULT_RANKERS,
    *,
    slots: int = 5,
    visits: int = VISITS,
    instances: int = INSTANCES,
    seed: int = SEED,
    workers: int | None = None,
    resume: bool = False,
    about: Mapping[str, Any] | None = None,
    watcher: SweepObserver | None = None,
) -> ResultsFolder:
    """Run all rankers on every topic and store their rows in a folder.

    Parameters
    ----------
    topics
        The worlds; rankers start without data in each.
    path
        The folder, which must be new or empty unless `resume`.
    rankers
        Names of competitors, of rankers in the catalogue, or `module:Name` of your own.
    slots, visits, instances, seed
        Length of rankings, number of visits, repetitions of each topic, and the seed.
    workers
        Number of processes; by default one per core.
    resume
        Whether to continue in a folder that has results already.
    about
        Additions to the manifest, such as the command and the notes that the report shows.
    watcher
        The observer that is told of each finished run.

    Returns
    -------
    ResultsFolder
        The folder, for `write_evaluation_report`.
    """
    from zoomrank.lab.results_folder import ResultsFolder, sweep_request

    runner = Local(workers)  # before anything is written
    runs = settings(topics, path, rankers, slots=slots, visits=visits, instances=instances, seed=seed)
    asked = sweep_request(KIND, instances, visits, seed, slots=slots, **(about or {}))
    folder = ResultsFolder.begin(path, asked, resume=resume)
    for topic in topics:
        store_topic(topic, topic_file(topic, path))
    sweep(runs, folder, runner, watcher)
    return folder


def settings(
    topics: Sequence[JudgedTopic],
    path: str | Path,
    rankers: Sequence[str] = DEFAULT_RANKERS,
    *,
    slots: int,
    visits: int,
    instances: int,
    seed: int,
) -> list[Setting]:
    """Return all runs, instance by instance, without writing anything."""
    if not topics:
        raise ParameterError("There is no topic to evaluate on; give at least one.")
    learning = {name.replace(":", "."): _ranker(name) for name in rankers if name not in GIVEN}
    runs = []
    for topic in topics:
        require_slots(topic, slots)
        # Topics are independent only if each draws its visitors from a random stream of its own.
        own = seed + zlib.crc32(topic.name.encode())
        experiment = _experiment(topic, str(topic_file(topic, path)), learning, slots, visits)
        runs += experiment.settings(instances=instances, seed=own)
    return sorted(runs, key=lambda run: run.instance)


def _experiment(topic: JudgedTopic, file: str, learning: Mapping[str, Recipe], slots: int, visits: int) -> Experiment:
    """Return the experiment of all rankers on one topic, whose world is read from its file."""
    rankers = {**learning, **given_rankings(file)}
    if topic.order is not None:
        rankers[SEARCH_ORDER] = recipe(in_search_order, documents=topic.order[:slots])
    return Experiment(
        name=experiment_of(topic.name),
        title=topic.name,
        tree=recipe(kept_tree, file=file),
        users=recipe(kept_users, file=file),
        slots=slots,
        visits=visits,
        curves=tuple(Curve(name, ranker) for name, ranker in rankers.items()),
    )


def _ranker(name: str) -> Recipe:
    if name not in COMPETITORS and name not in RANKERS and ":" not in name:
        known = ", ".join(sorted({*COMPETITORS, *RANKERS}))
        raise CatalogueError(f"Unknown ranker {name!r}; choose one of {known}, or name your own as module:Name.")
    if name == "RankEXP3":
        return recipe(name, horizon=ALL_VISITS)
    return COMPETITORS.get(name, recipe(name))


def given_rankings(file: str) -> dict[str, Recipe]:
    """Return the recipes of the rankings that do not learn, on the topic that is stored in this file."""
    return {
        GREEDY: recipe(GREEDY),
        POPULARITY: recipe(most_popular, file=file),
        DIVERSIFIED: recipe(diversified, file=file, tradeoff=TRADEOFF),
        CHANCE: recipe(CHANCE),
    }


def most_popular(tree: DocumentTree, slots: int, *, seed: np.random.Generator, file: str) -> FixedRanking:
    """Rank by popularity."""
    chosen = by_popularity(kept_users(tree, file=file).mean(), slots, seed)
    return FixedRanking(tree, tree.documents.at(chosen))


def diversified(
    tree: DocumentTree, slots: int, *, seed: np.random.Generator, file: str, tradeoff: float
) -> FixedRanking:
    """Rank by popularity and distance from the documents above."""
    chosen = marginally_relevant(tree, kept_users(tree, file=file).mean(), slots, tradeoff, seed)
    return FixedRanking(tree, tree.documents.at(chosen))


def in_search_order(tree: DocumentTree, slots: int, *, documents: Sequence[DocumentId], **_: object) -> FixedRanking:
    """Rank as the search engine did."""
    return FixedRanking(tree, documents[:slots])


def by_popularity(mean: Array, slots: int, rng: np.random.Generator) -> Positions:
    """Return the positions of the documents that are relevant to most visitors, the most popular first."""
    luck = rng.permutation(len(mean))
    return np.lexsort((luck, -rounded_for_ties(mean)))[:slots]


def marginally_relevant(
    tree: DocumentTree, mean: Array, slots: int, tradeoff: float, rng: np.random.Generator
) -> Positions:
    """Choose slot by slot what maximises λ · popularity - (1 - λ) · the largest similarity to the documents above.

    Both are within [0, 1]: popularity is divided by the largest, and similarity is 1 - distance / the largest distance.
    """
    popularity = mean / max(float(mean.max()), np.finfo(float).tiny)
    # In a tree metric, the largest distance from any one document is the largest distance of all.
    diameter = max(float(tree.distances(tree.documents[0]).max()), np.finfo(float).tiny)
    luck = rng.permutation(len(mean))
    alike = np.zeros(len(mean))
    left = np.ones(len(mean), bool)
    chosen: list[int] = []
    for _ in range(slots):
        score = np.where(left, rounded_for_ties(tradeoff * popularity - (1 - tradeoff) * alike), -np.inf)
        best = int(np.lexsort((luck, -score))[0])
        chosen.append(best)
        left[best] = False
        alike = np.maximum(alike, 1 - tree.distances(tree.documents[best]) / diameter)
    return np.array(chosen, np.int64)


def marks(visits: int) -> list[int]:
    """Return the visits by which clicks are counted, including the last."""
    return [mark for mark in MARKS if mark < visits] + [visits]


def topics_in(results: Results, *curves: str) -> list[str]:
    """Return the topics on which all of these curves and greedy have run, in natural order (2 before 10)."""
    there = [name for name in results.experiments() if results.comparable(name, GREEDY, *curves)]
    names = [unquote(name.removeprefix(_PREFIX)) for name in there if name.startswith(_PREFIX)]
    return sorted(names, key=_words_and_numbers)


def _words_and_numbers(name: str) -> list[str | int]:
    """Split a name into words and numbers, which alternate, so that like is compared with like."""
    return [int(part) if at % 2 else part for at, part in enumerate(re.split(r"([0-9]+)", name))]


def experiment_of(topic: str) -> str:
    """Return the name of a topic's experiment."""
    return _PREFIX + quote(topic, safe="")


def shares(results: Results, topics: Sequence[str], curve: str, visits: int) -> Array:
    """Return clicks by some visit as shares of greedy's: the mean of each topic, or all instances of the only one."""
    pairs = [results.together(experiment_of(topic), curve, GREEDY) for topic in topics]
    found = [collected(mine, greedy, visits) for mine, greedy in pairs]
    return found[0] if len(topics) == 1 else np.array([float(share.mean()) for share in found])


def popularity_share(results: Results, topics: Sequence[str]) -> float:
    """Return the share of greedy's clicks that a ranking by popularity is expected to collect, the mean over topics."""
    pairs = [results.together(experiment_of(topic), POPULARITY, GREEDY) for topic in topics]
    return float(np.mean([popular.expected[:, 0].mean() / greedy.expected[0, 0] for popular, greedy in pairs]))


def learning_curves(results: Results, topics: Sequence[str], curve: str) -> tuple[Array, Array]:
    """Return the checkpoints, and clicks so far as shares of greedy's: a row per topic, a column per checkpoint."""
    rows = []
    for topic in topics:
        mine, greedy = results.together(experiment_of(topic), curve, GREEDY)
        rows.append(collected_so_far(mine, greedy))
    return mine.visits, np.array(rows)
