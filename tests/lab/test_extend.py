"""What docs/how-to/write-your-own-ranker.md says works: its own ranker and visitors, run as the page says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from zoomrank.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "write-your-own-ranker.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
COMMANDS = re.findall(r"^zoomrank (.*)$", PAGE, flags=re.MULTILINE)


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the page's `mine.py` in it."""
    (tmp_path / "mine.py").write_text("\n\n".join(PYTHON[:2]))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    return tmp_path


def test_ten_lines_are_enough() -> None:
    for block in PYTHON[:2]:
        body = block[block.index("class ") :]
        assert len([line for line in body.splitlines() if line.strip() and '"""' not in line]) <= 11  # and `class …:`


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_run(command: str, mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command.split()) == 0
    shown = capsys.readouterr().out
    assert "● mine:FollowTheClicks" in shown
    assert "greedy optimum" in shown


def test_the_experiment_runs(mine: Path) -> None:
    (mine / "both.py").write_text(PYTHON[2])
    done = subprocess.run(
        [sys.executable, "both.py"], cwd=mine, capture_output=True, text=True, timeout=300, check=True
    )
    assert re.fullmatch(r"-?\d\.\d+ \[-?\d\.\d+, -?\d\.\d+\]\n", done.stdout)
