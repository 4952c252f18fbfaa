"""`python -m research study`: measure how many impressions learners need."""

import argparse
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from research.studies import KIND
from research.studies.families import FAMILIES, SLOTS, families_of
from research.studies.questions import STUDIES
from research.studies.taxonomies import read_taxonomy, store_taxonomy, taxonomy_file
from zoomrank.cli.arguments import (
    Commands,
    add_cluster,
    add_command,
    add_instances,
    add_out,
    add_seed,
    add_sweep,
    add_visits,
    installing,
    require,
)
from zoomrank.cli.inputs import (
    SOURCES,
    add_relevance,
    read_collection,
    read_judgments,
    relevance_words,
    shape,
    topics_of,
)
from zoomrank.cli.terminal import ProgressLine
from zoomrank.errors import ParameterError
from zoomrank.lab.registry import JudgedTopic, require_slots, store_topic, topic_file

_STUDY = "  {:<19} {}\n" + " " * 22 + "({} instances, seed {})"
_FAMILY = "  {:<19} {}"
_ABOUT = "\n".join(
    [
        "Run ZoomRank and its competitors on many families of worlds, and report.",
        "\nstudies:",
        *(_STUDY.format(name, one.title, one.instances, one.seed) for name, one in STUDIES.items()),
        "\nfamilies (those with * take twice as many instances, which differ much, or whose first\nvisits do):",
        *(_FAMILY.format(family.name + "*" * family.twice, family.title) for family in FAMILIES),
        "\nfamilies of your own, for efficiency and tuning (queries makes traffic of them):",
        _FAMILY.format("taxonomy", "peaks on your taxonomy (--taxonomy)"),
        _FAMILY.format("taxonomy-intents", "intents on it (--taxonomy)"),
        _FAMILY.format("judged-topics", "the documents judged for a topic (--judged)"),
        _FAMILY.format("judged-all", "all documents that are there (--judged)"),
        "  instance i of the judged ones is about topic i; after the last, the first",
        f"\n{SOURCES}",
    ]
)


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "study",
        _ABOUT,
        "python -m research study efficiency",
        "python -m research study efficiency --instances 4 --visits 5000   # a quick look",
        "python -m research study efficiency --taxonomy categories.txt   # on yours, too",
        "python -m research study tuning --judged pages.tsv --relevance qrels.txt",
        extras=("lab",),
    )
    parser.add_argument("study", choices=list(STUDIES), metavar="STUDY", help="any of the above")
    parser.add_argument(
        "--taxonomy",
        type=Path,
        metavar="FILE",
        help='two more families: a file with a path such as "Animals > Birds" in each line',
    )
    parser.add_argument(
        "--judged",
        type=Path,
        metavar="FILE",
        help="two more families: documents, in any of the forms above, with --relevance; "
        f"needs {installing(['documents', 'lab'])}",
    )
    parser.add_argument(
        "--families",
        nargs="+",
        choices=[family.name for family in FAMILIES],
        metavar="FAMILY",
        help="of efficiency and tuning: these families only",
    )
    parser.add_argument("--traffic", action="store_true", help="of queries: the traffic alone, which takes minutes")
    add_relevance(parser, required=False)
    add_visits(parser, None)
    add_instances(parser, None, "each family")
    add_out(parser, "the report", "named like the study")
    add_sweep(parser)
    add_cluster(parser)
    add_seed(parser, None)
    parser.set_defaults(run=run)


