"""Evaluations on judged documents: the rankings they compare with, what is kept, what is reported."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from zoomrank import DocumentTree
from zoomrank.cli import main
from zoomrank.documents import Collection
from zoomrank.errors import CatalogueError, ParameterError, ResultsError, SlotsError
from zoomrank.lab.curves import Results
from zoomrank.lab.evaluation import (
    DEFAULT_RANKERS,
    GIVEN,
    RIVAL,
    SEARCH_ORDER,
    by_popularity,
    evaluate,
    learning_curves,
    marginally_relevant,
    marks,
    settings,
    shares,
    topics_in,
)
from zoomrank.lab.evaluation_report import write_evaluation_report
from zoomrank.lab.recipes import Setting
from zoomrank.lab.registry import GREEDY, JudgedTopic, load_world
from zoomrank.lab.results_folder import ResultsFolder, sweep_request
from zoomrank.lab.run import RunRows
from zoomrank.types import Array
from zoomrank.users import RelevanceTable

FEW = ("ZoomRank", RIVAL)  # every other ranker would have to be compiled, too
ALL = (*FEW, *GIVEN)


def topic(name: str, seed: int, documents: int = 20) -> JudgedTopic:
    """Four groups of documents, and kinds of visitors who mostly like one of them."""
    rng = np.random.default_rng(seed)
    tree = DocumentTree.from_paths({f"{name}.{i}": f"{i % 4}" for i in range(documents)})
    rows = [
        [f"{name}.{i}" for i in range(documents) if rng.random() < (0.6 if i % 4 == kind else 0.1)] for kind in range(4)
    ]
    return JudgedTopic(name, tree, RelevanceTable(tree, rows, [4, 3, 2, 1]))


def literal_mmr(distance: Array, mean: Sequence[float], slots: int, tradeoff: float) -> list[int]:
    """Maximal marginal relevance as its definition says, ties to the first."""
    chosen: list[int] = []
    while len(chosen) < slots:
        best, value = -1, -np.inf
        for one in range(len(mean)):
            if one in chosen:
                continue
            alike = max((1 - distance[one, other] / distance.max() for other in chosen), default=0.0)
            score = tradeoff * mean[one] / max(mean) - (1 - tradeoff) * alike
            if score > value + 1e-12:
                best, value = one, score
        chosen.append(best)
    return chosen


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("tradeoff", [0.0, 0.5, 0.8, 1.0])
def test_mmr_is_what_its_definition_says(seed: int, tradeoff: float) -> None:
    rng = np.random.default_rng(seed)
    tree = DocumentTree.exponential(depth=4, branching=2, epsilon=0.6, constant=0.7)
    mean = rng.random(len(tree)) * 0.4
    ours = marginally_relevant(tree, mean, 6, tradeoff, rng)
    assert len(set(ours.tolist())) == 6
    if tradeoff > 0:  # without relevance there are ties
        assert ours.tolist() == literal_mmr(tree.distance_matrix(), mean.tolist(), 6, tradeoff)
    if tradeoff == 1:
        assert ours.tolist() == by_popularity(mean, 6, rng).tolist() == np.argsort(-mean)[:6].tolist()


def test_ties_are_broken_at_random() -> None:
    tree = DocumentTree.exponential(depth=4)
    mean = np.full(16, 0.25)
    mean[3] = 0.5
    popular = {tuple(by_popularity(mean, 2, np.random.default_rng(seed))) for seed in range(40)}
    assert {first for first, _ in popular} == {3}
    assert len({second for _, second in popular}) > 5
    diverse = {tuple(marginally_relevant(tree, mean, 2, 0.5, np.random.default_rng(seed))) for seed in range(40)}
    assert {first for first, _ in diverse} == {3}
    assert {second // 8 for _, second in diverse} == {1}  # from the other half of the tree
    assert len(diverse) > 3


def test_documents_that_are_all_the_same() -> None:
    tree = DocumentTree.from_parents([-1, 0, 0], width=[0.0, 0, 0])
    assert sorted(marginally_relevant(tree, np.zeros(2), 2, 0.5, np.random.default_rng(1))) == [0, 1]


def test_worlds_survive_being_kept(tmp_path: Path) -> None:
    one = topic("1", 5)
    runs = settings([one], tmp_path / "out", FEW, slots=2, visits=100, instances=2, seed=1)
    assert [(run.curve, run.instance) for run in runs[: len(ALL)]] == [(curve, 0) for curve in ALL]
    assert all(Setting.from_json(run.to_json()) == run for run in runs)
    assert not (tmp_path / "out").exists()
    evaluate([one], tmp_path / "out", [], slots=2, visits=20, instances=1, workers=1)
    tree, users = load_world(str(runs[0].tree.given["file"]))
    assert tree.fingerprint == one.tree.fingerprint
    np.testing.assert_allclose(users.weights, one.users.weights)
    np.testing.assert_allclose(users.mean(), one.users.mean())
    (tmp_path / "odd.npz").write_bytes(b"odd")
    with pytest.raises(ResultsError, match=r"odd.npz cannot be read"):
        load_world(str(tmp_path / "odd.npz"))


def test_what_cannot_be_evaluated(tmp_path: Path) -> None:
    one = topic("1", 5)
    for topics, options, error, says in (
        ([], {}, ParameterError, "no topic"),
        ([one], {"slots": 21}, SlotsError, "'1' has 20 candidate documents, too few for 21 slots"),
        ([one], {"rankers": ["Rank"]}, CatalogueError, "Unknown ranker 'Rank'; choose one of .*ZoomRank"),
        ([one], {"instances": 0}, ParameterError, "at least one"),
        ([one], {"visits": 0}, ParameterError, "at least one"),
        ([one], {"workers": 0}, ParameterError, "at least one"),
    ):
        with pytest.raises(error, match=says):
            evaluate(topics, tmp_path / "out", **options)
    tuples = DocumentTree.from_parents([-1, 0, 0], ids=[(1, 2), (3, 4)])
    with pytest.raises(ParameterError, match=r"\(1, 2\) cannot be stored"):
        evaluate([JudgedTopic("t", tuples, RelevanceTable(tuples, [[(1, 2)]]))], tmp_path / "out", slots=1)
    assert not (tmp_path / "out").exists()  # nothing of this left a trace


def test_an_evaluation_goes_on_where_it_was(tmp_path: Path) -> None:
    topics = [topic("10", 1), topic("2", 2)]
    options = {"slots": 3, "visits": 300, "workers": 1, "seed": 3}
    evaluate(topics[:1], tmp_path / "a", ["ZoomRank"], instances=1, **options)  # type: ignore[arg-type]
    with pytest.raises(ResultsError, match="--resume"):
        evaluate(topics, tmp_path / "a", **options)  # type: ignore[arg-type]
    kept = (tmp_path / "a" / "rows" / "topic-10" / "ZoomRank" / "0.parquet").read_bytes()
    folder = evaluate(topics, tmp_path / "a", FEW, instances=2, resume=True, **options)  # type: ignore[arg-type]
    assert folder.rows_file(next(iter(folder.rows())).setting).exists()
    assert (tmp_path / "a" / "rows" / "topic-10" / "ZoomRank" / "0.parquet").read_bytes() == kept
    results = Results(folder.rows())
    assert topics_in(results, *ALL) == ["2", "10"]
    chance, mine = (shares(results, ["2", "10"], curve, 300) for curve in ("RankRandom", "ZoomRank"))
    assert (mine > chance).all()
    at, curves = learning_curves(results, ["2", "10"], "ZoomRank")
    assert curves.shape == (2, len(at))
    np.testing.assert_allclose(curves[:, -1], mine)
    other = [topic("10", 7)]  # same name, other labels
    with pytest.raises(ResultsError, match="another setting"):
        evaluate(other, tmp_path / "a", resume=True, instances=2, **options)  # type: ignore[arg-type]


def test_every_ranker_can_be_asked_for(tmp_path: Path) -> None:
    runs = settings(
        [topic("1", 5)], tmp_path, ["RankEXP3", "mine:Own", GREEDY], slots=2, visits=70, instances=1, seed=1
    )
    assert [run.curve for run in runs] == ["RankEXP3", "mine.Own", *GIVEN]
    assert runs[0].ranker.given == {"horizon": 70}
    assert DEFAULT_RANKERS == ("ZoomRank", "RankCorrZoom", RIVAL)
    rival = next(
        run for run in settings([topic("1", 5)], tmp_path, slots=2, visits=9, instances=1, seed=1) if run.curve == RIVAL
    )
    assert rival.ranker.given == {"exploration": 0.003}


def test_marks_end_with_the_last_visit() -> None:
    assert marks(50_000) == [50, 100, 200, 500, 1_000, 10_000, 50_000]
    assert marks(20_000) == [50, 100, 200, 500, 1_000, 10_000, 20_000]
    assert marks(300) == [50, 100, 200, 300]


def made_up(path: Path, rates: dict[str, list[float]], topics: int = 3) -> ResultsFolder:
    """A folder with rows that nobody ran: of each curve, a rate per topic."""
    folder = ResultsFolder.create(path, sweep_request("evaluation", 1, 2_000, 1))
    worlds = [topic(f"t/{number}", number) for number in range(topics)]
    runs = settings(worlds, path, FEW, slots=2, visits=2_000, instances=1, seed=1)
    real = evaluate(worlds, path.with_name("real"), [], slots=2, visits=10, instances=1, workers=1)
    shutil.copytree(real.path / "worlds", path / "worlds")
    for run in runs:
        at = np.array([10, 100, 1_000, 2_000])
        rate = rates[run.curve][int(run.experiment[-1])]
        folder.add(RunRows(run, at, np.stack([np.round(at * rate).astype(int), 0 * at], axis=1), np.full(4, rate)), 0.1)
    return folder


def test_the_report_counts_wins_and_losses(tmp_path: Path) -> None:
    rates = {curve: [0.2] * 3 for curve in ALL} | {GREEDY: [0.5] * 3, RIVAL: [0.4] * 3, "ZoomRank": [0.1, 0.4, 0.45]}
    folder = made_up(tmp_path / "out", rates)
    page = write_evaluation_report(folder).page.read_text()
    assert "data:image/svg+xml;base64," in page
    text = (folder.path / "report.md").read_text()
    assert text.split("\n\n")[1].startswith("**Clicks here are simulated from real labels.**")
    assert "3 topics, 2 slots, 2,000 visits, 1 instance of each" in text
    assert "| 2,000 | 1 | 1 | 1 | -0.600 | 0.100 | -0.167 [-1.107, 0.774] | cannot tell |" in text
    assert "| t/0 | 20 | 4 | 0.500 | 0.20 / 0.20 / 0.20 | 0.80 / 0.80 / 0.80 | 0.40 / 0.40 / 0.40 |" in text
    assert "| ranker | is told | by 50 | by 100 | by 200 | by 500 | by 1,000 | by 2,000 |" in text
    assert (folder.path / "figures" / "figure-evaluation.png").exists()


def test_being_behind_is_said(tmp_path: Path) -> None:
    rates = {curve: [0.2, 0.21, 0.2] for curve in ALL} | {GREEDY: [0.5] * 3, RIVAL: [0.4] * 3}
    write_evaluation_report(made_up(tmp_path / "out", rates))
    assert "**behind**" in (tmp_path / "out" / "report.md").read_text()


def test_one_topic_has_no_intervals(tmp_path: Path) -> None:
    rates = {curve: [0.2] for curve in ALL} | {GREEDY: [0.5]}
    write_evaluation_report(made_up(tmp_path / "out", rates, topics=1))
    text = (tmp_path / "out" / "report.md").read_text()
    assert "but one topic and one instance" in text
    assert "[" not in text.partition("## Clicks")[2].partition("## Made")[0]  # nor anything infinite
    assert "nan" not in text


def test_nothing_to_report(tmp_path: Path) -> None:
    folder = ResultsFolder.create(tmp_path / "out", sweep_request("evaluation", 1, 300, 1))
    with pytest.raises(ResultsError, match="nothing to report yet"):
        write_evaluation_report(folder)


WORDS = ("owl hawk heron wren", "pike perch trout carp", "oak birch maple elm", "quartz basalt gneiss marble")


def written(folder: Path, kind: str) -> list[str]:
    """Twenty documents about four things, and two topics of ten documents each; where they are, as arguments."""
    rng = np.random.default_rng(4)
    documents, relevance = folder / "pages.tsv", folder / f"{kind}.txt"
    lines = ["ID\ttitle\tsnippet"]
    judged: dict[str, list[str]] = {"qrels": [], "subtopics": ["subTopicID\tdocID"], "likes": [], "sessions": []}
    for number in range(20):
        about = number % 4
        text = " ".join(rng.choice(WORDS[about].split(), 6))
        lines.append(f"d{number}\tpage {number}\t{text}")
        topic = 1 + number // 10
        judged["qrels"] += [f"{topic} {about} d{number} 1", f"{topic} {(about + 1) % 4} d{number} 0"]
        judged["subtopics"].append(f"{topic}.{about}\td{number}")
        judged["likes"] += [f"u{about},d{number},5", f"u{(about + 1) % 4},d{number},2"]
        judged["sessions"].append(f"s{about}\td{number}")
    documents.write_text("\n".join(lines) + "\n")
    relevance.write_text("\n".join(judged[kind]) + "\n")
    shape = [f"--{kind}", str(relevance)] if kind in ("likes", "sessions") else ["--relevance", str(relevance)]
    return [str(documents), *shape, *(["--kind", kind] if shape[0] == "--relevance" else [])]


SMALL = ["--slots", "3", "--visits", "300", "--instances", "2", "--workers", "1", "--rankers", *FEW]


@pytest.mark.parametrize(("kind", "topics"), [("qrels", 2), ("subtopics", 2), ("likes", 1), ("sessions", 1)])
def test_the_whole_way(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, topics: int) -> None:
    out = tmp_path / "out"
    assert main(["evaluate", *written(tmp_path, kind), *SMALL, "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert f"{topics} topic" in said
    assert said.count("\nZoomRank  ") == 1
    assert re.search(r"^ranker +by 50 +by 100 +by 200 +by 300$", said, flags=re.MULTILINE)
    assert "Ranking by popularity, which is told how many like each document, reaches" in said
    text = (out / "report.md").read_text()
    first = text.split("\n\n")[1]
    source, given = {
        "likes": ("recorded people", "--likes likes.txt --unknown refuse --candidates 100 "),
        "sessions": ("recorded sessions", "--sessions sessions.txt --unknown refuse --candidates 100 "),
    }.get(kind, ("simulated from real labels", f"--relevance {kind}.txt --kind {kind} "))
    assert source in first
    assert f"`zoomrank evaluate pages.tsv {given}" in first
    results = Results(ResultsFolder(out).rows())
    names = topics_in(results, *ALL)
    assert names == (["1", "2"] if topics == 2 else ["all"])
    tree, users = load_world(next(str(path) for path in sorted((out / "worlds").iterdir())))
    assert len(tree) == 20 // topics
    assert users.greedy(3).satisfaction == pytest.approx(0.75)
    assert (shares(results, names, "ZoomRank", 300) > shares(results, names, "RankRandom", 300) - 0.1).all()
    assert f"100% of a topic's candidates are relevant to some visitor. On {topics} of {topics} topics" in text
    for name in names:
        assert f"\n| {name} | {len(tree)} | 4 | 0.750 | " in text
    written_then = (out / "report.md").read_text()
    (out / "report.md").unlink()
    assert main(["report", str(out)]) == 0
    assert (out / "report.md").read_text() == written_then
    assert "\nZoomRank  " in capsys.readouterr().out


def test_all_documents_can_be_candidates(tmp_path: Path) -> None:
    options = [*written(tmp_path, "subtopics"), *SMALL, "--out", str(tmp_path / "out"), "--candidates", "all"]
    assert main(["evaluate", *options, "--rankers", "ZoomRank", "--topics", "2"]) == 0
    text = (tmp_path / "out" / "report.md").read_text()
    assert "| 2 | 20 | 4 | 0.750 |" in text
    assert "wins and loses" not in text  # against nobody
    assert "| ZoomRank | clicks alone |" in text


def test_candidates_are_the_most_liked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of four films, two are liked by three people each; the person who likes neither is left out."""
    (tmp_path / "films.csv").write_text("id,path\na,Drama\nb,Drama\nc,Horror\nd,Horror\n")
    (tmp_path / "likes.csv").write_text("u,a,5\nv,a,4\nw,a,4\nx,c,5\nu,c,4\nv,c,5\ny,d,5\nw,b,3\n")
    options = [str(tmp_path / "films.csv"), "--likes", str(tmp_path / "likes.csv"), *SMALL, "--slots", "1"]
    assert main(["evaluate", *options, "--candidates", "2", "--out", str(tmp_path / "out")]) == 0
    said = "Candidates are 2 documents, those with the most likes. 4 of 5 people and 6 of 7 likes are left."
    assert said in capsys.readouterr().out
    text = (tmp_path / "out" / "report.md").read_text()
    assert said in text
    assert "| all | 2 | 4 | 0.750 |" in text
    assert "reaches 1.000 of greedy's clicks: diversity has next to nothing to gain here" in text
    assert "over the instances of the only topic" in text
    options += ["--out", str(tmp_path / "five"), "--threshold", "5", "--candidates", "topic"]
    assert main(["evaluate", *options]) == 0
    assert "Candidates are 4 documents. 4 of 4 people and 4 of 4 likes are left." in capsys.readouterr().out
    for bad in ("0", "-1", "few"):
        with pytest.raises(SystemExit):
            main(["evaluate", *options, f"--candidates={bad}"])
        assert "neither topic, all nor a number of documents" in capsys.readouterr().err


