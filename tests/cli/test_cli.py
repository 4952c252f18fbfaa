import pytest

from zoomrank.cli import main


def test_demo_shows_a_table_and_a_picture(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--depth", "8", "--visitors", "2000", "--visits", "2000"]) == 0
    shown = capsys.readouterr().out
    assert "256 documents" in shown
    assert "█" in shown or "▇" in shown
    for row in ("greedy, knows all", "by popularity", "at random", "ZoomRank", "RankCorrZoom"):
        assert row in shown


def test_errors_say_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--depth", "3", "--slots", "9"]) == 2
    assert "9 slots cannot be filled from 8 documents" in capsys.readouterr().err


def test_seeds_are_not_negative(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["demo", "--seed", "-1"])
    assert "a seed is 0 or more" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["demo", "simulate", "reproduce", "report", "serve", "demo-service"])
def test_help_has_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    assert f"examples:\n  zoomrank {command}" in capsys.readouterr().out
