"""zoomrank without its extras: a command does what it can, or says what to install. Never a traceback."""

import ast
import functools
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import distributions, requires
from pathlib import Path

import pytest

from tests.cli.test_cli import COMMANDS
from zoomrank.cli.arguments import MODULES

if sys.version_info >= (3, 11):
    import tomllib
else:  # which pytest brings there
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NOT_FOR_COMMANDS = {"compare", "dev", "docs"}  # extras of those who work on zoomrank
FOR_SPEED = {"httptools", "uvloop"}  # uvicorn takes them if they are there, and does without

# A process in which nothing can be imported but the standard library, zoomrank and what it depends on.
PLAIN = """
import sys
from importlib.machinery import PathFinder

ALLOWED = {"zoomrank", "llvmlite", "numba", "numpy", "platformdirs", "scipy", *sys.stdlib_module_names}

class Plain(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        allowed = name.partition(".")[0] in ALLOWED or name.startswith("_sysconfigdata")  # of the standard library
        return super().find_spec(name, path, target) if allowed else None

sys.meta_path[:] = [Plain if finder is PathFinder else finder for finder in sys.meta_path]
from zoomrank.cli import main
sys.exit(main())
"""
WORKS = {"compile", "demo", "simulate"}
FIRST = {"demo", "serve"}  # one that works and one that does not; a process for each of the others takes longer
ARGUMENTS = {
    "demo": ["--depth", "5", "--visits", "10"],
    "simulate": ["Greedy", "three-documents", "--slots", "2", "--visits", "10"],
    "backup": ["backup.sqlite"],
    "restore": ["backup.sqlite"],
    "export": ["impressions.jsonl"],
    "report": ["somewhere"],
    "import": ["clicks.jsonl", "--collection", "shop"],
    "judge": ["log.jsonl", "--ranking", "better.tsv"],
    "study": ["efficiency"],
    "inspect": ["categories.txt"],
    "evaluate": ["pages.tsv", "--relevance", "qrels.txt"],
}


def plain(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "categories.txt").write_text("Animals > Owls\nPlants > Oaks\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", PLAIN, *arguments]
    return subprocess.run(  # noqa: S603
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.parametrize(
    "command", [name if name in FIRST else pytest.param(name, marks=pytest.mark.full) for name in COMMANDS]
)
def test_without_extras(command: str, tmp_path: Path) -> None:
    done = plain(command, *ARGUMENTS.get(command, []), folder=tmp_path)
    assert "Traceback" not in done.stderr
    if command in WORKS:
        assert done.returncode == 0, done.stderr
    else:
        extras = ",".join(COMMANDS[command].get_default("extras"))
        assert done.returncode == 2
        assert re.fullmatch(rf"zoomrank: `zoomrank {command}` needs [\w, …]+: pip install '(.*)'\n", done.stderr)
        assert f"'zoomrank[{extras}]'" in done.stderr


def test_what_only_an_option_needs(tmp_path: Path) -> None:
    done = plain("simulate", *ARGUMENTS["simulate"], "--out", "rows", folder=tmp_path)
    assert done.returncode == 2
    assert "`zoomrank simulate --out` needs" in done.stderr
    assert "pip install 'zoomrank[lab]'" in done.stderr
    assert not (tmp_path / "rows").exists()


def test_every_extra_is_in_the_table() -> None:
    assert MODULES.keys() == PROJECT["optional-dependencies"].keys() - NOT_FOR_COMMANDS


@pytest.mark.parametrize("extra", MODULES)
def test_the_table_has_what_the_extra_installs(extra: str) -> None:
    """Package by package and module by module: neither forgets anything of the other."""
    packages = set(_packages(extra))
    of_modules = set().union(*map(_packages_of, MODULES[extra]))
    assert packages - FOR_SPEED <= of_modules
    assert {package for package in of_modules if not _comes_with(package, packages)} == set()


def test_every_import_is_accounted_for() -> None:
    """What zoomrank imports comes with Python, with a plain install, or with an extra."""
    always = {_name(requirement) for requirement in PROJECT["dependencies"]}
    known = {module for modules in MODULES.values() for module in modules}
    imported = set(_imported(ROOT / "src" / "zoomrank")) - sys.stdlib_module_names - {"zoomrank"}
    assert known <= imported | {"plotly"}  # of plotly only a file is sent to browsers
    assert {module for module in imported - known if not _packages_of(module) <= always} == set()


def _packages_of(module: str) -> set[str]:
    """The packages that bring a module; where none is installed, the one that is called so."""
    return {_normal(name) for name in _installed().get(module, {module})}


@functools.cache
def _installed() -> Mapping[str, set[str]]:
    """Which packages have files of a module; `packages_distributions` of Python 3.10 does not look at them."""
    found: dict[str, set[str]] = {}
    for package in distributions():
        told = package.read_text("top_level.txt")  # there or not
        listed = (package.read_text("RECORD") or "").splitlines()  # `package.files` takes seconds for all of them
        names = told.split() if told else [re.split("[,/]", line)[0].removesuffix(".py") for line in listed]
        for name in set(names):
            found.setdefault(name, set()).add(package.name)
    return found


def _packages(extra: str) -> Iterator[str]:
    """All that an extra names, also by way of other extras."""
    for requirement in PROJECT["optional-dependencies"][extra]:
        inner = re.fullmatch(r"zoomrank\[(.*)\]", requirement)
        if inner is None:
            yield _name(requirement)
        else:
            for other in inner[1].split(","):
                yield from _packages(other)


def _comes_with(package: str, packages: Iterable[str]) -> bool:
    """Whether a package is installed because of one of these, at one remove or more."""
    todo, seen = list(packages), set(packages)
    while todo:
        if todo[-1] == package:
            return True
        try:
            needed = _needed_by(todo.pop())
        except ModuleNotFoundError:  # one that is not installed here
            continue
        todo += needed - seen
        seen |= needed
    return False


@functools.cache  # to look for a package goes through all that are installed
def _needed_by(package: str) -> set[str]:
    return {_name(text) for text in requires(package) or () if "extra ==" not in text}


def _imported(folder: Path) -> Iterator[str]:
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.partition(".")[0]


def _name(requirement: str) -> str:
    return _normal(re.match(r"[\w.-]+", requirement)[0])  # type: ignore[index]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