@pytest.mark.parametrize("by_topic", [True, False])
def test_the_order_of_a_search_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str], by_topic: bool) -> None:
    """Documents 0, 4, 8 and 10, 14, 18 are about the same: a ranking of these pleases one visitor in four."""
    options = ["evaluate", *written(tmp_path, "qrels"), *SMALL, "--rankers", "ZoomRank", "--out", str(tmp_path / "out")]
    rows = [(1, "d8", 3), (1, "d0", 1), (1, "d4", 2), (1, "d1", 4), (2, "d10", 1), (2, "d14", 2), (2, "d18", 3)]
    order = tmp_path / "order.csv"
    heads = ["topic,docID,rank", *(f"{topic},{document},{rank}" for topic, document, rank in rows)]
    order.write_text("\n".join(heads if by_topic else [line.partition(",")[2] for line in heads]) + "\n")
    assert main([*options, "--order", str(order)]) == 0
    assert SEARCH_ORDER in capsys.readouterr().out
    results = Results(ResultsFolder(tmp_path / "out").rows())
    pleased = [results.curve(f"topic-{name}", SEARCH_ORDER).expected[0, 0] for name in (1, 2)]
    assert pleased == pytest.approx([0.25, 0.25])
    assert "| SearchOrder | the order of the search engine |" in (tmp_path / "out" / "report.md").read_text()
    order.write_text("id,rank\nd0,1\n")
    assert main([*options, "--order", str(order)]) == 2
    assert "has 1 candidates of the topic '1', too few for 3 slots" in capsys.readouterr().err
    order.write_text("id,rank\nd0,first\n")
    assert main([*options, "--order", str(order)]) == 2
    assert "has a rank that is not a number" in capsys.readouterr().err


