"""What would be published: complete, nothing too much, installed without trouble, and typed for those who use it."""

import ast
import inspect
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from tools import check_dist

import zoomrank

SCRIPT = Path(__file__).parent / "support" / "typed_script.py"
# The script runs where its user's own folder is, not in ours.
OUTSIDE = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what `make dist` builds."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(check_dist.ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def python(dist: Path) -> Path:
    """The Python of an environment in which the wheel is installed, and sees the packages that we see."""
    python = check_dist.environment(dist / "environment", pip=False)
    place = Path(sysconfig.get_path("purelib", vars={"base": str(dist / "environment")}))
    wheel, _ = check_dist.built(dist)
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", "--quiet"]
    subprocess.run([*pip, "--target", str(place), str(wheel)], check=True, env=OUTSIDE)  # noqa: S603
    (place / "ours.pth").write_text(sysconfig.get_path("purelib") + "\n")  # looked at after the wheel's own place
    return python


@pytest.mark.full
def test_the_wheel_and_the_archive_are_in_order(dist: Path) -> None:
    wheel, archive = check_dist.built(dist)
    check_dist.check_wheel(wheel)
    check_dist.check_archive(archive)


@pytest.mark.full
def test_the_wheel_is_what_is_installed_there(python: Path) -> None:
    where = subprocess.run(  # noqa: S603
        [str(python), "-c", "import zoomrank; print(zoomrank.__file__)"], env=OUTSIDE, capture_output=True, text=True
    )
    assert Path(where.stdout.strip()).is_relative_to(python.parents[1])


@pytest.mark.full
@pytest.mark.parametrize("typed", [True, False])
def test_a_users_script_is_checked(python: Path, tmp_path: Path, typed: bool) -> None:
    """With py.typed all is well, and every mistake is found; without, mypy would know nothing of zoomrank."""
    marks = list(python.parents[1].rglob("zoomrank/py.typed"))
    assert len(marks) == 1
    if not typed:
        marks[0].unlink()
    try:
        mypy = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--python-executable={python}"]
        done = subprocess.run(  # noqa: S603
            [*mypy, f"--cache-dir={tmp_path}", str(SCRIPT)], cwd=tmp_path, env=OUTSIDE, capture_output=True, text=True
        )
    finally:
        marks[0].touch()
    assert (done.returncode == 0) == typed, done.stdout
    assert ("py.typed marker" in done.stdout) != typed


def test_that_script_names_every_parameter_of_every_ranker() -> None:
    function = next(
        node
        for node in ast.parse(SCRIPT.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name == "rankers"
    )
    named = {
        node.func.attr: {keyword.arg for keyword in node.keywords}
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    kinds = {name: getattr(zoomrank, name) for name in zoomrank.__all__}
    rankers = {
        name: kind for name, kind in kinds.items() if inspect.isclass(kind) and issubclass(kind, zoomrank.Ranked)
    }
    assert named.keys() == rankers.keys() - {"Ranked"}
    for name, keywords in named.items():
        parameters = inspect.signature(rankers[name]).parameters.values()
        if all(one.kind is not one.VAR_KEYWORD for one in parameters):  # else its bandit knows what it takes
            assert {one.name for one in parameters} - {"tree"} == keywords, name


def test_makefile_asks_for_the_python_that_is_required() -> None:
    root = check_dist.ROOT
    least = re.search(r'requires-python = ">=3\.(\d+)"', (root / "pyproject.toml").read_text())
    assert least is not None
    assert f"v >= (3, {least[1]})" in (root / "Makefile").read_text()
