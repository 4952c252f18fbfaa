"""`zoomrank evaluate` and `zoomrank inspect`: the user's own documents.

`evaluate` lets rankers learn on them, with visitors from relevance judgments; `inspect` checks first whether their
similarity agrees with labels or clicks. Both read the same files.
"""

import argparse
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING

from zoomrank.cli import arguments, inputs
from zoomrank.cli.terminal import SweepProgress, aligned, duration
from zoomrank.errors import ParameterError
from zoomrank.lab.curves import VISITS
from zoomrank.lab.evaluation import COMPETITORS, DEFAULT_RANKERS, INSTANCES
from zoomrank.lab.recipes import SEED
from zoomrank.lab.registry import RANKERS
from zoomrank.users.judgments import SKIP

if TYPE_CHECKING:
    from zoomrank.documents import ClickLog
    from zoomrank.lab.evaluation_report import EvaluationReport

_RANKERS = [*sorted({*COMPETITORS, *RANKERS}), "or module:Name of your own"]
_ABOUT = f"""Let rankers learn on judged documents, topic by topic, or on what recorded
people liked, and report how many clicks they collect. Clicks are simulated:
each visitor clicks on the first document that is relevant.

{inputs.SOURCES}
order:       a table as above with columns document, rank and, if there are
             several topics, topic
{arguments.listed("rankers:", _RANKERS)}
             Always included: the greedy optimum, popularity, MMR and random"""


def add(commands: arguments.Commands) -> None:
    """Add the command to the parser."""
    parser = arguments.add_command(
        commands,
        "evaluate",
        _ABOUT,
        "zoomrank evaluate pages.tsv --relevance STRel.txt --kind subtopics",
        "zoomrank evaluate web.zoom --relevance qrels.txt --topics 51 52 --unknown skip",
        "zoomrank evaluate films.csv --likes ratings.csv --threshold 5",
        "zoomrank evaluate pages.tsv --sessions visits.csv --candidates 300",
        "zoomrank evaluate pages.tsv --relevance qrels.txt --order results.csv",
        "zoomrank evaluate pages.tsv --relevance qrels.txt --scale calibrated",
        "zoomrank evaluate pages.tsv --relevance qrels.txt --visits 2000",
        extras=("documents", "lab"),
    )
    arguments.add_documents(parser)
    inputs.add_relevance(parser, required=True)
    _add_task(parser)
    arguments.add_visits(parser, VISITS)
    arguments.add_instances(parser, INSTANCES, "each topic")
    arguments.add_out(parser, "the report", Path("evaluation"))
    arguments.add_sweep(parser)
    arguments.add_seed(parser, SEED)
    parser.set_defaults(run=run)


def _add_task(parser: argparse.ArgumentParser) -> None:
    """Add the options of what to rank, and by which rankers."""
    parser.add_argument(
        "--candidates",
        type=inputs.candidates,
        metavar="WHICH",
        help="rank the documents that are judged for the topic, all, or a number: those with the most likes (default: "
        f"topic; {inputs.MOST_LIKED} with --likes and --sessions)",
    )
    parser.add_argument("--order", type=Path, metavar="FILE", help="order of a search engine, to compare with")
    parser.add_argument(
        "--scale",
        type=inputs.scale,
        default=inputs.DEFAULT,
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
    arguments.add_slots(parser)


def run(options: argparse.Namespace) -> None:
    """Read the files, run the rankers, write the report."""
    from zoomrank.lab.evaluation import evaluate
    from zoomrank.lab.evaluation_report import write_evaluation_report

    start = time.monotonic()
    shape = inputs.shape(options) or inputs.RELEVANCE
    if options.candidates is None:
        options.candidates = "topic" if shape == inputs.RELEVANCE else inputs.MOST_LIKED
    judgments, wanted = inputs.read_judgments(options)  # before placing documents, which is slow
    collection = inputs.read_collection(options.documents)
    collection, wanted, widths = inputs.rescale_collection(collection, judgments, wanted, options)
    visitors = inputs.VISITORS[shape]
    topics, notes = inputs.topics_of(collection, judgments, wanted, options.candidates, options.unknown, visitors)
    topics = topics if options.order is None else inputs.add_orders(topics, options.order)
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
            about={"command": _command(options), "notes": notes, "visitors": shape},
            watcher=progress,
        )
    print_evaluation(write_evaluation_report(folder))
    count = "1 topic" if len(topics) == 1 else f"{len(topics)} topics"
    print(f"{count} in {duration(time.monotonic() - start)}.")


