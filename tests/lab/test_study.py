"""The efficiency study: its families, its measures, and a report that can lose."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from research.__main__ import main
from research.studies import families, questions, report
from research.studies.efficiency import Lead, blind_chances, leads, leads_overview, summary
from research.studies.families import FAMILIES, Family, judged_family, taxonomy_family, taxonomy_intents_family
from research.studies.measures import bootstrap, lead_over_best, ratio_of_medians, settling_visit
from research.studies.questions import ABLATIONS, CANDIDATES, RIVALS, SCALABLE, SLOW, STUDIES, experiment
from research.studies.report import write_study_report
from research.studies.short_lists import popular, tastes, zipf_taxonomy

import zoomrank as zr
from zoomrank.errors import ParameterError, ResultsError, TaxonomyError
from zoomrank.lab.curves import Estimate, Results, collected
from zoomrank.lab.evaluation import COMPETITORS, OURS
from zoomrank.lab.recipes import Setting
from zoomrank.lab.registry import GREEDY, load_world, ranker, world
from zoomrank.lab.results_folder import ResultsFolder, sweep_request
from zoomrank.lab.run import MARKS, RunRows, checkpoints, run
from zoomrank.users import CopiedRelevance, Independent

HUNDRED = next(family for family in FAMILIES if family.name == "hundred")


def _curve(
    curve: str, rates: list[float], expected: list[list[float]] | None = None, visits: int = 50_000
) -> list[RunRows]:
    """Made-up rows of one curve of the family of 100 documents: a rate per instance."""
    setting = experiment(HUNDRED).settings(instances=1)[0]
    at = np.array(checkpoints(visits))
    made = []
    for instance, rate in enumerate(rates):
        satisfied = np.round(at * rate).astype(np.int64)
        exact = np.full(len(at), rate) if expected is None else np.resize(expected[instance], len(at))
        named = dataclasses.replace(setting, curve=curve, instance=instance)
        made.append(RunRows(named, at, np.stack([satisfied, 0 * satisfied], axis=1), exact))
    return made


def test_every_setting_survives_being_written_down() -> None:
    runs = [run for one in STUDIES.values() for run in one.settings(2, None, 5)]
    assert len({setting.id for setting in runs}) == len(runs)
    assert all(Setting.from_json(setting.to_json()) == setting for setting in runs)
    short = ("queries", "log-", "order-")  # the first visits are what matters there
    early = {f"{study}-{family.name}": family.visits for study in STUDIES for family in FAMILIES if family.early}
    for setting in runs:
        if not setting.experiment.startswith(short):
            assert setting.visits >= early.get(setting.experiment, 50_000)
    assert {str(ranker) for ranker in (*COMPETITORS.values(), *RIVALS.values())} <= {
        *CANDIDATES,
        "RankCorrZoom()",
        "RankRandom()",
    }


@pytest.mark.full
@pytest.mark.parametrize(
    "family",
    [f for f in FAMILIES if f.name in ("uneven", "hundred", "twins", "decoy", "scattered", "three-slots", "ten-slots")],
)
def test_families_can_be_run(family: Family) -> None:
    curves = ["ZoomRank", "RankRandom", GREEDY]
    runs = experiment(family).settings(curves, instances=1, visits=3_000)
    mine, chance, greedy = (rows.expected[-20:].mean() for rows in map(run, runs))
    assert chance < mine <= greedy + 1e-9


def test_clicks_are_shares_of_greedy() -> None:
    results = Results([*_curve("ZoomRank", [0.3, 0.4]), *_curve(GREEDY, [0.6, 0.5])])
    mine, greedy = results.together("efficiency-hundred", "ZoomRank", GREEDY)
    for visits in MARKS:
        assert collected(mine, greedy, visits) == pytest.approx([0.5, 0.8], abs=0.001)


def test_settling_is_for_good() -> None:
    at = checkpoints(50_000)
    early, late, never = np.full(len(at), 0.96), np.full(len(at), 0.96), np.full(len(at), 0.96)
    early[:5], late[:70], never[-1] = 0.1, 0.1, 0.1
    late[3:9] = 1.0  # too soon: it does not last
    shown = [list(curve) for curve in (early, late, never, np.ones(len(at)))]
    results = Results([*_curve("ZoomRank", [0.5] * 4, shown), *_curve(GREEDY, [1.0] * 4)])
    mine, greedy = results.together("efficiency-hundred", "ZoomRank", GREEDY)
    assert settling_visit(mine, greedy).tolist() == [at[5], at[70], np.inf, at[0]]


def test_intervals_by_resampling() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(2.0, 1.0, size=400)
    interval = bootstrap(values)
    assert interval.mean == pytest.approx(values.mean())
    assert interval.high - interval.low == pytest.approx(2 * 1.96 / 20, rel=0.15)
    fast, slow = np.full(9, 100.0), np.array([1_000.0] * 6 + [np.inf] * 3)
    assert ratio_of_medians(fast, slow).mean == pytest.approx(0.1)
    assert ratio_of_medians(fast, np.full(9, np.inf)).mean == 0.0


def test_losses_are_seen() -> None:
    others = {name: [0.2, 0.2, 0.2] for name in COMPETITORS if name != OURS} | {"RankZoom-tuned": [0.5, 0.5, 0.5]}
    for ours, sign in ((0.6, 1), (0.3, -1)):
        rates = {**others, "ZoomRank": [ours] * 3, GREEDY: [1.0] * 3}
        results = Results([rows for name, values in rates.items() for rows in _curve(name, values)])
        name, lead = lead_over_best(results, "efficiency-hundred", OURS, list(others), 10_000)
        assert name == "RankZoom-tuned"
        assert np.sign(lead.low) == np.sign(lead.high) == sign


def test_all_rivals_are_compared_as_long_as_they_run() -> None:
    slow = "VowpalWabbit-tuned"
    rates = {**dict.fromkeys(COMPETITORS, 0.2), "HierTS-tuned": 0.3, GREEDY: 0.5}
    rows = [run for name, rate in rates.items() for run in _curve(name, [rate] * 3)]
    results = Results([*rows, *_curve(slow, [0.4] * 3, visits=1_000)])
    found = {one.mark: one for one in leads(results, [HUNDRED])}
    assert {mark: one.rival for mark, one in found.items()} == {
        mark: slow if mark <= 1_000 else "HierTS-tuned" for mark in MARKS
    }
    assert found[50].lead.mean == pytest.approx(-0.4)
    assert found[50_000].lead.mean == pytest.approx(-0.2, abs=0.001)
    limits = {run.curve: run.visits for run in STUDIES["efficiency"].settings(1, None, 5) if "-shop" in run.experiment}
    assert limits["HierTS-tuned"] == 10_000
    assert limits.get(slow, 1_000) == 1_000  # only where it is installed


def test_the_report_says_where_zoomrank_is_behind(tmp_path: Path) -> None:
    folder = ResultsFolder.create(tmp_path / "out", sweep_request("study", 3, None, 2013, study="efficiency"))
    with pytest.raises(ResultsError, match="nothing to report yet"):
        write_study_report(folder)
    rates = {**dict.fromkeys([*COMPETITORS, *ABLATIONS], 0.2), "RankUCB1-tuned": 0.5, GREEDY: 0.9}
    for name, rate in rates.items():
        for rows in _curve(name, [rate] * 3):
            folder.add(rows, 0.1)
    page = write_study_report(folder).read_text()
    assert "behind" in page
    assert "data:image/svg+xml;base64," in page
    text = (folder.path / "report.md").read_text()
    assert "RankUCB1-tuned | -0.333" in text
    assert "3 of 3 never" in text
    assert "no-lending" in text
    for kind in ("all", "life-like"):
        assert f"| {kind} | up to 1,000 | 5 | 0 | 0 | 5 | 5 | -0.333 | 0 |" in text
        assert f"| {kind} | later | 2 | 0 | 0 | 2 | 2 | -0.333 | 0 |" in text
    assert "| 100 documents |" + " -0.333 **behind** |" * 7 in text
    assert "| | no-lending |" + " +0.000 |" * 7 in text.replace("|  |", "| |")


def test_the_summary_counts_comparisons() -> None:
    smooth, lifelike = (dataclasses.replace(HUNDRED, lifelike=like) for like in (False, True))
    made = [
        (smooth, 50, 0.2, 0.1, 0.3),  # ahead
        (smooth, 10_000, 0.1, -0.1, 0.3),  # level
        (lifelike, 50, -0.1, -0.2, -0.03),  # behind, and it matters
        (lifelike, 1_000, -0.02, -0.03, -0.01),  # behind
        (lifelike, 10_000, -0.08, -0.2, 0.0),  # level
    ]
    found = [Lead(family, mark, "other", Estimate(mean, low, high, 9)) for family, mark, mean, low, high in made]
    text = summary(found)
    heads = "| marks | comparisons | ahead | level | behind | wholly below -0.02 | mean lead | mean lead above 0 |"
    assert heads in text
    assert "| all | all | 5 | 1 | 2 | 2 | 1 | 0.020 | 2 |" in text
    assert "| smooth | up to 1,000 | 1 | 1 | 0 | 0 | 0 | 0.200 | 1 |" in text
    assert "| life-like | up to 1,000 | 2 | 0 | 0 | 2 | 1 | -0.060 | 0 |" in text
    assert "| life-like | later | 1 | 0 | 1 | 0 | 0 | -0.080 | 0 |" in text
    assert "Life-like are: 100 documents. None of the families is early." in text
    row = "| 100 documents | -0.100 **behind** | – | – | – | -0.020 **behind** | -0.080 | – |"
    assert row in leads_overview(found[2:])


def test_families_say_how_many_instances_and_slots_they_have() -> None:
    runs = STUDIES["efficiency"].settings(3, None, 5)
    for family in FAMILIES:
        mine = [run for run in runs if (run.experiment, run.curve) == (f"efficiency-{family.name}", OURS)]
        assert [run.instance for run in mine] == list(range(6 if family.twice else 3))
        assert {run.slots for run in mine} == {family.slots}
        assert family.slots == 5 or f", {family.slots} slot" in family.title
    assert {family.name for family in FAMILIES if family.twice and not family.early} == {"rare-clicks", "needles"}
    assert {family.slots for family in FAMILIES} == {1, 3, 5, 10}
    long = {run.experiment: run.slots for run in STUDIES["convergence"].settings(1, None, 5)}
    assert [long[f"convergence-small{k}"] for k in ("", "-1", "-5", "-10")] == [2, 1, 5, 10]


def test_early_families_are_about_the_first_visits() -> None:
    runs = STUDIES["efficiency"].settings(1, 20_000, 5)
    for family in FAMILIES:
        mine = [run for run in runs if run.experiment == f"efficiency-{family.name}"]
        longest = min(family.visits, 20_000) if family.early else 20_000
        assert {run.visits for run in mine if run.ranker.name not in SLOW} == {longest}
        installed = {*RIVALS} - {"VowpalWabbit-tuned"}
        assert {run.curve for run in mine} >= {*COMPETITORS, *(installed if family.short else SCALABLE), GREEDY}
        assert family.short or not {run.curve for run in mine} & {*RIVALS} - {*SCALABLE}
    assert all(mark in checkpoints(50_000) for mark in MARKS)
    sizes = {
        family.name: len(world(experiment(family).settings(instances=1)[0])[0]) for family in FAMILIES if family.short
    }
    assert (min(sizes.values()), max(sizes.values())) == (10, 300)


@pytest.mark.parametrize("order", ["good", "middling", "reversed"])
def test_an_order_is_given_to_rankers_that_take_one(order: str) -> None:
    family = next(one for one in FAMILIES if one.name == f"order-{order}")
    runs = experiment(family).settings([OURS, "RankRandom", GREEDY], instances=1, visits=50)
    assert [run.ranker.name.rpartition(":")[2] for run in runs] == ["Led", "RankRandom", GREEDY]
    tree, users = world(runs[0])
    led = ranker(runs[0], tree, users)
    first = users.mean()[tree.documents.positions(led.order[:10])].mean()  # type: ignore[attr-defined]
    assert (first > users.mean().mean()) == (order != "reversed")
    assert run(runs[0]).satisfied[-1] >= 0


def test_tastes_are_about_shelves() -> None:
    tree = zr.DocumentTree.from_parents([-1, 0, 0, 0, *([1] * 4), *([2] * 4), *([3] * 4)])
    users = tastes(tree, count=3, part=0.5, nothing=0.25, exponent=1.0, seed=1)
    assert users.weights == pytest.approx([0.75 * 6 / 11, 0.75 * 3 / 11, 0.75 * 2 / 11, 0.25])
    assert [int(row.sum()) for row in users._matrix.toarray()] == [2, 2, 2, 0]
    assert users.greedy(3).satisfaction == pytest.approx(0.75)
    assert sorted(popular(tree, top=0.4, seed=1).mean(), reverse=True)[:3] == pytest.approx([0.4, 0.2, 0.4 / 3])
    large = zipf_taxonomy(documents=500, fan=5)
    assert len(large) == pytest.approx(500, rel=0.05)
    sizes = np.diff(large.shape.end_document[1:6], prepend=0)
    assert sizes[0] == pytest.approx(2 * sizes[1], rel=0.1)


def test_instances_of_judged_families_take_turns_on_topics() -> None:
    family = judged_family("judged-all", "all", ["worlds/1.npz", "worlds/2.npz"])
    runs = STUDIES["tuning"].settings(5, None, 5, [family])
    files = {(run.instance, run.tree.given["file"], run.users.given["file"]) for run in runs}
    assert sorted(files) == [(i, f"worlds/{1 + i % 2}.npz", f"worlds/{1 + i % 2}.npz") for i in range(5)]


@pytest.fixture
def small_tuning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The beginning of a command that tunes two rankers on 100 documents and on files of one's own, all of it small."""
    few = [COMPETITORS[OURS], COMPETITORS["RankRandom"]]
    monkeypatch.setattr(questions, "CANDIDATES", {str(ranker): ranker for ranker in few})
    monkeypatch.setattr(report, "CANDIDATES", questions.CANDIDATES)
    monkeypatch.setattr(families, "FAMILIES", (HUNDRED,))
    monkeypatch.chdir(tmp_path)
    numbers = [(topic, document) for topic in (1, 2) for document in range(10)]
    pages = [f"{10 * topic + document}\tTopic {topic} > {document % 3}" for topic, document in numbers]
    labels = [f"{topic}.{document % 4}\t{10 * topic + document}" for topic, document in numbers]
    Path("pages.tsv").write_text("\n".join(["id\tpath", *pages]))
    Path("labels.txt").write_text("\n".join(["subTopicID\tdocID", *labels]))
    Path("tree.txt").write_text("".join(f"Animals > {i % 7} > {i}\n" for i in range(60)))
    own = ["--taxonomy", "tree.txt", "--judged", "pages.tsv", "--relevance", "labels.txt", "--kind", "subtopics"]
    return ["study", "tuning", "--visits", "100", "--workers", "1", *own]


