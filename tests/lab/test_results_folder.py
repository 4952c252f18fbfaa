"""Rows are kept whole or not at all, and never taken for those of others."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.lab.tiny_world import SMALL
from zoomrank.errors import ResultsError
from zoomrank.lab.results_folder import ResultsFolder, from_parquet, sweep_request, to_parquet
from zoomrank.lab.run import run, this_version

ABOUT = sweep_request("paper", 2, None, 2013, figures=["1"])


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    rows = run(SMALL.settings(["late"], instances=1)[0])
    path = tmp_path / "one.parquet"
    path.write_bytes(to_parquet(rows))
    back = from_parquet(path)
    assert back.setting == rows.setting
    assert rows.active is not None
    assert back.active == rows.active
    for name in ("visits", "clicks", "expected"):
        assert np.array_equal(getattr(back, name), getattr(rows, name))
    assert pq.read_table(path)["satisfied"].to_pylist() == rows.satisfied.tolist()
    assert to_parquet(rows) == path.read_bytes()


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
        ({"format": 2}, "format 2; this zoomrank reads 3"),
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
    more = ResultsFolder.resume(folder.path, sweep_request("paper", 5, None, 2013, figures=["2"]))
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
        "import os, sys; from zoomrank.files import atomic_file\n"
        "with atomic_file(sys.argv[1]) as file:\n"
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
