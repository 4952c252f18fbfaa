"""Which queries are alike."""

import pytest

from zoomrank import DocumentTree, QueryTree
from zoomrank.errors import ParameterError, UnknownDocumentError, VectorError


def test_paths_make_groups_in_groups() -> None:
    queries = QueryTree.by_paths({"lion": "Animals > Cats", "tiger": ["Animals", "Cats"], "hen": "Animals", "x": ""})
    assert queries.shared("lion", "tiger") == "Animals > Cats"
    assert [queries.steps_up("lion", other) for other in ("tiger", "hen", "x")] == [0, 1, 2]


def test_words_put_like_beside_like_in_any_order() -> None:
    asked = ["jaguar speed", "cheap flights to rome", "how fast is a jaguar", "flights rome", "Jaguar SPEED!"]
    for order in (asked, asked[::-1]):
        queries = QueryTree.by_words(order)
        assert queries.steps_up("jaguar speed", "Jaguar SPEED!") == 0
        for one, near, far in (
            ("jaguar speed", "how fast is a jaguar", "flights rome"),
            ("flights rome", "cheap flights to rome", "jaguar speed"),
        ):
            assert queries.steps_up(one, near) < queries.steps_up(one, far)


def test_vectors_must_be_vectors() -> None:
    queries = QueryTree.by_vectors({"a": [1, 0]})
    for wrong in ([1, 0, 0], [0, 0], [float("nan"), 1]):
        with pytest.raises(VectorError, match="2 finite numbers"):
            queries.add("b", wrong)
    assert "b" not in queries
    assert queries.add("b", [1, 0.01]) == 1
    assert queries.steps_up("a", "b") == 0


def test_what_is_not_known_is_refused_in_words() -> None:
    queries = QueryTree.like(DocumentTree.exponential(depth=2))
    with pytest.raises(UnknownDocumentError, match="The query 'x' is unknown"):
        queries.number("x")
    with pytest.raises(ParameterError, match="with beside="):
        queries.add("x", "Animals")
    assert queries.add("x", beside=3) == 4
    assert queries.steps_up("x", 3) == 0
    assert queries.steps_up("x", 0) == 1
    with pytest.raises(ParameterError, match="a string or a number"):
        queries.add(1.5)  # type: ignore[arg-type]
