"""A hook of mkdocs: the help of every command, as the command itself prints it."""

import contextlib
import io
import os
import re
from unittest import mock

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from zoomrank.cli import main

PAGE = "reference/commands.md"
_BEGINNING = """# The command line

What `zoomrank --help` and `zoomrank COMMAND --help` print. Some commands need an [extra](../install.md), and say which.

"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page."""
    files.append(File.generated(config, PAGE, content=page()))
    return files


def page() -> str:
    """The page: first what all commands are, then each of them."""
    sections = [f"## zoomrank {name}\n\n{_fenced(said(name))}" for name in commands()]
    return _BEGINNING + _fenced(said()) + "".join(sections)


def commands() -> list[str]:
    """The names of all commands, in the order of the help."""
    listed = said().partition("COMMAND\n")[2]
    return re.findall(r"^ {4}([a-z][a-z-]*)(?= |$)", listed, flags=re.MULTILINE)


def said(*command: str) -> str:
    """What a command says of itself, to a terminal of 90 letters without colours."""
    heard = io.StringIO()
    terminal = {"COLUMNS": "90", "NO_COLOR": "1"}
    with mock.patch.dict(os.environ, terminal), contextlib.redirect_stdout(heard), contextlib.suppress(SystemExit):
        main([*command, "--help"])
    return heard.getvalue().rstrip()


def _fenced(text: str) -> str:
    return f"```text\n{text}\n```\n\n"