@pytest.mark.full
def test_a_study_of_judged_documents(small_tuning: list[str], tmp_path: Path) -> None:
    assert main([*small_tuning, "--instances", "2", "--out", "out"]) == 0
    text = Path("out/report.md").read_text()
    own = "--taxonomy tree.txt --judged pages.tsv --relevance labels.txt --kind subtopics"
    assert f"`python -m research study tuning --instances 2 --seed 1 --visits 100 {own}" in text
    assert "in tree.txt; pages.tsv, documents judged for a topic; pages.tsv, all documents." in text
    assert "there are 2 topics" in text
    settings = [rows.setting for rows in ResultsFolder("out").rows()]
    assert len(settings) == 5 * 2 * 3
    assert str(tmp_path) not in "".join(setting.to_json() for setting in settings)
    judged = [setting for setting in settings if "judged" in setting.experiment]
    assert len(judged) == 2 * 2 * 3
    for setting in judged:
        tree, users = load_world(f"out/{setting.tree.given['file']}")
        liked = {name for name, mean in zip(tree.documents, users.mean(), strict=True) if mean > 0}
        assert liked == {str(10 * (1 + setting.instance) + document) for document in range(10)}  # topic i
        assert len(tree) == (20 if setting.experiment == "tuning-judged-all" else 10)


