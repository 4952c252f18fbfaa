"""MkDocs hook: CONTRIBUTING.md, which is outside docs/, as a page of the site."""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

SOURCE = Path(__file__).parent.parent / "CONTRIBUTING.md"
PAGE = "contributing.md"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page, with its links relative to docs/."""
    files.append(File.generated(config, PAGE, content=SOURCE.read_text().replace("](docs/", "](")))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Rewrite links to CONTRIBUTING.md, which are written for readers of the sources."""
    return re.sub(r"\]\(((?:\.\./)*)\.\./CONTRIBUTING\.md", rf"](\1{PAGE}", markdown)
