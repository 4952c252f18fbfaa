"""The lab: runs that depend on their setting alone, kept whole or not at all, and claims that rows can contradict."""

import dataclasses
import itertools
import json
import multiprocessing
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zoomrank as zr
from zoomrank.compiled import sources
from zoomrank.errors import CatalogueError, ParameterError, ResultsError, SlotsError
from zoomrank.lab import catalogue
from zoomrank.lab.catalogue import GREEDY
from zoomrank.lab.code_version import this_version
from zoomrank.lab.paper import theory
from zoomrank.lab.paper.claims import CLAIMS, Claim
from zoomrank.lab.paper.comparisons import (
    CANNOT_TELL,
    DIFFERS,
    HOLDS,
    Above,
    Alike,
    Comparison,
    Reaches,
    Settles,
)
from zoomrank.lab.paper.experiments import EXPERIMENTS
from zoomrank.lab.paper.figures import FIGURES, PAPER, figures_named, settings_for
from zoomrank.lab.paper.verdicts import judge
from zoomrank.lab.recipes import Curve, Experiment, Setting, recipe
from zoomrank.lab.results import Results, estimate
from zoomrank.lab.results_folder import ResultsFolder, about_sweep, from_parquet, to_parquet
from zoomrank.lab.run import RunRows, looks, run
from zoomrank.lab.runners import Finished, Local
from zoomrank.lab.sweep import Forecast, sweep

SMALL = Experiment(
    name="tiny",
    title="a tiny world",
    tree=recipe("exponential", depth=5),
    users=recipe("two-peaks"),
    slots=2,
    visits=500,
    curves=(
        Curve("RankCorrZoom", recipe("RankCorrZoom")),
        Curve("RankEXP3", recipe("RankEXP3", horizon="{visits}")),
        Curve("late", recipe("RankZoom"), delay=20),
        Curve("shuffled", recipe("RankZoom"), belief=recipe("shuffled", share=0.5)),
        Curve(GREEDY, recipe(GREEDY)),
    ),
)
ABOUT = about_sweep("paper", 2, None, 2013, figures=["1"])


# Settings


def test_every_setting_survives_being_written_down() -> None:
    settings = settings_for(figures_named(["all"]), instances=2)
    assert len({setting.id for setting in settings}) == len(settings)
    for setting in settings:
        assert Setting.from_json(setting.to_json()) == setting
        assert hash(setting) == hash(Setting.from_json(setting.to_json()))


def test_the_papers_figures_are_complete() -> None:
    seven = {"RankUCB1", "RankEXP3", "RankGridUCB1", "RankGridEXP3", "RankZoom", "RankCorrZoom", "RankContextZoom"}
    for name in ("1", "2"):
        for panel in FIGURES[name].panels:
            assert seven | {"RankRandom", GREEDY} <= set(panel.curves)
    for name in ("3", "4"):
        for panel in FIGURES[name].panels:
            for ranker in seven - {"RankEXP3", "RankGridEXP3"}:
                assert {ranker, f"{ranker}--"} <= set(panel.curves)
    assert PAPER == ("1", "2", "3", "4", "5")
    for experiment in ("two-peaks", "restaurant", "restaurant-mixture"):
        (setting,) = EXPERIMENTS[experiment].settings(["RankEXP3"], instances=1)
        tree, _ = catalogue.world(setting)
        assert (len(tree), setting.slots, setting.visits) == (32_768, 5, 300_000)
        assert setting.ranker.given == {"duplicates": True, "horizon": 300_000}
    (setting,) = EXPERIMENTS["small"].settings(["RankZoom"], instances=1)
    assert (len(catalogue.world(setting)[0]), setting.slots) == (128, 2)
    assert setting.visits >= 1_000_000


def test_figures_share_runs() -> None:
    alone = len(settings_for(figures_named(["1"]), 1)) + len(settings_for(figures_named(["3"]), 1))
    assert len(settings_for(figures_named(["1", "3"]), 1)) < alone


