"""Collections: made of taxonomies, vectors, texts and distances; saved, loaded, restricted; bad input refused."""

import io
import json
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zoomrank import RankZoom, ZoomRank, errors
from zoomrank.documents import (
    Collection,
    Document,
    load_collection,
    mean_relevance,
    predictive_power_from_labels,
    read_table,
    read_taxonomy,
    read_vectors,
    scale_from_labels,
    text_vectors,
)
from zoomrank.documents.collection_file import write
from zoomrank.spaces import DocumentTree
from zoomrank.spaces.ids import PackedStrings
from zoomrank.types import Array

TEXTS = ["the barn owl hunts at night", "snowy owls hunt by day", "pike live in lakes", "trout live in rivers"]
PATHS = {"owl": "Animals > Birds", "eagle": "Animals > Birds", "pike": "Animals > Fish", "oak": "Plants"}


def with_everything() -> Collection:
    vectors = np.random.default_rng(0).standard_normal((30, 5)).astype(np.float32)
    return Collection.from_vectors(
        vectors,
        ids=[f"ö{i}" for i in range(30)],
        titles=[f"title {i}" for i in range(30)],
        urls={f"ö{i}": f"https://example.org/{i}" for i in range(0, 30, 2)},
        texts=["" if i == 3 else "日本" * i for i in range(30)],
    )


def backed_by_a_map(array: Array | None) -> bool:
    base: Any = array
    while base is not None and not isinstance(base, np.memmap):
        base = getattr(base, "base", None)
    return base is not None


def test_documents_stand_in_the_order_of_the_tree_with_all_that_is_theirs() -> None:
    collection = with_everything()
    assert [document.id for document in collection] == list(collection.tree.documents)
    assert collection["ö4"] == Document("ö4", "title 4", "https://example.org/4", "日本" * 4)
    assert collection["ö5"] == Document("ö5", "title 5", "", "日本" * 5)
    assert "ö5" in collection
    assert "p5" not in collection
    assert collection.tree.width[0] == 1
    vectors = collection.vectors
    assert vectors is not None
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    for x in range(30):
        for y in range(30):
            one, other = collection.tree.documents[x], collection.tree.documents[y]
            assert collection.geometry.distance(one, other) >= np.linalg.norm(vectors[x] - vectors[y])


def test_rankers_learn_on_the_tree_of_a_collection() -> None:
    collection = with_everything()
    ranker = RankZoom(collection.tree, slots=3, horizon=1000, seed=0)
    assert all(document in collection for document in ranker.rank().documents)


def test_scale() -> None:
    distances = [[0, 1, 4], [1, 0, 4], [4, 4, 0]]
    collection = Collection.from_distances(distances, ids="abc", scale=0.5)
    assert collection.tree.distance("a", "b") == 0.5
    assert collection.tree.distance("a", "c") == 1.0  # 0.5 · 4, clipped
    assert collection.scaled(0.25).tree.distance("a", "c") == 0.5  # from the geometry, not from what was clipped
    assert collection.scaled(0.25).scale == 0.125
    assert Collection.from_distances(distances).scale == 0.25
    for bad in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(errors.ParameterError, match="scale must be a positive number"):
            collection.scaled(bad)


@given(st.sets(st.integers(0, 29), min_size=1))
@settings(max_examples=30)
def test_restricted_documents_are_as_far_apart_as_they_were(numbers: set[int]) -> None:
    collection = with_everything()
    ids = [f"ö{i}" for i in sorted(numbers, reverse=True)]
    part = collection.restricted(ids)
    assert set(part.tree.documents) == set(ids)
    assert part.scale == collection.scale
    for one in ids:
        assert part[one] == collection[one]
        for other in ids:
            assert part.tree.distance(one, other) == collection.tree.distance(one, other)
    assert part.vectors is not None
    assert collection.vectors is not None
    place = [collection.tree.documents.position(document) for document in part.tree.documents]
    assert np.array_equal(part.vectors, collection.vectors[place])


