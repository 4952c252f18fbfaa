"""What README and docs say is run, or looked up, here."""

import ast
import contextlib
import io
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.serving import serving
from zoomrank.lab.paper.claims import CLAIMS

if sys.version_info >= (3, 11):
    import tomllib
else:  # which pytest brings there
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN_ELSEWHERE = {
    "docs/how-to/write-your-own-ranker.md": "tests/lab/test_extend.py",
    "docs/how-to/send-feedback-from-pages.md": "tests/service/test_javascript.py",
    "docs/how-to/call-from-python.md": "tests/test_client.py",
}
LONG = {"docs/how-to/choose-a-ranker.md"}  # in the longer tier: compiles four simulations that no other test needs
GENERATED = ("commands", "http", "index", "limits", "metrics", "service-errors", "settings")  # by tools/*_page.py
ADDRESS = "http://127.0.0.1:8000"  # of the service, on the pages
BLOCK = re.compile(
    r'(?P<marker><!-- needs a service -->\n)?```python(?: title="(?P<file>[^"]+)")?\n(?P<code>.*?)```\n'
    r"(?:(?:\n```\n[^\n]*\n```\n)?\n```text\n(?P<printed>.*?)```\n)?",  # maybe how to run it, and what is printed
    flags=re.DOTALL,
)


@dataclass(frozen=True)
class Example:
    """A piece of Python on a page, and what the page says that it prints."""

    page: str
    code: str
    file: str | None
    printed: str | None
    needs_service: bool


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def examples(page: Path) -> Iterator[Example]:
    for found in BLOCK.finditer(page.read_text()):
        yield Example(name_of(page), found["code"], found["file"], found["printed"], found["marker"] is not None)


def run(examples: list[Example], address: str) -> None:
    """Run the examples of a page, in order: those of one file see each other's names, and so do those of no file."""
    known: dict[str | None, dict[str, Any]] = {}
    for example in examples:
        code = compile(example.code.replace(ADDRESS, address), example.page, "exec")
        heard = io.StringIO()
        with contextlib.redirect_stdout(heard):
            exec(code, known.setdefault(example.file, {}))  # noqa: S102
        if example.printed is not None:
            assert heard.getvalue() == example.printed