def test_every_ranker_and_belief_can_be_made() -> None:
    for setting in settings_for(figures_named(["all"]), instances=1, visits=100):
        if not setting.experiment.startswith("size-"):
            tree, users = catalogue.believed(setting)
            assert len(catalogue.ranker(setting, tree, users).rank().documents) == setting.slots


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: figures_named(["6"]), "no figure '6'"),
        (lambda: SMALL.settings(instances=0), "at least one"),
        (lambda: SMALL.settings(instances=1, visits=0), "at least one"),
        (lambda: SMALL.settings(["nobody"], instances=1), "no curve 'nobody'"),
        (lambda: Local(0), "at least one"),
    ],
)
def test_what_cannot_be_asked_for(ask: object, message: str) -> None:
    with pytest.raises((CatalogueError, ParameterError), match=message):
        ask()  # type: ignore[operator]


def test_names_that_stand_for_nothing() -> None:
    (setting, *_) = SMALL.settings(instances=1)
    for name, message in (("RankNothing", "RankUCB1"), ("nowhere:Ranker", "cannot be imported"), ("json:No", "import")):
        with pytest.raises(CatalogueError, match=message):
            run(dataclasses.replace(setting, ranker=recipe(name)))
    with pytest.raises(ParameterError, match="cannot be made"):
        run(dataclasses.replace(setting, ranker=recipe("RankZoom", colour="red")))


# Runs


def test_looks_are_log_spaced_and_end_with_the_run() -> None:
    at = looks(300_000)
    assert at[-1] == 300_000
    assert at == sorted(set(at))
    assert set(range(5_000, 300_001, 5_000)) <= set(at)
    assert sum(10 <= look < 100 for look in at) >= 15
    assert looks(1) == [1]


def test_rows_say_what_a_simulation_says() -> None:
    setting = SMALL.settings(["RankCorrZoom"], instances=1)[0]
    rows = run(setting)
    tree, users = catalogue.world(setting)
    ranker = catalogue.ranker(setting, tree, users)
    trace = zr.simulate(ranker, users, 500, seed=catalogue.visitors(setting), windows=looks(500))
    assert rows.satisfied[-1] == trace.satisfied.sum()
    assert np.array_equal(np.diff(rows.clicks, axis=0, prepend=0), trace.clicks)
    assert rows.expected[7] == users.satisfaction(trace.shown[7])


def test_all_curves_meet_the_same_instances() -> None:
    first, second = (SMALL.settings([name], instances=1)[0] for name in ("RankCorrZoom", "RankEXP3"))
    assert catalogue.world(first)[1] is catalogue.world(second)[1]
    other = SMALL.settings(["RankCorrZoom"], instances=2)[1]
    assert not np.array_equal(catalogue.world(first)[1].mean(), catalogue.world(other)[1].mean())


def test_readings_of_an_instance_have_the_same_mean() -> None:
    one, other = (EXPERIMENTS[name].settings([GREEDY], instances=3)[2] for name in ("restaurant", "restaurant-mixture"))
    assert np.allclose(catalogue.world(one)[1].mean(), catalogue.world(other)[1].mean())


def test_a_wrong_belief_is_about_the_same_visitors() -> None:
    setting = SMALL.settings(["shuffled"], instances=1)[0]
    true_tree, users = catalogue.world(setting)
    tree, seen = catalogue.believed(setting)
    moved = sum(a != b for a, b in zip(tree.documents, true_tree.documents, strict=True))
    assert moved == 16
    for document in true_tree.documents:
        assert seen.mean(document) == pytest.approx(users.mean(document))
    assert seen.greedy(2).satisfaction == pytest.approx(users.greedy(2).satisfaction)
    halved = dataclasses.replace(setting, belief=recipe("scaled", factor=0.5))
    assert np.array_equal(catalogue.believed(halved)[0].width, true_tree.width / 2)


def test_greedy_is_as_good_as_it_says() -> None:
    setting = SMALL.settings([GREEDY], instances=1)[0]
    rows = run(setting)
    best = catalogue.world(setting)[1].greedy(2).satisfaction
    assert rows.expected == pytest.approx(best)
    assert abs(rows.satisfied[-1] / 500 - best) < 0.1


