"""`zoomrank evaluate`: rankers on documents of one's own, with visitors from judgments of relevance."""

import argparse
import shlex
import textwrap
import time
from pathlib import Path

from zoomrank.cli.arguments import Commands, add_command, add_seed
from zoomrank.cli.inputs import (
    DEFAULT,
    SOURCES,
    add_relevance,
    read_collection,
    read_judgments,
    rescaled,
    scale,
    topics_of,
)
from zoomrank.lab.catalogue import RANKERS
from zoomrank.lab.competitors import COMPETITORS
from zoomrank.lab.evaluation.judged import DEFAULT_RANKERS, INSTANCES
from zoomrank.lab.measures import VISITS
from zoomrank.lab.recipes import SEED

_NAMES = ", ".join(sorted({*COMPETITORS, *RANKERS})) + ", or module:Name of your own."
_RANKERS = textwrap.fill(_NAMES, 95, break_on_hyphens=False).replace("\n", "\n" + " " * 13)
_ABOUT = f"""Let rankers learn on judged documents, topic by topic, and report how many clicks they collect. Clicks are
simulated from the judgments: each kind of visitor clicks on the first document that is relevant to it.

{SOURCES}

rankers:     {_RANKERS}
             Always there: the greedy optimum, popularity, MMR and random"""


def add(commands: Commands) -> None:
    """Describe the command."""
    parser = add_command(
        commands,
        "evaluate",
        "compare rankers on judged documents of yours",
        _ABOUT,
        "zoomrank evaluate --documents pages.tsv --relevance STRel.txt --kind subtopics",
        "zoomrank evaluate --documents web.zoom --relevance qrels.txt --topics 51 52 --unknown skip",
        "zoomrank evaluate --documents films.csv --relevance ratings.csv --kind ratings --threshold 4.5",
        "zoomrank evaluate --documents pages.tsv --relevance qrels.txt --scale calibrated",
        "zoomrank evaluate --documents pages.tsv --relevance qrels.txt --visits 2000 --instances 1      a quick look",
    )
    parser.add_argument("--documents", type=Path, required=True, metavar="FILE", help="what is ranked")
    add_relevance(parser, required=True)
    parser.add_argument(
        "--candidates", choices=["topic", "all"], default="topic", help="documents judged for the topic (topic), or all"
    )
    parser.add_argument(
        "--scale",
        type=scale,
        default=DEFAULT,
        metavar="X",
        help="widths times X; or calibrated, from half of the topics, to evaluate on the other half (default: as is)",
    )
    parser.add_argument(
        "--rankers",
        nargs="+",
        default=list(DEFAULT_RANKERS),
        metavar="RANKER",
        help=f"who learns ({' '.join(DEFAULT_RANKERS)})",
    )
    parser.add_argument("--slots", type=int, default=5, help="documents in a ranking (5)")
    parser.add_argument("--visits", type=int, default=VISITS, metavar="N", help=f"of each run ({VISITS:,})")
    parser.add_argument("--instances", type=int, default=INSTANCES, metavar="N", help=f"of each topic ({INSTANCES})")
    parser.add_argument("--out", type=Path, default=Path("evaluation"), metavar="DIR", help="folder (evaluation)")
    parser.add_argument("--resume", action="store_true", help="go on in a folder that has results already")
    parser.add_argument("--workers", type=int, metavar="N", help="processes (default: one a core)")
    add_seed(parser, SEED)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Read, let everybody learn, report."""
    from zoomrank.cli.progress import SweepProgress, duration
    from zoomrank.lab.evaluation.evaluation_report import write_evaluation_report
    from zoomrank.lab.evaluation.judged import evaluate

    start = time.monotonic()
    judgments, wanted = read_judgments(options)  # before the long work of placing documents
    collection = read_collection(options.documents)
    collection, wanted, widths = rescaled(collection, judgments, wanted, options)
    topics, notes = topics_of(collection, judgments, wanted, options.candidates, options.unknown)
    notes += widths
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


def _command(options: argparse.Namespace) -> str:
    """What was asked for, to be asked for again; folders are left out, being one's own."""
    words = ["zoomrank", "evaluate", "--documents", options.documents.name, "--relevance", options.relevance.name]
    words += ["--kind", options.kind, "--candidates", options.candidates, "--unknown", options.unknown]
    words += [] if options.threshold is None else ["--threshold", f"{options.threshold:g}"]
    words += [] if options.scale == DEFAULT else ["--scale", options.scale]
    words += ["--topics", *options.topics] if options.topics else []
    words += ["--rankers", *options.rankers, "--slots", options.slots, "--visits", options.visits]
    words += ["--instances", options.instances, "--seed", options.seed]
    return shlex.join(map(str, words))