def test_restricted_keeps_names_and_refuses_strangers() -> None:
    collection = Collection.from_taxonomy(PATHS)
    part = collection.restricted(["pike"])
    assert part.tree.name(part.tree.leaf("pike")) == "Animals > Fish > pike"
    with pytest.raises(errors.EmptyCollectionError):
        collection.restricted([])
    with pytest.raises(errors.UnknownDocumentError, match="'cod'"):
        collection.restricted(["cod"])
    with pytest.raises(errors.DuplicateDocumentError, match="named twice"):
        collection.restricted(["owl", "owl"])


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        with_everything,
        lambda: Collection.from_taxonomy(PATHS, scale=0.3),
        lambda: Collection.from_vectors(np.eye(4), ids=np.array([7, 5, -3, 2**40])),
        lambda: Collection.from_texts([*TEXTS, ""]),
        lambda: Collection.from_distances([[0.0]], ids=["alone"]),
        lambda: with_everything().restricted(["ö1", "ö9"]),
    ],
)
def test_saved_and_loaded(make: Callable[[], Collection], verify: bool, tmp_path: Path) -> None:
    collection = make()
    file = tmp_path / "mine.zoomdocs"
    collection.save(file)
    loaded = load_collection(file, verify=verify)
    assert list(loaded) == list(collection)
    assert loaded.tree.fingerprint == collection.tree.fingerprint
    assert loaded.geometry.fingerprint == collection.geometry.fingerprint
    assert (loaded.scale, loaded.notes) == (collection.scale, collection.notes)
    assert list(loaded.tree.names or []) == list(collection.tree.names or [])
    assert backed_by_a_map(loaded.geometry.width)
    assert backed_by_a_map(loaded.geometry.shape.parent)
    if collection.vectors is not None:
        assert loaded.vectors is not None
        assert np.array_equal(loaded.vectors, collection.vectors)
        assert backed_by_a_map(loaded.vectors)
        assert loaded.vectors.ctypes.data % 64 == 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine.zoomdocs"]
    again = tmp_path / "again"
    loaded.save(again)
    assert again.read_bytes() == file.read_bytes()


def test_saving_over_a_mapped_file_and_failing_to_save(tmp_path: Path) -> None:
    file = tmp_path / "mine"
    with_everything().save(file)
    loaded = load_collection(file)
    loaded.scaled(0.5).save(file)  # the old file lives on as long as it is mapped
    assert loaded["ö3"].title == "title 3"
    assert load_collection(file).scale == loaded.scale / 2
    with pytest.raises(errors.FileFormatError, match="all strings or all whole numbers"):
        Collection.from_distances([[0, 1], [1, 0]], ids=["a", 1]).save(file)
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine"]


