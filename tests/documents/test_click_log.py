"""Click logs: read and refused as they should be; and the scale of a metric found from them, in spite of luck."""

import json
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zoomrank import DocumentTree, errors
from zoomrank.cli import main
from zoomrank.documents import (
    ClickLog,
    Collection,
    predictive_power_from_clicks,
    read_clicks,
    read_impressions,
    scale_from_clicks,
)
from zoomrank.documents.calibration import comparisons
from zoomrank.lab.inspection import CLICKS, MetricVerdict, inspect_tree
from zoomrank.lab.inspection_report import write_inspection
from zoomrank.spaces import DocumentIds
from zoomrank.spaces.ids import PackedStrings
from zoomrank.types import Array
from zoomrank.users import Independent, TreeNetwork, UserDistribution

ABC = DocumentIds(3, ["a", "b", "c"])
TREE = DocumentTree.exponential(depth=3, branching=8, epsilon=0.4, constant=0.45)  # 512 documents
TOLERANCE = 0.35


def shown_at_random(
    users: UserDistribution, impressions: int, seed: int, query: str = ""
) -> list[tuple[str, Any, Any]]:
    """What visitors do who are shown three documents at random."""
    rng = np.random.default_rng(seed)
    log = []
    for _ in range(impressions):
        ranking = rng.choice(len(users), 3, replace=False)
        names, slot = users.documents.at(ranking), int(users.first_clicks(ranking, 1, rng)[0])
        log.append((query, names, None if slot == 3 else names[slot]))
    return log


def as_steep_as_allowed(tree: DocumentTree, seed: int) -> Array:
    """Means in which every subtree uses up its width: every node goes up or down as far as its parent's allows."""
    rng = np.random.default_rng(seed)
    mean = np.full(tree.nodes, 0.25)
    for node in range(1, tree.nodes):
        up = tree.shape.parent[node]
        mean[node] = mean[up] + (tree.width[up] - tree.width[node]) / 2 * rng.choice([-1, 1])
    return mean[tree.shape.leaf]


def naive_scale(tree: DocumentTree, log: ClickLog) -> float:
    """What rates would say if they were taken for probabilities."""
    found = comparisons(tree, log.counted(tree.documents))
    return float(np.quantile(np.abs(found.difference) / found.distance, 0.95))


@lru_cache
def visited(seed: int) -> ClickLog:
    """What happens where visitors differ by as much as they may."""
    return ClickLog(shown_at_random(TreeNetwork(TREE, as_steep_as_allowed(TREE, seed)), 12_000, seed=100 + seed))


@pytest.fixture(params=[1, 4])
def world(request: pytest.FixtureRequest) -> ClickLog:
    return visited(request.param)


@pytest.fixture
def steep() -> ClickLog:
    return visited(1)


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_the_scale_undoes_what_was_done_to_the_widths(world: ClickLog, factor: float) -> None:
    """Visitors differ by exactly as much as the widths of the tree allow, so times any factor it asks for 1/factor."""
    collection = Collection(TREE, scale=factor)
    scale = scale_from_clicks(collection.tree, world)
    assert abs(scale * factor - 1) < TOLERANCE
    assert collection.scaled(scale).tree.width[0] == pytest.approx(TREE.width[0], rel=TOLERANCE)
    assert naive_scale(collection.tree, world) * factor > 1 + TOLERANCE  # luck alone would have widened them


@pytest.mark.parametrize("impressions", [1_000, 6_000])
def test_luck_is_not_taken_for_a_difference(impressions: int) -> None:
    log = ClickLog(shown_at_random(Independent(TREE, np.full(len(TREE), 0.2)), impressions, seed=3))
    assert scale_from_clicks(TREE, log) < TOLERANCE
    assert naive_scale(TREE, log) > 2 * TOLERANCE
    assert predictive_power_from_clicks(TREE, log) == pytest.approx(0.5, abs=0.05)


def test_a_metric_that_is_wrong_asks_for_more_and_predicts_nothing(steep: ClickLog) -> None:
    mean = np.random.default_rng(4).permutation(as_steep_as_allowed(TREE, 1))
    shuffled = ClickLog(shown_at_random(Independent(TREE, mean), 12_000, seed=5))
    assert scale_from_clicks(TREE, shuffled) > 2
    assert predictive_power_from_clicks(TREE, shuffled) == pytest.approx(0.5, abs=0.05)
    assert predictive_power_from_clicks(TREE, steep) > 0.65


