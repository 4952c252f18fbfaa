"""`python -m research year`: a short one, with all that happens in a long one."""

import re
from contextlib import closing
from pathlib import Path

import pytest
from research.__main__ import main
from research.year import service_handle

from tests.support.services import Place
from zoomrank.service.storage.store_snapshot import open_snapshot
from zoomrank.service.verification import verify

SHORT = ["year", "--days", "20", "--products", "400", "--queries", "3", "--visits", "96", "--seed", "2"]


def _share(shown: str, row: str) -> float:
    found = re.search(rf"^{re.escape(row)} +([\d.]+)%", shown, flags=re.MULTILINE)
    assert found, shown
    return float(found[1]) / 100


def _count(shown: str, pattern: str) -> int:
    found = re.search(pattern, shown)
    assert found, shown
    return int(found[1].replace(",", ""))


@pytest.fixture
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were no PostgreSQL at hand."""
    monkeypatch.setattr(service_handle, "_SERVER", "no_such_module")


@pytest.mark.full
@pytest.mark.usefixtures("no_server")
def test_a_short_year(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "year"
    assert main([*SHORT, "--out", str(folder)]) == 0
    shown = capsys.readouterr().out
    greedy, undisturbed, year, random = (
        _share(shown, row)
        for row in ("knows everything (greedy)", "undisturbed, as many visits", "after the year", "at random")
    )
    assert greedy > undisturbed > 2 * random
    assert year > 0.75 * undisturbed  # learners of a short year have not learned all yet; what they learned is there
    assert "everything agrees" in shown
    assert "moved from SQLite to SQLite" in shown
    assert _count(shown, r"voided: ([\d,]+)") == 4 * 96  # all that was shown on bad days, and nothing else
    assert _count(shown, r"in ([\d,]+) versions") == 19 + 4 + 2  # days, seasons, categories
    visits = _count(shown, r"visits: ([\d,]+)")
    assert 0.9 * 20 * 96 < visits < 20 * 96  # nobody is served in an outage
    assert _count(shown, r"learned, ([\d,]+) too late") > 0
    assert _count(shown, r"too late, ([\d,]+) during an outage") > 0
    assert 0.25 < _count(shown, r"([\d,]+) with candidates") / visits < 0.42
    assert (folder / "figure-year.png").stat().st_size > 5000
    with closing(open_snapshot(folder / "second", None)) as view:
        found = verify(view)
    assert found.findings == []
    assert found.checked["queries"] == 3
    assert main([*SHORT, "--out", str(folder)]) == 2  # which has something in it
    assert "another folder" in capsys.readouterr().err


@pytest.mark.full
@pytest.mark.usefixtures("no_server")
def test_the_same_seed_is_the_same_year_and_what_is_left_out_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calm = [*SHORT, "--without", "changes,seasons,outages,deploys,categories,restore"]
    told = []
    for name in ("one", "two"):
        assert main([*calm, "--out", str(tmp_path / name)]) == 0
        told.append(capsys.readouterr().out)
    assert [line for line in told[0].splitlines() if "%" in line] == [
        line for line in told[1].splitlines() if "%" in line
    ]
    assert "voided" not in told[0]
    assert "changes" not in told[0]
    assert "moved" not in told[0]


@pytest.mark.full
def test_the_year_goes_on_in_postgresql(on_postgres: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert on_postgres.address is not None
    assert main([*SHORT, "--out", str(tmp_path / "year"), "--store", on_postgres.address]) == 0
    shown = capsys.readouterr().out
    assert "moved from SQLite to PostgreSQL" in shown
    assert "everything agrees" in shown


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--days", "3"], "3 days are too few"),
        (["--without", "rain"], "'rain' cannot be left out"),
        (["--products", "10"], "--products is 10; it must be at least"),
    ],
)
def test_refusals(options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["year", "--out", str(tmp_path / "year"), *options]) == 2
    assert said in capsys.readouterr().err
