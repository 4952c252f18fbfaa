"""MkDocs hook: the help of every command, as the command itself prints it."""

import argparse
import os
from unittest import mock

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from zoomrank.cli import make_parser

PAGE = "reference/commands.md"
_BEGINNING = """# The command line

Look up the options of a command, as `zoomrank COMMAND --help` prints them. Some commands need an
[extra](../install.md), and say which. Studies and benchmarks are commands of `python -m research`, from a checkout.

"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page."""
    files.append(File.generated(config, PAGE, content=page()))
    return files


def page() -> str:
    """Return the page: first the list of commands, then each of them."""
    with mock.patch.dict(os.environ, {"COLUMNS": "90", "NO_COLOR": "1"}):  # a terminal of 90 letters without colours
        parser = make_parser()
        sections = [f"## zoomrank {name}\n\n{_help(one)}" for name, one in commands(parser).items()]
        return _BEGINNING + _help(parser) + "".join(sections)


def commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return all commands, in the order of the help."""
    subparsers = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(subparsers[0].choices)


def _help(parser: argparse.ArgumentParser) -> str:
    return f"```text\n{parser.format_help().rstrip()}\n```\n\n"
