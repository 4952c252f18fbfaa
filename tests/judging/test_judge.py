"""What is told, what is refused, in which words; logs and rankings from files; replays; the command."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zoomrank as zr
from zoomrank.cli import main
from zoomrank.errors import CannotTellError, FeedbackError, ParameterError, SourceError
from zoomrank.judging import (
    ImpressionLog,
    Judgment,
    TargetMix,
    judge,
    judge_by_query,
    read_log,
    read_rankings,
    replay,
    target_of,
)
from zoomrank.judging.estimators import ESTIMATORS, ShareEstimate
from zoomrank.judging.intervals import share

Row = dict[str, Any]
EARNS = {"a": 0.7, "b": 0.4, "c": 0.2, "d": 0.1}


def rows(count: int, *, explore: float = 1.0, query: str = "q", slots: int = 2, seed: int = 1) -> list[Row]:
    """Impressions of four documents: the first that is left of a, b, c, d, or any other with a chance."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(count):
        left, shown, propensity = sorted(EARNS), list[str](), list[float]()
        for _ in range(slots):
            at = int(rng.integers(len(left))) if rng.random() < explore else 0
            propensity.append(explore / len(left) + (1 - explore) * (at == 0))
            shown.append(left.pop(at))
        click = next((slot for slot, one in enumerate(shown) if rng.random() < EARNS[one]), None)
        found.append(
            {
                "impression": str(number),
                "query": query,
                "shown": shown,
                "propensity": propensity,
                "outcome": "abandoned" if click is None else "satisfied",
                "slot": click,
                "clicked": None if click is None else shown[click],
                "looked_at": None,
                "void": False,
            }
        )
    return found


def log_of(*parts: Iterable[Row]) -> ImpressionLog:
    return ImpressionLog.from_rows(row for part in parts for row in part)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_ranking_is_told_with_its_difference(estimator: str) -> None:
    found = judge(log_of(rows(6_000)), ["a", "b"], estimator=estimator)
    truth = 1 - 0.3 * 0.6
    assert found.target.low < truth < found.target.high
    assert abs(found.target.value - truth) < 4 * found.target.error
    assert found.difference.low > 0.1
    assert found.difference.value == pytest.approx(found.target.value - found.log.value)
    assert 300 < found.sample < 700
    assert json.loads(json.dumps(found.as_dict()))["estimator"] == estimator


def test_differences_are_paired() -> None:
    """Of a target that is the log itself nothing is uncertain but the share."""
    found = judge(log_of(rows(1_000, explore=0.0)), ["a", "b"], estimator="self-normalised")
    assert found.difference[:3] == pytest.approx((0.0, 0.0, 0.0), abs=1e-12)
    assert found.target.high - found.target.low > 0.02


def test_a_ranker_is_asked_for_its_propensities() -> None:
    class Always:
        """Shows c for certain, and below it any other."""

        tree, slots = zr.DocumentTree.from_parents([-1, 0, 0, 0, 0], ids=list("abcd")), 2

        def propensities(self, shown: Any, eligible: Any = None) -> Any:
            first = (shown[:, :1] == 2).astype(float)
            rest = ((shown[:, 1:] != 2) & (shown[:, 1:] != shown[:, :1])) / 3.0
            return np.concatenate([first, rest], axis=1)

    found = judge(log_of(rows(6_000)), Always())
    truth = 1 - 0.8 * np.mean([0.3, 0.6, 0.9])
    assert abs(found.target.value - truth) < 4 * found.target.error
    by_query = judge(log_of(rows(3_000), rows(3_000, query="other")), {"q": Always()})
    assert by_query.others == 3_000
    assert by_query.impressions == 3_000


