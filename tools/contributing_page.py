"""A hook of mkdocs: CONTRIBUTING.md, which stands beside the docs and not among them, as one of their pages."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

SOURCE = Path(__file__).parent.parent / "CONTRIBUTING.md"
PAGE = "contributing.md"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page; its links lead from where it is now."""
    files.append(File.generated(config, PAGE, content=SOURCE.read_text().replace("](docs/", "](")))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Lead to it from pages whose links are for those who read the sources."""
    return markdown.replace("](../CONTRIBUTING.md)", f"]({PAGE})")
