"""Worlds of the studies: families that differ in what is hard about them.

Smooth ones follow the theory: small peaks, a tempting plateau, rare clicks, a wrong metric, distant documents that
please the same visitors, a million documents. Life-like ones have wide and uneven trees, few documents, visitors who
want categories and strays, or groups that the tree does not reflect, short and long rankings, and the user's own files.
Early ones are about the first visits: short candidate lists, for which 10,000 visits are run at most, and the first 500
visits of a large taxonomy. All parameters of rankers are the same in all families.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from research.studies.short_lists import pleasing, popular, tastes, zipf_taxonomy
from zoomrank.lab.curves import VISITS
from zoomrank.lab.recipes import Recipe, recipe
from zoomrank.lab.registry import kept_tree, kept_users

SLOTS = 5  # by default
SHORT_VISITS = 10_000  # at most, on short lists: what they are about is decided by then

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
    perfect: bool = False  # whether the metric satisfies the theory's assumptions
    visits: int = VISITS
    slots: int = SLOTS
    twice: bool = False  # whether twice as many instances are needed, since they or their first visits vary much
    lifelike: bool = False  # or smooth, or early
    early: bool = False  # about the first visits: no more than `visits` are run, whatever is asked for
    short: bool = False  # few documents: rivals that do not scale run here, too
    order: str | None = None  # the caller's order, which rankers that take one are given (see `warm_start`)
    kept: tuple[str, ...] = ()  # files of worlds that instances cycle through; without any, worlds are drawn

    def instances(self, wanted: int) -> int:
        """Return the number of instances to run if `wanted` are asked for."""
        return 2 * wanted if self.twice else wanted

    def world(self, instance: int) -> tuple[Recipe, Recipe]:
        """Return the recipes of the tree and the users of an instance."""
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
        twice=True,
    ),
    Family("halved", "two peaks, widths halved", _TWO_PEAKS, belief=recipe("scaled", factor=0.5)),
    Family("doubled", "two peaks, widths doubled", _TWO_PEAKS, belief=recipe("scaled", factor=2.0)),
    Family("shuffled-10", "two peaks, 10 % shuffled", _TWO_PEAKS, belief=recipe("shuffled", share=0.1)),
    Family("shuffled-30", "two peaks, 30 % shuffled", _TWO_PEAKS, belief=recipe("shuffled", share=0.3)),
    Family("twins", "peaks with echoes far away", recipe("twins")),
    # Tests whether anything can be found among twenty times as many documents as visits.
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
    # Visitors of a shop want a part of a category, and strays; a few intents are far more common than others.
    Family("intents", "intents: categories and strays", _INTENTS, _UNEVEN_TREE, lifelike=True),
    # Measures what is lost by relying on a tree that is unrelated to visitors' tastes.
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
        twice=True,
        lifelike=True,
    ),
    # Short rankings leave little room to explore; long ones have slots that few visitors reach.
    Family("one-slot", "intents, 1 slot", _INTENTS, _UNEVEN_TREE, slots=1, lifelike=True),
    Family("three-slots", "intents, 3 slots", _INTENTS, _UNEVEN_TREE, slots=3, lifelike=True),
    Family("ten-slots", "intents, 10 slots", _INTENTS, _UNEVEN_TREE, slots=10, lifelike=True),
)


def _short(name: str, title: str, users: Recipe, branching: tuple[int, ...], **others: Any) -> Family:
    """Return the family of a short candidate list."""
    tree = recipe("regular", branching=branching)
    return Family(name, title, users, tree, visits=SHORT_VISITS, twice=True, early=True, short=True, **others)


_ORDERS = ("good", "middling", "reversed")
_THREE_TASTES = recipe(tastes, count=3, exponent=0.5)
_SHOP = recipe(tastes, count=7, liked=(0.2, 0.9), strays=3, kinds=20, nothing=1 / 3)
_EARLY = (
    _short("ten", "10 documents, 5 shelves, 3 tastes, 3 slots", _THREE_TASTES, (5, 2), slots=3),
    _short("shelves", "24 documents, 12 shelves, 3 tastes, 3 slots", _THREE_TASTES, (12, 2), slots=3),
    _short("shop", "120 documents, 15 shelves, 7 tastes by Zipf and strays, a third want nothing", _SHOP, (15, 8)),
    _short(
        "halves",
        "300 documents, halves of 12 shelves, and strays",
        recipe(tastes, count=12, part=0.5, liked=(0.3, 1.0), strays=4, kinds=20, nothing=0.1),
        (6, 5, 10),
    ),
    # Two of the same item in a ranking please no visitor more than one.
    _short(
        "duplicates",
        "80 documents, 20 items with 4 near-duplicates each",
        recipe(tastes, count=8, liked=(0.8, 1.0), kinds=20, nothing=0.2),
        (4, 5, 4),
    ),
    _short("popular", "100 documents, popularity by Zipf, anywhere", recipe(popular, top=0.4), (10, 10)),
    _short(
        "nearly-all", "40 documents, nearly all are liked, 1 slot", recipe(pleasing, liked=(0.6, 0.98)), (8, 5), slots=1
    ),
    _short(
        "nearly-none",
        "100 documents, 4 are liked, a little",
        recipe("needles", count=4, values=(0.1, 0.2), background=0.005),
        (10, 10),
    ),
    # The visitors of `shop`. Rankers that take no order start without.
    *(
        _short(f"order-{one}", f"the same 120, ZoomRank has a {one} order", _SHOP, (15, 8), order=one)
        for one in _ORDERS
    ),
    Family(
        "zipf-taxonomy",
        "the first 500 visits of 5,000 documents, a taxonomy by Zipf",
        recipe("intents", count=30, sizes=(5, 200)),
        recipe(zipf_taxonomy),
        visits=500,
        twice=True,
        early=True,
    ),
)
FAMILIES = (*_SMOOTH, *_LIFELIKE, *_EARLY)


def by_kind(families: Sequence[Family]) -> dict[str, list[Family]]:
    """Group families as reports do: all, the smooth, the life-like and the early."""
    return {
        "all": list(families),
        "smooth": [family for family in families if not family.lifelike and not family.early],
        "life-like": [family for family in families if family.lifelike],
        "early": [family for family in families if family.early],
    }


def families_of(manifest: Mapping[str, Any]) -> tuple[Family, ...]:
    """Return the families of a study: all, or those that its manifest names, and those of the user's own files."""
    named = manifest.get("families")
    return (*(family for family in FAMILIES if not named or family.name in named), *_own_families(manifest))


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
    """Return a world on a real taxonomy: a file with a path such as "Animals > Birds" in each line."""
    users = recipe("peaks", values=(0.5, 0.4, 0.3), background=0.02)
    title = f"the taxonomy in {PurePath(file).name}"
    return Family("taxonomy", title, users, recipe("taxonomy", file=file), lifelike=True)


def taxonomy_intents_family(file: str) -> Family:
    """Return the intents of a shop's visitors, on a real taxonomy."""
    title = f"intents on the taxonomy in {PurePath(file).name}"
    return Family("taxonomy-intents", title, _INTENTS, recipe("taxonomy", file=file), lifelike=True)


def judged_family(name: str, title: str, files: Sequence[str]) -> Family:
    """Return a family of judged topics: each file is the world of a topic, and instances cycle through them."""
    users, tree = recipe(kept_users, file=files[0]), recipe(kept_tree, file=files[0])
    return Family(name, title, users, tree, lifelike=True, kept=tuple(files))
