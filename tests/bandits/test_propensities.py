"""How likely a document is in its slot: as the literal twin's every outcome says, for every learner."""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.bandits.test_twins import LEARNERS, SHARED, made, random_collection, twin_tree, twins
from tests.reference import learners as reference
from tests.reference.largest_draw import Draw, of_largest
from zoomrank import DocumentTree, Ranked, RankRandom
from zoomrank.bandits.thompson import DrawScratch, add_draw, chance_of_largest, fresh_draw_scratch
from zoomrank.compiled import Scalar, compiled
from zoomrank.types import Array

EXACT = [name for name in [*LEARNERS, *SHARED] if not name.startswith("TreeThompson")]
COPIES = DocumentTree.from_parents([-1, 0, 0, 1, 1, 1, 2, 2], width=[0.5, 0, 0.2, 0, 0, 0, 0, 0])


def weighed(ranker: Ranked, above: list[int], eligible: list[int] | None = None) -> Array:
    """How likely each document is in the slot below some."""
    rows = np.array([[*above, document] for document in range(len(ranker.tree))])
    some = None if eligible is None else ranker.tree.documents.at(eligible)
    weights: Array = ranker.propensities(rows, some)[:, -1]
    return weights


def contexts(shown: list[int], slots: int, rng: np.random.Generator) -> Iterator[list[int]]:
    """The documents above each slot of a ranking, and some that it would not show."""
    for slot in range(slots):
        yield shown[:slot]
        yield rng.permutation(len(shown))[:slot].tolist()


def agree(
    slow: reference.Ranked, fast: Ranked, above: list[int], eligible: list[int] | None = None, atol: float = 1e-12
) -> None:
    literal = slow.odds(len(above), above)
    assert sum(literal.values()) == pytest.approx(1, abs=atol)
    expected = [float(literal.get(document, 0)) for document in range(len(fast.tree))]
    np.testing.assert_allclose(weighed(fast, above, eligible), expected, atol=atol)


def both(name: str, tree: DocumentTree, slots: int, duplicates: bool) -> tuple[reference.Ranked, Ranked]:
    plain = twin_tree(tree)
    slow = reference.Ranked(plain, twins(name, plain, slots), duplicates, 0)
    return slow, Ranked(made(name, tree), slots, seed=0, duplicates=duplicates)


def learn(slow: reference.Ranked, fast: Ranked, mean: Array, rng: np.random.Generator) -> list[int]:
    """One visitor meets both; returns what she was shown."""
    ranking = fast.rank()
    arrays = ranking.arrays
    shown: list[int]
    shown, picks, chances = (array[0].tolist() for array in (arrays.shown, arrays.pick, arrays.chance))
    relevant = rng.random(len(fast.tree)) < mean
    click = next((slot for slot in range(fast.slots) if relevant[shown[slot]]), fast.slots)
    slow.learn(shown, picks, chances, click)
    fast.learn(ranking, None if click == fast.slots else click)
    return shown


@pytest.mark.parametrize("seeds", [(0, 3), pytest.param((1, 2), marks=pytest.mark.full)], ids=["few", "more"])
@pytest.mark.parametrize("duplicates", [False, True])
@pytest.mark.parametrize("name", EXACT)
def test_as_likely_as_every_outcome_of_the_literal_twin_says(
    name: str, duplicates: bool, seeds: tuple[int, ...]
) -> None:
    for seed in seeds:
        rng = np.random.default_rng([seed, 23])
        tree = COPIES if seed == 3 else random_collection(rng)
        slots = min(4, len(tree))
        slow, fast = both(name, tree, slots, duplicates)
        mean = rng.random(len(tree)) ** 2
        for visit in range(120):
            if visit in (0, 1, 3, 10, 40, 119):
                shown = list(dict.fromkeys([*fast.copied().rank().arrays.shown[0].tolist(), *range(len(tree))]))
                for above in contexts(shown, slots, rng):
                    agree(slow, fast, above)
            learn(slow, fast, mean, rng)


