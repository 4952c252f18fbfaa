"""What answers teach, slot by slot."""

import numpy as np
import pytest
from research.bench.feedback import BEHAVIOURS, Behaviour, compared

import zoomrank as zr
from zoomrank.rankers.feedback import SlotOutcomes, VisitorActions, learn_outcomes, satisfied_slot, slot_outcomes

SLOTS = 4


def some(*slots: int) -> frozenset[int]:
    return frozenset(slots)


@pytest.mark.parametrize(
    ("acts", "by", "lesson"),
    [
        (VisitorActions(some(2)), "click", SlotOutcomes(2, (0, 1))),
        (VisitorActions(some(2), looked_at=1), "click", SlotOutcomes(2, (0, 1))),
        (VisitorActions(some(2, 3)), "click", SlotOutcomes(2, (0, 1))),
        (VisitorActions(some(2), some(3)), "click", SlotOutcomes(2, (0, 1, 3))),
        (VisitorActions(some(2), some(1)), "click", SlotOutcomes(2, (0, 1))),
        (VisitorActions(some(1, 2), some(1)), "click", SlotOutcomes(2, (0, 1))),
        (VisitorActions(some(1), some(1)), "click", SlotOutcomes(None, (0, 1, 2, 3))),
        (VisitorActions(some(1), some(1), looked_at=1), "click", SlotOutcomes(None, (0, 1))),
        (VisitorActions(looked_at=2), "click", SlotOutcomes(None, (0, 1))),
        (VisitorActions(looked_at=2, disliked=some(3)), "click", SlotOutcomes(None, (0, 1, 3))),
        (VisitorActions(some(2), purchased=some(1)), "click", SlotOutcomes(1, (0,))),
        (VisitorActions(some(2), purchased=some(3)), "purchase", SlotOutcomes(3, (0, 1, 2))),
        (VisitorActions(some(2)), "purchase", SlotOutcomes(None, (0, 1, 2, 3))),
        (VisitorActions(some(2), looked_at=1), "purchase", SlotOutcomes(None, (0, 1, 2))),
    ],
)
def test_what_follows_from_what_she_did(acts: VisitorActions, by: str, lesson: SlotOutcomes) -> None:
    assert slot_outcomes(acts, SLOTS, satisfied_slot(acts, by)) == lesson


@pytest.mark.parametrize("kind", [zr.RankUCB1, zr.ZoomRank])
@pytest.mark.parametrize(
    "lesson",
    [
        SlotOutcomes(None, ()),
        SlotOutcomes(None, (0, 2)),
        SlotOutcomes(1, (0,)),
        SlotOutcomes(1, (0, 3)),
        SlotOutcomes(0, (2, 3)),
    ],
)
def test_the_slots_of_a_lesson_learn_and_no_others(kind: type[zr.Ranked], lesson: SlotOutcomes) -> None:
    ranker = kind(zr.DocumentTree.exponential(depth=5), slots=SLOTS, seed=3)  # type: ignore[arg-type]
    ranking = ranker.rank_arrays(1)
    learn_outcomes(ranker, ranking, lesson)
    left = ranker.state.left.tolist()  # each slot has a clock of the visits that it has learned from
    phase = ranker.state.phase.tolist()
    fresh = ranker.bandit.fresh_state(SLOTS)
    learned = [(left[slot], phase[slot]) != (fresh.left[slot], fresh.phase[slot]) for slot in range(SLOTS)]
    assert learned == [slot in (*lesson.skipped, lesson.satisfied) for slot in range(SLOTS)]


def test_a_plain_lesson_is_what_a_click_teaches() -> None:
    tree = zr.DocumentTree.exponential(depth=6)
    plain, taught = (zr.ZoomRank(tree, slots=SLOTS, seed=5) for _ in range(2))
    clicks = np.random.default_rng(1).integers(0, SLOTS + 1, 300).tolist()
    for click in clicks:
        plain.learn_arrays(plain.rank_arrays(1), np.array([click]))
        satisfied = None if click == SLOTS else click
        learn_outcomes(taught, taught.rank_arrays(1), slot_outcomes(VisitorActions(), SLOTS, satisfied))
    assert all((plain.learned[name] == array).all() for name, array in taught.learned.items())


def test_a_dislike_below_a_click_is_a_look_at_that_slot_alone() -> None:
    """A dislike below a click teaches as much as a visit in which that slot alone was looked at."""
    tree = zr.DocumentTree.exponential(depth=6)
    one, two = (zr.ZoomRank(tree, slots=SLOTS, seed=5) for _ in range(2))
    for _ in range(50):
        ranking = one.rank_arrays(1)
        two.rank_arrays(1)
        learn_outcomes(one, ranking, SlotOutcomes(1, (0, 3)))
        learn_outcomes(two, ranking, SlotOutcomes(1, (0,)))
        learn_outcomes(two, ranking, SlotOutcomes(None, (3,)))
    assert all((one.learned[name] == array).all() for name, array in two.learned.items())


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda one: one.title)
def test_visitors_who_behave_so_teach_what_the_truth_would(behaviour: Behaviour) -> None:
    """Few instances: `python -m research bench answers` has more."""
    plain, read, misread = np.mean([compared(behaviour, seed, visits=10_000) for seed in range(3)], axis=0)
    assert read > plain - 0.05
    assert read > misread + 0.05
