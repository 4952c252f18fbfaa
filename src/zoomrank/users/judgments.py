"""Visitors from relevance judgments, or from recorded likes and sessions, and the files that these come in.

A topic is an information need, and its visitors come in kinds that mean different things by it: the subtopics of
a diversity track. Recorded people and sessions are one topic, in which each person or session is a kind of its own.
Each kind is a row of a `RelevanceTable`, from which clicks are simulated. Kinds without a relevant document are left
out, since no ranking can serve them.

A malformed line of a file raises an error.
"""

from __future__ import annotations

import csv
import math
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from zoomrank.errors import CatalogueError, EmptyCollectionError, ParameterError, SourceError, UnknownDocumentError
from zoomrank.spaces import DocumentId, DocumentIds, RootedTree, Space
from zoomrank.users.relevance_table import RelevanceTable

REFUSE, SKIP = "refuse", "skip"
ONE_TOPIC = "all"  # name of the only topic of likes and sessions
THRESHOLD = 4.0  # lowest rating that means a like
_HEADER = re.compile(r"(user|person|people|visitor|session|case)s?([ _-]?id)?(:\w+)?", re.IGNORECASE)  # first column

File = str | os.PathLike[str]
Opinions = Mapping[str, Mapping[str, Mapping[DocumentId, bool]]]  # topic, kind of visitor, document: relevant or not


class Judgments:
    """Topics, their kinds of visitors with weights, and the documents that each kind finds relevant.

    >>> from zoomrank.spaces import DocumentTree
    >>> tree = DocumentTree.from_paths(["A > a", "A > b", "B > c"])
    >>> judgments = Judgments({"jaguar": {"cat": {"A > a": True, "B > c": False}, "car": {"B > c": True}}})
    >>> judgments.table("jaguar", tree).greedy(slots=2).satisfaction
    1.0
    """

    def __init__(self, opinions: Opinions, weights: Mapping[tuple[str, str], float] | None = None) -> None:
        self._opinions = opinions
        self._judged: dict[str, dict[DocumentId, None]] = {}  # a dict keeps the order, so that runs repeat
        self._rows: dict[str, dict[str, list[DocumentId]]] = {}
        for topic, kinds in opinions.items():
            rows = {kind: [name for name, relevant in row.items() if relevant] for kind, row in kinds.items()}
            if any(rows.values()):
                self._rows[topic] = {kind: row for kind, row in rows.items() if row}
                self._judged[topic] = dict.fromkeys(name for row in kinds.values() for name in row)
        if not self._rows:
            raise EmptyCollectionError("No document is relevant to any visitor, so there are no visitors to simulate.")
        self._weights = dict(weights or {})
        for topic, kind in self._weights:
            if kind not in self._rows.get(topic, {}):
                raise CatalogueError(
                    f"A weight was given for the kind {kind!r} of the topic {topic!r}, which does not exist."
                )

    def __repr__(self) -> str:
        kinds = sum(map(len, self._rows.values()))
        return f"Judgments({len(self._rows)} topics, {kinds} kinds of visitors)"

    @property
    def topics(self) -> tuple[str, ...]:
        """Topics with a relevant document, in the order in which they came."""
        return tuple(self._rows)

    def rows(self, topic: str) -> dict[str, list[DocumentId]]:
        """Return the relevant documents of each kind of visitor."""
        if topic not in self._rows:
            known = ", ".join(self.topics[:10]) + (", …" if len(self.topics) > 10 else "")
            raise CatalogueError(f"There are no judgments for the topic {topic!r}; choose one of {known}.")
        return {kind: list(row) for kind, row in self._rows[topic].items()}

    def weights(self, topic: str) -> dict[str, float]:
        """Return the relative number of visitors of each kind: 1 unless given."""
        return {kind: self._weights.get((topic, kind), 1.0) for kind in self.rows(topic)}

    def weighted(self, weights: Mapping[tuple[str, str], float]) -> Judgments:
        """Return the same judgments with these weights, by topic and kind of visitor."""
        return Judgments(self._opinions, {**self._weights, **weights})

    def judged(self, topic: str) -> list[DocumentId]:
        """Return all documents that were judged for this topic, relevant or not."""
        self.rows(topic)
        return list(self._judged[topic])

    def unknown(self, documents: DocumentIds, topic: str | None = None) -> list[DocumentId]:
        """Return the judged documents that the collection does not have: of one topic, or of all."""
        asked = self.topics if topic is None else (topic,)
        return list(dict.fromkeys(name for one in asked for name in self.judged(one) if name not in documents))

    def candidates(self, topic: str, documents: DocumentIds, unknown: str = REFUSE) -> list[DocumentId]:
        """Return the documents of the collection that were judged for this topic."""
        names = self.judged(topic)
        known = [name for name in names if name in documents]
        _allow(topic, [name for name in names if name not in documents], len(names), "judged", unknown)
        return known

    def table(self, topic: str, space: Space | RootedTree, unknown: str = REFUSE) -> RelevanceTable:
        """Return the visitors of this topic over a space; missing documents raise an error, or are skipped."""
        rows, documents = self.rows(topic), space.documents
        names = list(dict.fromkeys(name for row in rows.values() for name in row))
        _allow(topic, [name for name in names if name not in documents], len(names), "relevant", unknown)
        known = {kind: [name for name in row if name in documents] for kind, row in rows.items()}
        left = [kind for kind, row in known.items() if row]
        if not left:
            raise EmptyCollectionError(f"None of the documents relevant for the topic {topic!r} is in the collection.")
        weights = self.weights(topic)
        return RelevanceTable(space, [known[kind] for kind in left], [weights[kind] for kind in left])


