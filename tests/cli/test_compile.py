"""`zoomrank compile`: what it names, and that later programs find it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from zoomrank.cli import main

USED = """
from zoomrank import compiled
compiled.LOADING = 0.0  # what is in the cache is used at once
import zoomrank as zr
ranker = zr.RankUCB1(zr.DocumentTree.exponential(depth=4, branching=2), slots=3, seed=1)
with compiled.expecting(0.1):
    ranker.learn(ranker.rank(), 1)
print(compiled.tiers()["compiled"] >= 2)
"""


@pytest.mark.full
def test_what_was_compiled_beforehand_is_used_at_once(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    script = "import sys; from zoomrank.cli import main; sys.exit(main(['compile', 'RankUCB1']))"
    shown, used = (
        subprocess.run([sys.executable, "-c", one], env=environment, capture_output=True, text=True, check=True)  # noqa: S603
        for one in (f"if __name__ == '__main__':\n    {script}", USED)
    )
    assert shown.stdout.startswith("RankUCB1 ")
    assert used.stdout == "True\n"


def test_what_cannot_be_compiled_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["compile", "RankNothing"])
    assert stopped.value.code == 2
    assert "RankNothing cannot be compiled: name any of service, ZoomRank" in capsys.readouterr().err
