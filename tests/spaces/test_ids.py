"""Ids are found, listed and put into another order alike, however they are kept."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zoomrank import errors
from zoomrank.spaces import DocumentIds, DocumentTree
from zoomrank.spaces.ids import PackedStrings

texts = st.text(st.characters(exclude_categories=[]), max_size=4)  # lone surrogates too
numbers = st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(-3, 3)


def agree(one: DocumentIds, other: DocumentIds, asked: list[object]) -> None:
    """Both have the same ids in the same places."""
    assert list(one) == list(other)
    assert [one[at] for at in range(len(one))] == list(one)
    assert one.places(asked).tolist() == other.places(asked).tolist()
    assert one.places(asked).tolist() == [list(one).index(name) if name in list(one) else -1 for name in asked]
    assert one.known(asked) == other.known(asked) == [name for name in asked if name in list(one)]
    assert [name in one for name in asked] == [name in other for name in asked]


@given(st.lists(texts, min_size=1, max_size=12, unique=True), st.lists(texts, max_size=6), st.data())
def test_packed_strings_are_found_as_things_are(there: list[str], asked: list[str], data: st.DataObject) -> None:
    things, packed = DocumentIds(len(there), there), DocumentIds(len(there), PackedStrings.packed(there))
    agree(packed, things, [*asked, *there, 3, None])
    more = [text for text in dict.fromkeys(asked) if text not in there]
    order = data.draw(st.permutations(range(len(there) + len(more))))
    source = np.array(order[: max(1, len(order) - 1)], np.int64)
    agree(packed.rearranged(source, more), things.rearranged(source, more), [*asked, *there])
    assert isinstance(packed.rearranged(source, more).column, PackedStrings)


@given(st.lists(numbers, min_size=1, max_size=12, unique=True), st.lists(numbers, max_size=6))
def test_numbers_are_found_as_things_are(there: list[int], asked: list[int]) -> None:
    things = DocumentIds(len(there), there)
    agree(DocumentIds(len(there), np.array(there, np.int64)), things, [*asked, *there, 2**70, -(2**63)])
    agree(DocumentIds(len(there), np.array(there, np.int64)), things, [*asked, "owl", None])
    small = [number % 1000 for number in there]
    if len(set(small)) == len(small):
        agree(DocumentIds(len(small), np.array(small, np.int32)), DocumentIds(len(small), small), [*asked, *small])


def test_positions_are_found_as_numbers_are() -> None:
    agree(DocumentIds(3), DocumentIds(3, np.arange(3)), [2, 0, 3, -1, 2**70, "1"])


@pytest.mark.parametrize("ids", [["a", "b", "a"], PackedStrings.packed(["a", "b", "a"])])
def test_an_id_that_stands_for_two_documents(ids: list[str]) -> None:
    with pytest.raises(errors.DuplicateDocumentError, match=r"The id 'a' stands for .*number 0 and number 2"):
        DocumentIds(3, ids)


def test_documents_named_twice_or_unknown() -> None:
    ids = DocumentIds(3, PackedStrings.packed(["a", "b", "c"]))
    with pytest.raises(errors.DuplicateDocumentError, match="The document 'c' is named twice"):
        ids.positions(["a", "c", "b", "c", "b"])
    with pytest.raises(errors.UnknownDocumentError, match="No document has the id 'd'; the first of 3 is 'a'"):
        ids.positions(["c", "d", "e"])


@pytest.mark.parametrize("count", [2, 5000])
def test_a_fingerprint_is_that_of_all_arrays_and_ids(count: int) -> None:
    tree = DocumentTree.from_parents([-1] + [0] * count)
    for ids in (list(range(7, 7 + count)), [f"it's {number}" for number in range(count)]):
        digest = hashlib.sha256()
        for array in (*tree.shape, tree.width):
            digest.update(array.tobytes())
        for document in ids:
            digest.update(repr(document).encode() + b"\0")
        kept = np.array(ids) if isinstance(ids[0], int) else PackedStrings.packed(ids)
        for same in (ids, kept):
            again = DocumentTree(tree.shape, tree.width, DocumentIds(count, same))
            assert again.fingerprint == digest.hexdigest()[:32]


@pytest.mark.parametrize(("letters", "ends"), [(b"\xc3\xa4", [0, 1, 2]), (b"ab\xff", [0, 1, 3]), (b"a\xc3", [0, 1, 2])])
def test_strings_that_cannot_be_decoded(letters: bytes, ends: list[int]) -> None:
    with pytest.raises(errors.FileFormatError, match=r"String \d of this file is damaged"):
        PackedStrings(np.frombuffer(letters, np.uint8), np.array(ends)).checked()
    sound = PackedStrings.packed(["ä", "", "日本", "a"])
    assert sound.checked() is sound
