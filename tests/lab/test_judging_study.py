"""`python -m research study judging`: logs against what is true, refusals, the report, and going on where it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from research.__main__ import main
from research.studies.judging import (
    KINDS,
    RANKINGS,
    EpsilonGreedy,
    LogKind,
    Softmax,
    judge_log,
    standard_scores,
    world,
    worth_of,
)

from zoomrank.judging.estimators import ESTIMATORS
from zoomrank.judging.judgment import DEFAULT

BY_NAME = {kind.name: kind for kind in KINDS}


def short(name: str, impressions: int) -> LogKind:
    return BY_NAME[name]._replace(impressions=impressions)


def test_a_log_is_asked_about_everything_by_everybody() -> None:
    rows = judge_log(short("softmax", 4_000), 0, 1)
    assert rows == judge_log(short("softmax", 4_000), 0, 1)
    told = [row for row in rows if "refused" not in row]
    assert {row["estimator"] for row in told} == {*ESTIMATORS}
    for row in told:
        value, low, high, error = row["share"]
        assert low <= value <= high
        assert abs(value - row["truth"]) < 5 * error
    refused = {row["target"] for row in rows if "refused" in row}
    assert "far away" in refused
    assert "sharper softmax" not in refused


@pytest.mark.parametrize("number", [0, 2, 3, 4, 5])  # in 1 a learner has learned what is popular
def test_deterministic_logs_tell_of_themselves_alone(number: int) -> None:
    rows = judge_log(short("certain", 1_000), number, 1)
    told = [row for row in rows if row.get("estimator") == DEFAULT]
    assert {"popular"} <= {row["target"] for row in told} <= {"popular", "greedy"}  # which may be the same
    assert all(abs(row["apart"]) < 1e-9 for row in told)
    assert all(row["refused"].startswith("The log is deterministic") for row in rows if "refused" in row)


@pytest.mark.full
def test_intervals_cover_what_is_true() -> None:
    """Roughly: 60 short logs, in which a tenth of misses would be no surprise and a fifth is."""
    rows = [row for number in range(60) for row in judge_log(short("softmax-low", 4_000), number, 1)]
    told = [row for row in rows if row.get("estimator") == DEFAULT and row["target"] == "sharper softmax"]
    covered = np.mean([row["share"][1] <= row["truth"] <= row["share"][2] for row in told])
    assert len(told) > 50
    assert covered > 0.85


@pytest.mark.parametrize(
    "policy", [Softmax(standard_scores(world("high", 0))), EpsilonGreedy(world("half", 0).popular, 0.2)]
)
def test_policies_are_distributions(policy: Softmax | EpsilonGreedy) -> None:
    assert policy.propensities(RANKINGS).prod(axis=1).sum() == pytest.approx(1.0)


def test_a_ranker_is_worth_what_its_rankings_are() -> None:
    one = world("half", 0)
    ranker, _ = one.learned(0)
    shown = ranker.copied().rank_arrays(4_000).shown
    worth = np.mean([one.worth(ranking) for ranking in shown])
    assert worth_of(one, ranker.propensities) == pytest.approx(worth, abs=0.02)


@pytest.mark.full
def test_the_study_reports_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["study", "judging", "--instances", "1", "--visits", "600", "--workers", "1"]
    asked += ["--out", str(tmp_path / "out")]
    assert main(asked) == 0
    assert "1 logs of each kind" in capsys.readouterr().out
    report = (tmp_path / "out" / "report.md").read_text()
    assert "`python -m research study judging --instances 1 --seed 8181 --visits 600`" in report
    assert report.count("deterministic") > 3
    parts = {file: file.stat().st_mtime_ns for file in (tmp_path / "out" / "judged").iterdir()}
    assert len(parts) == len(KINDS)
    assert main([*asked, "--resume"]) == 0
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "out" / "judged").iterdir()} == parts
