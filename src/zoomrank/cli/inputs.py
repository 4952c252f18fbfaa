"""Documents and judgments that commands read: their formats, and how they are combined."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from zoomrank.cli.arguments import add_unknown
from zoomrank.documents.collection import checked_scale
from zoomrank.errors import EmptyCollectionError, ParameterError, SourceError
from zoomrank.lab.inspection import LEAST_SCALE, suggested_scale
from zoomrank.lab.registry import JudgedTopic
from zoomrank.spaces import DocumentIds, DocumentTree
from zoomrank.users.judgments import READERS, THRESHOLD, Judgments, read_ratings

if TYPE_CHECKING:
    from zoomrank.documents import Collection

_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
_TAXONOMY = ".txt"
SOURCES = f"""documents:   a collection that zoomrank saved; or a table ({_TABLES[0]}, {_TABLES[1]}, {_TABLES[2]},
             {_TABLES[3]}, {_TABLES[4]}) with columns id, title and text, which is placed
             by its words, or id and path, by its taxonomy; or a text file with
             a path such as "Animals > Birds > Owls" in each line
relevance:   qrels      topic subtopic document judgment, as at TREC; a judgment
                        above 0 means relevant
             subtopics  tab separated, with columns subTopicID and docID;
                        subtopic 3.7 belongs to topic 3
             ratings    user,item,rating by commas or tabs; every user is a kind
                        of visitor"""
CLICKS = """clicks:      a table as above with columns query, impression, position, document
             and clicked (1 or 0), or in JSONL and Parquet query, shown (a list
             of ids) and clicked (an id, or null); with a single query, it
             need not be named"""
DEFAULT, CALIBRATED = "default", "calibrated"


def add_relevance(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Add `--relevance FILE` and its format."""
    parser.add_argument(
        "--relevance",
        type=Path,
        required=required,
        metavar="FILE",
        help="judgments: which documents are relevant to which visitors",
    )
    parser.add_argument("--kind", choices=list(READERS), default="qrels", help="format of that file (default: qrels)")
    parser.add_argument(
        "--threshold",
        type=float,
        metavar="X",
        help=f"with --kind ratings: lowest rating that means relevant (default: {THRESHOLD:g})",
    )
    parser.add_argument("--topics", nargs="+", metavar="TOPIC", help="only these topics (default: all)")
    add_unknown(parser, "documents that the collection lacks")


def relevance_words(options: argparse.Namespace) -> list[str]:
    """Return the options of `add_relevance` as words of a command, without the user's folders."""
    words = ["--relevance", options.relevance.name, "--kind", options.kind, "--unknown", options.unknown]
    words += [] if options.threshold is None else ["--threshold", f"{options.threshold:g}"]
    return words + (["--topics", *options.topics] if options.topics else [])


def read_judgments(options: argparse.Namespace) -> tuple[Judgments, list[str]]:
    """Return the judgments, and the topics asked for."""
    if options.kind == "ratings":
        judgments = read_ratings(options.relevance, THRESHOLD if options.threshold is None else options.threshold)
    elif options.threshold is not None:
        raise ParameterError("--threshold is only for --kind ratings; leave it out.")
    else:
        judgments = READERS[options.kind](options.relevance)
    for name in options.topics or ():
        judgments.rows(name)  # raises an error for unknown topics
    return judgments, list(dict.fromkeys(options.topics or judgments.topics))


def read_collection(path: Path) -> "Collection":
    """Load a saved collection, or build one from a table or a taxonomy."""
    from zoomrank.documents import Collection, load_collection
    from zoomrank.documents.source_files import read_table

    if path.suffix.lower() == _TAXONOMY:
        return Collection.from_taxonomy(path, categories="skip")
    if path.suffix.lower() not in _TABLES:
        return load_collection(path)
    table = read_table(path)
    if "path" in table:
        return Collection.from_taxonomy(path)
    parts = [table[name] for name in ("title", "text") if name in table]
    if not parts:
        raise SourceError(f"{path} has no column to place documents by: it needs a title, a text or a path.")
    texts = [" ".join(part for part in row if part) for row in zip(*parts, strict=True)]
    return Collection.from_texts(texts, ids=table["id"], titles=table.get("title"), urls=table.get("url"))


