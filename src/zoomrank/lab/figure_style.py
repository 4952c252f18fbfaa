"""Style of the figures in all reports: for print, and readable with colour blindness.

The colours are those of Okabe and Ito, which differ in every common kind of colour blindness, and a few more for
figures that need more.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure as Drawing
from PIL import Image

WIDTH = 7.2  # inches: both columns of a journal

BLACK, GREY = "#000000", "#888888"
BLUE, SKY, GREEN, ORANGE, RED, PINK = "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00", "#CC79A7"
WINE, OLIVE, INDIGO = "#882255", "#999933", "#332288"

STYLE: Any = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 8.5,
    "figure.dpi": 100,
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "grid.color": "0.9",
    "grid.linewidth": 0.5,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "path.simplify_threshold": 0.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "zoomrank",
    "xtick.labelsize": 7.5,
    "xtick.major.width": 0.6,
    "ytick.labelsize": 7.5,
    "ytick.major.width": 0.6,
}


def save(drawing: Drawing, folder: Path, name: str) -> list[Path]:
    """Write a drawing as PNG and as SVG, the same bytes each time; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"figure-{name}.{kind}" for kind in ("png", "svg")]
    for path, fact in zip(paths, ("Software", "Date"), strict=True):  # facts that are left out
        drawing.savefig(path, dpi=160, metadata={fact: None}, bbox_inches="tight", pad_inches=0.04)
    with Image.open(paths[0]) as picture:  # few colours are enough for lines, and make a small file
        small = picture.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    small.save(paths[0], optimize=True)
    return paths
