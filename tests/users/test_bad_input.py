"""Each a named exception with a sentence that says what is wrong and where; nothing is silently clipped."""

import numpy as np
import pytest

import zoomrank as zr
from zoomrank import errors
from zoomrank.spaces import DocumentIds
from zoomrank.users import Independent, TreeNetwork

TREE = zr.DocumentTree.exponential(depth=2, branching=2)
USERS = TreeNetwork(TREE, [0.5, 0.4, 0.1, 0.1])


@pytest.mark.parametrize(
    ("parents", "says"),
    [
        ([1, 0], "no root"),
        ([-1, 2, 3, 1], "Nodes 1 -> 2 -> 3 form a cycle"),
        ([-1, 0, 2], "Nodes 2 form a cycle"),
        ([-1, 0, -1], "2 roots, for example nodes 0 and 2"),
        ([-1, 5], "Node 1 has the parent 5"),
        ([-1, -2], "Node 1 has the parent -2"),
        ([-1.0, 0.0], "array of integers"),
    ],
)
def test_not_a_tree(parents: list[int], says: str) -> None:
    with pytest.raises(errors.TreeError, match=says):
        zr.DocumentTree.from_parents(parents)


@pytest.mark.parametrize(
    ("width", "says"),
    [
        ([1, 2, 0, 0], "node 1 has width 2.0 below node 0 with width 1.0"),
        ([1, float("nan"), 0, 0], "width of node 1 is nan"),
        ([float("inf"), 1, 0, 0], "width of node 0 is inf"),
        ([1, -1, 0, 0], "width of node 1 is -1"),
        ([1, 0.5, 0.1, 0], r"node 2, a leaf, is 0\.1"),
        ([1, 0.5, 0], r"Widths of shape \(3,\) were given for 4 nodes"),
    ],
)
def test_not_widths(width: list[float], says: str) -> None:
    with pytest.raises(errors.WidthError, match=says):
        zr.DocumentTree.from_parents([-1, 0, 1, 1], width=width)


def test_widths_are_named_as_the_caller_numbers_them() -> None:
    with pytest.raises(errors.WidthError, match=r"node 0 has width 2\.0 below node 3 with width 1\.0"):
        zr.DocumentTree.from_parents([3, 0, 0, -1], width=[2, 0, 0, 1])


@pytest.mark.parametrize("epsilon", [0.0, 1.0, -0.5, 2.0, float("nan")])
def test_epsilon_outside_the_unit_interval(epsilon: float) -> None:
    with pytest.raises(errors.MetricParameterError, match="strictly between 0 and 1"):
        zr.DocumentTree.exponential(epsilon=epsilon)
    with pytest.raises(errors.MetricParameterError, match="strictly between 0 and 1"):
        zr.DocumentTree.from_parents([-1], epsilon=epsilon)


def test_other_parameters_of_trees() -> None:
    for bad in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(errors.MetricParameterError, match="constant"):
            zr.DocumentTree.exponential(constant=bad)
    with pytest.raises(errors.MetricParameterError, match="cannot be built"):
        zr.DocumentTree.exponential(depth=-1)
    with pytest.raises(errors.MetricParameterError, match="cannot be built"):
        zr.DocumentTree.exponential(branching=0)
    with pytest.raises(errors.MetricParameterError, match="too many"):
        zr.DocumentTree.exponential(depth=40)
    with pytest.raises(errors.TreeError, match="no node 7: nodes are numbered 0 to 6"):
        TREE.children(7)
    with pytest.raises(errors.MetricParameterError, match="underflows to 0"):
        zr.DocumentTree.from_parents([-1, *range(6000)])
    with pytest.raises(errors.ParameterError, match="depth must be a whole number"):
        zr.DocumentTree.exponential(depth=2.5)  # type: ignore[arg-type]
    with pytest.raises(errors.WidthError, match="2 names were given for 1 nodes"):
        zr.DocumentTree.from_parents([-1], names=["a", "b"])