def test_popular_documents_without_neighbours_predict_nothing() -> None:
    """In a star all others are neighbours of both; a document's own clicks, left out of them, must not count."""
    star = DocumentTree.from_parents([-1, *[0] * 40], width=[1.0, *[0.0] * 40], ids=list(range(40)))
    users = Independent(star, np.random.default_rng(6).random(40) * 0.5)
    assert predictive_power_from_clicks(star, ClickLog(shown_at_random(users, 2_000, seed=7))) == 0.5


def test_queries_are_kept_apart() -> None:
    """What is steep in each of two queries is flat in their sum."""
    tree = DocumentTree.exponential(depth=2, branching=6, epsilon=0.4, constant=0.5)
    up = np.where(np.arange(36) % 2, 0.3, 0.1)
    both = [
        *shown_at_random(Independent(tree, up), 2_500, 8, "left"),
        *shown_at_random(Independent(tree, 0.4 - up), 2_500, 9, "right"),
    ]
    apart, mixed = ClickLog(both), ClickLog([("", *rest) for _, *rest in both])
    assert apart.queries == ("left", "right")
    assert scale_from_clicks(tree, apart, close=0.5) == pytest.approx(1, abs=TOLERANCE)
    assert scale_from_clicks(tree, mixed, close=0.5) < TOLERANCE


def test_only_what_was_looked_at_counts() -> None:
    log = ClickLog([("q", ["a", "b", "c"], "a"), ("q", ["c", "b"], "b"), ("p", ["b"], None)])
    counts = log.counted(ABC)
    assert [column.tolist() for column in counts] == [[0, 0, 0, 1], [0, 1, 2, 1], [1, 1, 1, 1], [1, 1, 0, 0]]
    assert (log.impressions, log.clicks, log.queries) == (3, 2, ("q", "p"))
    numbers = ClickLog([("", [7, 8], "8")]).counted(DocumentIds(2, np.array([8, 7])))
    assert numbers.clicks.tolist() == [1, 0]


IMPRESSIONS = [("q", ["a", "b", "c"], "b"), ("q", ["c", "a"], None), ("p", ["b", "c"], "b")]


def written(
    folder: Path,
    form: str,
    kind: str,
    impressions: Iterable[tuple[str, list[str], str | None]],
    looked_at: list[int | None] | None = None,
) -> Path:
    """The log as a file; rows of single documents from the bottom up, to see that positions are looked at."""
    path = folder / f"{form}.{kind}"
    rows: list[dict[str, Any]] = []
    for number, (query, shown, clicked) in enumerate(impressions):
        if form == "nested":
            looks = {} if looked_at is None else {"looked_at": looked_at[number]}
            rows.append({"query": query, "shown": shown, "clicked": clicked, **looks})
        for place in reversed(range(len(shown) if form == "flat" else 0)):
            row = {"query": query, "impression": number, "position": place + 1, "document": shown[place]}
            rows.append({**row, "clicked": int(shown[place] == clicked)})
    if kind == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(rows), path)
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        comma = "," if kind == "csv" else "\t"
        path.write_text("\n".join(comma.join(map(str, line)) for line in [list(rows[0]), *[r.values() for r in rows]]))
    return path


@pytest.mark.parametrize(
    ("form", "kind"),
    [("nested", "jsonl"), ("nested", "parquet"), *(("flat", kind) for kind in ("csv", "tsv", "jsonl", "parquet"))],
)
def test_every_format_says_the_same(tmp_path: Path, form: str, kind: str) -> None:
    ours, theirs = ClickLog(IMPRESSIONS), read_clicks(written(tmp_path, form, kind, IMPRESSIONS))
    assert repr(ours) == repr(theirs) == "ClickLog(3 impressions, 2 clicks, 2 queries)"
    for mine, other in zip(ours.counted(ABC), theirs.counted(ABC), strict=True):
        assert mine.tolist() == other.tolist()


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_what_was_below_the_screen_was_not_looked_at(tmp_path: Path, kind: str) -> None:
    """As exports say it; a click proves a look at it and at all above."""
    shown = ["a", "b", "c"]
    path = written(tmp_path, "nested", kind, [("q", shown, one) for one in (None, None, "b")], [1, None, 1])
    assert list(read_impressions(path)) == [("q", ["a"], None), ("q", shown, None), ("q", shown, "b")]
    assert read_clicks(path).counted(ABC).looks.tolist() == [3, 2, 1]


