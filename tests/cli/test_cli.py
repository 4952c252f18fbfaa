"""The command line: what the demo shows, what is refused, and what help says."""

import argparse
import re
import shlex

import pytest

from zoomrank.cli import main, make_parser


def commands() -> dict[str, argparse.ArgumentParser]:
    """Every command and its parser."""
    parser = make_parser()
    found = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return dict(found.choices)


COMMANDS = commands()


def test_demo_shows_a_table_and_a_picture(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--depth", "8", "--visits", "2000"]) == 0
    shown = capsys.readouterr().out
    assert "256 documents" in shown
    assert "█" in shown or "▇" in shown
    for row in ("greedy, knows all", "by popularity", "at random", "ZoomRank", "RankCorrZoom"):
        assert row in shown


def test_demo_ends_with_commands_to_try(capsys: pytest.CaptureFixture[str]) -> None:
    main(["demo", "--depth", "6", "--visits", "10"])
    last = capsys.readouterr().out.partition("What to try next")[2]
    tries = re.findall(r"^  (zoomrank .*)$", last, flags=re.MULTILINE)
    assert len(tries) >= 4
    for words in map(shlex.split, tries):
        if words[1:] != ["--help"]:
            make_parser().parse_args(words[1:])  # would exit if it were not understood


def test_errors_say_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--depth", "3", "--slots", "9"]) == 2
    assert "9 slots cannot be filled from 8 documents" in capsys.readouterr().err


def test_seeds_are_not_negative(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["demo", "--seed", "-1"])
    assert "a seed must be 0 or more" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--vers"], ["demo", "--visit", "10"], ["demo", "--dep=3"], ["report", "--h"]])
def test_abbreviations_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """An option that is added later must not change what a script says."""
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert capsys.readouterr().out == ""


def test_what_a_command_does_not_know_it_says_itself(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["reproduce", "1", "--rounds", "5"])
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("usage: zoomrank reproduce")
    assert "unrecognized arguments: --rounds 5" in said


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples_that_are_understood(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out.partition("examples:\n")[2]
    examples = re.findall(r"^  (zoomrank .*)$", shown, flags=re.MULTILINE)
    assert examples
    for example in examples:
        options = make_parser().parse_args(shlex.split(example, comments=True)[1:])
        assert options.command == command


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_fits_a_terminal(
    command: str | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([command, "--help"] if command else ["--help"])
    assert [line for line in capsys.readouterr().out.splitlines() if len(line) > 80] == []


def test_all_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = re.findall(r"^  ([a-z][a-z-]*)  +\w", capsys.readouterr().out, flags=re.MULTILINE)
    assert listed == list(COMMANDS)


def test_the_same_thing_has_the_same_name() -> None:
    """One word for one thing: an option of several commands is read alike in all of them."""
    meanings: dict[str, set[object]] = {}
    for parser in COMMANDS.values():
        for action in parser._actions:
            for name in action.option_strings or [action.dest]:
                meanings.setdefault(name, set()).add((action.metavar, action.type, action.nargs))
    assert {name: meaning for name, meaning in meanings.items() if len(meaning) > 1} == {}
    assert not meanings.keys() & {"--rounds", "--visitors", "--documents", "--folder", "--output"}
