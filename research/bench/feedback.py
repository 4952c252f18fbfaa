"""Value of feedback beyond a single click: visitors who click several times, see short screens, dislike what they
clicked, or click one thing and buy another; interpreted as docs/explanation/feedback.md derives it, and misinterpreted.

All learners meet the same visitors in the same order. `plain` is told the truth by each visitor: the first document
that the visitor wants, with the whole ranking looked at. The measure is the share of the last visitors who were shown a
document that they want.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

import zoomrank as zr
from research.bench.measure import Row
from zoomrank.rankers.feedback import SlotOutcomes, VisitorActions, learn_outcomes, satisfied_slot, slot_outcomes
from zoomrank.types import Array
from zoomrank.users import intents

SLOTS, DEPTH = 5, 7
VISITS, LAST, SEEDS = 8_000, 1_000, 24


class Visitor(NamedTuple):
    """The truth about a visitor and a ranking, by slots, and the number of slots on the visitor's screen."""

    wanted: Array
    bait: Array  # clicked, but not wanted
    screen: int


def several(her: Visitor) -> VisitorActions:
    """Click everything wanted."""
    return VisitorActions(_slots(her.wanted))


def short(her: Visitor) -> VisitorActions:
    """See the upper part only, and click the first wanted document."""
    return VisitorActions(frozenset(sorted(_slots(her.wanted[: her.screen]))[:1]), looked_at=her.screen)


def disliking(her: Visitor) -> VisitorActions:
    """Click what looks good, and dislike what is not wanted, until a wanted document is found."""
    clicked = _until_wanted(her)
    return VisitorActions(clicked, disliked=clicked - _slots(her.wanted))


def buying(her: Visitor) -> VisitorActions:
    """Click what looks good until a wanted document is bought."""
    clicked = _until_wanted(her)
    return VisitorActions(clicked, purchased=clicked & _slots(her.wanted))


def _slots(which: Array) -> frozenset[int]:
    return frozenset(np.flatnonzero(which).tolist())


def _until_wanted(her: Visitor) -> frozenset[int]:
    first = min(_slots(her.wanted), default=SLOTS)
    return frozenset(slot for slot in _slots(her.wanted | her.bait) if slot <= first)


def as_derived(acts: VisitorActions) -> list[SlotOutcomes]:
    """Interpret the actions as docs/explanation/feedback.md derives it."""
    return [slot_outcomes(acts, SLOTS, satisfied_slot(acts))]


def by_purchase(acts: VisitorActions) -> list[SlotOutcomes]:
    """Interpret the actions where purchases count."""
    return [slot_outcomes(acts, SLOTS, satisfied_slot(acts, "purchase"))]


def every_click_earns(acts: VisitorActions) -> list[SlotOutcomes]:
    """Count a success for each clicked slot separately."""
    others = tuple(slot for slot in range(SLOTS) if slot not in acts.clicked)
    return [*(SlotOutcomes(slot, ()) for slot in sorted(acts.clicked)), SlotOutcomes(None, others)]


def first_click_earns(acts: VisitorActions) -> list[SlotOutcomes]:
    """Ignore dislikes, purchases and screens."""
    alone = VisitorActions(acts.clicked)
    return [slot_outcomes(alone, SLOTS, satisfied_slot(alone))]


class Behaviour(NamedTuple):
    """A behaviour of visitors, its correct and its wrong interpretation."""

    title: str
    acts: Callable[[Visitor], VisitorActions]
    read: Callable[[VisitorActions], list[SlotOutcomes]]
    misread: Callable[[VisitorActions], list[SlotOutcomes]]
    mistake: str


BEHAVIOURS = (
    Behaviour("several clicks", several, as_derived, every_click_earns, "every click earns"),
    Behaviour("short screens", short, as_derived, first_click_earns, "what was not on the screen counts as skipped"),
    Behaviour("dislikes", disliking, as_derived, first_click_earns, "the click counts, the dislike does not"),
    Behaviour("purchases", buying, by_purchase, first_click_earns, "the click counts"),
)


class World:
    """A tree, what each visitor wants, what looks good to each, and the number of documents on the screen.

    The screen shows one or two documents, until the page is redesigned in the middle.
    """

    def __init__(self, seed: int, visits: int) -> None:
        rng = np.random.default_rng([16, seed])
        self.tree = zr.DocumentTree.exponential(depth=DEPTH)
        self.wanted = intents(self.tree, count=12, sizes=(4, 32), seed=rng).sample(visits, seed=rng)
        looks_good = np.where(rng.random(len(self.tree)) < 0.1, 0.6, 0.0)  # one in ten, to most people
        self.bait = rng.random(self.wanted.shape) < looks_good
        self.screen = np.where(np.arange(visits) < visits // 2, rng.integers(1, 3, visits), SLOTS)

    def visitor(self, number: int, shown: Array) -> Visitor:
        """Return a visitor in front of a ranking."""
        return Visitor(self.wanted[number, shown], self.bait[number, shown], int(self.screen[number]))


def satisfaction(
    world: World,
    acts: Callable[[Visitor], VisitorActions] | None,
    read: Callable[[VisitorActions], list[SlotOutcomes]],
    last: int = LAST,
) -> float:
    """Simulate visitors one by one; return the share of the last ones who were shown a document that they want."""
    ranker = zr.ZoomRank(world.tree, slots=SLOTS, seed=0)
    pleased = np.zeros(len(world.wanted), bool)
    for number in range(len(pleased)):
        ranking = ranker.rank_arrays(1)
        her = world.visitor(number, ranking.shown[0])
        pleased[number] = her.wanted.any()
        for lesson in read(VisitorActions(_slots(her.wanted)) if acts is None else acts(her)):
            learn_outcomes(ranker, ranking, lesson)
    return float(pleased[-last:].mean())


@lru_cache
def told_the_truth(seed: int, visits: int) -> float:
    """Return the satisfaction of a learner that is told which document each visitor wants first."""
    return satisfaction(World(seed, visits), None, as_derived)


def compared(behaviour: Behaviour, seed: int, visits: int = VISITS) -> tuple[float, float, float]:
    """Return the satisfaction of a learner told the truth, of one that interprets feedback, and of one that
    misinterprets it.
    """
    world = World(seed, visits)
    return (
        told_the_truth(seed, visits),
        satisfaction(world, behaviour.acts, behaviour.read),
        satisfaction(world, behaviour.acts, behaviour.misread),
    )


def answers() -> Iterator[Row]:
    for behaviour in BEHAVIOURS:
        found = np.array([compared(behaviour, seed) for seed in range(SEEDS)])
        means, errors = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(SEEDS)
        plain, read, misread = (f"{mean:.3f} ± {error:.3f}" for mean, error in zip(means, errors, strict=True))
        lost = (found[:, 1] > found[:, 2]).sum()
        yield Row(
            f"{behaviour.title}, {SEEDS} instances of {VISITS:,} visits",
            f"{read}; misread ({behaviour.mistake}) {misread}, worse in {lost}",
            f"told the truth: {plain}",
        )
