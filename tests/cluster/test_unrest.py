"""A cluster under load in which replicas are killed and stopped, and PostgreSQL starts anew: visitors wait, at most.

A short form here; `python -m tests.support.unrest 20` goes on for longer, also with nodes that come and go.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.unrest import SEED


@pytest.mark.full
def test_nothing_is_lost_and_nobody_else_writes() -> None:
    """In a process of its own, which Ray may fill with threads."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.support.unrest", "3", str(SEED), "--short"]
    found = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)  # noqa: S603
    assert found.returncode == 0, found.stdout[-3000:] + found.stderr[-6000:]
    assert found.stdout.startswith(f"seed {SEED}\n")
    assert found.stdout.count("waited") == 3
