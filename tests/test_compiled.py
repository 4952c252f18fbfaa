"""Kernels are the same with and without compilation, are kept on disk, and never outlive their sources."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import zoomrank

SCRIPT = """
import numpy as np, zoomrank as zr
tree = zr.DocumentTree.exponential(depth=5, branching=2)
users = zr.users.two_peaks(tree, seed=1, reading="mixture")
print(users.clicks([0, 9, 17], 40, seed=3).tolist())
print(users.sample(3, seed=4).astype(int).tolist())
print(users.conditional_mean([4, 5]).round(12).tolist())
print(zr.users.two_peaks(tree, seed=1, reading="mutations").greedy(3))
"""


def run(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", script]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True)  # noqa: S603


def test_plain_python_gives_the_same_draws(tmp_path: Path) -> None:
    fast = run(SCRIPT, NUMBA_CACHE_DIR=str(tmp_path))
    plain = run(SCRIPT, NUMBA_DISABLE_JIT="1")
    assert fast.stdout == plain.stdout


def test_compiled_once_and_said_so(tmp_path: Path) -> None:
    first = run(SCRIPT, NUMBA_CACHE_DIR=str(tmp_path))
    second = run(SCRIPT, NUMBA_CACHE_DIR=str(tmp_path))
    assert first.stderr.count("this happens once") == 1
    assert second.stderr == ""
    assert first.stdout == second.stdout


def test_edited_sources_get_a_cache_of_their_own(tmp_path: Path) -> None:
    """Numba alone would go on using a kernel whose callee in another file has changed."""
    package = tmp_path / "zoomrank"
    shutil.copytree(Path(zoomrank.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    cache = tmp_path / "cache"
    run(SCRIPT, NUMBA_CACHE_DIR=str(cache), PYTHONPATH=str(tmp_path))
    with (package / "errors.py").open("a") as file:
        file.write("# edited\n")
    again = run(SCRIPT, NUMBA_CACHE_DIR=str(cache), PYTHONPATH=str(tmp_path))
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
