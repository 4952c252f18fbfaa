"""MkDocs hook: every name of the package `zoomrank` in one table, with a link to its description."""

import inspect
from types import ModuleType

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import zoomrank
from zoomrank import lab, queries, rankers, spaces

PAGE = "reference/index.md"
HOMES = (rankers, queries, spaces, lab)  # packages that describe names which others only repeat
_BEGINNING = """# The Python API

Find the page of every public name. `import zoomrank as zr` has the names below; names that are on no page may change
at any time. [`zoomrank.documents`](documents.md), [`zoomrank.judging`](judging.md) and [`zoomrank.client`](client.md)
are imported by their own names; the first and the last need [extras](../install.md), the first for some functions.

| name | meaning |
|---|---|
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page."""
    files.append(File.generated(config, PAGE, content=_BEGINNING + "".join(map(_row, zoomrank.__all__))))
    return files


def _row(name: str) -> str:
    value = getattr(zoomrank, name)
    sentence = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ").replace("|", r"\|")
    if isinstance(value, ModuleType):
        return f"| [`zr.{name}`]({name}.md) | {sentence} |\n"
    home = next(home.__name__ for home in HOMES if name in home.__all__)
    return f"| [`zr.{name}`][{home}.{name}] | {sentence} |\n"