def _allow(topic: str, missing: Sequence[DocumentId], of: int, kind: str, unknown: str) -> None:
    if unknown not in (REFUSE, SKIP):
        raise ParameterError(f"unknown must be {REFUSE!r} or {SKIP!r}, not {unknown!r}.")
    if missing and unknown == REFUSE:
        few = ", ".join(repr(name) for name in missing[:5]) + (", …" if len(missing) > 5 else "")
        raise UnknownDocumentError(
            f"The collection lacks {len(missing)} of the {of} documents {kind} for the topic {topic!r}: {few}. "
            'Add them, or say unknown="skip" (--unknown skip) to continue without them.'
        )


def read_qrels(path: File) -> Judgments:
    """Read judgments of a diversity track: `topic subtopic document judgment` in each line; above 0 is relevant."""
    found = _Collector(path)
    for number, line in _lines(path):
        fields = line.split()
        if len(fields) != 4:
            _fail(path, number, f"has {len(fields)} fields; it must have four: topic, subtopic, document, judgment")
        topic, subtopic, document, judgment = fields
        found.add(number, topic, subtopic, document, _number(path, number, judgment, "judgment") > 0)
    return found.judgments()


def read_subtopics(path: File) -> Judgments:
    """Read relevant documents by subtopic: tab separated, with columns subTopicID (such as 3.7) and docID."""
    found = _Collector(path)
    lines = _lines(path)
    at, heads = next(lines, (1, ""))
    names = [name.strip().lower() for name in heads.split("\t")]
    if "subtopicid" not in names or "docid" not in names:
        _fail(path, at, "must name the columns subTopicID and docID, separated by a tab")
    columns = names.index("subtopicid"), names.index("docid")
    for number, line in lines:
        fields = line.split("\t")
        if len(fields) <= max(columns):
            _fail(path, number, f"has {len(fields)} fields, too few for the columns that the first line names")
        subtopic, document = (fields[column].strip() for column in columns)
        topic = subtopic.rpartition(".")[0]
        if not topic:
            _fail(path, number, f"has the subtopic {subtopic!r}, which does not name its topic as 3.7 does")
        found.add(number, topic, subtopic, document, relevant=True)
    return found.judgments()


