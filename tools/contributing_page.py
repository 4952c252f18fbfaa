"""MkDocs hook: CONTRIBUTING.md, which is outside the docs folder, as a page of the docs."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

SOURCE = Path(__file__).parent.parent / "CONTRIBUTING.md"
PAGE = "contributing.md"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page, with its links adjusted to its new place."""
    files.append(File.generated(config, PAGE, content=SOURCE.read_text().replace("](docs/", "](")))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Redirect links to CONTRIBUTING.md from pages that link to the sources."""
    return markdown.replace("](../CONTRIBUTING.md)", f"]({PAGE})")
