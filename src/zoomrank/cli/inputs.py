"""Documents and judgments that commands read: their formats, and how they are combined."""

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from zoomrank.cli.arguments import add_unknown
from zoomrank.documents.collection import checked_scale
from zoomrank.errors import EmptyCollectionError, ParameterError, SourceError
from zoomrank.lab.inspection import LEAST_SCALE, suggested_scale
from zoomrank.lab.registry import JudgedTopic
from zoomrank.spaces import DocumentIds, DocumentTree
from zoomrank.users.judgments import READERS, SKIP, THRESHOLD, Judgments, read_likes, read_sessions

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
likes:       person,document or person,document,rating by commas or tabs; a
             visitor is one of these people, drawn at random, who clicks on the
             first document that the person liked
sessions:    session,document by a comma or tab, or in each line all documents
             of a session, separated by blanks; a visitor is one session"""
CLICKS = """clicks:      a table as above with columns query, impression, position, document
             and clicked (1 or 0), or in JSONL and Parquet query, shown (a list
             of ids) and clicked (an id, or null); with a single query, it
             need not be named"""
DEFAULT, CALIBRATED = "default", "calibrated"
RELEVANCE, LIKES, SESSIONS = "relevance", "likes", "sessions"
VISITORS = {RELEVANCE: "kinds of visitors", LIKES: "people", SESSIONS: "sessions"}  # that each file has
MOST_LIKED = 100  # candidates among the documents of likes and sessions, unless the user says otherwise


def add_relevance(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Add `--relevance FILE` with its format, and `--likes FILE` and `--sessions FILE`, of which one can be given."""
    shapes = parser.add_mutually_exclusive_group(required=required)
    for option, about in (
        ("--relevance", "judgments: which documents are relevant to which visitors"),
        ("--likes", "likes of people, instead of judgments"),
        ("--sessions", "recorded sessions, instead of judgments"),
    ):
        shapes.add_argument(option, type=Path, metavar="FILE", help=about)
    parser.add_argument("--kind", choices=list(READERS), help="format of --relevance (default: qrels)")
    parser.add_argument(
        "--threshold",
        type=float,
        metavar="X",
        help=f"with --likes: lowest rating that means a like (default: {THRESHOLD:g})",
    )
    parser.add_argument("--topics", nargs="+", metavar="TOPIC", help="only these topics (default: all)")
    add_unknown(parser, "documents that the collection lacks")


def shape(options: argparse.Namespace) -> str | None:
    """Return which of the files of `add_relevance` was given: relevance, likes or sessions."""
    return next((name for name in VISITORS if getattr(options, name) is not None), None)


def relevance_words(options: argparse.Namespace) -> list[str]:
    """Return the options of `add_relevance` as words of a command, without the user's folders."""
    given = shape(options) or RELEVANCE
    words = [f"--{given}", getattr(options, given).name]
    words += ["--kind", options.kind or "qrels"] if given == RELEVANCE else []
    words += ["--unknown", options.unknown]
    words += [] if options.threshold is None else ["--threshold", f"{options.threshold:g}"]
    return words + (["--topics", *options.topics] if options.topics else [])


def read_judgments(options: argparse.Namespace) -> tuple[Judgments, list[str]]:
    """Return the judgments, and the topics asked for; likes and sessions are judgments for one topic."""
    given = shape(options)
    for option, meant in (("kind", RELEVANCE), ("topics", RELEVANCE), ("threshold", LIKES)):
        if getattr(options, option) is not None and given != meant:
            raise ParameterError(f"--{option} is only for --{meant}; leave it out.")
    if given == LIKES:
        judgments = read_likes(options.likes, THRESHOLD if options.threshold is None else options.threshold)
    elif given == SESSIONS:
        judgments = read_sessions(options.sessions)
    else:
        judgments = READERS[options.kind or "qrels"](options.relevance)
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


def candidates(text: str) -> str | int:
    """Parse `topic`, `all`, or the number of documents with the most likes."""
    if text in ("topic", "all"):
        return text
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is neither topic, all nor a number of documents, 1 or more")
    return int(text)


def topics_of(
    collection: "Collection",
    judgments: Judgments,
    wanted: Sequence[str],
    candidates: str | int,
    unknown: str,
    visitors: str = VISITORS[RELEVANCE],
) -> tuple[list[JudgedTopic], list[str]]:
    """Return the worlds to evaluate on, and notes for the reader, which call the visitors by this word."""
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
            if isinstance(candidates, int):
                likes = Counter(document for row in judgments.rows(name).values() for document in row)
                known = sorted(known, key=lambda document: -likes[document])[:candidates]
            if candidates != "all" and known:
                tree = _by_text(collection.restricted(names[document] for document in known).tree)
            table = judgments.table(name, tree, SKIP)  # others are unknown, or not among the candidates
            topics.append(JudgedTopic(name, tree, table))
        except EmptyCollectionError:
            empty.append(name)
    if not topics:
        raise EmptyCollectionError(
            "None of the relevant documents is in the collection; check that both files use the same ids."
        )
    notes = [*collection.notes, *_left_out(judged, skipped, empty)]
    if isinstance(candidates, int) or visitors != VISITORS[RELEVANCE]:
        notes.append(_kept(judgments, topics, candidates, visitors))
    return topics, notes


def _left_out(judged: int, skipped: int, empty: Sequence[str]) -> Iterator[str]:
    """Note judged documents that the collection lacks."""
    if skipped:
        yield f"Of {judged:,} judged documents {skipped:,} are not in the collection and were skipped."
    if empty:
        yield f"Topics without any relevant document in the collection were left out: {', '.join(empty)}."


def _kept(judgments: Judgments, topics: Sequence[JudgedTopic], candidates: str | int, visitors: str) -> str:
    """Note how many visitors and likes are left among the candidates."""
    rows = [row for topic in topics for row in judgments.rows(topic.name).values()]
    left = sum(len(topic.users.weights) for topic in topics)
    likes = sum(len(topic.users.state.relevant) for topic in topics)
    most = max(len(topic.tree) for topic in topics)
    return (
        f"Candidates are {most:,} documents{', those with the most likes' if isinstance(candidates, int) else ''}. "
        f"{left:,} of {len(rows):,} {visitors} and {likes:,} of {sum(map(len, rows)):,} likes are left."
    )


def add_orders(topics: Sequence[JudgedTopic], path: Path) -> list[JudgedTopic]:
    """Return the topics with the order of a search engine: columns document, rank and, for several topics, topic."""
    from zoomrank.documents.click_log import USUAL_NAMES
    from zoomrank.documents.source_files import chosen_columns, read_columns

    file, names, columns = read_columns(path)
    usual = {**USUAL_NAMES, "document": (*USUAL_NAMES["document"], "id")}
    found = chosen_columns(file, names, {}, usual, needs=("document", "position"))
    documents, ranks = ([str(value) for value in columns[found[name]]] for name in ("document", "position"))
    try:
        ranked = sorted(range(len(ranks)), key=lambda row: float(ranks[row]))
    except ValueError as error:
        raise SourceError(f"{path} has a rank that is not a number: {error}.") from None
    whose = [str(name) for name in columns[found["query"]]] if "query" in found else None
    orders: dict[str, dict[str, None]] = defaultdict(dict)
    for row in ranked:
        orders["" if whose is None else whose[row]][documents[row]] = None
    own = ((topic, orders["" if whose is None else topic.name]) for topic in topics)
    return [replace(topic, order=tuple(name for name in order if name in topic.tree.documents)) for topic, order in own]


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
