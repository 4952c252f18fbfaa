"""Documents and judgments that commands read: which files they may be, and how they are put together."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from zoomrank.documents.collection import checked_scale
from zoomrank.errors import EmptyCollectionError, ParameterError, SourceError
from zoomrank.lab.inspection.agreement import LEAST_SCALE, suggested_scale
from zoomrank.lab.kept_worlds import Topic
from zoomrank.spaces import DocumentIds, DocumentTree
from zoomrank.users.judgment_files import READERS, THRESHOLD, read_ratings
from zoomrank.users.judgments import REFUSE, SKIP, Judgments

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
             of ids) and clicked (an id, or null); if there is but one query, it
             need not be named"""
DEFAULT, CALIBRATED = "default", "calibrated"


def add_relevance(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """`--relevance FILE` and how to read it."""
    parser.add_argument(
        "--relevance", type=Path, required=required, metavar="FILE", help="which documents are relevant to whom"
    )
    parser.add_argument(
        "--kind", choices=list(READERS), default="qrels", help="what kind of file that is (default: qrels)"
    )
    parser.add_argument(
        "--threshold",
        type=float,
        metavar="X",
        help=f"with --kind ratings: a rating as high as this means relevant (default: {THRESHOLD:g})",
    )
    parser.add_argument("--topics", nargs="+", metavar="TOPIC", help="only these topics (default: all)")
    parser.add_argument(
        "--unknown",
        choices=[REFUSE, SKIP],
        default=REFUSE,
        help=f"what to do with a file that names documents which are not there (default: {REFUSE})",
    )


def relevance_words(options: argparse.Namespace) -> list[str]:
    """What `add_relevance` was told, to be said again; folders are left out, being one's own."""
    words = ["--relevance", options.relevance.name, "--kind", options.kind, "--unknown", options.unknown]
    words += [] if options.threshold is None else ["--threshold", f"{options.threshold:g}"]
    return words + (["--topics", *options.topics] if options.topics else [])


def read_judgments(options: argparse.Namespace) -> tuple[Judgments, list[str]]:
    """The judgments, and the topics that are wanted."""
    if options.kind == "ratings":
        judgments = read_ratings(options.relevance, THRESHOLD if options.threshold is None else options.threshold)
    elif options.threshold is not None:
        raise ParameterError("A threshold is for --kind ratings.")
    else:
        judgments = READERS[options.kind](options.relevance)
    for name in options.topics or ():
        judgments.rows(name)  # refuses topics that are not there
    return judgments, list(dict.fromkeys(options.topics or judgments.topics))


def read_collection(path: Path) -> "Collection":
    """A saved collection, or one that is made of a table or a taxonomy."""
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
        raise SourceError(f"{path} has neither a title, a text nor a path by which documents could be placed.")
    texts = [" ".join(part for part in row if part) for row in zip(*parts, strict=True)]
    return Collection.from_texts(texts, ids=table["id"], titles=table.get("title"), urls=table.get("url"))


def topics_of(
    collection: "Collection", judgments: Judgments, wanted: Sequence[str], candidates: str, unknown: str
) -> tuple[list[Topic], list[str]]:
    """The worlds to evaluate on, and what a reader has to know about them."""
    # In files of judgments all ids are texts; those of a collection may be whole numbers.
    names = {str(document): document for document in collection.tree.documents}
    if len(names) < len(collection):
        raise ParameterError("Two documents have the same id once it is written down.")
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
            topics.append(Topic(name, tree, judgments.table(name, tree, unknown)))
        except EmptyCollectionError:
            empty.append(name)
    if not topics:
        raise EmptyCollectionError("None of the relevant documents is in the collection; are these its ids?")
    return topics, [*collection.notes, *_left_out(judged, skipped, empty)]


def _left_out(judged: int, skipped: int, empty: Sequence[str]) -> Iterator[str]:
    """What files of judgments named and a collection does not have."""
    if skipped:
        yield f"Of {judged:,} judged documents {skipped:,} are not in the collection and were skipped."
    if empty:
        yield f"Topics without any relevant document in the collection were left out: {', '.join(empty)}."


def known_rows(judgments: Judgments, topic: Topic) -> tuple[list[list[str]], list[float]]:
    """What each kind of visitor of a topic likes among the candidates, and the weights of these kinds."""
    weights, rows = judgments.weights(topic.name), judgments.rows(topic.name)
    known = {kind: [document for document in row if document in topic.tree.documents] for kind, row in rows.items()}
    return list(known.values()), [weights[kind] for kind in known]


def scale(text: str) -> str | float:
    """`default`, `calibrated`, or a factor."""
    if text in (DEFAULT, CALIBRATED):
        return text
    try:
        return checked_scale(float(text))
    except ValueError:  # not a number, or not a positive one
        raise argparse.ArgumentTypeError(f"{text!r} is neither {DEFAULT}, {CALIBRATED} nor a positive number") from None


def rescaled(
    collection: "Collection", judgments: Judgments, wanted: Sequence[str], options: argparse.Namespace
) -> tuple["Collection", list[str], list[str]]:
    """The collection with the widths that are asked for, the topics left to evaluate on, and what to say about it.

    Widths that are calibrated on some labels must be judged on others. So half of the topics, drawn by the seed, say
    how wide subtrees should be, each on its own candidates, and the median of what they say counts; the other half is
    evaluated.
    """
    if options.scale == DEFAULT:
        return collection, list(wanted), []
    if options.scale != CALIBRATED:
        return collection.scaled(options.scale), list(wanted), [f"All widths were multiplied by {options.scale:g}."]
    topics, _ = topics_of(collection, judgments, wanted, options.candidates, options.unknown)
    if len(topics) < 2:
        raise ParameterError(
            "To calibrate widths takes two topics, one to learn them from and one to evaluate on; there is but one. "
            "Give a number instead, perhaps the one that zoomrank inspect suggests."
        )
    order = np.random.default_rng(options.seed).permutation(len(topics)).tolist()
    numbers = sorted(order[: len(topics) // 2])
    teachers = [topics[number] for number in numbers]
    factor = _calibrated(judgments, teachers)
    left = [topic.name for number, topic in enumerate(topics) if number not in numbers]
    return collection.scaled(factor), left, [_how_calibrated(factor, teachers)]


def _calibrated(judgments: Judgments, teachers: Sequence[Topic]) -> float:
    """The median of the factors that topics suggest."""
    factors = []
    for topic in teachers:
        with suppress(ParameterError):  # no two candidates are apart
            factors.append(suggested_scale(topic.tree, *known_rows(judgments, topic)))
    if not factors:
        raise ParameterError("No topic has candidates that are apart from each other, to calibrate widths from.")
    return max(float(np.median(factors)), LEAST_SCALE)


def _how_calibrated(factor: float, teachers: Sequence[Topic]) -> str:
    least = ", the least there is" if factor == LEAST_SCALE else ""
    return (
        f"All widths were multiplied by {factor:.3g}{least}, calibrated from the labels of {len(teachers)} other "
        f"{'topic' if len(teachers) == 1 else 'topics'}, which are not evaluated: "
        f"{', '.join(topic.name for topic in teachers)}."
    )


def _by_text(tree: DocumentTree) -> DocumentTree:
    return tree.with_documents([str(document) for document in tree.documents])