class Restless(zr.users.PlainUsers):
    """Visitors whose taste changes with every one that was drawn."""

    def __init__(self, tree: zr.DocumentTree, seed: object = None) -> None:
        super().__init__(tree, sample=10)
        self.drawn = 0

    def visitor(self, rng: np.random.Generator) -> list[int]:
        self.drawn += 1
        return [self.drawn % len(self)]


def test_rows_do_not_depend_on_what_ran_before() -> None:
    restless = dataclasses.replace(SMALL, users=recipe(f"{__name__}:Restless"))
    (setting,) = restless.settings(["RankCorrZoom"], instances=1)
    assert to_parquet(run(setting)) == to_parquet(run(setting))


# Plain rankers and users


class _Stubborn:
    """Shows the same documents, and remembers what it was told."""

    def __init__(self, documents: list[int]) -> None:
        self.shown, self.heard = documents, list[int | None]()

    def rank(self) -> list[int]:
        return self.shown

    def learn(self, ranking: list[int], click: int | None) -> None:
        assert ranking is self.shown
        self.heard.append(click)


class _Everything(zr.users.PlainUsers):
    def visitor(self, rng: np.random.Generator) -> list[int]:
        return [int(rng.integers(4)), 4]


def test_plain_rankers_meet_compiled_visitors() -> None:
    tree = zr.DocumentTree.exponential(depth=5)
    users = zr.users.two_peaks(tree, seed=0)
    best = users.greedy(3)
    ranker = _Stubborn(best.documents)
    trace = zr.simulate(ranker, users, 4_000, seed=1, delay=7, windows=4)
    assert abs(trace.rate - best.satisfaction) < 0.04
    assert len(ranker.heard) == 3_993
    assert trace.shown == [best.documents] * 4
    counts = [sum(click == slot for click in ranker.heard) for slot in range(3)]
    assert np.abs(trace.clicks.sum(axis=0) - counts).max() <= 7


def test_compiled_rankers_meet_plain_visitors() -> None:
    tree = zr.DocumentTree.exponential(depth=3)
    users = _Everything(tree, sample=1_000)
    trace = zr.simulate(zr.RankCorrZoom(tree, 2, seed=1), users, 2_000, seed=1)
    assert trace.rates[-1] > 0.9
    assert users.greedy(1).documents == [4]
    assert users.draw(50, np.random.default_rng(0))[:, 4].all()
    assert users.clicks([4], 10, seed=0).tolist() == [0] * 10
    assert users.clicks([7], 10, seed=0).tolist() == [1] * 10


def test_mixtures_of_tables_can_be_simulated() -> None:
    tree = zr.DocumentTree.exponential(depth=3)
    tables = [zr.users.RelevanceTable(tree, [[document]]) for document in (1, 6)]
    trace = zr.simulate(zr.RankCorrZoom(tree, 2, seed=1), zr.users.Mixture(tables, [0.5, 0.5]), 3_000, seed=1)
    assert trace.rates[-1] > 0.9


def test_rankings_of_changing_length_are_refused() -> None:
    tree = zr.DocumentTree.exponential(depth=3)

    class Shrinking(_Stubborn):
        def rank(self) -> list[int]:
            self.shown = self.shown[:-1]
            return self.shown

    with pytest.raises(SlotsError, match="1 documents came after rankings of 2"):
        zr.simulate(Shrinking([1, 2, 3]), zr.users.two_peaks(tree, seed=1), 10)


# The folder


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    rows = run(SMALL.settings(["late"], instances=1)[0])
    path = tmp_path / "one.parquet"
    path.write_bytes(to_parquet(rows))
    back = from_parquet(path)
    assert back.setting == rows.setting
    for name in ("visits", "clicks", "expected"):
        assert np.array_equal(getattr(back, name), getattr(rows, name))
    assert pq.read_table(path)["satisfied"].to_pylist() == rows.satisfied.tolist()
    assert to_parquet(rows) == path.read_bytes()