@pytest.mark.parametrize("duplicates", [False, True])
@pytest.mark.parametrize("name", ["TreeThompson", "TreeThompson uncorrelated"])
def test_as_likely_as_integrals_say(name: str, duplicates: bool) -> None:
    """What Thompson draws has no list of outcomes; SciPy integrates, slowly."""
    for seed in (1, 3):
        rng = np.random.default_rng([seed, 31])
        tree = COPIES if seed == 3 else DocumentTree.exponential(depth=2, branching=3, epsilon=0.6)
        slow, fast = both(name, tree, 3, duplicates)
        mean = rng.random(len(tree)) ** 2
        for visit in range(60):
            if visit in (1, 59):
                some = sorted(rng.permutation(len(tree))[:5].tolist())
                for eligible in (None, some):
                    slow.tree.ineligible = set() if eligible is None else set(range(len(tree))) - set(some)
                    for slot in range(3):
                        agree(slow, fast, rng.permutation(some)[:slot].tolist(), eligible, atol=2e-8)
                slow.tree.ineligible = set()
            learn(slow, fast, mean, rng)


BELIEFS = {
    "new and well known": [Draw(0.1, 1, np.inf), Draw(3.1, 40, np.inf), Draw(300_000.1, 700_000, np.inf)],
    "all but one capped": [Draw(30, 20, 0.25), Draw(2, 9, 0.25), Draw(1, 1, 0.5), Draw(5, 40, 0.125)],
    "at their cap": [Draw(900, 100, 0.5), Draw(800, 100, 0.5), Draw(2, 2, 0.5)],
    "nothing is possible": [Draw(3, 1, 0.0), Draw(2, 1, 0.0), Draw(2, 9, 0.0)],
    "one is possible": [Draw(3, 1, 0.0), Draw(2, 9, 0.125)],
    "hundreds alike": [Draw(1, 1, 0.5)] * 300 + [Draw(40, 10, 0.5), Draw(9, 1, 0.25)],
}


@compiled
def chance_of(scratch: DrawScratch, a: Array, b: Array, cap: Array, own: int) -> Scalar:
    kinds, mine = 0, 0
    for each in range(len(a)):
        kinds, kind = add_draw(scratch, kinds, a[each], b[each], cap[each])
        if each == own:
            mine = kind
    return chance_of_largest(scratch, kinds, mine)


@pytest.mark.parametrize("draws", BELIEFS.values(), ids=BELIEFS)
def test_how_likely_a_draw_is_the_largest(draws: list[Draw]) -> None:
    scratch, (a, b, cap) = fresh_draw_scratch(len(draws)), np.array(draws, float).T.copy()
    chances = [chance_of(scratch, a, b, cap, own) for own in range(len(draws))]
    assert sum(chances) == pytest.approx(1, abs=2e-9)
    for own in {*range(min(3, len(draws))), len(draws) - 1}:
        assert chances[own] == pytest.approx(of_largest(draws, own), abs=2e-8)


def test_draws_that_are_too_small_for_a_number_are_equal() -> None:
    scratch = fresh_draw_scratch(2)
    a, b, cap = np.array([1e-4, 1e-4]), np.array([1.0, 2.0]), np.full(2, np.inf)
    chances = [chance_of(scratch, a, b, cap, own) for own in range(2)]
    assert sum(chances) == pytest.approx(1, abs=1e-9)
    assert chances[0] == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("name", ["PathZooming", "PathZooming uncorrelated", "PathZooming patient"])
def test_among_eligible_documents(name: str) -> None:
    for seed in range(4):
        rng = np.random.default_rng([seed, 29])
        tree = COPIES if seed == 3 else random_collection(rng)
        slots = min(3, len(tree))
        slow, fast = both(name, tree, slots, duplicates=False)
        mean = rng.random(len(tree)) ** 2
        for visit in range(60):
            slow.tree.ineligible = set()
            learn(slow, fast, mean, rng)
            if visit % 15 == 0:
                some = sorted(rng.permutation(len(tree))[: int(rng.integers(slots, len(tree) + 1))].tolist())
                slow.tree.ineligible = set(range(len(tree))) - set(some)
                for slot in range(slots):
                    agree(slow, fast, rng.permutation(some)[:slot].tolist(), some)


def test_what_cannot_be_shown_has_no_chance_and_nothing_below_it_has() -> None:
    ranker = RankRandom(DocumentTree.exponential(depth=2), slots=3, seed=0)
    rows = np.array([[0, 0, 1], [0, 1, 2], [-1, 0, 1], [0, 4, 1]])
    weights = ranker.propensities(rows)
    np.testing.assert_array_equal(weights > 0, [[True, False, False], [True] * 3, [False] * 3, [True, False, False]])
    np.testing.assert_array_equal(ranker.propensities(rows[1:2], [0, 2, 3]) > 0, [[True, False, False]])
