"""Kernels are the same with and without compilation, are kept on disk, and never outlive their sources."""

import copy
import gc
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zoomrank
from zoomrank.compiled import compiled
from zoomrank.dice import Dice, rolled

SMALL = """
import zoomrank as zr
users = zr.users.two_peaks(zr.DocumentTree.exponential(depth=5, branching=2), seed=1, reading="mixture")
print(users.clicks([0, 9, 17], 40, seed=3).tolist())
"""  # few kernels, for what is true of any
SCRIPT = """
import numpy as np, zoomrank as zr
tree = zr.DocumentTree.exponential(depth=5, branching=2)
users = zr.users.two_peaks(tree, seed=1, reading="mixture")
print(users.clicks([0, 9, 17], 40, seed=3).tolist())
print(users.sample(3, seed=4).astype(int).tolist())
print(users.conditional_mean([4, 5]).round(12).tolist())
print(zr.users.two_peaks(tree, seed=1, reading="mutations").greedy(3))
for kind in zr.ZoomRank, zr.RankThompson:
    ranker = kind(tree, slots=3, seed=5)
    for visit in range(15):
        ranking = ranker.rank()
        print(ranking.documents)
        ranker.learn(ranking, visit % 3)
"""


def run(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", script]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True)  # noqa: S603


def test_plain_python_gives_the_same_draws() -> None:
    """With the kernels that other tests use, so that they are compiled once for all; and here, not a second time."""
    fast, again, plain = run(SCRIPT), run(SCRIPT), run(SCRIPT, NUMBA_DISABLE_JIT="1")
    assert fast.stdout == again.stdout == plain.stdout
    assert again.stderr == ""


def test_compiled_once_and_said_so(tmp_path: Path) -> None:
    first = run(SMALL, NUMBA_CACHE_DIR=str(tmp_path))
    second = run(SMALL, NUMBA_CACHE_DIR=str(tmp_path))
    assert first.stderr.count("this happens once") == 1
    assert second.stderr == ""
    assert first.stdout == second.stdout


def test_edited_sources_get_a_cache_of_their_own(tmp_path: Path) -> None:
    """Numba alone would go on using a kernel whose callee in another file has changed."""
    package = tmp_path / "zoomrank"
    shutil.copytree(Path(zoomrank.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    cache = tmp_path / "cache"
    run(SMALL, NUMBA_CACHE_DIR=str(cache), PYTHONPATH=str(tmp_path))
    with (package / "errors.py").open("a") as file:
        file.write("# edited\n")
    again = run(SMALL, NUMBA_CACHE_DIR=str(cache), PYTHONPATH=str(tmp_path))
    assert "this happens once" in again.stderr
    assert len(list((cache / "zoomrank-kernels").iterdir())) == 2


def test_old_kernels_go_and_nothing_else_does(tmp_path: Path) -> None:
    kernels = tmp_path / "zoomrank-kernels"
    old, foreign = kernels / ("0123456789abcdef"), tmp_path / "zoomrank-results"
    mine = kernels / "notes"
    for folder in (old, foreign, mine):
        folder.mkdir(parents=True)
        os.utime(folder, (0, 0))
    run("import zoomrank", NUMBA_CACHE_DIR=str(tmp_path))
    assert not old.exists()
    assert foreign.exists()
    assert mine.exists()


def test_a_home_that_cannot_be_written_to(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    result = run(
        "import zoomrank; print(len(zoomrank.DocumentTree.exponential(3)))", NUMBA_CACHE_DIR=str(blocked / "x")
    )
    assert result.stdout == "8\n"


def test_kernels_of_a_folder_that_cannot_be_written_to_are_used(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    run(SMALL, NUMBA_CACHE_DIR=str(cache))
    kernels = {file: file.stat().st_mtime_ns for file in cache.rglob("*")}
    blocked = f"""
import tempfile
real = tempfile.TemporaryFile
def guarded(*arguments, dir=None, **options):
    if str(dir).startswith({str(cache)!r}):
        raise PermissionError("a root that is read-only")
    return real(*arguments, dir=dir, **options)
tempfile.TemporaryFile = guarded
"""
    again = run(blocked + SMALL, NUMBA_CACHE_DIR=str(cache))
    assert again.stderr == ""  # nothing had to be compiled
    assert {file: file.stat().st_mtime_ns for file in cache.rglob("*") if file.is_file()}.items() <= kernels.items()


@compiled
def _throws(handle: Any) -> Any:
    rng = rolled(handle)
    return rng.random(), rng.beta(2.0, 3.0), rng.integers(0, 1000)


def test_dice_are_the_generator_they_were_made_of() -> None:
    generator, same = np.random.default_rng(5), np.random.default_rng(5)
    dice = Dice(generator)
    for _ in range(100):
        assert _throws(dice.handle) == (same.random(), same.beta(2.0, 3.0), same.integers(0, 1000))
        assert generator.random() == same.random()  # both move the same one on


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda dice: pickle.loads(pickle.dumps(dice))])  # noqa: S301
def test_copied_dice_go_their_own_way(copied: Callable[[Dice], Dice]) -> None:
    dice = Dice(np.random.default_rng(5))
    other = copied(dice)
    first = [_throws(dice.handle) for _ in range(3)]
    del dice
    gc.collect()
    assert [_throws(other.handle) for _ in range(3)] == first