def test_the_number_of_workers_does_not_matter(tmp_path: Path) -> None:
    settings = SMALL.settings(instances=2)
    contents = []
    for workers in (1, 2):
        folder = ResultsFolder.create(tmp_path / str(workers), ABOUT)
        sweep(settings, folder, Local(workers))
        contents.append({path.relative_to(folder.path): path.read_bytes() for path in folder.path.rglob("*.parquet")})
    assert contents[0] == contents[1]
    assert len(contents[0]) == len(settings)


def test_a_sweep_does_only_what_is_missing(tmp_path: Path) -> None:
    settings = SMALL.settings(["RankCorrZoom"], instances=4)
    folder = ResultsFolder.create(tmp_path / "out", ABOUT)
    sweep(settings[:3], folder, Local(1))
    stamps = {path: path.stat().st_mtime_ns for path in folder.path.rglob("*.parquet")}
    folder.rows_file(settings[1]).write_bytes(b"PAR1 cut short")
    assert folder.missing(settings) == [settings[1], settings[3]]
    sweep(settings, folder, Local(1))
    assert folder.missing(settings) == []
    assert folder.rows_file(settings[0]).stat().st_mtime_ns == stamps[folder.rows_file(settings[0])]
    assert set(folder.seconds()) == {setting.id for setting in settings}


def test_folders_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="no results"):
        ResultsFolder(tmp_path)
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(ResultsError, match="not empty"):
        ResultsFolder.create(tmp_path, ABOUT)
    with pytest.raises(ResultsError, match="no results"):
        ResultsFolder.resume(tmp_path, ABOUT)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
    (tmp_path / "letter.txt").rename(tmp_path / "letter.part")  # not what we leave
    with pytest.raises(ResultsError, match="not empty"):
        ResultsFolder.create(tmp_path, ABOUT)
    folder = ResultsFolder.create(tmp_path / "out", ABOUT)
    with pytest.raises(ResultsError, match="--resume"):
        ResultsFolder.create(folder.path, ABOUT)
    with pytest.raises(ResultsError, match="visits = None, not 5"):
        ResultsFolder.resume(folder.path, {**ABOUT, "visits": 5})
    with pytest.raises(ResultsError, match="kind = paper, not study"):
        ResultsFolder.resume(folder.path, {**ABOUT, "kind": "study"})
    manifest = folder.path / "manifest.json"
    for change, message in (
        ({"version": "0.0.1+old"}, "zoomrank 0.0.1"),
        ({"format": 1}, "format 1; this zoomrank reads 2"),
    ):
        content = json.dumps({**folder.manifest, **change})
        manifest.write_text(content)
        with pytest.raises(ResultsError, match=message):
            ResultsFolder.resume(folder.path, ABOUT)
        assert manifest.read_text() == content
    manifest.write_text("{")
    with pytest.raises(ResultsError, match="cannot be read"):
        ResultsFolder(folder.path)


def test_a_folder_can_be_added_to(tmp_path: Path) -> None:
    folder = ResultsFolder.create(tmp_path / "out", ABOUT)
    assert folder.manifest["version"] == this_version()
    more = ResultsFolder.resume(folder.path, about_sweep("paper", 5, None, 2013, figures=["2"]))
    assert more.manifest["figures"] == ["1", "2"]
    assert more.manifest["instances"] == 5


def test_rows_of_another_setting_are_not_taken_for_ours(tmp_path: Path) -> None:
    folder = ResultsFolder.create(tmp_path / "out", ABOUT)
    setting = SMALL.settings(["late"], instances=1)[0]
    folder.add(run(setting), 0.1)
    with pytest.raises(ResultsError, match="another setting"):
        folder.missing([dataclasses.replace(setting, delay=21)])


def killed_while_writing(file: Path) -> None:
    """Leave what a process leaves that is killed in the middle of a file."""
    script = (
        "import os, sys; from zoomrank.files import whole_file\n"
        "with whole_file(sys.argv[1]) as file:\n"
        "    file.write(b'half'); file.flush(); os.kill(os.getpid(), 9)"
    )
    before = set(file.parent.iterdir())
    assert subprocess.run([sys.executable, "-c", script, str(file)], check=False).returncode == -9  # noqa: S603
    assert not file.exists()
    assert [left.read_bytes() for left in {*file.parent.iterdir()} - before] == [b"half"]