def topics_of(
    collection: "Collection", judgments: Judgments, wanted: Sequence[str], candidates: str, unknown: str
) -> tuple[list[JudgedTopic], list[str]]:
    """Return the worlds to evaluate on, and notes for the reader."""
    # In files of judgments all ids are texts; those of a collection may be whole numbers.
    names = {str(document): document for document in collection.tree.documents}
    if len(names) < len(collection):
        raise ParameterError("Two documents have the same id as text; give each an id of its own.")
    documents, whole = DocumentIds(len(collection), list(names)), _by_text(collection.tree)
    topics, empty, skipped, judged = [], [], 0, 0
    for name in wanted:
        known = judgments.candidates(name, documents, unknown)
        judged += len(judgments.judged(name))
        skipped += len(judgments.judged(name)) - len(known)
        try:
            tree = whole
            if candidates == "topic" and known:
                tree = _by_text(collection.restricted(names[document] for document in known).tree)
            topics.append(JudgedTopic(name, tree, judgments.table(name, tree, unknown)))
        except EmptyCollectionError:
            empty.append(name)
    if not topics:
        raise EmptyCollectionError(
            "None of the relevant documents is in the collection; check that both files use the same ids."
        )
    return topics, [*collection.notes, *_left_out(judged, skipped, empty)]


def _left_out(judged: int, skipped: int, empty: Sequence[str]) -> Iterator[str]:
    """Note judged documents that the collection lacks."""
    if skipped:
        yield f"Of {judged:,} judged documents {skipped:,} are not in the collection and were skipped."
    if empty:
        yield f"Topics without any relevant document in the collection were left out: {', '.join(empty)}."


def known_rows(judgments: Judgments, topic: JudgedTopic) -> tuple[list[list[str]], list[float]]:
    """Return what each kind of visitor of a topic likes among the candidates, and the weights of these kinds."""
    weights, rows = judgments.weights(topic.name), judgments.rows(topic.name)
    known = {kind: [document for document in row if document in topic.tree.documents] for kind, row in rows.items()}
    return list(known.values()), [weights[kind] for kind in known]


def scale(text: str) -> str | float:
    """Parse `default`, `calibrated`, or a factor."""
    if text in (DEFAULT, CALIBRATED):
        return text
    try:
        return checked_scale(float(text))
    except ValueError:  # not a number, or not a positive one
        raise argparse.ArgumentTypeError(f"{text!r} is neither {DEFAULT}, {CALIBRATED} nor a positive number") from None


def rescale_collection(
    collection: "Collection", judgments: Judgments, wanted: Sequence[str], options: argparse.Namespace
) -> tuple["Collection", list[str], list[str]]:
    """Return the collection with the widths asked for, the topics left to evaluate on, and notes for the reader.

    Widths that are calibrated on some labels must be evaluated on others. So half of the topics, drawn by the seed,
    suggest a factor each, on their own candidates, of which the median is used; the other half is evaluated.
    """
    if options.scale == DEFAULT:
        return collection, list(wanted), []
    if options.scale != CALIBRATED:
        return collection.scaled(options.scale), list(wanted), [f"All widths were multiplied by {options.scale:g}."]
    topics, _ = topics_of(collection, judgments, wanted, options.candidates, options.unknown)
    if len(topics) < 2:
        raise ParameterError(
            "Calibrating widths takes two topics, one to learn them from and one to evaluate on; there is only one. "
            "Give a number instead, perhaps the one that zoomrank inspect suggests."
        )
    order = np.random.default_rng(options.seed).permutation(len(topics)).tolist()
    numbers = sorted(order[: len(topics) // 2])
    teachers = [topics[number] for number in numbers]
    factor = _calibrated(judgments, teachers)
    left = [topic.name for number, topic in enumerate(topics) if number not in numbers]
    return collection.scaled(factor), left, [_how_calibrated(factor, teachers)]


def _calibrated(judgments: Judgments, teachers: Sequence[JudgedTopic]) -> float:
    """Return the median of the factors that topics suggest."""
    factors = []
    for topic in teachers:
        with suppress(ParameterError):  # no two candidates are apart
            factors.append(suggested_scale(topic.tree, *known_rows(judgments, topic)))
    if not factors:
        raise ParameterError("No topic has candidates at a distance from each other, so widths cannot be calibrated.")
    return max(float(np.median(factors)), LEAST_SCALE)


def _how_calibrated(factor: float, teachers: Sequence[JudgedTopic]) -> str:
    least = ", the minimum" if factor == LEAST_SCALE else ""
    return (
        f"All widths were multiplied by {factor:.3g}{least}, calibrated from the labels of {len(teachers)} other "
        f"{'topic' if len(teachers) == 1 else 'topics'}, which are not evaluated: "
        f"{', '.join(topic.name for topic in teachers)}."
    )


def _by_text(tree: DocumentTree) -> DocumentTree:
    return tree.with_documents([str(document) for document in tree.documents])
