"""The worlds of the studies: families that differ in what is hard about them.

Small peaks, a tempting plateau, rare clicks, a metric that is wrong, a tree that is wide and uneven, few documents,
documents far apart that please the same visitors. All parameters of rankers are the same in all families.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from zoomrank.lab.measures import VISITS
from zoomrank.lab.recipes import Recipe, recipe

_PAPER_TREE = recipe("exponential", depth=15)
_TWO_PEAKS = recipe("two-peaks")


@dataclass(frozen=True)
class Family:
    """One kind of world."""

    name: str
    title: str
    users: Recipe
    tree: Recipe = _PAPER_TREE
    belief: Recipe | None = None
    perfect: bool = False  # whether the metric is all that the theory asks for
    visits: int = VISITS


FAMILIES = (
    Family("two-peaks", "two peaks", _TWO_PEAKS, perfect=True, visits=200_000),  # as long as RankCorrZoom needs
    Family("restaurant", "Chinese Restaurant, one network", recipe("chinese-restaurant"), perfect=True),
    Family(
        "restaurant-mixture",
        "Chinese Restaurant, each visitor belongs to a peak",
        recipe("chinese-restaurant", reading="mixture"),
        perfect=True,
    ),
    Family(
        "eight-peaks",
        "eight unequal peaks",
        recipe("peaks", values=(0.5, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1), background=0.01),
        perfect=True,
    ),
    Family("decoy", "two peaks, a quarter of all documents at 0.2", recipe("decoy"), perfect=True),
    Family("rare-clicks", "low click rates", recipe("peaks", values=(0.15, 0.12, 0.1), background=0.005), perfect=True),
    Family("halved", "two peaks, widths halved", _TWO_PEAKS, belief=recipe("scaled", factor=0.5)),
    Family("doubled", "two peaks, widths doubled", _TWO_PEAKS, belief=recipe("scaled", factor=2.0)),
    Family("shuffled-10", "two peaks, 10 % shuffled", _TWO_PEAKS, belief=recipe("shuffled", share=0.1)),
    Family("shuffled-30", "two peaks, 30 % shuffled", _TWO_PEAKS, belief=recipe("shuffled", share=0.3)),
    Family("uneven", "a wide, uneven tree", recipe("peaks", values=(0.5, 0.4, 0.3), background=0.02), recipe("uneven")),
    Family("hundred", "100 documents", recipe("peaks", values=(0.5, 0.4, 0.3)), recipe("hundred")),
    Family("twins", "peaks with echoes far away", recipe("twins")),
)


def taxonomy_family(file: str) -> Family:
    """A world on a real taxonomy: a file with a path such as "Animals > Birds" in each line."""
    users = recipe("peaks", values=(0.5, 0.4, 0.3), background=0.02)
    return Family("taxonomy", f"the taxonomy in {PurePath(file).name}", users, recipe("taxonomy", file=file))