def add_report(commands: Commands) -> None:
    """Add the command that writes the report of a study again."""
    parser = add_command(
        commands,
        "report",
        "Draw the figures and write the report from the rows that a folder of results has\n"
        "so far; the study may still be at work.",
        "python -m research report efficiency",
        extras=("lab",),
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder given to --out of the study")
    parser.set_defaults(run=run_report)


def run_report(options: argparse.Namespace) -> None:
    """Write the report of a study from its folder."""
    from research.studies.report import write_study_report
    from zoomrank.lab.results_folder import ResultsFolder

    print(f"Report: {write_study_report(ResultsFolder(options.folder))}")


def run(options: argparse.Namespace) -> None:
    """Carry out what is missing, then write the report."""
    from research.studies.report import write_study_report
    from zoomrank.cli.terminal import SweepProgress, duration
    from zoomrank.lab.results_folder import ResultsFolder, sweep_request
    from zoomrank.lab.sweep import make_runner, sweep

    start = time.monotonic()
    study = STUDIES[options.study]
    options.instances = study.instances if options.instances is None else options.instances
    options.seed = study.seed if options.seed is None else options.seed
    options.out = options.out or Path(options.study)
    own = _own_files(options)
    about = sweep_request(KIND, options.instances, options.visits, options.seed, study=options.study, **own.about)
    runs = (
        [] if options.traffic else study.settings(options.instances, options.visits, options.seed, families_of(about))
    )
    runner = make_runner(options.engine, options.workers, options.address)  # before anything is written
    with closing(runner):
        folder = ResultsFolder.begin(options.out, about, resume=options.resume)
        for write in own.writes:
            write(folder.path)
        with SweepProgress() as progress:
            sweep(runs, folder, runner, progress)
        if options.study == "queries":
            _simulate_traffic(folder, runner.workers)
        if options.study == "judging":
            _judge_logs(folder, runner.workers)
    page = write_study_report(folder)
    done = f"{options.instances} logs of each kind" if options.study == "judging" else f"{len(runs)} runs"
    print(f"{done} in {duration(time.monotonic() - start)}.\nReport: {page}")


def _simulate_traffic(folder: Any, workers: int) -> None:
    """Simulate traffic of queries that learn at the same time; report each finished world."""
    from research.studies.queries import carry_out

    for name in carry_out(folder.manifest, folder.path, workers):
        print(f"Traffic: {name} is done.", flush=True)


def _judge_logs(folder: Any, workers: int) -> None:
    """Simulate and judge logs, part by part."""
    from research.studies.judging import carry_out

    with ProgressLine("parts of logs") as progress:
        for done, (_, parts) in enumerate(carry_out(folder, workers), start=1):
            progress.tell(done, parts)


@dataclass
class _OwnFiles:
    """Worlds from the user's own files: their entries in the manifest, and how to write them to a folder of results."""

    about: dict[str, Any] = field(default_factory=dict)
    writes: list[Callable[[Path], None]] = field(default_factory=list)


def _own_files(options: argparse.Namespace) -> _OwnFiles:
    own = _OwnFiles({"traffic": True} if options.traffic else {})
    if options.families and options.study not in ("efficiency", "tuning"):
        raise ParameterError("--families is only for the studies efficiency and tuning; leave it out.")
    if options.families:
        own.about["families"] = options.families
    if options.traffic and options.study != "queries":
        raise ParameterError("--traffic is only for the study queries; leave it out.")
    if (options.judged is None) != (shape(options) is None):
        raise ParameterError("Judged documents need both --judged, the documents, and --relevance, the judgments.")
    if options.study in ("convergence", "warm-start", "judging") and (options.taxonomy or options.judged):
        raise ParameterError(
            "--taxonomy and --judged are only for the studies efficiency, tuning and queries; leave them out."
        )
    if options.taxonomy is not None:
        _add_taxonomy(own, options.taxonomy)
    if options.judged is not None:
        _add_judged(own, options)
    return own


def _add_taxonomy(own: _OwnFiles, path: Path) -> None:
    taxonomy = read_taxonomy(path)
    file = taxonomy_file(taxonomy)
    own.about["taxonomy"] = file
    own.writes.append(lambda folder: store_taxonomy(taxonomy, folder / file))


def _add_judged(own: _OwnFiles, options: argparse.Namespace) -> None:
    require("python -m research study --judged", ("documents", "lab"))
    judgments, wanted = read_judgments(options)  # before placing documents, which is slow
    collection = read_collection(options.judged)
    near, notes = topics_of(collection, judgments, wanted, "topic", options.unknown)
    everything, _ = topics_of(collection, judgments, wanted, "all", options.unknown)
    for topic in near:
        require_slots(topic, SLOTS)
    for note in notes:
        print(note)
    own.about["judged"] = {
        "documents": options.judged.name,
        "options": ["--judged", options.judged.name, *relevance_words(options)],
        "topics": _files(near),
        "all": _files(everything),
        "notes": notes,
    }
    own.writes.append(lambda folder: _keep_all([*near, *everything], folder))


def _files(topics: list[JudgedTopic]) -> list[str]:
    """Return the paths of topics, relative to the folder of results."""
    return [topic_file(topic, "").as_posix() for topic in topics]


def _keep_all(topics: list[JudgedTopic], folder: Path) -> None:
    for topic in topics:
        store_topic(topic, topic_file(topic, folder))
