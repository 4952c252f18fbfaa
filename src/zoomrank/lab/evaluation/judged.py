"""Evaluation of rankers on judged collections: visitors follow real labels, their clicks are simulated.

Every topic is a separate world, in which rankers start without data. They are compared with rankings that are given
what rankers must find out.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zoomrank.errors import CatalogueError, ParameterError
from zoomrank.lab.catalogue import RANKERS
from zoomrank.lab.competitors import COMPETITORS, OURS, PUBLISHED, RIVAL
from zoomrank.lab.evaluation import KIND
from zoomrank.lab.evaluation.given_rankings import GIVEN, given_rankings
from zoomrank.lab.evaluation.topic_shares import experiment_of
from zoomrank.lab.kept_worlds import JudgedTopic, kept_tree, kept_users, require_slots, store_topic, topic_file
from zoomrank.lab.measures import VISITS
from zoomrank.lab.recipes import ALL_VISITS, SEED, Curve, Experiment, Recipe, Setting, recipe
from zoomrank.lab.runners import Local

if TYPE_CHECKING:  # these need the extra zoomrank[lab], which `--help` must not require
    from zoomrank.lab.results_folder import ResultsFolder
    from zoomrank.lab.sweep import SweepObserver

INSTANCES = 3
DEFAULT_RANKERS = (OURS, PUBLISHED, RIVAL)


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
    from zoomrank.lab.sweep import sweep

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
    return Experiment(
        name=experiment_of(topic.name),
        title=topic.name,
        tree=recipe(kept_tree, file=file),
        users=recipe(kept_users, file=file),
        slots=slots,
        visits=visits,
        curves=tuple(Curve(name, ranker) for name, ranker in {**learning, **given_rankings(file)}.items()),
    )


def _ranker(name: str) -> Recipe:
    if name not in COMPETITORS and name not in RANKERS and ":" not in name:
        known = ", ".join(sorted({*COMPETITORS, *RANKERS}))
        raise CatalogueError(f"Unknown ranker {name!r}; choose one of {known}, or name your own as module:Name.")
    if name == "RankEXP3":
        return recipe(name, horizon=ALL_VISITS)
    return COMPETITORS.get(name, recipe(name))
