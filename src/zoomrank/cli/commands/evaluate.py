"""`zoomrank evaluate`: rankers on the user's own documents, with visitors from relevance judgments."""

import argparse
import shlex
import time
from pathlib import Path

from zoomrank.cli.arguments import (
    Commands,
    add_command,
    add_documents,
    add_instances,
    add_out,
    add_seed,
    add_slots,
    add_sweep,
    add_visits,
    listed,
)
from zoomrank.cli.inputs import (
    DEFAULT,
    SOURCES,
    add_relevance,
    read_collection,
    read_judgments,
    relevance_words,
    rescale_collection,
    scale,
    topics_of,
)
from zoomrank.lab.catalogue import RANKERS
from zoomrank.lab.competitors import COMPETITORS
from zoomrank.lab.evaluation.judged import DEFAULT_RANKERS, INSTANCES
from zoomrank.lab.kept_worlds import JudgedTopic
from zoomrank.lab.measures import VISITS
from zoomrank.lab.recipes import SEED

_RANKERS = [*sorted({*COMPETITORS, *RANKERS}), "or module:Name of your own"]
_ABOUT = f"""Let rankers learn on judged documents, topic by topic, and report how many
clicks they collect. Clicks are simulated from the judgments: each kind of
visitor clicks on the first document that is relevant to it.

{SOURCES}
{listed("rankers:", _RANKERS)}
             Always included: the greedy optimum, popularity, MMR and random"""


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "evaluate",
        "compare rankers on judged documents of yours",
        _ABOUT,
        "zoomrank evaluate pages.tsv --relevance STRel.txt --kind subtopics",
        "zoomrank evaluate web.zoom --relevance qrels.txt --topics 51 52 --unknown skip",
        "zoomrank evaluate films.csv --relevance ratings.csv --kind ratings",
        "zoomrank evaluate pages.tsv --relevance qrels.txt --scale calibrated",
        "zoomrank evaluate pages.tsv --relevance qrels.txt --visits 2000",
        extras=("documents", "lab"),
    )
    add_documents(parser)
    add_relevance(parser, required=True)
    _add_task(parser)
    add_visits(parser, VISITS)
    add_instances(parser, INSTANCES, "each topic")
    add_out(parser, "the report", Path("evaluation"))
    add_sweep(parser)
    add_seed(parser, SEED)
    parser.set_defaults(run=run)


def _add_task(parser: argparse.ArgumentParser) -> None:
    """Add the options of what to rank, and by which rankers."""
    parser.add_argument(
        "--candidates",
        choices=["topic", "all"],
        default="topic",
        help="rank the documents that are judged for the topic, or all (default: topic)",
    )
    parser.add_argument(
        "--scale",
        type=scale,
        default=DEFAULT,
        metavar="X",
        help="multiply widths by X; or calibrated: by what half of the topics suggest, to evaluate on the other half "
        "(default: widths as they are)",
    )
    parser.add_argument(
        "--rankers",
        nargs="+",
        default=list(DEFAULT_RANKERS),
        metavar="RANKER",
        help=f"rankers that learn (default: {' '.join(DEFAULT_RANKERS)})",
    )
    add_slots(parser)


def run(options: argparse.Namespace) -> None:
    """Read the files, run the rankers, write the report."""
    from zoomrank.cli.progress import SweepProgress, duration
    from zoomrank.lab.evaluation.evaluation_report import write_evaluation_report
    from zoomrank.lab.evaluation.judged import evaluate

    start = time.monotonic()
    topics, notes = _read(options)
    for note in notes:
        print(note)
    with SweepProgress() as progress:
        folder = evaluate(
            topics,
            options.out,
            options.rankers,
            slots=options.slots,
            visits=options.visits,
            instances=options.instances,
            seed=options.seed,
            workers=options.workers,
            resume=options.resume,
            about={"command": _command(options), "notes": notes},
            watcher=progress,
        )
    page = write_evaluation_report(folder)
    count = "1 topic" if len(topics) == 1 else f"{len(topics)} topics"
    print(f"{count} in {duration(time.monotonic() - start)}.\nReport: {page}")


def _read(options: argparse.Namespace) -> tuple[list[JudgedTopic], list[str]]:
    """Return the worlds to evaluate on, and notes for the reader."""
    judgments, wanted = read_judgments(options)  # before placing documents, which is slow
    collection = read_collection(options.documents)
    collection, wanted, widths = rescale_collection(collection, judgments, wanted, options)
    topics, notes = topics_of(collection, judgments, wanted, options.candidates, options.unknown)
    return topics, notes + widths


def _command(options: argparse.Namespace) -> str:
    """Return the command that repeats the evaluation, without the user's folders."""
    words = ["zoomrank", "evaluate", options.documents.name, *relevance_words(options)]
    words += ["--candidates", options.candidates]
    words += [] if options.scale == DEFAULT else ["--scale", options.scale]
    words += ["--rankers", *options.rankers, "--slots", options.slots, "--visits", options.visits]
    words += ["--instances", options.instances, "--seed", options.seed]
    return shlex.join(map(str, words))