def test_rankers_of_the_library_are_judged_as_they_are() -> None:
    """A ranker that knows nothing yet draws every document alike; documents that it lacks it never shows."""
    log = log_of(rows(6_000))
    found = judge(log, zr.ZoomRank(flat_tree(), 2, seed=1))
    assert found.target.low < log.satisfied < found.target.high
    assert abs(found.difference.value) < 4 * found.difference.error + 1e-9
    without = zr.ZoomRank(zr.DocumentTree.from_parents([-1, 0, 0, 0], ids=list("abc")), 2, seed=1)
    told = judge(log, without)
    truth = np.mean([1 - (1 - EARNS[one]) * (1 - EARNS[two]) for one in "abc" for two in "abc" if one != two])
    assert abs(told.target.value - truth) < 4 * told.target.error


def test_a_ranker_whose_chances_are_integrals_is_judged() -> None:
    """`RankThompson`, after some visits, against the rankings that it draws."""
    ranker = zr.RankThompson(flat_tree(), 2, seed=1)
    rng = np.random.default_rng(2)
    for _ in range(60):
        ranking = ranker.rank()
        clicks = (slot for slot, one in enumerate(ranking.documents) if rng.random() < EARNS[str(one)])
        ranker.learn(ranking, next(clicks, None))
    found = judge(log_of(rows(6_000)), ranker)
    drawn = [ranker.rank().documents for _ in range(4_000)]
    satisfied = [1 - (1 - EARNS[str(one)]) * (1 - EARNS[str(two)]) for one, two in drawn]
    spread = np.hypot(found.target.error, np.std(satisfied) / np.sqrt(len(drawn)))
    assert abs(found.target.value - np.mean(satisfied)) < 4 * spread
    assert found.difference.low > 0  # it has learned something


def test_a_ranker_that_cannot_say_is_refused() -> None:
    class Silent:
        tree, slots = flat_tree(), 2

        def propensities(self, shown: Any, eligible: Any = None) -> Any:
            return np.full(shown.shape, np.nan)

    with pytest.raises(CannotTellError, match="a ranker without propensities"):
        judge(log_of(rows(1_000)), Silent())


def test_without_propensities_nothing_is_told() -> None:
    known = rows(2_000)
    unknown = [{**row, "propensity": None} for row in rows(500)]
    old = [{name: value for name, value in row.items() if name != "propensity"} for row in rows(500)]
    for log, words in (
        (log_of(known, unknown), "Of 2,500 impressions 500 have no propensities"),
        (log_of(old), "Of 500 impressions 500 have no propensities"),
        (log_of([{**row, "propensity": [0.25, None]} for row in known]), "have no propensities"),
    ):
        with pytest.raises(CannotTellError, match=words):
            judge(log, ["a", "b"])
    assert judge(log_of(known, unknown), ["a", "b"], unknown="skip").impressions == 2_000
    with pytest.raises(CannotTellError, match="Export a log of later impressions"):
        judge(log_of(old), ["a", "b"], unknown="skip")
    # of a shorter target, the propensities of its slots are enough
    assert judge(log_of([{**row, "propensity": [0.25, None]} for row in known]), ["a"]).sample > 300


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("target", [["b", "a"], ["a", "c"], ["d", "c"]])
def test_a_deterministic_log_is_refused(target: list[str], estimator: str) -> None:
    with pytest.raises(CannotTellError, match=r"The log is deterministic.*explore"):
        judge(log_of(rows(5_000, explore=0.0)), target, estimator=estimator)


def test_a_deterministic_log_tells_of_itself() -> None:
    log = log_of(rows(500, explore=0.0))
    assert judge(log, ["a", "b"]).target.value == pytest.approx(log.satisfied)
    assert judge(log, ["a"], estimator="self-normalised").sample == pytest.approx(500)


def test_what_is_never_shown_is_refused() -> None:
    with pytest.raises(CannotTellError, match="never shows the target's rankings"):
        judge(log_of(rows(3_000)), ["e", "a"])
    log = log_of(rows(6_000))
    partly = TargetMix([target_of(log, ["a", "b"]), target_of(log, ["a", "e"])], [0.5, 0.5])
    with pytest.raises(CannotTellError, match=r"Support is missing.*slot 1"):
        judge(log, partly)
    shorter = rows(3_000, slots=1)
    with pytest.raises(CannotTellError, match="Support is missing"):  # half of all rankings are too short
        judge(log_of(rows(3_000), shorter), ["a", "b"])


