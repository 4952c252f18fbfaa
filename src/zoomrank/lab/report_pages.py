"""Text of reports: tables in Markdown, one page with its pictures inside, and a line on what made them.

A report is written once, as Markdown, to `report.md`; `report.html` is made from it, with its pictures inside, so that
it can be sent as one file. Of the machine it says enough to compare times, and nothing that identifies it.
"""

from __future__ import annotations

import base64
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zoomrank.lab.registry import GREEDY

if TYPE_CHECKING:
    from zoomrank.lab.results_folder import ResultsFolder

_PACKAGES = ("numba", "numpy", "pyarrow", "scipy")
_LOOK = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #222 }
h1, h2, h3 { line-height: 1.2 } img { max-width: 100%; background: #fff } code { font-size: .9em }
table { border-collapse: collapse; font-size: .85rem; display: block; overflow-x: auto }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #ddd; vertical-align: top }
td { font-variant-numeric: tabular-nums } td strong { color: #a33c00 }
@media (prefers-color-scheme: dark) {
  body { background: #16181c; color: #ddd } th, td { border-color: #3a3d44 }
  td strong { color: #ff9a5c } a { color: #7ab8ff }
}
"""


def write_page(folder: Path, title: str, paragraphs: Iterable[str]) -> Path:
    """Write `report.md` and the page made from it, whose pictures are in `figures`; return the path of the page."""
    text = "\n\n".join(paragraphs) + "\n"
    (folder / "report.md").write_text(text, encoding="utf-8")
    written = folder / "report.html"
    written.write_text(_page(text, folder, title), encoding="utf-8")
    return written


def _page(text: str, folder: Path, title: str) -> str:
    from markdown_it import MarkdownIt

    body = MarkdownIt("commonmark").enable("table").render(text)
    for figure in sorted((folder / "figures").glob("*.svg")):
        data = base64.b64encode(figure.read_bytes()).decode()
        inside = f"data:image/svg+xml;base64,{data}"
        body = body.replace(f'src="figures/{figure.stem}.png"', f'src="{inside}"')
        body = body.replace(f' <a href="figures/{figure.name}">SVG</a>', "")
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_LOOK}</style>\n{body}</html>\n"
    )


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""Write a table in Markdown.

    >>> print(table(("ranker", "rate"), [("a|b", "0.5")]))
    | ranker | rate |
    |---|---|
    | a\|b | 0.5 |
    """
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def label(curve: str) -> str:
    """Return a curve's name for readers.

    >>> label("RankContextZoom-0.2"), label("RankRandom")
    ('RankContextZoom (widths × 0.2)', 'random')
    >>> label("RankUCB1--@one-radius")
    'RankUCB1-- (one radius)'
    """
    name, _, reading = curve.partition("@")
    if reading:
        return f"{label(name)} ({reading.replace('-', ' ').replace('+', ', ')})"
    name = name.replace("-0.2", " (widths × 0.2)")
    return "greedy optimum" if name == GREEDY else name.replace("RankRandom", "random")


def made_with(folder: ResultsFolder) -> str:
    """Say which version of zoomrank ran, on which machine, and for how long."""
    machine = ", ".join(f"{name} = {value}" for name, value in folder.manifest["machine"].items())
    seconds = folder.seconds()
    return (
        f"zoomrank {folder.manifest['version']}; {machine}. {len(seconds)} runs took {sum(seconds.values()):,.0f} "
        "seconds in all, compiling included."
    )


def machine() -> dict[str, Any]:
    """Return the description for a manifest."""
    return {
        "processor": _processor(),
        "cores": cores(),
        "system": platform.system(),
        "python": platform.python_version(),
        **{package: version(package) for package in _PACKAGES},
    }


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine() or sys.platform
