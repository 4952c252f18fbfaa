"""Questions that the paper leaves open, and its experiments under each answer.

A reading is a choice for each open question. `READING` is the one behind the figures: change it here, and everything
follows. What another reading changes is found by comparing recipes, and named by rule: another world or another way to
show documents becomes a separate experiment (`two-peaks@mixture`), another ranker in the same world a separate curve
(`RankUCB1@one-radius`). What it does not change keeps its name, and so is never run again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from zoomrank.lab.recipes import ALL_VISITS, LOG_VISITS, Curve, Recipe, recipe
from zoomrank.lab.registry import GREEDY

DEEPER, LONGER = 8, 2.0  # the depth of a grid's first phase, and the factor on the length of phases


@dataclass(frozen=True)
class Reading:
    """A choice for each open question."""

    belongs: str
    radii: str
    grid: str
    duplicates: str
    heights: str


# More of the paper's claims hold under this one than under any other: see "Under other readings" in
# docs/reproduction/report.md, and docs/paper-map.md.
READING = Reading(belongs="network", radii="two-radii", grid="replayed", duplicates="twice", heights="halves")
CHOICES: Mapping[str, Mapping[str, str]] = {  # descriptions, by question and choice
    "belongs": {
        "network": "the relevance of all documents comes from one network",
        "mixture": "each visitor belongs to a peak",
    },
    "radii": {
        "two-radii": "UCB1's index has two radii, as Algorithm 3's",
        "one-radius": "UCB1's index has one radius",
    },
    "grid": {
        "fresh": "a phase of the grid begins with nothing",
        "replayed": "what was seen before is replayed to a new phase of GridUCB1, as the paper's footnote says",
        "deeper": f"the grid's first phase has the subtrees of depth {DEEPER} as arms",
        "longer": f"phases of the grid last {LONGER:g} times as long",
    },
    "duplicates": {
        "twice": "a document is shown twice where two slots choose it",
        "distinct": "no document is shown twice",
    },
    "heights": {
        "shares": "a peak is as high as its share of customers",
        "tallest": "the highest peak of a restaurant is ½, others in proportion to their customers",
        "halves": "all peaks of a restaurant are ½, as Eq. 29 is printed",
    },
}
_TOGETHER = {"radii": "one-radius", "grid": "fresh"}  # both are about RankGridUCB1


def differences(reading: Reading) -> dict[str, str]:
    """Return the choices in which a reading differs from the figures', by question."""
    usual = asdict(READING)
    return {question: choice for question, choice in asdict(reading).items() if choice != usual[question]}


def name_of(reading: Reading) -> str:
    """Return the name of a reading: its differences from the figures'.

    >>> name_of(replace(READING, radii="one-radius", grid="fresh"))
    'one-radius+fresh'
    """
    return "+".join(differences(reading).values())


def _others() -> tuple[Reading, ...]:
    """Return all readings that differ from the figures' in one question, and one that differs in two."""
    single = [
        replace(READING, **{question: choice})
        for question, choices in CHOICES.items()
        for choice in choices
        if choice != asdict(READING)[question]
    ]
    both = replace(READING, **_TOGETHER)
    return (*single, both) if len(differences(both)) == len(_TOGETHER) else tuple(single)


OTHERS = _others()


@dataclass(frozen=True)
class PublishedCurve:
    """A curve of the paper, independent of a reading."""

    name: str
    ranker: str
    parameters: tuple[tuple[str, object], ...] = ()
    pessimistic: bool = False

    def under(self, reading: Reading) -> Curve:
        """Return the curve as it is run under a reading; variants of its ranker are marked in its name."""
        words = [
            choice
            for question, choice in differences(reading).items()
            if question != "duplicates" and self.is_changed(replace(READING, **{question: choice}))
        ]
        return Curve("@".join([self.name, *(["+".join(words)] if words else [])]), self.recipe(reading))

    def is_changed(self, reading: Reading) -> bool:
        """Return whether its ranker differs from that in the figures."""
        return self.recipe(reading) != self.recipe(READING)

    def recipe(self, reading: Reading) -> Recipe:
        """Return the recipe of its ranker."""
        if self.ranker == GREEDY:
            return recipe(GREEDY)
        given = {**dict(self.parameters), "duplicates": reading.duplicates == "twice"}
        return recipe(self.ranker, **given, **self._exploration(reading), **self._grid(reading))

    def _exploration(self, reading: Reading) -> dict[str, object]:
        if reading.radii == "one-radius" and self.ranker.endswith("UCB1"):  # 2 · sqrt((C / 4) / n) = sqrt(C / n)
            return {"exploration": LOG_VISITS if self.pessimistic else 0.25}
        return {"exploration": "pessimistic", "horizon": ALL_VISITS} if self.pessimistic else {}

    def _grid(self, reading: Reading) -> dict[str, object]:
        if reading.grid == "replayed" and self.ranker == "RankGridUCB1":
            return {"replay": True}
        phases: dict[str, dict[str, object]] = {"deeper": {"start": DEEPER}, "longer": {"stretch": LONGER}}
        return phases.get(reading.grid, {}) if self.ranker.startswith("RankGrid") else {}


@dataclass(frozen=True)
class PaperWorld:
    """The visitors of an experiment, independent of a reading."""

    experiment: str
    users: str
    belongs: str | None = None  # set if the figures show both ways: this one
    twin: str | None = None  # the experiment that shows the other way

    def under(self, reading: Reading, published: PublishedCurve) -> str:
        """Return the name of the experiment that a curve is run in."""
        if self.twin is not None and "belongs" in differences(reading):
            return self.experiment if self.belongs == reading.belongs else self.twin
        single = {choice: replace(READING, **{name: choice}) for name, choice in differences(reading).items()}
        words = [
            choice
            for choice, one in single.items()
            if self.recipe(one) != self.recipe(READING)
            or (one.duplicates != READING.duplicates and published.is_changed(one))
        ]
        return "@".join([self.experiment, *(["+".join(words)] if words else [])])

    def recipe(self, reading: Reading) -> Recipe:
        """Return the recipe of its visitors; peaks higher than their shares are impossible where visitors belong to
        them.
        """
        belongs = self.belongs or reading.belongs
        given = {} if belongs == "network" else {"reading": belongs}
        if self.users == "chinese-restaurant" and belongs == "network" and reading.heights != "shares":
            given["heights"] = reading.heights
        return recipe(self.users, **given)