def test_few_effective_visits_are_refused_with_how_many_it_takes() -> None:
    with pytest.raises(CannotTellError, match=r"effective sample is \d\d: .* Wait for about [\d,]+ more impressions"):
        judge(log_of(rows(600)), ["d", "c"])
    assert judge(log_of(rows(6_000)), ["d", "c"]).sample > 300


def test_few_heavy_impressions_are_refused() -> None:
    log = log_of(rows(5_000, explore=0.2))
    often, rare = target_of(log, ["a", "b"]), target_of(log, ["d", "c"])
    with pytest.raises(CannotTellError, match="times that of the heaviest impression"):
        judge(log, TargetMix([often, rare], [0.8, 0.2]))
    assert judge(log, often).sample > 2_000


def test_queries_that_were_never_asked_are_refused() -> None:
    log = log_of(rows(2_000), rows(2_000, query="r", seed=2))
    with pytest.raises(CannotTellError, match="1 queries that are not in the log, such as 's'"):
        judge(log, {"q": ["a"], "s": ["a"]})
    found = judge(log, {"q": ["a", "b"]})
    assert (found.impressions, found.others) == (2_000, 2_000)
    assert "2,000 impressions of queries that it does not rank" in str(found)


def test_longer_targets_are_refused_and_can_be_cut() -> None:
    log = log_of(rows(6_000))
    with pytest.raises(CannotTellError, match="slots=2"):
        judge(log, ["a", "b", "c"])
    assert judge(log, ["a", "b", "c"], slots=2).target == judge(log, ["a", "b"]).target
    first = judge(log, ["a", "b"], slots=1, estimator="self-normalised")
    assert abs(first.target.value - 0.7) < 4 * first.target.error
    with pytest.raises(ParameterError, match="must be at least 1"):
        judge(log, ["a"], slots=0)


def test_each_query_by_itself() -> None:
    log = log_of(rows(3_000), rows(100, query="rare", seed=2), rows(3_000, query="r", seed=3))
    found = judge_by_query(log, ["a", "b"])
    assert list(found) == ["q", "rare", "r"]
    assert isinstance(found["rare"], CannotTellError)
    told = found["q"]
    assert isinstance(told, Judgment)
    assert told.target == judge(log_of(rows(3_000)), ["a", "b"]).target


def test_impressions_without_an_answer_are_left_out() -> None:
    some = rows(4)
    some[0]["outcome"], some[1]["outcome"], some[2]["void"] = "waiting", "unseen", True
    for row in some[:2]:
        row["slot"] = row["clicked"] = None
    log = log_of(some)
    assert (len(log), log.left_out) == (1, 3)


def test_one_query_and_one_collection() -> None:
    log = log_of(rows(30), rows(20, query="r"))
    assert len(log.of_query("r")) == 20
    with pytest.raises(CannotTellError, match="The query 's' is not in the log"):
        log.of_query("s")
    with pytest.raises(FeedbackError, match="several collections"):
        log_of([{**row, "collection": name} for name in ("shop", "other") for row in rows(1)])


def test_looked_at_ends_what_she_saw() -> None:
    row = {"query": "", "shown": ["a", "b", "c"], "propensity": [0.5, 0.5, 0.5]}
    log = log_of(
        [{**row, "clicked": None, "looked_at": 2}, {**row, "clicked": None}, {**row, "clicked": "b", "looked_at": 3}]
    )
    assert log.looks.tolist() == [2, 3, 2]
    assert log.click.tolist() == [3, 3, 1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"propensity": [0.5]}, "needs 2, one for each document"),
        ({"propensity": [0.0, 1.0]}, "above 0"),
        ({"slot": 2}, "but 2 slots"),
        ({"outcome": "abandoned", "slot": 1}, "but the slot 1"),
        ({"looked_at": 0, "outcome": None}, "1 or more"),
        ({"shown": ["a", "a"]}, "twice"),
    ],
)
def test_nonsense_is_refused(change: Row, words: str) -> None:
    row = {"query": "", "shown": ["a", "b"], "propensity": [0.5, 0.5], "outcome": "satisfied", "slot": 1}
    with pytest.raises(FeedbackError, match=words):
        log_of([{**row, **change}])