def test_nothing_half_written_is_ever_read(tmp_path: Path) -> None:
    folder = ResultsFolder.create(tmp_path / "out", ABOUT)
    setting = SMALL.settings(["late"], instances=1)[0]
    folder.add(run(setting), 0.1)
    killed_while_writing(folder.rows_file(SMALL.settings(["late"], instances=2)[1]))
    with (folder.path / "times.jsonl").open("a") as times:
        times.write('{"run": "tiny/la')
    assert [rows.setting for rows in folder.rows()] == [setting]
    assert list(folder.seconds()) == [setting.id]


def test_a_kill_before_the_first_file_is_no_obstacle(tmp_path: Path) -> None:
    killed_while_writing(tmp_path / "manifest.json")
    assert ResultsFolder.resume(tmp_path, ABOUT).manifest["figures"] == ["1"]


def test_the_version_covers_whatever_makes_rows() -> None:
    makes_rows = {"catalogue", "recipes", "run", "simulator"}
    assert {f"lab/{name}.py" for name in makes_rows} | {"documents/collection.py"} <= sources("lab/run.py").keys()
    assert not any(name.startswith(("cli/", "service/", "client")) for name in sources("lab/run.py"))


def test_whoever_stops_listening_stops_the_workers() -> None:
    slow = dataclasses.replace(SMALL, visits=20_000_000)
    runs = Local(2).finish([*SMALL.settings(["late"], instances=1), *slow.settings(["late"], instances=2)])
    next(runs)
    started = multiprocessing.active_children()
    assert started
    runs.close()  # type: ignore[attr-defined]
    deadline = time.monotonic() + 30
    while any(
        process.is_alive() for process in started
    ):  # not `join`: the pool's own thread may be the one to see it end
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_forecast_learns_from_each_curve() -> None:
    settings = SMALL.settings(["RankCorrZoom", "late"], instances=3)
    forecast = Forecast(settings, workers=2)
    left = 0.0
    for setting in settings[:2]:
        rows = RunRows(setting, np.array([1]), np.zeros((1, 2)), np.zeros(1))
        left = forecast.after(Finished(rows, 2.0 if setting.curve == "late" else 6.0, "here"))
    assert left == pytest.approx((2 * 2.0 + 2 * 6.0) / 2)


# Results and claims


def _rows(curve: str, instance: int, rates: tuple[float, float], visits: int = 1_000) -> RunRows:
    """Made-up rows: one rate in the first 90 % of the run, another in the rest."""
    setting = dataclasses.replace(SMALL.settings(["late"], instances=1)[0], curve=curve, instance=instance)
    at = np.array(looks(visits))
    early, late = np.minimum(at, 0.9 * visits), np.maximum(at - 0.9 * visits, 0)
    satisfied = np.round(early * rates[0] + late * rates[1]).astype(np.int64)
    return RunRows(setting, at, np.stack([satisfied, np.zeros_like(satisfied)], axis=1), np.full(len(at), rates[1]))


def _of(experiment: str, rows: RunRows) -> RunRows:
    return dataclasses.replace(rows, setting=dataclasses.replace(rows.setting, experiment=experiment))


def _results(**curves: list[tuple[float, float]]) -> Results:
    return Results(_rows(name, at, rates) for name, all_rates in curves.items() for at, rates in enumerate(all_rates))


def _verdict(test: Comparison, results: Results) -> str:
    (finding,) = judge(Claim("c", "p", "s", {"tiny": (test,)}), results)
    return finding.verdict


GOOD = [(0.5, 0.7), (0.52, 0.72), (0.48, 0.69)]
POOR = [(0.1, 0.1), (0.12, 0.11), (0.11, 0.09)]


