"""Rankers on judged collections: visitors follow from real labels, their clicks are simulated.

Every topic is a world of its own: a tree of candidate documents and a table of who finds which of them relevant.
Learners start from nothing in each. Beside them stand rankings that nobody has to learn, because they are given what
learners must find out: the greedy optimum, the documents in the order of their popularity, and these re-ranked for
diversity by maximal marginal relevance (Carbonell and Goldstein 1998); and random ones, which know nothing.

Worlds are kept as files beside the rows. A setting names its world's file, which has a fingerprint of its content in
its name, so runs can be carried out by any process, and rows of other data are never taken for these.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import numpy as np

from zoomrank.errors import CatalogueError, ParameterError, ResultsError, SlotsError
from zoomrank.lab.catalogue import GREEDY, RANKERS
from zoomrank.lab.recipes import ROUNDS as ALL_ROUNDS
from zoomrank.lab.recipes import SEED, Curve, Experiment, Recipe, Setting, recipe
from zoomrank.lab.results import Results
from zoomrank.lab.runners import Local
from zoomrank.lab.studies.study import COMPETITORS, MARKS, ROUNDS, collected
from zoomrank.numbers import Array, rounded_for_ties
from zoomrank.rankers import FixedRanking
from zoomrank.spaces import DocumentId, DocumentIds, DocumentTree
from zoomrank.spaces.ids import Positions
from zoomrank.spaces.topology import shape_from_breadth_first
from zoomrank.users import RelevanceTable

if TYPE_CHECKING:  # these need the extra zoomrank[lab], which nobody needs who only asks for help
    from zoomrank.lab.results_folder import Store
    from zoomrank.lab.sweep import Watcher

INSTANCES = 3
TRADEOFF = 0.5  # λ of maximal marginal relevance
RIVAL = "RankUCB1-tuned"
LEARNERS = ("ZoomRank", "RankCorrZoom", RIVAL)
POPULARITY, DIVERSIFIED, CHANCE = "Popularity", "MMR", "RankRandom"
GIVEN = (GREEDY, POPULARITY, DIVERSIFIED, CHANCE)  # always there, whoever learns
_PREFIX = "topic-"
_WORLDS = "worlds"


@dataclass(frozen=True)
class Topic:
    """Candidate documents, and who finds which of them relevant."""

    name: str
    tree: DocumentTree
    users: RelevanceTable


def evaluate(
    topics: Sequence[Topic],
    folder: str | Path,
    rankers: Sequence[str] = LEARNERS,
    *,
    slots: int = 5,
    visits: int = ROUNDS,
    instances: int = INSTANCES,
    seed: int = SEED,
    workers: int | None = None,
    resume: bool = False,
    about: Mapping[str, Any] | None = None,
    watcher: Watcher | None = None,
) -> Store:
    """Let all rankers learn on every topic and keep their rows in a folder; `about` is what the report tells of it."""
    from zoomrank.lab.results_folder import Store, about_sweep
    from zoomrank.lab.sweep import sweep

    engine = Local(workers)
    runs = settings(topics, folder, rankers, slots=slots, visits=visits, instances=instances, seed=seed)
    asked = {**about_sweep(["evaluation"], instances, visits, seed), "slots": slots, **(about or {})}
    store = (Store.resume if resume else Store.create)(folder, asked)
    for topic in topics:
        _save(topic, _file(topic, folder))
    sweep(runs, store, engine, watcher)
    return store


def settings(
    topics: Sequence[Topic],
    folder: str | Path,
    rankers: Sequence[str] = LEARNERS,
    *,
    slots: int,
    visits: int,
    instances: int,
    seed: int,
) -> list[Setting]:
    """All runs, instance by instance; nothing is written."""
    if not topics:
        raise ParameterError("There is no topic to evaluate on.")
    learners = {name.replace(":", "."): _learner(name) for name in rankers if name not in GIVEN}
    runs = []
    for topic in topics:
        if slots > len(topic.tree):
            raise SlotsError(
                f"The topic {topic.name!r} has {len(topic.tree)} candidate documents, too few for {slots} slots: "
                "leave it out, or ask for fewer slots."
            )
        file = str(_file(topic, folder))
        fixed = {
            GREEDY: recipe(GREEDY),
            POPULARITY: recipe(f"{__name__}:most_popular", file=file),
            DIVERSIFIED: recipe(f"{__name__}:diversified", file=file, tradeoff=TRADEOFF),
            CHANCE: recipe(CHANCE),
        }
        experiment = Experiment(
            name=_PREFIX + quote(topic.name, safe=""),
            title=topic.name,
            tree=recipe(f"{__name__}:kept_tree", file=file),
            users=recipe(f"{__name__}:kept_users", file=file),
            slots=slots,
            rounds=visits,
            curves=tuple(Curve(name, ranker) for name, ranker in {**learners, **fixed}.items()),
        )
        # Topics are independent of each other only if their visitors come from streams of their own.
        own = seed + zlib.crc32(topic.name.encode())
        runs += experiment.settings(instances=instances, seed=own)
    return sorted(runs, key=lambda run: run.instance)


def _learner(name: str) -> Recipe:
    if name not in COMPETITORS and name not in RANKERS and ":" not in name:
        known = ", ".join(sorted({*COMPETITORS, *RANKERS}))
        raise CatalogueError(f"There is no ranker {name!r}; there are {known}. Your own are called module:Name.")
    if name == "RankEXP3":
        return recipe(name, horizon=ALL_ROUNDS)
    return COMPETITORS.get(name, recipe(name))


# Rankings that need no learning. Ties are broken at random, by instance: the order of a tree puts like beside like.


def most_popular(tree: DocumentTree, slots: int, *, seed: np.random.Generator, file: str) -> FixedRanking:
    """Rank by popularity."""
    chosen = by_popularity(kept_users(tree, file=file).mean(), slots, seed)
    return FixedRanking(tree, tree.documents.at(chosen))


def diversified(
    tree: DocumentTree, slots: int, *, seed: np.random.Generator, file: str, tradeoff: float
) -> FixedRanking:
    """Rank by popularity and distance from what stands above."""
    chosen = marginally_relevant(tree, kept_users(tree, file=file).mean(), slots, tradeoff, seed)
    return FixedRanking(tree, tree.documents.at(chosen))


def by_popularity(mean: Array, slots: int, rng: np.random.Generator) -> Positions:
    """The positions of the documents that are relevant to most visitors, the most popular first."""
    luck = rng.permutation(len(mean))
    return np.lexsort((luck, -rounded_for_ties(mean)))[:slots]


def marginally_relevant(
    tree: DocumentTree, mean: Array, slots: int, tradeoff: float, rng: np.random.Generator
) -> Positions:
    """Choose slot by slot what maximises λ · popularity - (1 - λ) · the largest similarity to what stands above.

    Both are within [0, 1]: popularity is divided by the largest, and similarity is 1 - distance / the largest distance.
    """
    popularity = mean / max(float(mean.max()), np.finfo(float).tiny)
    # In a tree metric every document is as far from some other one as any two are.
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


# Worlds as files


def kept_tree(file: str) -> DocumentTree:
    """The candidates of a topic."""
    return kept_world(file)[0]


def kept_users(tree: DocumentTree, seed: Any = None, *, file: str) -> RelevanceTable:  # noqa: ARG001  (always the same)
    """The visitors of a topic."""
    return kept_world(file)[1]


@lru_cache(maxsize=4)
def kept_world(file: str) -> tuple[DocumentTree, RelevanceTable]:
    """Read both."""
    try:
        with np.load(file, allow_pickle=False) as kept:
            ids = json.loads(str(kept["ids"]))
            shape = shape_from_breadth_first(kept["parent"], kept["child_start"])
            tree = DocumentTree(shape, kept["width"], DocumentIds(len(ids), ids))
            starts, columns, weights = kept["starts"], kept["columns"], kept["weights"]
    except (OSError, KeyError, ValueError) as error:
        raise ResultsError(f"The world {file} cannot be read: {error}. Evaluate again in another folder.") from error
    rows = [tree.documents.at(columns[start:end]) for start, end in pairwise(starts)]
    return tree, RelevanceTable(tree, rows, weights)


def _save(topic: Topic, path: Path) -> None:
    if path.exists():  # the same content, or its name would be another
        return
    shape, state = topic.tree.shape, topic.users.state
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part.npz")
    np.savez_compressed(
        part,
        ids=np.array(json.dumps(_plain_ids(topic.tree.documents))),
        parent=shape.parent,
        child_start=shape.child_start,
        width=topic.tree.width,
        starts=state.row_start,
        columns=state.relevant,
        weights=topic.users.weights,
    )
    part.replace(path)


def _file(topic: Topic, folder: str | Path) -> Path:
    digest = hashlib.sha256(topic.tree.fingerprint.encode())
    digest.update(json.dumps(_plain_ids(topic.tree.documents)).encode())
    for array in (topic.users.state.row_start, topic.users.state.relevant, topic.users.weights):
        digest.update(array.tobytes())
    return Path(folder) / _WORLDS / f"{quote(topic.name, safe='')}-{digest.hexdigest()[:12]}.npz"


def _plain_ids(documents: DocumentIds) -> list[DocumentId]:
    ids = list(documents)
    odd = next((name for name in ids if not isinstance(name, str | int)), None)
    if odd is not None:
        raise ParameterError(f"The document {odd!r} cannot be kept in a file: its id must be a text or a whole number.")
    return ids


# Measures


def marks(visits: int) -> list[int]:
    """The visits by which clicks are counted, the last of them included."""
    return [mark for mark in MARKS if mark < visits] + [visits]


def topics_in(results: Results, *curves: str) -> list[str]:
    """The topics on which all of these curves and greedy have run, 2 before 10."""
    there = [name for name in results.experiments() if results.comparable(name, GREEDY, *curves)]
    names = [unquote(name.removeprefix(_PREFIX)) for name in there if name.startswith(_PREFIX)]
    return sorted(names, key=_words_and_numbers)


def _words_and_numbers(name: str) -> list[str | int]:
    """They take turns, so like is compared with like."""
    return [int(part) if at % 2 else part for at, part in enumerate(re.split(r"([0-9]+)", name))]


def experiment_of(topic: str) -> str:
    """How the experiment of a topic is called."""
    return _PREFIX + quote(topic, safe="")


def shares(results: Results, topics: Sequence[str], curve: str, visits: int) -> Array:
    """Clicks by some visit as shares of greedy's, a number per topic: the mean of its instances."""
    pairs = (results.together(experiment_of(topic), curve, GREEDY) for topic in topics)
    return np.array([float(collected(mine, greedy, visits).mean()) for mine, greedy in pairs])


def learning_curves(results: Results, topics: Sequence[str], curve: str) -> tuple[Array, Array]:
    """At which visits was looked, and clicks so far as shares of greedy's: a row per topic, a column per look."""
    rows = []
    for topic in topics:
        mine, greedy = results.together(experiment_of(topic), curve, GREEDY)
        rows.append((mine.satisfied / mine.round / greedy.expected[:, :1]).mean(axis=0))
    return mine.round, np.array(rows)


def kept_world_of(store: Store, setting: Setting) -> tuple[DocumentTree, RelevanceTable]:
    """The world of a run, from the folder that the rows are in now."""
    return kept_world(str(store.folder / _WORLDS / Path(setting.tree.given["file"]).name))