def test_unusual_columns_no_query_and_several_clicks(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("visit,rank,sku,click\n1,1,a,\n1,2,b,yes\n1,3,c,TRUE\n")
    log = read_clicks(tmp_path / "log.csv", columns={"document": "sku"})
    assert log.counted(ABC).looks.tolist() == [1, 1]  # down to the first click
    assert log.queries == ("",)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"shown": ["a"], "clicked": "b"}', "Impression 1 has a click on 'b', which was not shown in it"),
        ('{"shown": ["a", "a"], "clicked": "a"}', "Impression 1 shows 'a' twice"),
        ('{"shown": [], "clicked": null}', "Impression 1 shows nothing"),
        ('{"shown": "a", "clicked": "a"}', "shows 'a', which is not a list"),
        ('{"shown": null, "clicked": "a"}', "shows None, which is not a list"),
        ('{"shown": ["a"], "clicked": ["a"]}', "must be an id, or null"),
        ('{"shown": ["a"], "clicked": null}', "not a single click in 1 impressions"),
        (
            '{"shown": ["a"], "clicked": null, "looked_at": 0}',
            "Impression 1 has 0 for looked_at; it must be",
        ),
        ('{"shown": ["a"], "clicked": null, "looked_at": 1.5}', "Impression 1 has 1.5 for looked_at"),
        ('{"shown": ["a"], "clicked": null, "looked_at": true}', "Impression 1 has True for looked_at"),
        ('{"shown": ["a"], "clicked": null, "looked_at": "some"}', "Impression 1 has 'some' for looked_at"),
        ('{"shown": ["a"]}', "no column for the clicked"),
        ('{"clicked": 1, "document": "a"}', "no column for the impression"),
        ('{"impression": 1, "position": "x", "document": "a", "clicked": 1}', "Row 1 has the position 'x'"),
        ('{"impression": 1, "position": NaN, "document": "a", "clicked": 1}', "Row 1 has the position nan"),
        ('{"impression": 1, "position": 1, "document": "a", "clicked": 2}', "Row 1 has 2 for clicked"),
        ('{"impression": null, "position": 1, "document": "a", "clicked": 1}', "Row 1 does not name its impression"),
        (
            '{"impression": 1, "position": 1, "document": "a", "clicked": 1}\n'
            '{"impression": 1, "position": 1, "document": "b", "clicked": 0}',
            "Row 2 has a position of the impression 1 that another row has",
        ),
    ],
)
def test_logs_that_make_no_sense(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "log.jsonl").write_text(text + "\n")
    with pytest.raises(errors.SourceError, match=says):
        read_clicks(tmp_path / "log.jsonl")


def test_empty_logs(tmp_path: Path) -> None:
    with pytest.raises(errors.EmptyCollectionError, match="no impressions"):
        ClickLog([])
    (tmp_path / "log.csv").write_text("impression,position,document,clicked\n")
    (tmp_path / "none.csv").write_text("")
    for name in ("log.csv", "none.csv", "nowhere.csv"):
        with pytest.raises(errors.SourceError, match=r"empty|no file"):
            read_clicks(tmp_path / name)


def test_documents_that_are_not_there() -> None:
    log = ClickLog([("", ["a", "x", "b", "y"], "b"), ("", ["x"], "x")])
    assert log.unknown(ABC) == ["x"]  # nobody has looked at y
    with pytest.raises(errors.UnknownDocumentError, match="lacks 1 of the 3 documents in the click log: 'x'"):
        log.counted(ABC)
    assert log.counted(ABC, "skip").looks.tolist() == [1, 1]
    with pytest.raises(errors.ParameterError, match="'refuse' or 'skip', not 'drop'"):
        log.counted(ABC, "drop")
    with pytest.raises(errors.EmptyCollectionError, match="check that both use the same ids"):
        log.counted(DocumentIds(2, ["c", "d"]), "skip")
    with pytest.raises(errors.ParameterError, match="same id as text"):
        log.counted(DocumentIds(2, [1, "1"]))