def read_likes(path: File, threshold: float = THRESHOLD) -> Judgments:
    """Read likes of people: `person,document` or `person,document,rating`, by commas or tabs, with a header or without.

    Ratings below the threshold are no likes; without a rating, every line is one. Further columns are ignored.
    """
    if not math.isfinite(threshold):
        raise ParameterError(f"The threshold is {threshold}; it must be a finite number.")
    found = _Collector(path)
    separator = None
    for number, line in _lines(path):
        first = separator is None
        separator = separator or ("\t" if "\t" in line else ",")
        fields = [field.strip() for field in _split(path, number, line, separator)]
        if len(fields) < 2:
            _fail(path, number, "has 1 field; it must have at least two: person, document, and perhaps a rating")
        person, document, *rating = fields[:3]
        if first and (_HEADER.fullmatch(person) or (rating and not _is_number(rating[0]))):
            continue
        liked = not rating or _number(path, number, rating[0], "rating") >= threshold
        found.add(number, ONE_TOPIC, person, document, liked)
    return found.judgments()


def read_sessions(path: File) -> Judgments:
    """Read sessions: `session,document` in each line, by a comma or tab; or all documents of a session, by blanks."""
    found = _Collector(path)
    for number, line in _lines(path):
        separator = "\t" if "\t" in line else ","
        fields = [field.strip() for field in _split(path, number, line, separator)]
        if len(fields) > 2:
            _fail(path, number, f"has {len(fields)} fields; give session and document, or documents by blanks")
        session, documents = (fields[0], fields[1:]) if len(fields) == 2 else (f"line {number}", line.split())
        if found.empty and _HEADER.fullmatch(session):
            continue
        for document in documents:
            found.add(number, ONE_TOPIC, session, document, relevant=True)
    return found.judgments()


READERS: Mapping[str, Callable[[File], Judgments]] = {"qrels": read_qrels, "subtopics": read_subtopics}


class _Collector:
    """Opinions of a file, collected line by line; two opinions on the same document raise an error."""

    def __init__(self, path: File) -> None:
        self._path = path
        self._opinions: dict[str, dict[str, dict[DocumentId, bool]]] = defaultdict(lambda: defaultdict(dict))

    @property
    def empty(self) -> bool:
        return not self._opinions

    def add(self, number: int, topic: str, kind: str, document: str, relevant: bool) -> None:
        if not (topic and kind and document):
            _fail(self._path, number, "has an empty field instead of a name")
        if self._opinions[topic][kind].setdefault(document, relevant) != relevant:
            _fail(self._path, number, f"contradicts an earlier one about {kind!r} and the document {document!r}")

    def judgments(self) -> Judgments:
        if self.empty:
            raise SourceError(f"{self._path} is empty: there are no judgments in it.")
        try:
            return Judgments(self._opinions)
        except EmptyCollectionError as error:
            raise EmptyCollectionError(f"{self._path}: {error}") from None


def _lines(path: File) -> Iterator[tuple[int, str]]:
    """Iterate over lines that are not blank, with their numbers."""
    try:
        with Path(path).open("rb") as file:
            for number, raw in enumerate(file, start=1):
                try:
                    line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                except UnicodeDecodeError:
                    _fail(path, number, "is not text in UTF-8")
                if line.strip():
                    yield number, line
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or error}.") from error


def _split(path: File, number: int, line: str, separator: str) -> list[str]:
    if '"' not in line:
        return line.split(separator)
    try:
        return next(csv.reader([line], delimiter=separator, strict=True))
    except csv.Error as error:
        _fail(path, number, f"cannot be parsed: {error}")


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _number(path: File, number: int, text: str, name: str) -> float:
    if not _is_number(text):
        _fail(path, number, f"has the {name} {text!r}, which is not a number")
    return float(text)


def _fail(path: File, number: int, says: str) -> NoReturn:
    raise SourceError(f"{path}: line {number} {says}.")
