"""Judgments in files: qrels of diversity tracks, tables of subtopics, ratings. Malformed lines raise an error."""

from __future__ import annotations

import csv
import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NoReturn

from zoomrank.errors import EmptyCollectionError, ParameterError, SourceError
from zoomrank.spaces import DocumentId
from zoomrank.users.judgments import Judgments

ONE_TOPIC = "all"  # name of the only topic of ratings
THRESHOLD = 4.0  # lowest rating that means relevant

File = str | os.PathLike[str]


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


def read_ratings(path: File, threshold: float = THRESHOLD) -> Judgments:
    """Read ratings `user,item,rating`, by commas or tabs, with a header or without; every user is a kind of visitor."""
    if not math.isfinite(threshold):
        raise ParameterError(f"The threshold is {threshold}; it must be a finite number.")
    found = _Collector(path)
    separator = None
    for number, line in _lines(path):
        first = separator is None
        separator = separator or ("\t" if "\t" in line else ",")
        fields = [field.strip() for field in _split(path, number, line, separator)]
        if len(fields) < 3:
            _fail(path, number, f"has {len(fields)} fields; it must have at least three: user, item, rating")
        user, item, rating = fields[:3]
        if first and not _is_number(rating):
            continue  # a header
        found.add(number, ONE_TOPIC, user, item, _number(path, number, rating, "rating") >= threshold)
    return found.judgments()


READERS: Mapping[str, Callable[[File], Judgments]] = {
    "qrels": read_qrels,
    "subtopics": read_subtopics,
    "ratings": read_ratings,
}


class _Collector:
    """Opinions of a file, collected line by line; two opinions on the same document raise an error."""

    def __init__(self, path: File) -> None:
        self._path = path
        self._opinions: dict[str, dict[str, dict[DocumentId, bool]]] = defaultdict(lambda: defaultdict(dict))

    def add(self, number: int, topic: str, kind: str, document: str, relevant: bool) -> None:
        if not (topic and kind and document):
            _fail(self._path, number, "has an empty field instead of a name")
        if self._opinions[topic][kind].setdefault(document, relevant) != relevant:
            _fail(self._path, number, f"contradicts an earlier one about {kind!r} and the document {document!r}")

    def judgments(self) -> Judgments:
        if not self._opinions:
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