@pytest.mark.parametrize("call", [lambda log: judge(log, ["a"], estimator="best"), lambda log: judge(log, 3)])
def test_nonsense_is_not_asked(call: Callable[[ImpressionLog], Any]) -> None:
    with pytest.raises(ParameterError, match=r"Unknown estimator|is no target"):
        call(log_of(rows(10)))


def test_intervals_of_shares_that_never_vary() -> None:
    """Rule of three, roughly: of 100 visits none was satisfied."""
    none = share(ShareEstimate(0.0, np.zeros(100)), 100)
    assert none.low == 0
    assert none.high == pytest.approx(0.037, abs=0.001)
    above = share(ShareEstimate(1.02, np.linspace(-1, 1, 100)), 100)
    assert above.value == above.high == 1.0
    assert 0.8 < above.low < 1.0


def write(path: Path, some: Iterable[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in some))
    return path


def test_files_are_read(tmp_path: Path) -> None:
    import pyarrow as arrow
    from pyarrow import parquet

    some = rows(50)
    lines = read_log(write(tmp_path / "log.jsonl", some))
    parquet.write_table(arrow.Table.from_pylist(some), tmp_path / "log.parquet")
    table = read_log(tmp_path / "log.parquet")
    for name in ("query", "shown", "propensity", "looks", "click"):
        assert (getattr(lines, name) == getattr(table, name)).all()
    with pytest.raises(SourceError, match="has no clicks"):
        read_log(write(tmp_path / "bare.jsonl", [{"shown": ["a"], "propensity": [1.0]}]))
    with pytest.raises(SourceError, match=r"bare\.jsonl: Impression 1"):
        read_log(write(tmp_path / "bare.jsonl", [{"shown": ["a"], "propensity": [2.0], "clicked": None}]))


def test_rankings_are_read(tmp_path: Path) -> None:
    table = tmp_path / "better.tsv"
    table.write_text("query\tposition\tdocument\nq\t2\tb\nq\t1\ta\nr\t1\tc\n")
    assert read_rankings(table) == {"q": ["a", "b"], "r": ["c"]}
    table.write_text("document\na\nb\n")
    assert read_rankings(table) == ["a", "b"]
    assert read_rankings(write(tmp_path / "one.jsonl", [{"shown": ["b", 3]}])) == ["b", "3"]
    for wrong, words in (
        ([{"query": "q", "shown": ["a"]}, {"query": "q", "shown": ["b"]}], "two rankings"),
        ([{"query": "q", "shown": "a"}], "no list"),
        ([{"query": "q"}], "needs a column shown"),
    ):
        with pytest.raises(SourceError, match=words):
            read_rankings(write(tmp_path / "wrong.jsonl", wrong))


def flat_tree() -> zr.DocumentTree:
    return zr.DocumentTree.from_parents([-1, 0, 0, 0, 0], ids=list("abcd"))


def test_a_replay_satisfies_as_many_as_the_learner_would() -> None:
    """Also where the log prefers some documents: what is kept is drawn as the learner draws."""
    log = log_of(rows(30_000, explore=0.4, slots=1))
    always = replay(log, lambda: zr.FixedRanking(flat_tree(), ["b"]), seed=1)
    assert always.satisfied.low < 0.4 < always.satisfied.high
    random = replay(log, lambda: zr.RankRandom(flat_tree(), 1, seed=1), seed=1)
    assert random.satisfied.low < np.mean(list(EARNS.values())) < random.satisfied.high
    assert abs(random.kept - 3_000) < 4 * np.sqrt(3_000)  # one of ten: as rare as the rarest
    learner = replay(log, lambda: zr.RankUCB1(flat_tree(), 1, exploration=0.1, seed=1), seed=1)
    assert learner.rates[-1] > random.satisfied.high
    assert learner.visits[-1] == learner.kept
    assert learner.as_dict()["kept"] == learner.kept


