"""What README and docs say is run, or looked up, here."""

import re
from pathlib import Path

import pytest

from zoomrank.lab.paper.claims import CLAIMS

ROOT = Path(__file__).parent.parent
EXAMPLES = [
    example
    for page in ("README.md", "docs/zoomrank.md", "docs/documents.md")
    for example in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_readme_examples_run(
    example: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "README.md", "exec"), {})  # noqa: S102
    assert capsys.readouterr().out


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


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert target.startswith("https://") or (page.parent / target).exists(), target


def test_committed_reports_are_about_claims_that_still_exist() -> None:
    report = (ROOT / "docs" / "reproduction" / "report.md").read_text()
    for claim in CLAIMS:
        if not set(claim.tests) & {"three-documents"}:
            assert claim.says in report, claim.name
