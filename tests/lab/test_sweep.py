"""Sweeps do what is missing, with any number of workers, and stop when nobody listens."""

import dataclasses
import multiprocessing
import time
from pathlib import Path

import numpy as np
import pytest

from tests.lab.tiny_world import SMALL
from zoomrank.lab.results_folder import ResultsFolder, sweep_request
from zoomrank.lab.run import RunRows
from zoomrank.lab.sweep import FinishedRun, Local, TimeLeft, sweep

ABOUT = sweep_request("paper", 2, None, 2013, figures=["1"])


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


def test_the_time_that_is_left_is_learned_from_each_curve() -> None:
    settings = SMALL.settings(["RankCorrZoom", "late"], instances=3)
    time_left = TimeLeft(settings, workers=2)
    left = 0.0
    for setting in settings[:2]:
        rows = RunRows(setting, np.array([1]), np.zeros((1, 2)), np.zeros(1))
        left = time_left.after(FinishedRun(rows, 2.0 if setting.curve == "late" else 6.0, "here"))
    assert left == pytest.approx((2 * 2.0 + 2 * 6.0) / 2)