def test_damaged_files(tmp_path: Path) -> None:
    good = tmp_path / "good"
    with_everything().save(good)
    content = good.read_bytes()
    (length,) = struct.unpack_from("<Q", content, 12)
    bad = tmp_path / "bad"

    def refused(damaged: bytes, says: str, verify: bool = False) -> None:
        bad.write_bytes(damaged)
        with pytest.raises(errors.FileFormatError, match=says):
            load_collection(bad, verify=verify)

    def flipped(place: int) -> bytes:
        return content[:place] + bytes([content[place] ^ 0x41]) + content[place + 1 :]

    refused(b"", "not a collection")
    refused(b"PK" + content[2:], "not a collection")
    refused(content[:30], "not a collection")
    refused(content[:8] + struct.pack("<I", 2) + content[12:], "version 2, this zoomrank reads up to 1")
    refused(content[:8] + struct.pack("<I", 0) + content[12:], "are invalid")
    for place in range(12, 52 + length, 7):
        refused(flipped(place), "damaged")
    for size in (len(content) - 1, len(content) // 2, 52 + length):
        refused(content[:size], "damaged")
    refused(content + b"x", "should have")
    refused(flipped(len(content) - 1), "checksum of its body", verify=True)
    with pytest.raises(errors.SourceError, match="There is no file"):
        load_collection(tmp_path / "nowhere")


def test_a_damaged_tree_is_noticed_without_reading_the_whole_file(tmp_path: Path) -> None:
    file = tmp_path / "mine"
    with_everything().save(file)
    content = bytearray(file.read_bytes())
    (length,) = struct.unpack_from("<Q", content, 12)
    arrays = {entry["name"]: entry for entry in json.loads(content[52 : 52 + length])["arrays"]}
    for name, says in (("parent", "nodes are not those of a tree"), ("width", "width"), ("titles.ends", "end where")):
        damaged = content.copy()
        start = 52 + length + arrays[name]["place"]
        damaged[start : start + 16] = b"\xff" * 16
        file.write_bytes(damaged)
        with pytest.raises(errors.FileFormatError, match=says):
            load_collection(file)


@given(st.lists(st.text(), max_size=8))
@settings(max_examples=30)
def test_packed_strings_come_back(strings: list[str]) -> None:
    assert list(PackedStrings.packed(strings)) == strings


def test_taxonomies(tmp_path: Path) -> None:
    collection = Collection.from_taxonomy(PATHS, titles={"oak": "Oak"}, epsilon=0.5)
    assert collection.tree.distance("owl", "eagle") == 0.25
    assert collection["oak"].title == "Oak"
    bare = Collection.from_taxonomy(["A > B", "A > C"])
    assert bare["A > B"].title == "B"
    with pytest.raises(errors.TaxonomyError, match="also a category"):
        Collection.from_taxonomy(["A", "A > B"])
    assert list(Collection.from_taxonomy(["A", "A > B"], categories="skip").tree.documents) == ["A > B"]
    with pytest.raises(errors.UnknownDocumentError, match="titles mention 'cod'"):
        Collection.from_taxonomy(PATHS, titles={"cod": "Cod"})
    with pytest.raises(errors.TaxonomyError, match='"below" a category'):
        Collection.from_taxonomy(PATHS, place="above")
    with pytest.raises(errors.EmptyCollectionError):
        Collection.from_taxonomy([])


def test_taxonomy_files(tmp_path: Path) -> None:
    text = tmp_path / "categories.txt"
    text.write_text("# a comment\n\nx/1   : A\nx/2   : A > B : b\nx/3   : C\n", encoding="utf-8")
    assert read_taxonomy(text) == {"id": ["x/1", "x/2", "x/3"], "path": ["A", "A > B : b", "C"]}
    with pytest.raises(errors.TaxonomyError, match="also a category"):
        Collection.from_taxonomy(text)
    collection = Collection.from_taxonomy(text, categories="skip")
    assert {document.id: document.title for document in collection} == {"x/2": "B : b", "x/3": "C"}
    assert len(Collection.from_taxonomy(text, place="below")) == 3
    text.write_text("A > B\nx : C\n")
    with pytest.raises(errors.SourceError, match="an id in 1 of 2 lines"):
        read_taxonomy(text)
    table = tmp_path / "products.csv"
    table.write_text('ID,Name,Category\n1,"Owl, barn",A > B\n2,Pike,A > B\n3,Oak,C\n')
    collection = Collection.from_taxonomy(table)
    assert collection["1"] == Document("1", "Owl, barn")
    assert collection.tree.distance("1", "2") < collection.tree.distance("1", "3")
    lines = tmp_path / "products.jsonl"
    lines.write_text('{"id": 1, "path": ["A", "B"]}\n{"id": 2, "path": ["A", "C"], "url": "u"}\n')
    assert Collection.from_taxonomy(lines)[2].url == "u"
    lines.write_text('{"id": 1, "path": ""}\n')
    with pytest.raises(errors.SourceError, match="no path in row 1"):
        Collection.from_taxonomy(lines)


def test_tables(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    expected = {"id": ["a", "b"], "title": ['x"y', ""], "url": ["u", "v"], "text": ["one, two", "three"]}
    (tmp_path / "t.csv").write_text(
        'docID,title,url,snippet\na,"x""y",u,"one, two"\nb,,v,three\n', encoding="utf-8-sig"
    )
    (tmp_path / "t.tsv").write_text('doc_id\tTitle\tURL\tbody\na\tx"y\tu\tone, two\nb\t\tv\tthree\n')
    rows = [dict(zip(expected, row, strict=True)) for row in zip(*expected.values(), strict=True)]
    rows[1]["title"] = None
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    for ending in ("csv", "tsv", "jsonl", "parquet"):
        assert read_table(tmp_path / f"t.{ending}") == expected
        collection = Collection.from_texts(tmp_path / f"t.{ending}")
        assert collection["a"] == Document("a", 'x"y', "u", "one, two")
    named = read_table(tmp_path / "t.csv", columns={"text": "title"})
    assert named["text"] == ['x"y', ""]
    assert "title" not in named


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("t.csv", "", "is empty"),
        ("t.csv", "id,title\n", "has no documents"),
        ("t.csv", "name,colour\nx,red\n", "no column for the id; its columns are 'name', 'colour'"),
        ("t.csv", "id,title\na\n", "1 fields in line 2, not 2"),
        ("t.csv", "id,title\n,x\n", "no id in row 1"),
        ("t.csv", 'id,title\na,"x\n', "cannot be read as a table"),
        ("t.jsonl", "{]\n", "no JSON object in line 1"),
        ("t.jsonl", "[1]\n", "a list in line 1"),
        ("t.parquet", "PAR0", "not a Parquet file"),
        ("t.xls", "x", "is not a table that can be read"),
    ],
)
def test_tables_that_cannot_be_read(name: str, content: str, says: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(errors.SourceError, match=says):
        read_table(tmp_path / name)


def test_other_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(errors.SourceError, match="There is no file"):
        read_table(tmp_path / "t.csv")
    file = tmp_path / "t.csv"
    file.write_text("id\na\nb\na\n")
    with pytest.raises(errors.DuplicateDocumentError, match="the id 'a' twice, in rows 1 and 3"):
        read_table(file)
    with pytest.raises(errors.SourceError, match="no column 'sku'; its columns are 'id'"):
        read_table(file, columns={"id": "sku"})
    with pytest.raises(errors.SourceError, match="not 'colour'"):
        read_table(file, columns={"colour": "id"})
    file.write_bytes(b"id\n\xff\n")
    with pytest.raises(errors.SourceError, match="cannot be read"):
        read_table(file)
    (tmp_path / "t.txt").write_bytes(b"A > \xff\n")
    with pytest.raises(errors.SourceError, match="not UTF-8"):
        read_taxonomy(tmp_path / "t.txt")
    (tmp_path / "t.txt").write_text("# nothing\n")
    with pytest.raises(errors.SourceError, match="has no paths"):
        read_taxonomy(tmp_path / "t.txt")


def test_vector_files(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    vectors = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)
    np.save(tmp_path / "v.npy", vectors)
    mapped, table = read_vectors(tmp_path / "v.npy")
    assert isinstance(mapped, np.memmap)
    assert table == {}
    one = Collection.from_vectors(tmp_path / "v.npy", ids=list("abcdef"))
    pq.write_table(
        pa.table({"id": list("abcdef"), "embedding": vectors.tolist(), "title": list("ABCDEF")}), tmp_path / "v.parquet"
    )
    other = Collection.from_vectors(tmp_path / "v.parquet")
    assert one.tree.fingerprint == other.tree.fingerprint
    assert other["b"].title == "B"
    pq.write_table(pa.table({"vector": [[1.0], [1.0, 2.0]]}), tmp_path / "ragged.parquet")
    (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY")
    (tmp_path / "bad.csv").write_text("x")
    for name, says in (
        ("ragged.parquet", "differ in length"),
        ("bad.npy", "not a NumPy array"),
        ("bad.csv", "no vectors"),
    ):
        with pytest.raises(errors.SourceError, match=says):
            read_vectors(tmp_path / name)


def test_texts() -> None:
    collection = Collection.from_texts(TEXTS, ids=["barn", "snowy", "pike", "trout"])
    distance = collection.tree.distance
    assert distance("barn", "snowy") < distance("barn", "pike")
    assert distance("trout", "pike") < distance("trout", "barn")
    assert collection.notes == ()
    words, blank = text_vectors([*TEXTS, "?!"], pieces="words", dimensions=2)
    assert blank.tolist() == [False] * 4 + [True]
    assert np.allclose(np.linalg.norm(words, axis=1), 1)
    assert words.dtype == np.float32
    assert not np.allclose(words[1], words[3])  # two dimensions lose both, but they share nothing
    odd = text_vectors([*TEXTS * 5, "한국어", "日本語の文書", "日本語の文書"], dimensions=2)[0]
    assert np.allclose(odd[-1], odd[-2])
    assert not np.allclose(odd[-1], odd[-3])
    same = Collection.from_texts(["the same"] * 5)
    assert same.tree.width[0] < 1e-3 or same.tree.width[0] == 1  # all of one kind, up to rounding
    assert np.array_equal(text_vectors(TEXTS)[0], text_vectors(TEXTS)[0])


@given(st.floats(min_value=1e-9, max_value=1e9))
def test_without_a_scale_the_whole_collection_is_1_wide(widest: float) -> None:
    """Exactly: 1 / x * x is a little less than 1 for some x."""
    collection = Collection.from_distances([[0, widest], [widest, 0]])
    assert collection.tree.width[0] == 1


def test_empty_texts_stand_apart_and_are_counted() -> None:
    collection = Collection.from_texts(["", *TEXTS, "  "], ids=range(6))
    assert collection.notes == ("2 of 6 texts are empty; they stand together, apart from all others.",)
    assert collection.tree.distance(0, 5) == 0
    assert collection.tree.distance(0, 1) == 1
    with pytest.raises(errors.TextError, match="All 3 texts are empty"):
        Collection.from_texts(["", " ", "\n"])
    with pytest.raises(errors.TextError, match="Text number 1 is not a string but a NoneType"):
        Collection.from_texts(["a", None])  # type: ignore[list-item]
    with pytest.raises(errors.TextError, match="not a single string"):
        text_vectors("abc")
    with pytest.raises(errors.TextError, match="single piece of 1 words"):
        text_vectors(["?", "!"], pieces="words")
    with pytest.raises(errors.EmptyCollectionError):
        Collection.from_texts([])
    with pytest.raises(errors.ParameterError, match="not by 'runes'"):
        text_vectors(TEXTS, pieces="runes")
    with pytest.raises(errors.ParameterError, match="0 dimensions"):
        text_vectors(TEXTS, dimensions=0)
    with pytest.raises(errors.ParameterError, match="from 4 to 2"):
        text_vectors(TEXTS, lengths=(4, 2))


def test_counts_and_ids_that_do_not_fit() -> None:
    vectors = np.eye(3)
    with pytest.raises(errors.UnknownDocumentError, match="2 ids were given for 3 documents"):
        Collection.from_vectors(vectors, ids=["a", "b"])
    with pytest.raises(errors.DuplicateDocumentError, match="'a' stands for two documents"):
        Collection.from_vectors(vectors, ids=["a", "b", "a"])
    with pytest.raises(errors.UnknownDocumentError, match="4 titles were given for 3 documents"):
        Collection.from_vectors(vectors, titles=["a"] * 4)
    with pytest.raises(errors.UnknownDocumentError, match="not a single string"):
        Collection.from_distances([[0, 1], [1, 0]], urls="ab")
    with pytest.raises(errors.UnknownDocumentError, match="1 texts were given for 4 documents"):
        Collection(DocumentTree.exponential(depth=2), texts=["a"])
    with pytest.raises(errors.UnknownDocumentError, match="No document has the id 9"):
        Collection.from_vectors(vectors)[9]


@pytest.mark.parametrize(
    ("matrix", "says"),
    [
        ([[0, 1], [2, 0]], "row 0, column 1 is 1.0; that in the other direction differs"),
        ([[0, -1], [-1, 0]], "negative"),
        ([[0, np.nan], [np.nan, 0]], "finite"),
        ([[1, 1], [1, 0]], "row 0, column 0 is 1.0; a document must be at distance 0 from itself"),
        ([[0, 1, 2], [1, 0, 1]], r"has shape \(2, 3\); it must be square"),
    ],
)
def test_not_distances(matrix: list[list[float]], says: str) -> None:
    with pytest.raises(errors.MetricError, match=says):
        Collection.from_distances(matrix)


def test_no_distances() -> None:
    with pytest.raises(errors.EmptyCollectionError):
        Collection.from_distances([])


def test_calibration_finds_the_slope() -> None:
    tree = DocumentTree.exponential(depth=6, epsilon=0.5)
    rng = np.random.default_rng(0)
    rows = [set(range(8 * block, 8 * block + 8)) for block in rng.integers(8, size=400)]
    mean = mean_relevance(tree, rows)
    assert mean.sum() == pytest.approx(8)
    factor = scale_from_labels(tree, rows, share=1.0, close=1.0, pairs=50_000)
    for x in range(0, 64, 5):
        assert (np.abs(mean - mean[x]) <= factor * tree.distances(x) + 1e-12).all()
    assert scale_from_labels(tree, rows, share=0.5, close=0.125) == 0  # within a block all are equally relevant
    assert factor == scale_from_labels(tree, rows, share=1.0, close=1.0, pairs=50_000)
    assert predictive_power_from_labels(tree, rows) == 1.0
    noise = [set(rng.choice(64, 3, replace=False).tolist()) for _ in range(200)]
    assert predictive_power_from_labels(tree, noise) == pytest.approx(0.5, abs=0.05)
    heavy = mean_relevance(tree, [{0}, {1}], [3, 1])
    assert heavy[:2].tolist() == [0.75, 0.25]


def test_relevance_that_calibrates_nothing() -> None:
    tree = DocumentTree.exponential(depth=2)
    with pytest.raises(errors.EmptyCollectionError, match="no visitors"):
        mean_relevance(tree, [])
    with pytest.raises(errors.WeightError, match="for 1 visitors"):
        mean_relevance(tree, [{0}], [1, 2])
    with pytest.raises(errors.WeightError, match="not all 0"):
        mean_relevance(tree, [{0}], [-1])
    with pytest.raises(errors.ParameterError, match="No document is relevant"):
        scale_from_labels(tree, [set()])
    with pytest.raises(errors.UnknownDocumentError):
        scale_from_labels(tree, [{9}])
    with pytest.raises(errors.ParameterError, match=r"share and close must lie in \(0, 1\]"):
        scale_from_labels(tree, [{1}], share=1.5)
    with pytest.raises(errors.ParameterError, match="raise `close`"):
        scale_from_labels(tree, [{1}], close=0.1)
    with pytest.raises(errors.ParameterError, match="0 pairs"):
        scale_from_labels(tree, [{1}], pairs=0)
    with pytest.raises(errors.ParameterError, match="No visitor finds two"):
        predictive_power_from_labels(tree, [{1}])
    with pytest.raises(errors.ParameterError, match="nothing to predict"):
        predictive_power_from_labels(tree, [{1, 2}])


def test_a_collection_grows_and_rankers_follow() -> None:
    rng = np.random.default_rng(2)
    small = Collection.from_vectors(rng.normal(size=(40, 6)), ids=[f"d{i}" for i in range(40)], scale=0.3)
    assert small.vectors is not None
    ranker = ZoomRank(small.tree, slots=2, seed=1)
    old = ranker.rank()
    place = small.nearest(small.vectors[7] * 3)
    assert place == small.tree.documents[7]
    large = small.grown({"new": place}, [Document("new", title="New", text="fresh")])
    assert len(large) == 41
    assert large["new"] == Document("new", title="New", text="fresh")
    assert large.tree.distance("new", place) == small.tree.width[small.tree.shape.parent[small.tree.leaf(place)]]
    ranker.grow(large.tree)
    ranker.learn(old, click=1)
    assert set(ranker.rank(eligible=["new", place]).documents) == {"new", place}
    with pytest.raises(errors.UnknownDocumentError, match="where it belongs"):
        small.grown({"new": place}, [Document("other")])
    with pytest.raises(errors.DuplicateDocumentError):
        small.grown({"d3": place})
    with pytest.raises(errors.VectorError, match="no vectors"):
        large.nearest([1.0] * 6)
    for bad in ([1.0] * 5, [0.0] * 6, [np.nan] * 6):
        with pytest.raises(errors.VectorError, match="6 finite numbers"):
            small.nearest(bad)


def test_meanings_come_from_a_model() -> None:
    pytest.importorskip("wordllama", reason="the extra zoomrank[embeddings] is not installed")
    vectors, blank = text_vectors(["a happy dog", "the glad puppy", "quarterly tax report", ""], pieces="meanings")
    assert vectors.shape == (4, 257)
    assert blank.tolist() == [False, False, False, True]
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.1
    assert (vectors[3] @ vectors[:3].T == 0).all()


def test_files_that_are_open_have_no_name_or_are_none(tmp_path: Path) -> None:
    collection = with_everything()
    collection.save(tmp_path / "mine")
    with tempfile.TemporaryFile(dir=tmp_path) as nameless:
        write(collection, nameless)
        nameless.seek(0)
        content = nameless.read()
        loaded = load_collection(nameless, verify=True)
    assert content == (tmp_path / "mine").read_bytes()
    assert backed_by_a_map(loaded.geometry.width)
    read = load_collection(io.BytesIO(content), verify=True)
    assert not backed_by_a_map(read.geometry.width)
    assert list(loaded) == list(read) == list(collection)
    with pytest.raises(errors.FileFormatError, match="This file is damaged"):
        load_collection(io.BytesIO(content[:-1]))
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine"]
