"""`zoomrank inspect`: check whether the similarity of a collection agrees with labels or clicks."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from zoomrank.cli.arguments import Commands, add_command, add_documents, add_out, add_seed
from zoomrank.cli.inputs import CLICKS, SOURCES, add_relevance, known_rows, read_collection, read_judgments, topics_of
from zoomrank.errors import ParameterError
from zoomrank.spaces import DocumentTree
from zoomrank.users.judgments import SKIP

if TYPE_CHECKING:
    from zoomrank.documents import ClickLog


_ABOUT = f"""Summarise the tree of the documents: how deep, how wide, how uneven. With
labels or clicks, also check whether close documents please the same
visitors, suggest a factor for the widths, and say what that
means for the choice of a ranker.

{SOURCES}
{CLICKS}"""


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "inspect",
        "check whether the similarity of your documents is useful",
        _ABOUT,
        "zoomrank inspect categories.txt",
        "zoomrank inspect pages.tsv --relevance STRel.txt --kind subtopics",
        "zoomrank inspect films.csv --relevance ratings.csv --kind ratings",
        "zoomrank inspect pages.tsv --clicks clicks.jsonl --unknown skip",
        "zoomrank inspect pages.tsv --save pages.zoom   # keep the collection",
        extras=("documents", "lab"),
    )
    add_documents(parser)
    add_relevance(parser, required=False)
    parser.add_argument("--clicks", type=Path, metavar="FILE", help="a click log, instead of --relevance")
    parser.add_argument("--save", type=Path, metavar="FILE", help="save the collection, which loads much faster")
    add_out(parser, "the report", Path("inspection"))
    add_seed(parser, 0)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Inspect the collection, and write the report."""
    from zoomrank.lab.inspection.inspection_report import write_inspection
    from zoomrank.lab.inspection.look import inspect_tree

    log = _click_log(options)
    judgments = read_judgments(options) if options.relevance is not None else None
    collection = read_collection(options.documents)
    if options.save is not None:
        collection.save(options.save)
    tree, notes = collection.tree, list(collection.notes)
    visitors: list[tuple[list[list[str]], list[float]]] = []
    if judgments is not None:
        topics, notes = topics_of(collection, *judgments, "all", options.unknown)
        tree = topics[0].tree
        visitors = [known_rows(judgments[0], topic) for topic in topics]
    if log is not None and options.unknown == SKIP:
        notes += _skipped(log, tree)
    look = inspect_tree(tree, visitors, options.seed, clicks=log, unknown=options.unknown)
    for note in notes:
        print(note)
    page = write_inspection(look, options.documents.name, options.out)
    print(f"{look.documents:,} documents, depth {look.depth}.")
    if look.verdict is not None:
        print(look.verdict.words)
    print(f"Report: {page}")


def _skipped(log: "ClickLog", tree: DocumentTree) -> list[str]:
    missing, seen = len(log.unknown(tree.documents)), len(log.documents)
    if not missing:
        return []
    return [f"Of {seen:,} documents in the log {missing:,} are not in the collection and were skipped."]


def _click_log(options: argparse.Namespace) -> "ClickLog | None":
    from zoomrank.documents import read_clicks

    if options.clicks is None:
        return None
    if options.relevance is not None or options.topics is not None:
        raise ParameterError("Give labels (--relevance, with --topics) or clicks (--clicks), not both.")
    return read_clicks(options.clicks)
