"""`zoomrank inspect`: whether the similarity of a collection is any good."""

import argparse
from pathlib import Path

from zoomrank.cli.arguments import Commands, add_command, add_seed
from zoomrank.cli.inputs import SOURCES, add_relevance, read_collection, read_judgments, topics_of


def add(commands: Commands) -> None:
    """Describe the command."""
    parser = add_command(
        commands,
        "inspect",
        "whether the similarity of a collection is any good",
        "Look at the tree of a collection: how deep, how wide, how uneven. With labels also at whether documents that\n"
        f"are close please the same visitors, and what that means for the choice of a ranker.\n\n{SOURCES}",
        "zoomrank inspect categories.txt",
        "zoomrank inspect pages.tsv --relevance STRel.txt --kind subtopics",
        "zoomrank inspect pages.tsv --save pages.zoom            keep the collection that was made",
    )
    parser.add_argument("documents", type=Path, metavar="COLLECTION", help="a file of documents")
    add_relevance(parser, required=False)
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the collection, to be loaded in no time")
    parser.add_argument("--out", type=Path, default=Path("inspection"), metavar="DIR", help="folder (inspection)")
    add_seed(parser, 0)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Look, and write down what is seen."""
    from zoomrank.lab.inspection import inspect_tree
    from zoomrank.lab.inspection_report import write_inspection

    judgments = read_judgments(options) if options.relevance is not None else None
    collection = read_collection(options.documents)
    if options.save is not None:
        collection.save(options.save)
    tree, visitors = collection.tree, []
    if judgments is not None:
        topics, notes = topics_of(collection, *judgments, "all", options.unknown)
        tree = topics[0].tree
        for note in notes:
            print(note)
        for topic in topics:
            weights = judgments[0].weights(topic.name)
            rows = judgments[0].rows(topic.name).items()
            known = {kind: [document for document in row if document in tree.documents] for kind, row in rows}
            visitors.append((list(known.values()), [weights[kind] for kind in known]))
    look = inspect_tree(tree, visitors, options.seed)
    page = write_inspection(look, options.documents.name, options.out)
    print(f"{look.documents:,} documents, depth {look.depth}.")
    if look.verdict is not None:
        print(look.verdict.words)
    print(f"Report: {page}")