@pytest.mark.full
def test_a_study_goes_on_wherever_its_folder_is(small_tuning: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*small_tuning, "--instances", "2", "--out", "first"]) == 0
    text = Path("first/report.md").read_text()
    Path("elsewhere").mkdir()
    Path("first").rename("elsewhere/second")
    assert main(["report", "elsewhere/second"]) == 0
    assert Path("elsewhere/second/report.md").read_text() == text
    stamps = {file: file.stat().st_mtime_ns for file in Path("elsewhere/second/rows").rglob("*.parquet")}
    assert main([*small_tuning, "--instances", "3", "--out", "elsewhere/second", "--resume"]) == 0
    assert {file: file.stat().st_mtime_ns for file in stamps} == stamps
    greedy = Results(ResultsFolder("elsewhere/second").rows()).curve("tuning-judged-topics", GREEDY)
    assert greedy.settings[2].tree == greedy.settings[0].tree != greedy.settings[1].tree
    Path("tree.txt").write_text("Animals > Owls\n")
    assert main([*small_tuning, "--instances", "3", "--out", "elsewhere/second", "--resume"]) == 2
    assert "other data for --taxonomy" in capsys.readouterr().err


def test_a_folder_stays_with_its_study(tmp_path: Path) -> None:
    ResultsFolder.create(tmp_path / "out", sweep_request("study", 3, None, 2013, study="efficiency"))
    with pytest.raises(ResultsError, match="study = efficiency, not convergence"):
        ResultsFolder.resume(tmp_path / "out", sweep_request("study", 3, None, 2013, study="convergence"))