def test_a_claim_that_is_false_in_doctored_rows_differs() -> None:
    honest, doctored = _results(a=GOOD, b=POOR, Greedy=GOOD), _results(a=POOR, b=GOOD, Greedy=GOOD)
    for test in (Above("a", "b"), Above("a", "b", by=0.2, start=0.9), Reaches("a", 0.9), Reaches("a", 0.6, visits=200)):
        assert _verdict(test, honest) == HOLDS
        assert _verdict(test, doctored) == DIFFERS
    assert _verdict(Settles("a", 0.7, within=0.05), honest) == HOLDS
    assert _verdict(Settles("a", 0.7, within=0.05), doctored) == DIFFERS
    assert _verdict(Alike("a", "Greedy", within=0.01), honest) == HOLDS
    assert _verdict(Alike("a", "Greedy", within=0.01), doctored) == DIFFERS


def test_curves_that_are_alike_on_average_can_differ_somewhere() -> None:
    results = _results(a=[(0.5, 0.5)] * 3, b=[(0.49, 0.59), (0.49, 0.6), (0.49, 0.58)])
    assert _verdict(Alike("a", "b", within=0.02), results) == HOLDS
    assert _verdict(Alike("a", "b", within=0.02, everywhere=True), results) == DIFFERS


def test_noise_cannot_tell() -> None:
    noisy = _results(a=[(0.1, 0.1), (0.6, 0.6)], b=[(0.3, 0.3), (0.35, 0.35)])
    assert _verdict(Above("a", "b"), noisy) == CANNOT_TELL
    assert _verdict(Above("a", "missing"), noisy) == CANNOT_TELL
    assert _verdict(Above("a", "b"), _results(a=[(0.9, 0.9)], b=[(0.1, 0.1)])) == CANNOT_TELL  # one instance is none


def test_every_part_of_a_claim_must_hold() -> None:
    results = _results(a=GOOD, b=POOR, c=[(0.6, 0.8), (0.61, 0.8), (0.62, 0.8)])
    both = Claim("c", "p", "s", {"tiny": (Above("a", "b"), Above("a", "c"))})
    assert judge(both, results)[0].verdict == DIFFERS
    assert judge(dataclasses.replace(both, conjecture=True), results)[0].verdict == CANNOT_TELL


def test_the_papers_claims_follow_the_rows() -> None:
    """Swap the rows of two rankers, and the verdict on who is best turns round."""
    curves = {"RankZoom": POOR, "RankGridUCB1": POOR, "RankContextZoom": POOR, "RankContextZoom-0.2": POOR}
    best = next(claim for claim in CLAIMS if claim.name == "best")
    for mine, theirs, verdict in ((GOOD, POOR, HOLDS), (POOR, GOOD, DIFFERS)):
        for visits in (300_000, 1_000):
            made = [
                _of("two-peaks", _rows(name, at, pair, visits))
                for name, rates in {"RankCorrZoom": mine, **dict.fromkeys(curves, theirs)}.items()
                for at, pair in enumerate(rates)
            ]
            verdicts = {one.experiment: one.verdict for one in judge(best, Results(made))}
            told = verdict if visits == 300_000 else CANNOT_TELL  # a run that was cut short tells nothing
            assert verdicts == {"two-peaks": told, "restaurant": CANNOT_TELL, "restaurant-mixture": CANNOT_TELL}


def test_claims_are_about_curves_that_exist() -> None:
    for claim in CLAIMS:
        for experiment, tests in claim.tests.items():
            curves = {curve.name for curve in EXPERIMENTS[experiment].curves}
            for test in tests:
                named = {getattr(test, name) for name in ("curve", "other") if hasattr(test, name)}
                assert named <= curves, claim.name
    names = [claim.name for claim in CLAIMS]
    assert len(set(zip(names, [claim.place for claim in CLAIMS], strict=True))) == len(names)


def test_intervals_are_students() -> None:
    value = estimate([1.0, 2.0, 3.0, 4.0])
    assert value.mean == 2.5
    assert value.high - value.mean == pytest.approx(3.182446 * np.std([1, 2, 3, 4], ddof=1) / 2, rel=1e-6)