def test_document_ids() -> None:
    with pytest.raises(errors.DuplicateDocumentError, match="'a' stands for two documents: number 0 and number 1"):
        zr.DocumentTree.from_parents([-1, 0, 0], ids=["a", "a"])
    with pytest.raises(errors.DuplicateDocumentError, match="The id 4 stands for two documents"):
        DocumentIds(3, np.array([4, 5, 4]))
    with pytest.raises(errors.UnknownDocumentError, match="1 ids were given for 2 documents"):
        zr.DocumentTree.from_parents([-1, 0, 0], ids=["a"])
    for empty in (
        lambda: DocumentIds(0),
        lambda: zr.DocumentTree.from_parents([]),
        lambda: zr.FiniteMetric.from_matrix([]),
    ):
        with pytest.raises(errors.EmptyCollectionError):
            empty()
    with pytest.raises(errors.UnknownDocumentError, match="not hashable"):
        zr.DocumentTree.from_parents([-1], ids=[["a"]])
    for unknown in (4, -1, "0", 1.0, None):
        with pytest.raises(errors.UnknownDocumentError, match="No document has the id"):
            TREE.distance(0, unknown)
    with pytest.raises(errors.UnknownDocumentError, match="No document has the id 9"):
        USERS.satisfaction([0, 9])
    with pytest.raises(errors.DuplicateDocumentError, match="The document 1 is named twice"):
        USERS.conditional_mean([1, 2, 1])
    with pytest.raises(KeyError):  # as a mapping would
        TREE.leaf("nowhere")


@pytest.mark.parametrize("value", [0.0, -0.1, 0.51, 1.5, float("nan")])
def test_means_outside_the_theory(value: float) -> None:
    with pytest.raises(errors.MeanError, match="mean relevance of 2"):
        TreeNetwork(TREE, [0.5, 0.5, value, 0.5])


def test_means_of_the_wrong_shape() -> None:
    with pytest.raises(errors.MeanError, match=r"Means of shape \(3,\) were given for 4 documents"):
        TreeNetwork(TREE, [0.1, 0.1, 0.1])
    with pytest.raises(errors.MeanError, match="2 documents have no mean relevance, for example 1"):
        TreeNetwork(TREE, {0: 0.1, 3: 0.1})
    with pytest.raises(errors.MeanError, match=r"must lie in \[0, 1\]"):
        Independent(TREE, [0.1, 0.2, 0.3, 1.4])
    with pytest.raises(errors.ParameterError, match="extension must be one of"):
        TreeNetwork(TREE, [0.1] * 4, extension="median")
    assert TreeNetwork(TREE, [0.9, 0.0, 1.0, 0.5], beyond_theory=True).mean(0) == pytest.approx(0.9)


@pytest.mark.parametrize("slots", [0, -1, 5])
def test_slots(slots: int) -> None:
    with pytest.raises(errors.SlotsError, match=f"{slots} slots cannot be filled from 4 documents"):
        USERS.greedy(slots)
    with pytest.raises(errors.SlotsError):
        USERS.optimum(slots)


def test_other_questions_to_users() -> None:
    with pytest.raises(errors.ParameterError, match="-1 visitors"):
        USERS.clicks([0], -1)
    with pytest.raises(errors.ParameterError, match="-1 visitors"):
        USERS.sample(-1)
    with pytest.raises(errors.ParameterError, match=r"slots must be a whole number, not 2\.5"):
        USERS.greedy(2.5)  # type: ignore[arg-type]
    with pytest.raises(errors.ParameterError, match="visitors must be a whole number"):
        USERS.clicks([0], 2.7)  # type: ignore[arg-type]
    users = Independent(zr.DocumentTree.exponential(depth=7), np.random.default_rng(0).random(128) / 2)
    with pytest.raises(errors.SearchTooLargeError, match="more than 10 evaluations"):
        users.optimum(5, limit=10)


def test_integer_ids_are_found_or_refused() -> None:
    numbers = np.array([-1, 5, 7])
    ids = DocumentIds(3, numbers)
    numbers[1] = 99  # ours is a copy
    assert ids[1] == 5
    for unknown in ("foo", None, 2.0, 2**70, -(2**70)):
        with pytest.raises(errors.UnknownDocumentError):
            ids.position(unknown)
    large = DocumentIds(3, np.array([2**60, 2**60 + 1, 2**60 + 2], np.uint64))
    assert [large.position(2**60 + i) for i in range(3)] == [0, 1, 2]
    with pytest.raises(errors.UnknownDocumentError, match="too large"):
        DocumentIds(1, np.array([2**63], np.uint64))


def test_every_error_is_one_of_ours_and_a_value_error() -> None:
    names = [name for name in vars(errors) if name.endswith("Error")]
    assert len(names) > 10
    for name in names:
        assert issubclass(getattr(errors, name), errors.ZoomrankError)
        assert issubclass(getattr(errors, name), ValueError)
