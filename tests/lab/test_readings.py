"""Readings of the paper: named by rule, never run twice, and every claim judged under each."""

import dataclasses
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.lab.tiny_world import made_up_rows
from zoomrank.cli import main
from zoomrank.lab import registry
from zoomrank.lab.curves import Results
from zoomrank.lab.paper import figures as published_module
from zoomrank.lab.paper import readings
from zoomrank.lab.paper.claims import judge_all, undecided
from zoomrank.lab.paper.comparisons import CANNOT_TELL, DIFFERS, HOLDS
from zoomrank.lab.paper.figures import (
    EXPERIMENTS,
    MAIN,
    PUBLISHED,
    READINGS,
    SMALL,
    figures_named,
    settings_for,
    settings_of,
    source,
)
from zoomrank.lab.paper.readings import CHOICES, OTHERS, READING, Reading, name_of
from zoomrank.lab.paper.report import judged_under, reading_sections, write_paper_report
from zoomrank.lab.registry import GREEDY
from zoomrank.lab.results_folder import ResultsFolder, sweep_request
from zoomrank.lab.run import RunRows

BY_NAME = {name_of(reading): reading for reading in OTHERS}


def test_readings_differ_in_one_question_but_for_one() -> None:
    assert set(BY_NAME) == {
        *("mixture", "one-radius", "fresh", "deeper", "longer", "distinct", "shares", "tallest"),
        "one-radius+fresh",
    }
    assert set(CHOICES) == {field.name for field in dataclasses.fields(Reading)}


def test_what_a_reading_does_not_change_is_not_run_again() -> None:
    runs = settings_for(figures_named(["readings"]), instances=1)
    assert len(runs) == 145
    drawn = settings_for(figures_named(["paper"]), instances=1)
    content = [
        dataclasses.replace(setting, experiment="", curve="").to_json() + setting.experiment.partition("@")[0]
        for setting in (*runs, *drawn)
    ]
    assert len(set(content)) == len(content)
    for reading in OTHERS:
        for name, one in PUBLISHED.items():
            for curve in one.curves:
                experiment, other = source(name, curve.name, reading)
                assert other in {each.name for each in EXPERIMENTS[experiment].curves}


def test_names_follow_a_rule() -> None:
    expected = {
        ("two-peaks", "RankUCB1", "one-radius"): ("two-peaks", "RankUCB1@one-radius"),
        ("two-peaks", "RankUCB1", "fresh"): ("two-peaks", "RankUCB1"),
        ("two-peaks", "RankUCB1", "one-radius+fresh"): ("two-peaks", "RankUCB1@one-radius"),
        ("restaurant", "RankGridUCB1--", "one-radius+fresh"): ("restaurant", "RankGridUCB1--@one-radius+fresh"),
        ("restaurant", "RankGridEXP3", "fresh"): ("restaurant", "RankGridEXP3"),
        ("restaurant", "RankGridEXP3", "deeper"): ("restaurant", "RankGridEXP3@deeper"),
        ("two-peaks", "RankZoom", "mixture"): ("two-peaks@mixture", "RankZoom"),
        ("restaurant", "RankZoom", "mixture"): ("restaurant-mixture", "RankZoom"),
        ("restaurant-mixture", "RankZoom", "mixture"): ("restaurant-mixture", "RankZoom"),
        ("small", "RankZoom", "mixture"): ("small-mixture", "RankZoom"),
        ("restaurant", GREEDY, "shares"): ("restaurant@shares", GREEDY),
        ("restaurant-mixture", "RankZoom", "tallest"): ("restaurant-mixture", "RankZoom"),
        ("two-peaks", "RankZoom", "shares"): ("two-peaks", "RankZoom"),
        ("small", "RankZoom", "distinct"): ("small@distinct", "RankZoom"),
        ("small", GREEDY, "distinct"): ("small", GREEDY),
    }
    for (experiment, curve, reading), where in expected.items():
        assert source(experiment, curve, BY_NAME[reading]) == where


