"""Judgments: what the readers accept, what they refuse, and the tables that follow."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from zoomrank import DocumentTree
from zoomrank.errors import (
    CatalogueError,
    EmptyCollectionError,
    ParameterError,
    SourceError,
    UnknownDocumentError,
    WeightError,
)
from zoomrank.users.judgments import READERS, Judgments, read_likes, read_qrels, read_sessions, read_subtopics

TREE = DocumentTree.from_paths(["A > a", "A > b", "B > c", "B > d"]).with_documents(["a", "b", "c", "d"])


def written(folder: Path, text: str | bytes) -> Path:
    file = folder / "judgments.txt"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def test_qrels(tmp_path: Path) -> None:
    file = written(tmp_path, "51 1 a 1\n51 1 b 0\r\n\n51\t2  c 3\n51 3 d -2\n52 1 d 1\n53 1 a 0\n51 1 a 2\n")
    judgments = read_qrels(file)
    assert judgments.topics == ("51", "52")  # nothing is relevant for 53
    assert judgments.rows("51") == {"1": ["a"], "2": ["c"]}  # nor to those of subtopic 3
    assert judgments.judged("51") == ["a", "b", "c", "d"]
    table = judgments.table("51", TREE)
    np.testing.assert_allclose(table.mean(), [0.5, 0, 0.5, 0])
    assert table.greedy(2).satisfaction == 1.0
    assert repr(judgments) == "Judgments(2 topics, 3 kinds of visitors)"


def test_subtopic_tables(tmp_path: Path) -> None:
    file = written(tmp_path, b"\xef\xbb\xbfsubTopicID\tdocID\r\n3.7\ta\r\n3.7\tb\n3.8\tb\n4.1.2\tc\n")
    judgments = read_subtopics(file)
    assert judgments.topics == ("3", "4.1")
    assert judgments.rows("3") == {"3.7": ["a", "b"], "3.8": ["b"]}
    np.testing.assert_allclose(judgments.table("3", TREE).mean(), [0.5, 1, 0, 0])


@pytest.mark.parametrize("separator", [",", "\t"])
@pytest.mark.parametrize("header", ["", "userId,movieId,rating,timestamp\n"])
def test_likes_with_ratings(tmp_path: Path, separator: str, header: str) -> None:
    text = header + "u,a,4,1\nu,b,3.5,2\nv,c,5,3\nw,d,1,4\n"
    file = written(tmp_path, text.replace(",", separator))
    judgments = read_likes(file)
    assert judgments.topics == ("all",)
    assert judgments.rows("all") == {"u": ["a"], "v": ["c"]}
    assert read_likes(file, threshold=3).rows("all") == {"u": ["a", "b"], "v": ["c"]}


@pytest.mark.parametrize("header", ["", "user_id:token,item_id:token\n", "Person,document\n"])
def test_likes_without_ratings(tmp_path: Path, header: str) -> None:
    assert read_likes(written(tmp_path, header + "u,a\nv,c\nu,b\n")).rows("all") == {"u": ["a", "b"], "v": ["c"]}


@pytest.mark.parametrize("header", ["", "session,document\n"])
def test_sessions(tmp_path: Path, header: str) -> None:
    rows = read_sessions(written(tmp_path, header + "s1,a\ns2\tb\ns1,c\ns1,a\n")).rows("all")
    assert rows == {"s1": ["a", "c"], "s2": ["b"]}
    assert read_sessions(written(tmp_path, "a b\n\nc\na  b a\n")).rows("all") == {
        "line 1": ["a", "b"],
        "line 3": ["c"],
        "line 4": ["a", "b"],
    }


def test_quoted_likes(tmp_path: Path) -> None:
    assert read_likes(written(tmp_path, 'u,"a, the first",5\n')).rows("all") == {"u": ["a, the first"]}


@pytest.mark.parametrize(
    ("read", "text", "says"),
    [
        (read_qrels, "1 1 a 1\n1 1 b\n", "line 2 has 3 fields; it must have four"),
        (read_qrels, "1 1 a yes\n", "line 1 has the judgment 'yes', which is not a number"),
        (read_qrels, "1 1 a nan\n", "line 1 has the judgment 'nan'"),
        (read_qrels, "1 1 a 1\n\n1 1 a 0\n", "line 3 contradicts an earlier one about '1' and the document 'a'"),
        (read_qrels, b"1 1 a 1\n1 1 \xff 1\n", "line 2 is not text in UTF-8"),
        (read_qrels, "\n", "is empty"),
        (read_subtopics, "", "is empty|line 1 must name"),
        (read_subtopics, "3.7\ta\n", "line 1 must name the columns subTopicID and docID"),
        (read_subtopics, "subTopicID\tdocID\n3.7\n", "line 2 has 1 fields, too few"),
        (read_subtopics, "subTopicID\tdocID\n37\ta\n", "line 2 has the subtopic '37', which does not name its topic"),
        (read_subtopics, "subTopicID\tdocID\n3.7\t \n", "line 2 has an empty field"),
        (read_likes, "u\n", "line 1 has 1 field; it must have at least two"),
        (read_sessions, "a,b,c\n", "line 1 has 3 fields; give session and document, or documents by blanks"),
        (read_sessions, "s,\n", "line 1 has an empty field"),
        (read_sessions, "session,document\n", "is empty"),
        (read_likes, "u,a,5\nu,b,five\n", "line 2 has the rating 'five'"),
        (read_likes, "u,a,5\nu,a,1\n", "line 2 contradicts"),
        (read_likes, 'u,"a,5\n', "line 1 cannot be parsed"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, read: Callable[[Path], Judgments], text: str | bytes, says: str) -> None:
    with pytest.raises(SourceError, match=says):
        read(written(tmp_path, text))


@pytest.mark.parametrize("read", [*READERS.values(), read_likes, read_sessions])
def test_files_that_are_not_there(tmp_path: Path, read: Callable[[Path], Judgments]) -> None:
    with pytest.raises(SourceError, match="cannot be read: No such file"):
        read(tmp_path / "nowhere.txt")
    with pytest.raises(SourceError, match="cannot be read: Is a directory"):
        read(tmp_path)


def test_judgments_that_help_nobody(tmp_path: Path) -> None:
    with pytest.raises(EmptyCollectionError, match=r"judgments.txt: No document is relevant to any visitor"):
        read_likes(written(tmp_path, "u,a,1\n"))
    with pytest.raises(ParameterError, match="threshold"):
        read_likes(written(tmp_path, "u,a,1\n"), threshold=float("nan"))


def test_unknown_documents() -> None:
    judgments = Judgments(
        {
            "1": {"x": {"a": True, "lost": True, "gone": False}, "y": {"lost": True}, "z": {"c": True}},
            "2": {"x": {"lost": True}},
        }
    )
    assert judgments.unknown(TREE.documents) == ["lost", "gone"]
    assert judgments.unknown(TREE.documents, "2") == ["lost"]
    with pytest.raises(UnknownDocumentError, match="lacks 1 of the 3 documents relevant for the topic '1': 'lost'"):
        judgments.table("1", TREE)
    with pytest.raises(UnknownDocumentError, match=r"lacks 2 of the 4 documents judged .*--unknown skip"):
        judgments.candidates("1", TREE.documents)
    assert judgments.candidates("1", TREE.documents, unknown="skip") == ["a", "c"]
    table = judgments.table("1", TREE, unknown="skip")
    assert len(table.weights) == 2  # those of y have nothing left
    with pytest.raises(EmptyCollectionError, match="None of the documents relevant for the topic '2'"):
        judgments.table("2", TREE, unknown="skip")
    with pytest.raises(ParameterError, match="'refuse' or 'skip', not 'guess'"):
        judgments.table("1", TREE, unknown="guess")
    with pytest.raises(CatalogueError, match="no judgments for the topic '3'; choose one of 1, 2"):
        judgments.table("3", TREE)


def test_weights() -> None:
    judgments = Judgments({"1": {"x": {"a": True}, "y": {"c": True}}}, weights={("1", "x"): 3})
    np.testing.assert_allclose(judgments.table("1", TREE).mean(), [0.75, 0, 0.25, 0])
    np.testing.assert_allclose(judgments.weighted({("1", "y"): 9}).table("1", TREE).mean(), [0.25, 0, 0.75, 0])
    with pytest.raises(CatalogueError, match="the kind 'z' of the topic '1'"):
        judgments.weighted({("1", "z"): 1})
    with pytest.raises(WeightError, match="weight -1"):
        judgments.weighted({("1", "x"): -1}).table("1", TREE)