def test_tuning_and_convergence_are_studies_too(tmp_path: Path) -> None:
    for name in ("tuning", "convergence"):
        folder = ResultsFolder.create(tmp_path / name, sweep_request("study", 1, None, 1, study=name))
        with pytest.raises(ResultsError, match="nothing to report yet"):
            write_study_report(folder)
        runs = STUDIES[name].settings(1, 300, 1)
        wanted = [run for run in runs if run.experiment in ("tuning-hundred", "convergence-three-documents")]
        slow = [run for run in wanted if "ContextZoom" in run.curve]
        for setting in wanted:
            rate = 0.3 if setting in slow else 0.6
            at = np.array(checkpoints(setting.visits))
            clicks = np.stack([np.round(at * rate).astype(np.int64), 0 * at], axis=1)
            folder.add(RunRows(setting, at, clicks, np.full(len(at), rate)), 0.1)
        write_study_report(folder)
        text = (folder.path / "report.md").read_text()
        assert f"python -m research study {name} --instances 1 --seed 1" in text
        assert main(["report", str(folder.path)]) == 0
        assert (folder.path / "report.md").read_text() == text
        assert ("| used |" in text) == (name == "tuning")
        assert ("The families: 100 documents." in text) == (name == "tuning")
        assert ("| the three documents of Section 5.1 | 2 | 1.0000 |" in text) == (name == "convergence")


