"""What answers are worth that say more than a click: visitors who click several times, see short screens, dislike what
they clicked, or click one thing and buy another; read as docs/service.md derives it, and misread.

Everybody meets the same visitors in the same order. `plain` is told the truth by each: the first document that she
wants, if all of the ranking was looked at. What is counted is the share of the last visitors who were shown something
that they want.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

import zoomrank as zr
from bench.measure import Row
from zoomrank.numbers import Array
from zoomrank.rankers.lessons import Acts, Lesson, lesson_of, satisfied_in, teach
from zoomrank.users import intents

SLOTS, DEPTH = 5, 7
VISITS, LAST, SEEDS = 8_000, 1_000, 24


class Visitor(NamedTuple):
    """What is true of a visitor and a ranking, by slots, and how many of them her screen shows."""

    wanted: Array
    bait: Array  # what she clicks though she does not want it
    screen: int


def several(her: Visitor) -> Acts:
    """She clicks everything that she wants."""
    return Acts(_slots(her.wanted))


def short(her: Visitor) -> Acts:
    """She sees the upper part, and clicks what she wants first."""
    return Acts(frozenset(sorted(_slots(her.wanted[: her.screen]))[:1]), looked_at=her.screen)


def disliking(her: Visitor) -> Acts:
    """She clicks what looks good, and says so if it was not, until she has what she wants."""
    clicked = _until_wanted(her)
    return Acts(clicked, disliked=clicked - _slots(her.wanted))


def buying(her: Visitor) -> Acts:
    """She clicks what looks good until she buys what she wants."""
    clicked = _until_wanted(her)
    return Acts(clicked, purchased=clicked & _slots(her.wanted))


def _slots(which: Array) -> frozenset[int]:
    return frozenset(np.flatnonzero(which).tolist())


def _until_wanted(her: Visitor) -> frozenset[int]:
    first = min(_slots(her.wanted), default=SLOTS)
    return frozenset(slot for slot in _slots(her.wanted | her.bait) if slot <= first)


def as_derived(acts: Acts) -> list[Lesson]:
    """What docs/service.md concludes."""
    return [lesson_of(acts, SLOTS, satisfied_in(acts))]


def by_purchase(acts: Acts) -> list[Lesson]:
    """The same, where purchases count."""
    return [lesson_of(acts, SLOTS, satisfied_in(acts, "purchase"))]


def every_click_earns(acts: Acts) -> list[Lesson]:
    """A success for each clicked slot, as if it stood alone."""
    others = tuple(slot for slot in range(SLOTS) if slot not in acts.clicked)
    return [*(Lesson(slot, ()) for slot in sorted(acts.clicked)), Lesson(None, others)]


def first_click_earns(acts: Acts) -> list[Lesson]:
    """Neither dislikes nor purchases nor screens are heard of."""
    alone = Acts(acts.clicked)
    return [lesson_of(alone, SLOTS, satisfied_in(alone))]


class Behaviour(NamedTuple):
    """How visitors behave, how that is read, and how it is misread."""

    title: str
    acts: Callable[[Visitor], Acts]
    read: Callable[[Acts], list[Lesson]]
    misread: Callable[[Acts], list[Lesson]]
    mistake: str


BEHAVIOURS = (
    Behaviour("several clicks", several, as_derived, every_click_earns, "every click earns"),
    Behaviour("short screens", short, as_derived, first_click_earns, "what was not on the screen counts as skipped"),
    Behaviour("dislikes", disliking, as_derived, first_click_earns, "the click counts, the dislike does not"),
    Behaviour("purchases", buying, by_purchase, first_click_earns, "the click counts"),
)


class World:
    """A tree, what each of some visitors wants, what looks good to her, and how many documents are on her screen: one
    or two, until the page is made anew in the middle.
    """

    def __init__(self, seed: int, visits: int) -> None:
        rng = np.random.default_rng([16, seed])
        self.tree = zr.DocumentTree.exponential(depth=DEPTH)
        self.wanted = intents(self.tree, count=12, sizes=(4, 32), seed=rng).sample(visits, seed=rng)
        looks_good = np.where(rng.random(len(self.tree)) < 0.1, 0.6, 0.0)  # one in ten, to most people
        self.bait = rng.random(self.wanted.shape) < looks_good
        self.screen = np.where(np.arange(visits) < visits // 2, rng.integers(1, 3, visits), SLOTS)

    def visitor(self, number: int, shown: Array) -> Visitor:
        """One of them, before a ranking."""
        return Visitor(self.wanted[number, shown], self.bait[number, shown], int(self.screen[number]))


def satisfaction(
    world: World, acts: Callable[[Visitor], Acts] | None, read: Callable[[Acts], list[Lesson]], last: int = LAST
) -> float:
    """Let visitors come one by one; the share of the last ones who were shown something that they want."""
    ranker = zr.ZoomRank(world.tree, slots=SLOTS, seed=0)
    pleased = np.zeros(len(world.wanted), bool)
    for number in range(len(pleased)):
        ranking = ranker.rank_arrays(1)
        her = world.visitor(number, ranking.shown[0])
        pleased[number] = her.wanted.any()
        for lesson in read(Acts(_slots(her.wanted)) if acts is None else acts(her)):
            teach(ranker, ranking, lesson)
    return float(pleased[-last:].mean())


@lru_cache
def told_the_truth(seed: int, visits: int) -> float:
    """The satisfaction of one that is told by everybody which document she wants first."""
    return satisfaction(World(seed, visits), None, as_derived)


def compared(behaviour: Behaviour, seed: int, visits: int = VISITS) -> tuple[float, float, float]:
    """The satisfaction of one that is told the truth, of one that reads answers, and of one that misreads them."""
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