def test_one_radius_is_a_quarter_of_the_constant() -> None:
    plays = np.arange(1, 100)
    runs = {
        setting.curve: setting.ranker.given
        for setting in EXPERIMENTS["two-peaks"].settings(
            [f"RankUCB1{dashes}@one-radius" for dashes in ("", "--")], instances=1
        )
    }
    for curve, usual in (("RankUCB1@one-radius", 1.0), ("RankUCB1--@one-radius", 4 * np.log(300_000))):
        two_halves = 2 * np.sqrt(runs[curve]["exploration"] / (1 + plays))
        np.testing.assert_allclose(two_halves, np.sqrt(usual / (1 + plays)))


def test_every_curve_of_a_reading_can_be_made() -> None:
    for setting in settings_for(figures_named(["readings"]), instances=1, visits=100):
        tree, users = registry.world(setting)
        assert len(registry.ranker(setting, tree, users).rank().documents) == setting.slots


@pytest.mark.parametrize(
    "usual",
    [
        dataclasses.replace(READING, belongs="mixture", duplicates="distinct"),
        dataclasses.replace(READING, radii="one-radius", grid="fresh"),
        dataclasses.replace(READING, grid="longer", heights="shares"),
    ],
)
def test_the_figures_follow_one_constant(usual: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under another default the same experiments exist, and its opposite is what is added."""
    monkeypatch.setattr(readings, "READING", usual)
    monkeypatch.setattr(readings, "OTHERS", readings._others())
    published = runpy.run_path(str(published_module.__file__))["PUBLISHED"]
    assert published.keys() == PUBLISHED.keys()
    assert published["two-peaks"].users.given.get("reading", "network") == usual.belongs
    assert published["restaurant"].users.given.get("heights", "shares") == usual.heights
    by_curve = {curve.name: curve.ranker.given for curve in published["two-peaks"].curves}
    assert by_curve.keys() == {curve.name for curve in PUBLISHED["two-peaks"].curves}
    assert by_curve["RankZoom"]["duplicates"] == (usual.duplicates == "twice")
    assert by_curve["RankUCB1"].get("exploration") == (0.25 if usual.radii == "one-radius" else None)
    assert by_curve["RankGridUCB1"].get("replay", False) == (usual.grid == "replayed")
    assert by_curve["RankGridEXP3"].get("stretch", 1.0) == (2.0 if usual.grid == "longer" else 1.0)
    assert all(readings.differences(reading) for reading in readings.OTHERS)


Rate = Callable[[str, str], float]


def doctored(rate: Rate, instances: int = 4, other_instances: int = 3) -> list[RunRows]:
    """Rows of all that the report may look at, full length, that nobody ran: a rate per experiment and curve."""
    made = []
    for setting in settings_for(figures_named(["paper", "readings"]), instances):
        apart = "@" in setting.id
        if apart and setting.instance >= other_instances:
            continue
        value = rate(setting.experiment, setting.curve) + 0.0001 * (setting.instance % 2)
        rows = made_up_rows(setting.curve, setting.instance, (value, value), setting.visits)
        zooms = "Zoom" in setting.curve
        clicks = np.zeros((len(rows.visits), setting.slots), np.int64)
        clicks[:, 0] = rows.satisfied
        active = (40 if "Context" in setting.curve else 10,) * setting.slots
        made.append(RunRows(setting, rows.visits, clicks, rows.expected, active if zooms else None))
    return made


ORDER = {
    "RankRandom": 0.1,
    "RankUCB1": 0.1,
    "RankEXP3": 0.1,
    "RankExploreCommit": 0.1,
    "RankGridEXP3": 0.25,
    "RankGridUCB1": 0.45,
    "RankContextZoom": 0.6,
    "RankContextZoom-0.2": 0.61,
    "RankZoom": 0.7,
    "RankCorrZoom": 0.72,
    GREEDY: 0.73,
}


def as_the_paper_says(experiment: str, curve: str) -> float:
    if experiment in SMALL or experiment.startswith("small"):
        return {"RankZoom": 0.5, "RankCorrZoom": 0.51}.get(curve, 0.6)
    name = curve.partition("@")[0]
    return 0.05 if name.endswith("--") else ORDER[name]


def one_radius_learns(experiment: str, curve: str) -> float:
    """As the paper says, but for RankUCB1 with one radius."""
    return 0.7 if curve == "RankUCB1@one-radius" else as_the_paper_says(experiment, curve)


@pytest.fixture(scope="module")
def results() -> Results:
    return Results(doctored(one_radius_learns))


def _verdicts(results: Results, reading: str) -> dict[tuple[str, str], str | None]:
    findings = [one for one in judge_all(results) if one.claim.place.startswith("6.2")]
    column = judged_under(BY_NAME[reading], results, findings)
    assert column is not None
    names = [(one.claim.name, one.experiment) for one in findings]
    return dict(zip(names, column.verdicts, strict=True))


def test_verdicts_follow_the_rows_of_the_reading(results: Results) -> None:
    usual = {(one.claim.name, one.experiment): one.verdict for one in judge_all(results)}
    assert usual["as-random-RankUCB1", "two-peaks"] == HOLDS
    for reading in ("one-radius", "one-radius+fresh"):
        found = _verdicts(results, reading)
        assert {found["as-random-RankUCB1", name] for name in MAIN} == {DIFFERS}
        assert {found["as-random-RankEXP3", name] for name in MAIN} == {None}
        assert {found["refining-RankGridUCB1", name] for name in MAIN} == {DIFFERS}
    assert {verdict for verdict in _verdicts(results, "fresh").values() if verdict} == {HOLDS}
    tallest = _verdicts(results, "tallest")
    assert {name for (_, name), verdict in tallest.items() if verdict} == {"restaurant"}
    mixture = _verdicts(results, "mixture")
    assert {name for (_, name), verdict in mixture.items() if verdict} == {"two-peaks", "restaurant"}


def test_the_table_of_readings(results: Results) -> None:
    heading, introduction, table, changes = reading_sections(results, judge_all(results))
    assert heading == "## Under other readings"
    assert "two radii, as Algorithm 3's" in introduction
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    head, body = rows[0], rows[2:]
    assert head[:5] == ["claim", "experiment", "as drawn", "mixture (3)", "one radius (3)"]
    assert len(head) == 3 + len(OTHERS)
    (row,) = (row for row in body if row[0].startswith("RankUCB1 does as poorly"))
    marks = dict(zip(head, row, strict=True))
    assert (marks["as drawn"], marks["one radius (3)"], marks["fresh (3)"]) == ("✓", "✗", "")
    held = dict(zip(head, body[-1], strict=True))
    count = len(body) - 1
    held_as_drawn = sum(row[2] == "✓" for row in body[:-1])
    assert held["as drawn"] == held["longer (3)"] == f"{held_as_drawn} of {count}"
    turned = [row for row in body[:-1] if row[4] and row[2] != row[4]]
    assert len(turned) >= 6
    won = sum(row[4] == "✓" for row in turned) - sum(row[2] == "✓" for row in turned)
    assert held["one radius (3)"] == f"{held_as_drawn + won} of {count}"
    lines = dict(line.removeprefix("- **").split("**", 1) for line in changes.splitlines())
    assert "No verdict changes." in lines["fresh"]
    assert "told apart.” holds → differs (two-peaks, restaurant, restaurant-mixture)" in lines["one radius"]


def test_a_reading_without_rows_has_no_column(results: Results) -> None:
    some = [rows for rows in doctored(as_the_paper_says) if "@shares" not in rows.setting.id]
    table = "\n".join(reading_sections(Results(some), judge_all(Results(some))))
    assert "tallest (3)" in table
    assert "shares (3)" not in table
    none = [rows for rows in some if "@" not in rows.setting.id]
    left = list(reading_sections(Results(none), judge_all(Results(none))))
    assert "| as drawn | mixture" not in "".join(left)


def test_runs_that_were_cut_short_tell_nothing() -> None:
    short = [
        dataclasses.replace(made_up_rows(setting.curve, setting.instance, (0.5, 0.5), 1000), setting=setting)
        for setting in settings_for(figures_named(["1", "readings"]), instances=2)
        if setting.experiment == "two-peaks"
    ]
    found = _verdicts(Results(short), "one-radius")
    assert {verdict for verdict in found.values() if verdict} == {CANNOT_TELL}


def test_the_report_of_doctored_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zoomrank.lab.paper.report.draw", lambda *_: [])
    monkeypatch.setattr("zoomrank.lab.paper.report._facts", _no_facts)
    monkeypatch.setattr("zoomrank.lab.paper.report.theory_table", lambda *_: "")
    figures = ["1", "2", "3", "4", "5", "readings"]
    folder = ResultsFolder.create(tmp_path / "out", sweep_request("paper", 4, None, 2013, figures=figures))
    monkeypatch.setattr(ResultsFolder, "rows", lambda _: iter(doctored(one_radius_learns)))
    text = write_paper_report(folder).page.with_suffix(".md").read_text()
    assert "`zoomrank reproduce 1 2 3 4 5 --instances 4 --seed 2013` and " in text
    assert " and `zoomrank reproduce readings --instances 3 --seed 2013`." in text
    assert "## Under other readings" in text
    assert "### What no number of instances would decide" in text
    assert "“Eventually” names no visit" in text
    assert "5 slots, 300,000 visits, 4 instances, 0 to 3, from seed 2013" in text
    assert "RankUCB1@one-radius`: RankUCB1(duplicates=True, exploration=0.25); 3 instances, 0 to 2" in text
    assert "| two-peaks | RankContextZoom | 40 40 40 40 40 | 200 |" in text
    assert "Not tested" not in text


def _no_facts(*_: Any) -> Any:
    from zoomrank.lab.paper.theory import Facts

    return Facts(0.7, 0.7, True, 1.0, 1.0, 1.0)


def _files(folder: Path) -> Iterator[tuple[Path, int]]:
    return ((path, path.stat().st_mtime_ns) for path in sorted((folder / "rows").rglob("*.parquet")))


def test_more_instances_play_only_the_new_ones(tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["reproduce", "three", "--visits", "300", "--workers", "1", "--out", str(out)]
    assert main([*arguments, "--instances", "2"]) == 0
    before = dict(_files(out))
    assert main([*arguments, "--instances", "5", "--resume"]) == 0
    after = dict(_files(out))
    assert len(after) == 5 * len(before) // 2
    assert {path: after[path] for path in before} == before
    assert "5 instances, 0 to 4," in (out / "report.md").read_text()
    assert main([*arguments, "--instances", "3", "--resume"]) == 0  # fewer than there are: nothing to do
    assert dict(_files(out)) == after


def test_readings_are_beside_the_other_figures() -> None:
    assert set(READINGS) <= set(EXPERIMENTS)
    names = [figure.name for figure in figures_named(["beyond"])]
    assert "readings" not in names
    assert "readings" in [figure.name for figure in figures_named(["all"])]


def test_more_instances_are_played_of_what_cannot_be_told() -> None:
    """RankZoom and RankCorrZoom change places from instance to instance: nobody can tell which is best."""
    made = []
    for rows in doctored(as_the_paper_says, instances=4, other_instances=0):
        if rows.setting.experiment == "two-peaks" and rows.setting.curve == "RankZoom":
            clicks = rows.clicks * (2 if rows.setting.instance % 2 else 1) * 0.7
            rows = dataclasses.replace(rows, clicks=clicks.astype(np.int64))
        made.append(rows)
    wanted = undecided(Results(made))
    assert set(wanted) == {"two-peaks"}
    assert {"RankZoom", "RankCorrZoom"} <= set(wanted["two-peaks"])
    assert GREEDY not in wanted["two-peaks"]
    runs = settings_of(wanted, instances=6)
    assert {(run.experiment, run.curve) for run in runs} == {("two-peaks", curve) for curve in wanted["two-peaks"]}
    assert {run.instance for run in runs} == set(range(6))
