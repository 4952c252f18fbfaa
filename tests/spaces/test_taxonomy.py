import pytest

from zoomrank import DocumentTree
from zoomrank.errors import DuplicateDocumentError, EmptyCollectionError, TaxonomyError


def test_paths_are_documents() -> None:
    tree = DocumentTree.from_paths(["Animals > Birds > Owls", "Animals > Birds > Hens", "Animals > Fish", "Plants"])
    assert sorted(tree.documents) == ["Animals > Birds > Hens", "Animals > Birds > Owls", "Animals > Fish", "Plants"]
    assert tree.distance("Animals > Birds > Owls", "Animals > Birds > Hens") == pytest.approx(0.837**2)
    assert tree.distance("Animals > Birds > Owls", "Animals > Fish") == pytest.approx(0.837)
    assert tree.distance("Plants", "Animals > Fish") == 1.0
    assert tree.name(tree.leaf("Animals > Fish")) == "Animals > Fish"


def test_documents_hang_below_any_category() -> None:
    tree = DocumentTree.from_paths({1: "Animals", 2: "Animals > Birds", 3: "Animals > Birds", 4: ["Plants"]})
    assert sorted(tree.documents) == [1, 2, 3, 4]
    assert tree.distance(2, 3) == pytest.approx(0.837**2)
    assert tree.distance(1, 2) == pytest.approx(0.837)
    assert tree.name(tree.leaf(3)) == "Animals > Birds > 3"


def test_categories_can_be_skipped() -> None:
    paths = ["A", "A > B", "A > B > C", "D"]
    with pytest.raises(TaxonomyError, match="'A' is a document and also a category"):
        DocumentTree.from_paths(paths)
    assert sorted(DocumentTree.from_paths(paths, categories="skip").documents) == ["A > B > C", "D"]


def test_sequences_of_names_may_contain_the_separator() -> None:
    tree = DocumentTree.from_paths([("a > b", "x"), ("a > b", "y")])
    assert tree.distance(("a > b", "x"), ("a > b", "y")) == pytest.approx(0.837)


@pytest.mark.parametrize("path", ["", "A > ", "A >  > B", []])
def test_empty_steps_are_refused(path: str) -> None:
    with pytest.raises(TaxonomyError, match="empty step"):
        DocumentTree.from_paths([path])


def test_refusals() -> None:
    with pytest.raises(EmptyCollectionError):
        DocumentTree.from_paths([])
    with pytest.raises(EmptyCollectionError):
        DocumentTree.from_paths({})
    with pytest.raises(DuplicateDocumentError, match="given twice"):
        DocumentTree.from_paths(["A > B", "A > C", "A >  B"])
    with pytest.raises(DuplicateDocumentError, match="given twice"):
        DocumentTree.from_paths(["A > B", "A > B", "A > C"])
    with pytest.raises(TaxonomyError, match="separator"):
        DocumentTree.from_paths(["A"], separator="")
    with pytest.raises(TaxonomyError, match="not a string"):
        DocumentTree.from_paths([["A", 3]])  # type: ignore[list-item]
    with pytest.raises(TaxonomyError, match="refuse"):
        DocumentTree.from_paths(["A"], categories="keep")