def test_replays_are_refused_where_little_is_kept() -> None:
    with pytest.raises(CannotTellError, match=r"one of 12 here.*more than a slot or two"):
        replay(log_of(rows(700)), lambda: zr.RankRandom(flat_tree(), 2, seed=1), seed=1)
    tree = zr.DocumentTree.from_parents([-1, 0, 0, 0, 0, 0], ids=list("abcde"))
    with pytest.raises(CannotTellError, match="shows documents that the log never does"):
        replay(log_of(rows(5_000, slots=1)), lambda: zr.FixedRanking(tree, ["e"]), seed=1)
    with pytest.raises(CannotTellError, match="have no propensities"):
        replay(log_of([{**row, "propensity": None} for row in rows(5)]), lambda: zr.FixedRanking(flat_tree(), ["a"]))
    with pytest.raises(ParameterError, match="at most"):
        replay(log_of(rows(5, slots=1)), lambda: zr.FixedRanking(flat_tree(), ["a", "b"]))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = str(write(tmp_path / "log.jsonl", [*rows(6_000), *rows(30, query="rare", seed=2)]))
    better = str(write(tmp_path / "better.jsonl", [{"shown": ["a", "b"]}]))
    assert main(["judge", log, "--ranking", better, "--by-query"]) == 0
    said = capsys.readouterr().out
    assert "by the target                 0.8" in said
    assert "rare:\nThe effective sample is" in said
    assert main(["judge", log, "--ranking", better, "--query", "rare"]) == 2
    assert "The effective sample is" in capsys.readouterr().err
    assert main(["judge", log, "--ranking", better, "--json", "--by-query", "--slots", "1"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert abs(told["target"]["value"] - 0.7) < 4 * told["target"]["error"]
    assert set(told["queries"]) == {"q", "rare"}
    assert main(["judge", str(write(tmp_path / "certain.jsonl", rows(300, explore=0.0))), "--ranking", better]) == 0
    write(tmp_path / "better.jsonl", [{"shown": ["b", "a"]}])
    capsys.readouterr()
    assert main(["judge", str(tmp_path / "certain.jsonl"), "--ranking", better]) == 2
    assert "zoomrank: The log is deterministic" in capsys.readouterr().err


def test_the_command_loads_rankers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    numbered = [{**row, "shown": ["abcd".index(one) for one in row["shown"]], "clicked": None} for row in rows(3_000)]
    log = str(write(tmp_path / "log.jsonl", numbered))
    zr.ZoomRank(zr.DocumentTree.exponential(depth=2), 2, seed=1).save(tmp_path / "some.ranker")
    assert main(["judge", log, "--ranker", str(tmp_path / "some.ranker"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["target"]["low"] < told["log"]["value"] < told["target"]["high"]


def test_the_command_replays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = str(write(tmp_path / "log.jsonl", rows(3_000)))
    tree = tmp_path / "documents.csv"
    tree.write_text("id,path\na,x > a\nb,x > b\nc,y > c\nd,y > d\n")
    asked = ["judge", log, "--tree", str(tree), "--slots", "1"]
    assert main([*asked, "--replay", "RankUCB1", "--set", "exploration=0.1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kept"] > 300
    assert main([*asked, "--replay", "Nobody"]) == 2
    assert "Unknown ranker 'Nobody'" in capsys.readouterr().err
    assert main(["judge", log, "--replay", "ZoomRank"]) == 2
    assert "--tree" in capsys.readouterr().err