def test_widths_are_scaled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = [*written(tmp_path, "qrels"), *SMALL, "--rankers", "ZoomRank", "--instances", "1", "--visits", "20"]
    widths = {}
    for scale in ("default", "0.5", "calibrated"):
        out = tmp_path / scale
        assert main(["evaluate", *options, "--out", str(out), "--scale", scale]) == 0
        kept = sorted((out / "worlds").iterdir())
        widths[scale] = {path.name.split("-")[0]: float(load_world(str(path))[0].width[0]) for path in kept}
    assert widths["0.5"] == {name: width / 2 for name, width in widths["default"].items()}
    assert len(widths["default"]) == 2
    (left,) = widths["calibrated"]  # the topic that has not taught the width
    taught = ({"1", "2"} - {left}).pop()
    said = f"calibrated from the labels of 1 other topic, which are not evaluated: {taught}."
    text = (tmp_path / "calibrated" / "report.md").read_text()
    assert said in text
    assert said in capsys.readouterr().out
    assert "--scale calibrated" in text
    assert "All widths were multiplied by 0.5." in (tmp_path / "0.5" / "report.md").read_text()
    assert widths["calibrated"][left] < widths["default"][left]


def test_widths_that_cannot_be_scaled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["evaluate", *written(tmp_path, "likes"), *SMALL, "--out", str(tmp_path / "out")]
    assert main([*options, "--scale", "calibrated"]) == 2
    assert "takes two topics" in capsys.readouterr().err
    for bad in ("0", "-1", "nan", "wide"):
        with pytest.raises(SystemExit):
            main([*options, f"--scale={bad}"])
        assert "neither default, calibrated nor a positive number" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_documents_that_are_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = [*written(tmp_path, "qrels"), *SMALL, "--out", str(tmp_path / "out"), "--rankers", "ZoomRank"]
    with (tmp_path / "qrels.txt").open("a") as file:
        file.write("2 3 lost 1\n3 1 gone 1\n")
    assert main(["evaluate", *options]) == 2
    assert "lacks 1 of the 11 documents judged for the topic '2': 'lost'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert main(["evaluate", *options, "--unknown", "skip"]) == 0
    said = "Of 22 judged documents 2 are not in the collection and were skipped."
    assert said in capsys.readouterr().out
    text = (tmp_path / "out" / "report.md").read_text()
    assert said in text
    assert "were left out: 3." in text
    assert main(["evaluate", *options, "--topics", "3", "--unknown", "skip", "--out", str(tmp_path / "no")]) == 2
    assert "check that both files use the same ids" in capsys.readouterr().err