def test_logs_that_calibrate_nothing() -> None:
    tree = DocumentTree.from_paths(["A > a", "A > b", "B > c"])
    short = ClickLog([("", ["A > a", "A > b"], "A > b")] * 5)
    with pytest.raises(errors.ParameterError, match="too short to tell"):
        scale_from_clicks(tree, short)
    with pytest.raises(errors.ParameterError, match="neighbours have enough looks"):
        predictive_power_from_clicks(tree, ClickLog([("", ["A > a"], "A > a")]))
    enough = ClickLog([("", ["A > a", "A > b"], "A > b")] * 50)
    assert scale_from_clicks(tree, ClickLog([("", ["A > a"], "A > a"), ("", ["A > b"], "A > b")] * 50)) == 0
    for wrong, says in (
        ({"close": 0.1}, "raise `close`"),
        ({"close": 0.0}, "must lie in"),
        ({"share": 1.5}, "must lie in"),
        ({"pairs": 0}, "at least 1"),
        ({"least_looks": 0}, "at least 1"),
    ):
        with pytest.raises(errors.ParameterError, match=says):
            scale_from_clicks(tree, enough, **wrong)
    one = DocumentTree.from_parents([-1], ids=["a"])
    with pytest.raises(errors.ParameterError, match="too short"):
        scale_from_clicks(one, ClickLog([("", ["a"], "a")] * 50))


def test_inspection_of_clicks(steep: ClickLog, tmp_path: Path) -> None:
    narrow, fitting, useless = (
        inspect_tree(tree, clicks=log).verdict
        for tree, log in (
            (Collection(TREE, scale=0.2).tree, steep),
            (TREE, steep),
            (TREE, ClickLog(shown_at_random(Independent(TREE, np.full(512, 0.2)), 2_000, seed=3))),
        )
    )
    assert narrow is not None
    assert fitting is not None
    assert useless is not None
    assert "Widths are too small: multiply them by about" in narrow.words
    assert "The widths are about right" in fitting.words
    assert fitting.words.startswith("Take ZoomRank.")
    assert "closeness makes no clear difference" in useless.words
    assert [level.depth for level in narrow.levels] == [0, 1, 2]
    assert all(level.violations < 0.05 and level.shared is None for level in fitting.levels)
    assert all(level.violations < 0.05 for level in useless.levels)
    assert max(level.violations for level in narrow.levels) > 0.2
    assert max(level.worst for level in narrow.levels) > 2
    page = write_inspection(inspect_tree(TREE, clicks=steep), "clicks", tmp_path / "out").read_text()
    assert "What the clicks say" in page
    assert "Over 1 query, a document that is clicked" in page
    assert "liked by the same" not in page
    assert "too few to tell whether the widths are right" in MetricVerdict(1, None, None, (), CLICKS).words


def test_inspect_reads_a_click_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{name}\t{group}\n" for name, group in zip("abcdef", ["Birds"] * 3 + ["Fish"] * 3, strict=True)]
    (tmp_path / "pages.tsv").write_text("id\tpath\n" + "".join(lines))
    rng = np.random.default_rng(1)
    log = []
    for _ in range(400):
        shown = rng.permutation(list("abcdefz")).tolist()[:3]
        log.append(("q", shown, next((name for name in shown if rng.random() < 0.5 * (name in "abc")), None)))
    path = written(tmp_path, "flat", "csv", log)
    command = ["inspect", str(tmp_path / "pages.tsv"), "--clicks", str(path), "--out", str(tmp_path / "out")]
    assert main(command) == 2
    assert "lacks 1 of the 7 documents in the click log: 'z'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert main([*command, "--unknown", "skip"]) == 0
    said = capsys.readouterr().out
    assert "Of 7 documents in the log 1 are not in the collection and were skipped." in said
    assert "take either. In 40 runs of 3,000 simulated visits with 5 slots" in said  # of 6 documents
    assert main([*command, "--relevance", str(path)]) == 2
    assert "not both" in capsys.readouterr().err
    short = written(tmp_path, "nested", "jsonl", [("q", ["a", "d"], "a")])
    assert main(["inspect", str(tmp_path / "pages.tsv"), "--clicks", str(short), "--out", str(tmp_path / "few")]) == 0
    assert "too few to tell" in capsys.readouterr().out


def test_strings_in_one_go_and_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zoomrank.spaces.ids._PIECE", 2)
    words = ["owl", "", "日本", "pike", "x"]
    strings = PackedStrings.packed(words)
    assert list(strings) == [strings[at] for at in range(5)] == words
    assert list(PackedStrings.packed([])) == []
    damaged = PackedStrings(np.frombuffer(b"ab\xff", np.uint8), np.array([0, 1, 3]))
    with pytest.raises(errors.FileFormatError, match="String 1"):
        list(damaged)