def test_pairs_are_taken_from_common_instances() -> None:
    results = Results([_rows("a", 0, (0.5, 0.5)), _rows("a", 3, (0.6, 0.6)), _rows("b", 3, (0.2, 0.2))])
    one, other = results.together("tiny", "a", "b")
    assert one.instances == other.instances == (3,)
    assert one.rate()[0] == pytest.approx(0.6)
    with pytest.raises(ResultsError, match="no rows of tiny/c"):
        results.curve("tiny", "c")


def test_rates_between_points_of_a_run() -> None:
    curve = _results(a=[(0.5, 0.9)]).curve("tiny", "a")
    assert curve.rate(0.0, 0.9)[0] == pytest.approx(0.5, abs=0.01)
    assert curve.rate(0.9)[0] == pytest.approx(0.9, abs=0.01)
    assert curve.rate_around(950)[0] == pytest.approx(0.9, abs=0.05)
    assert curve.windows().mean[3] == pytest.approx(0.5, abs=0.05)
    assert curve.slot_rates()[0].tolist() == [pytest.approx(0.54, abs=0.01), 0.0]


@pytest.mark.parametrize("visits", [1, 4, 7, 10])
def test_the_shortest_runs_have_rates(visits: int) -> None:
    curve = Results([_rows("a", 0, (0.5, 0.5), visits)]).curve("tiny", "a")
    for start, end in ((0.0, 1.0), (0.9, 1.0), (0.0, 0.05)):
        assert 0 <= curve.rate(start, end)[0] <= 1
    assert curve.rate(0.0, 0.05)[0] == curve.satisfied[0, 0] / curve.visits[0]


@pytest.mark.parametrize("visits", [100, 1_000, 300_000])
def test_looks_are_averaged_in_groups(visits: int) -> None:
    rows = _rows("a", 0, (0.5, 0.5), visits)
    noisy = dataclasses.replace(rows, expected=np.arange(len(rows.visits)) % 2.0)
    band = Results([noisy]).curve("tiny", "a").expectation()
    assert band.visits[-1] == visits
    assert abs(band.mean[-1] - 0.5) < 0.2  # the last look is not alone


# Theory


@given(st.integers(0, 10_000))
def test_the_steepest_pair_is_found(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = zr.DocumentTree.exponential(depth=int(rng.integers(1, 4)), branching=int(rng.integers(2, 4)), epsilon=0.6)
    mean = rng.random(len(tree))
    steepest = max(abs(mean[x] - mean[y]) / tree.distance(x, y) for x, y in itertools.combinations(range(len(tree)), 2))
    assert theory.steepest(tree, mean) == pytest.approx(steepest)


@given(st.integers(0, 10_000))
def test_the_bound_on_the_optimum_is_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = zr.DocumentTree.exponential(depth=3)
    rows = [rng.choice(8, size=int(rng.integers(1, 4)), replace=False).tolist() for _ in range(6)]
    users = zr.users.RelevanceTable(tree, rows, rng.random(6) + 0.01)
    best = max(users.satisfaction(chosen) for chosen in itertools.combinations(range(8), 2))
    assert best <= users.optimum_bound(2) + 1e-12
    assert users.optimum(2).satisfaction == pytest.approx(best)


def test_guarantees_say_when_they_say_nothing() -> None:
    until = theory.vacuous_until(optimum=0.7, slots=5, dimension=3.9)
    assert theory.guarantee(0.7, 5, 3.9, until) == pytest.approx(0.0, abs=1e-9)
    assert theory.guarantee(0.7, 5, 3.9, 10 * until) > 0
    assert theory.vacuous_until(0.7, 5, 5 * 3.9) > until


def test_regret_bounds_are_ordered_as_in_table_2() -> None:
    tree = zr.DocumentTree.exponential(depth=8)
    mean = zr.users.two_peaks(tree, seed=1).mean()
    by = {name: theory.regret(tree, mean, 100_000, name) for name in ("UCB1", "GridUCB1", "zooming")}
    assert by["zooming"] <= by["GridUCB1"] <= by["UCB1"]
    with pytest.raises(ParameterError, match="EXP3"):
        theory.regret(tree, mean, 100, "EXP3")
