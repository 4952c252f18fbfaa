"""The worlds of the studies: families that differ in what is hard about them.

Smooth ones, made as the theory has it: small peaks, a tempting plateau, rare clicks, a metric that is wrong, documents
far apart that please the same visitors, a million documents. And life-like ones: trees that are wide and uneven, few
documents, visitors who want categories and strays, or what the tree knows nothing of, short and long rankings, and
files of one's own. All parameters of rankers are the same in all families.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from zoomrank.lab.kept_worlds import kept_tree, kept_users
from zoomrank.lab.measures import VISITS
from zoomrank.lab.recipes import Recipe, recipe

SLOTS = 5  # unless a family says otherwise

_PAPER_TREE = recipe("exponential", depth=15)
_UNEVEN_TREE = recipe("uneven")
_TWO_PEAKS = recipe("two-peaks")
_EIGHT_PEAKS = recipe("peaks", values=(0.5, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1), background=0.01)
_INTENTS = recipe("intents")


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
    slots: int = SLOTS
    needles: bool = False  # whether instances differ so much that it takes twice as many
    lifelike: bool = False  # or smooth
    kept: tuple[str, ...] = ()  # files of worlds, of which instances take turns; without any, they are drawn

    def instances(self, wanted: int) -> int:
        """How many instances are run if so many are wanted of a family."""
        return 2 * wanted if self.needles else wanted

    def world(self, instance: int) -> tuple[Recipe, Recipe]:
        """The tree and the users of an instance."""
        if not self.kept:
            return self.tree, self.users
        file = self.kept[instance % len(self.kept)]
        return recipe(kept_tree, file=file), recipe(kept_users, file=file)


_SMOOTH = (
    Family("two-peaks", "two peaks", _TWO_PEAKS, perfect=True, visits=200_000),  # as long as RankCorrZoom needs
    Family("restaurant", "Chinese Restaurant, one network", recipe("chinese-restaurant"), perfect=True),
    Family(
        "restaurant-mixture",
        "Chinese Restaurant, each visitor belongs to a peak",
        recipe("chinese-restaurant", reading="mixture"),
        perfect=True,
    ),
    Family("eight-peaks", "eight unequal peaks", _EIGHT_PEAKS, perfect=True),
    Family("decoy", "two peaks, a quarter of all documents at 0.2", recipe("decoy"), perfect=True),
    Family(
        "rare-clicks",
        "low click rates",
        recipe("peaks", values=(0.15, 0.12, 0.1), background=0.005),
        perfect=True,
        needles=True,
    ),
    Family("halved", "two peaks, widths halved", _TWO_PEAKS, belief=recipe("scaled", factor=0.5)),
    Family("doubled", "two peaks, widths doubled", _TWO_PEAKS, belief=recipe("scaled", factor=2.0)),
    Family("shuffled-10", "two peaks, 10 % shuffled", _TWO_PEAKS, belief=recipe("shuffled", share=0.1)),
    Family("shuffled-30", "two peaks, 30 % shuffled", _TWO_PEAKS, belief=recipe("shuffled", share=0.3)),
    Family("twins", "peaks with echoes far away", recipe("twins")),
    # Whether anything can be found where there are twenty times as many documents as visits.
    Family(
        "million",
        "eight unequal peaks, a million documents",
        _EIGHT_PEAKS,
        recipe("exponential", depth=20),
        perfect=True,
    ),
)
_LIFELIKE = (
    Family(
        "uneven",
        "a wide, uneven tree",
        recipe("peaks", values=(0.5, 0.4, 0.3), background=0.02),
        _UNEVEN_TREE,
        lifelike=True,
    ),
    Family("hundred", "100 documents", recipe("peaks", values=(0.5, 0.4, 0.3)), recipe("hundred"), lifelike=True),
    # What a shop's visitors want: a category, not all of it, and strays; a few wishes are far more common than others.
    Family("intents", "intents: categories and strays", _INTENTS, _UNEVEN_TREE, lifelike=True),
    # How much is lost by believing in a tree that knows nothing of what pleases the same visitors.
    Family(
        "scattered",
        "groups that the tree does not know",
        recipe("scattered"),
        recipe("regular", branching=(20, 10, 10)),
        lifelike=True,
    ),
    # Clicks so rare, and so far from each other, that finding one good document is luck.
    Family(
        "needles",
        "needles: 8 of 1,500 documents are liked, a little",
        recipe("needles"),
        recipe("regular", branching=(15, 10, 10)),
        needles=True,
        lifelike=True,
    ),
    # Short rankings leave little room to explore; long ones have slots that few visitors reach.
    Family("one-slot", "intents, 1 slot", _INTENTS, _UNEVEN_TREE, slots=1, lifelike=True),
    Family("three-slots", "intents, 3 slots", _INTENTS, _UNEVEN_TREE, slots=3, lifelike=True),
    Family("ten-slots", "intents, 10 slots", _INTENTS, _UNEVEN_TREE, slots=10, lifelike=True),
)
FAMILIES = (*_SMOOTH, *_LIFELIKE)


def by_kind(families: Sequence[Family]) -> dict[str, list[Family]]:
    """All of them, the smooth and the life-like, as reports group them."""
    return {
        "all": list(families),
        "smooth": [family for family in families if not family.lifelike],
        "life-like": [family for family in families if family.lifelike],
    }


def families_of(manifest: Mapping[str, Any]) -> tuple[Family, ...]:
    """All families of a study, those of one's own files among them: its manifest says which files these are."""
    return (*FAMILIES, *_own_families(manifest))


def _own_families(manifest: Mapping[str, Any]) -> Iterator[Family]:
    if manifest.get("taxonomy"):
        yield taxonomy_family(manifest["taxonomy"])
        yield taxonomy_intents_family(manifest["taxonomy"])
    if manifest.get("judged"):
        judged = manifest["judged"]
        name = judged["documents"]
        yield judged_family("judged-topics", f"{name}, documents judged for a topic", judged["topics"])
        yield judged_family("judged-all", f"{name}, all documents", judged["all"])


def taxonomy_family(file: str) -> Family:
    """A world on a real taxonomy: a file with a path such as "Animals > Birds" in each line."""
    users = recipe("peaks", values=(0.5, 0.4, 0.3), background=0.02)
    title = f"the taxonomy in {PurePath(file).name}"
    return Family("taxonomy", title, users, recipe("taxonomy", file=file), lifelike=True)


def taxonomy_intents_family(file: str) -> Family:
    """The intents of a shop's visitors, in a shop that there is."""
    title = f"intents on the taxonomy in {PurePath(file).name}"
    return Family("taxonomy-intents", title, _INTENTS, recipe("taxonomy", file=file), lifelike=True)


def judged_family(name: str, title: str, files: Sequence[str]) -> Family:
    """What people called relevant: each file is the world of a topic, and instances take turns."""
    users, tree = recipe(kept_users, file=files[0]), recipe(kept_tree, file=files[0])
    return Family(name, title, users, tree, lifelike=True, kept=tuple(files))