RUN_HERE = {name_of(page): list(examples(page)) for page in PAGES if name_of(page) not in RUN_ELSEWHERE}


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.full) if page in LONG else page for page, found in RUN_HERE.items() if found],
)
def test_examples_run(page: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with contextlib.ExitStack() as stack:
        needed = any(example.needs_service for example in RUN_HERE[page])
        run(RUN_HERE[page], stack.enter_context(serving(tmp_path / "service")) if needed else "")


def test_every_example_is_found() -> None:
    """Nothing that looks like Python escapes, and what talks to a service says so."""
    for page in PAGES:
        found = list(examples(page))
        assert page.read_text().count("```python") == len(found), name_of(page)
        if name_of(page) not in RUN_ELSEWHERE:
            assert all(("Client(" in example.code) == example.needs_service for example in found), name_of(page)


@pytest.mark.parametrize(("page", "test"), RUN_ELSEWHERE.items())
def test_other_pages_are_run_elsewhere(page: str, test: str) -> None:
    assert Path(page).name in (ROOT / test).read_text()


def test_the_map_points_at_what_exists() -> None:
    """Every `name` on the map stands somewhere in the package or the tests; every file is there."""
    code = "\n".join(file.read_text() for folder in ("src", "tests") for file in (ROOT / folder).rglob("*.py"))
    named = re.findall(r"`([^`]+)`", (ROOT / "docs" / "paper-map.md").read_text())
    assert len(named) > 60
    for name in named:
        if name.endswith(".py"):
            assert (ROOT / "src" / "zoomrank" / name).exists() or (ROOT / name).exists(), name
        elif re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", name) and ":" not in name and not name.endswith("/"):
            for part in name.split("."):
                assert re.search(rf"\b{part}\b", code), name


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    made = {ROOT / "docs" / "reference" / f"{name}.md" for name in GENERATED} | {ROOT / "docs" / "contributing.md"}
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        there = (page.parent / target).resolve()
        assert target.startswith(("https://", "http://127.0.0.1")) or there.exists() or there in made, target


def test_committed_reports_are_about_claims_that_still_exist() -> None:
    report = (ROOT / "docs" / "reproduction" / "report.md").read_text()
    for claim in CLAIMS:
        if not set(claim.tests) & {"three-documents"}:
            assert claim.says in report, claim.name


def _pictures() -> list[str]:
    return re.findall(r"```text\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.DOTALL)


def test_the_tree_of_folders_is_the_one_that_exists() -> None:
    drawn: set[Path] = set()
    parents: list[Path] = []
    for line in _pictures()[0].splitlines():
        indent, name, says = re.fullmatch(r"( *)([a-z_/]+)/ +(\S.*)", line).groups()  # type: ignore[union-attr]
        assert says
        depth = len(indent) // 4
        parents[depth:] = [(parents[depth - 1] if depth else ROOT) / name]
        drawn.add(parents[-1])
    assert all(folder.is_dir() for folder in drawn)
    for root in (ROOT / "src" / "zoomrank", ROOT / "research"):  # of others, those that are worth a line
        assert {path for path in drawn if path.is_relative_to(root)} == _folders(root)


def _folders(root: Path) -> set[Path]:
    return {root} | {path for path in root.rglob("*") if path.is_dir() and path.name != "__pycache__"}


def test_the_pictures_of_imports_are_those_that_the_linter_holds() -> None:
    by_name = {contract["name"]: contract for contract in _project()["tool"]["importlinter"]["contracts"]}
    packages = next(contract for name, contract in by_name.items() if name.startswith("One direction"))
    service = next(contract for name, contract in by_name.items() if name.startswith("The service"))
    for picture, contract in zip(_pictures()[1:3], (packages, service), strict=True):
        assert picture.splitlines() == [layer.replace("zoomrank.", "") for layer in contract["layers"]]


def test_pointers_for_newcomers_lead_to_code() -> None:
    """Every file that CONTRIBUTING.md names is there, and has the name that follows it."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for file in re.findall(r"`((?:src|tests|docs|deploy|tools)/[\w./-]+\.\w+)`", text):
        assert (ROOT / file).exists(), file
    stops = _stops(text)
    assert len(stops) >= 8
    for file, name in stops:
        assert name in _names(_parsed(file)), (file, name)


def _names(tree: ast.AST, prefix: str = "") -> Iterator[str]:
    """Everything that a module defines, also inside of classes and functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name
            yield from _names(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.Assign):
            yield from (
                prefix + name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)
            )


def _stops(text: str) -> list[tuple[str, str]]:
    """Files below src/zoomrank, each with the name that follows it."""
    return re.findall(r"`((?!src/|tests/)[\w/]+\.py)`\s+`([\w.]+)`", text)


def _parsed(file: str) -> ast.AST:
    return ast.parse((ROOT / "src" / "zoomrank" / file).read_text())


def test_walks_go_where_the_code_goes() -> None:
    walks = (ROOT / "docs" / "walks.md").read_text().split("\n## ")[1:]
    assert len(walks) == 6
    for walk in walks:
        steps = re.split(r"\n\d+\. ", walk)[1:]
        assert 1 < len(steps) <= 10
        for step in steps:
            stops = _stops(step)
            assert stops, step
            for file, name in stops:
                assert name in _names(_parsed(file)), (file, name)


def test_every_extra_is_on_the_page() -> None:
    page = (ROOT / "docs" / "install.md").read_text()
    assert {f"`{extra}`" for extra in _project()["project"]["optional-dependencies"]} <= set(re.findall(r"`\w+`", page))


def _project() -> Any:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())