def test_a_blind_search_misses_what_is_small() -> None:
    tree = zr.DocumentTree.exponential(depth=10)
    users = zr.users.random_peaks(tree, values=(0.5, 0.1), background=0.005, seed=3)
    best = users.greedy(2).documents
    few, many = (blind_chances(tree, users, best, visits) for visits in (100, 10_000))
    assert few[0] < few[1]
    assert all(later < sooner for sooner, later in zip(few, many, strict=True))
    missed = 0
    rng = np.random.default_rng(5)
    place = tree.documents.position(best[1])
    near = np.flatnonzero(users.mean() > 0.005)
    near = near[np.abs(near - place) < 32]
    chance = blind_chances(tree, users, best, 20)[1]
    for _ in range(2_000):
        shown = rng.integers(len(tree), size=(20, 2))
        relevant = rng.random((20, 2)) < np.where(np.isin(shown, near), users.mean()[shown] - 0.005, 0.0)
        missed += not relevant.any()
    assert missed / 2_000 == pytest.approx(chance, abs=0.02)


def test_a_taxonomy_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "categories.txt"
    file.write_text("# ours\n\n1 : Animals\n" + "".join(f"{i} : Animals > {i % 7} > {i}\n" for i in range(2, 60)))
    for family in (taxonomy_family(str(file)), taxonomy_intents_family(str(file))):
        runs = experiment(family).settings(["ZoomRank", GREEDY], instances=1, visits=500)
        mine, greedy = (rows.expected[-1] for rows in map(run, runs))
        assert 0 < mine <= greedy + 1e-9
    assert main(["study", "convergence", "--taxonomy", str(file), "--out", str(tmp_path / "no")]) == 2
    assert "only for the studies efficiency, tuning and queries" in capsys.readouterr().err
    assert main(["study", "tuning", "--taxonomy", str(tmp_path / "none"), "--out", str(tmp_path / "no")]) == 2
    assert "none cannot be read" in capsys.readouterr().err
    assert main(["study", "tuning", "--judged", str(file), "--out", str(tmp_path / "no")]) == 2
    assert "need both" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()
    missing = experiment(taxonomy_family("nowhere.txt")).settings([GREEDY], instances=1)
    with pytest.raises(TaxonomyError, match=r"nowhere.txt cannot be read"):
        run(missing[0])