def print_evaluation(report: "EvaluationReport") -> None:
    """Print the main table of a report, the share that popularity reaches, and the path of the page."""
    print(f"\nClicks as shares of greedy's\n\n{aligned(report.heads, report.rows)}\n\n{report.popularity}")
    print(f"Report: {report.page}")


def _command(options: argparse.Namespace) -> str:
    """Return the command that repeats the evaluation, without the user's folders."""
    words = ["zoomrank", "evaluate", options.documents.name, *inputs.relevance_words(options)]
    words += ["--candidates", options.candidates]
    words += [] if options.order is None else ["--order", options.order.name]
    words += [] if options.scale == inputs.DEFAULT else ["--scale", options.scale]
    words += ["--rankers", *options.rankers, "--slots", options.slots, "--visits", options.visits]
    words += ["--instances", options.instances, "--seed", options.seed]
    return shlex.join(map(str, words))


_ABOUT_INSPECT = f"""Summarise the tree of the documents: how deep, how wide, how uneven. With
labels, likes, sessions or clicks, also let ZoomRank and RankUCB1 learn from
visitors simulated from them and say which to take, whether close documents
please the same visitors, and a factor for the widths.

{inputs.SOURCES}
{inputs.CLICKS}"""


def add_inspect(commands: arguments.Commands) -> None:
    """Add the command to the parser."""
    parser = arguments.add_command(
        commands,
        "inspect",
        _ABOUT_INSPECT,
        "zoomrank inspect categories.txt",
        "zoomrank inspect pages.tsv --relevance STRel.txt --kind subtopics",
        "zoomrank inspect films.csv --likes ratings.csv",
        "zoomrank inspect pages.tsv --clicks clicks.jsonl --unknown skip",
        "zoomrank inspect pages.tsv --save pages.zoom   # keep the collection",
        extras=("documents", "lab"),
    )
    arguments.add_documents(parser)
    inputs.add_relevance(parser, required=False)
    parser.add_argument("--clicks", type=Path, metavar="FILE", help="a click log, instead of labels")
    arguments.add_slots(parser)
    parser.add_argument("--save", type=Path, metavar="FILE", help="save the collection, which loads much faster")
    arguments.add_out(parser, "the report", Path("inspection"))
    arguments.add_seed(parser, 0)
    parser.set_defaults(run=run_inspect)


def run_inspect(options: argparse.Namespace) -> None:
    """Inspect the collection, and write the report."""
    from zoomrank.lab.inspection import inspect_tree
    from zoomrank.lab.inspection_report import write_inspection

    log = _click_log(options)
    shape = inputs.shape(options)
    judgments = None if shape is None else inputs.read_judgments(options)
    collection = inputs.read_collection(options.documents)
    if options.save is not None:
        collection.save(options.save)
    tree, notes = collection.tree, list(collection.notes)
    visitors: list[tuple[list[list[str]], list[float]]] = []
    if judgments is not None:
        topics, notes = inputs.topics_of(
            collection, *judgments, "all", options.unknown, inputs.VISITORS[shape or inputs.RELEVANCE]
        )
        tree = topics[0].tree
        visitors = [inputs.known_rows(judgments[0], topic) for topic in topics]
    if log is not None and options.unknown == SKIP and (missing := len(log.unknown(tree.documents))):
        seen = len(log.documents)
        notes.append(f"Of {seen:,} documents in the log {missing:,} are not in the collection and were skipped.")
    look = inspect_tree(tree, visitors, options.seed, clicks=log, unknown=options.unknown, slots=options.slots)
    for note in notes:
        print(note)
    page = write_inspection(look, options.documents.name, options.out)
    print(f"{look.documents:,} documents, depth {look.depth}.")
    if look.verdict is not None:
        print(look.verdict.words)
    print(f"Report: {page}")


def _click_log(options: argparse.Namespace) -> "ClickLog | None":
    if options.clicks is None:
        return None
    from zoomrank.documents import read_clicks

    if inputs.shape(options) is not None or options.topics is not None:
        raise ParameterError("Give labels (--relevance, --likes or --sessions) or clicks (--clicks), not both.")
    return read_clicks(options.clicks)