def test_what_the_command_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["evaluate", *written(tmp_path, "qrels"), *SMALL, "--out", str(tmp_path / "out")]
    for extra, says in (
        (["--topics", "9"], "no judgments for the topic '9'"),
        (["--threshold", "3"], "--threshold is only for --likes"),
        (["--slots", "11"], "too few for 11 slots"),
        (["--relevance", "nowhere.txt"], "nowhere.txt cannot be read"),
        (["--rankers", "Rank"], "Unknown ranker 'Rank'"),
    ):
        assert main([*options, *extra]) == 2
        assert says in capsys.readouterr().err
    (tmp_path / "bare.csv").write_text("id,url\nd1,x\n")
    bare = str(tmp_path / "bare.csv")
    for file, says in (("nowhere.csv", "no file nowhere.csv"), (bare, "it needs a title, a text or a path")):
        assert main([options[0], file, *options[2:]]) == 2
        assert says in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_collections_from_files_and_numbers_as_ids(tmp_path: Path) -> None:
    texts = [" ".join([WORDS[number % 4]] * 2) + f" {number}" for number in range(12)]
    Collection.from_texts(texts, ids=np.arange(100, 112)).save(tmp_path / "pages.zoom")
    (tmp_path / "ratings.csv").write_text("".join(f"u{number % 4},{100 + number},5\n" for number in range(12)))
    options = [str(tmp_path / "pages.zoom"), "--likes", str(tmp_path / "ratings.csv")]
    assert main(["evaluate", *options, *SMALL, "--out", str(tmp_path / "out")]) == 0
    assert "| all | 12 | 4 | 0.750 |" in (tmp_path / "out" / "report.md").read_text()


def test_evaluate_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["evaluate", "--help"])
    assert "examples:\n  zoomrank evaluate pages.tsv" in capsys.readouterr().out