def test_studies_have_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["study", "--help"])
    assert "examples:\n  python -m research study efficiency" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["study", "speed"])


def test_copies_are_relevant_to_the_same_visitors() -> None:
    tree = zr.DocumentTree.exponential(depth=3)
    users = CopiedRelevance(zr.users.two_peaks(tree, seed=2), origin=[0, 1, 2, 3, 0, 1, 6, 7])
    drawn = users.sample(4_000, seed=1)
    assert (drawn[:, 4] == drawn[:, 0]).all()
    assert np.abs(drawn.mean(axis=0) - users.mean()).max() < 0.035
    assert users.satisfaction([0, 4]) == pytest.approx(users.mean(0))
    assert users.conditional_mean([0], 4) == 0.0
    clicks = users.clicks([0, 4, 7], 20_000, seed=3)
    assert not (clicks == 1).any()
    assert np.mean(clicks < 3) == pytest.approx(users.satisfaction([0, 7]), abs=0.015)
    alone = CopiedRelevance(Independent(tree, np.full(8, 0.3)), origin=[0] * 8)
    assert alone.greedy(3).satisfaction == pytest.approx(0.3)
    with pytest.raises(ParameterError, match="origin"):
        CopiedRelevance(alone, origin=[0, 9])


def test_models_of_the_study() -> None:
    tree = zr.DocumentTree.exponential(depth=9)
    assert sorted(zr.users.random_peaks(tree, values=(0.5, 0.3), seed=1).mean())[-1] == pytest.approx(0.5)
    decoyed = zr.users.decoy(tree, seed=1).mean()
    assert 100 <= (decoyed >= 0.2).sum() <= 200
    pairs = zr.users.twins(tree, seed=1)
    best = pairs.greedy(2)
    tops = np.argsort(-pairs.mean(), kind="stable")[:2]
    assert pairs.origin[tops[0]] == pairs.origin[tops[1]]  # the most popular two are one
    assert best.satisfaction > pairs.satisfaction(tree.documents.at(tops))
    with pytest.raises(ParameterError, match="no room"):
        zr.users.twins(zr.DocumentTree.exponential(depth=6), seed=1)
