"""Compiled learners make exactly the choices of their literal twins."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.reference import learners as reference
from tests.support.trees import random_tree
from zoomrank import DocumentTree, Ranked
from zoomrank.bandits import (
    EXP3,
    KLUCB,
    UCB1,
    Anytime,
    Bandit,
    ContextualZooming,
    ExploreThenCommit,
    Grid,
    PathZooming,
    TreeThompson,
    Zooming,
)
from zoomrank.types import Array

Maker = Callable[[DocumentTree], Bandit]
Twin = Callable[[reference.Tree], reference.Learner]
Parameters = dict[str, Any]
Shared = tuple[Callable[..., Bandit], Callable[..., list[reference.Learner]], Parameters]


def cascade(tree: reference.Tree, slots: int, exploration: float) -> list[reference.Learner]:
    one = reference.KLUCB(tree, exploration)
    return [reference.CascadeKLUCB(one, slot) for slot in range(slots)]


def thompson(tree: reference.Tree, slots: int, **how: Any) -> list[reference.Learner]:
    visits = reference.Visits(tree, slots, patience=1)
    return [reference.TreeThompson(visits, slot, **how) for slot in range(slots)]


def paths(tree: reference.Tree, slots: int, **how: Any) -> list[reference.Learner]:
    return reference.PathZooming(tree, slots, **how).each()


def explorers(tree: reference.Tree, slots: int, looks: int) -> list[reference.Learner]:
    learners: list[reference.ExploreThenCommit] = []
    for _ in range(slots):
        learners.append(reference.ExploreThenCommit(tree, looks, learners[-1] if learners else None))
    return list[reference.Learner](learners)


SHARED: dict[str, Shared] = {  # learners whose slots are one, and their parameters
    "PathZooming": (PathZooming, paths, {}),
    "PathZooming eager": (
        PathZooming,
        paths,
        {"confidence": 0.1, "growth": 0.3, "optimism": 0.0, "borrow": 3.0, "prior": 0.0},
    ),
    "PathZooming alone": (
        PathZooming,
        paths,
        {"confidence": 1.5, "growth": 0.0, "optimism": 1.0, "borrow": 0.0, "patience": 3},
    ),
    "PathZooming uncorrelated": (PathZooming, paths, {"correlated": False}),
    "PathZooming patient": (PathZooming, paths, {"patience": 15}),
    "PathZooming sure": (PathZooming, paths, {"confidence": 0.02, "growth": 0.1, "optimism": 0.0}),
    "ExploreThenCommit": (ExploreThenCommit, explorers, {"looks": 1}),
    "ExploreThenCommit patient": (ExploreThenCommit, explorers, {"looks": 4}),
    "Cascade": (partial(KLUCB, shared=True), cascade, {"exploration": 1.0}),
    "Cascade C=0.1": (partial(KLUCB, shared=True), cascade, {"exploration": 0.1}),
    "TreeThompson": (TreeThompson, thompson, {}),
    "TreeThompson uncorrelated": (TreeThompson, thompson, {"prior": 0.2, "correlated": False}),
}


def at_most(depth: int, tree: DocumentTree) -> int:
    """The depth, or that of the lowest document."""
    return min(depth, max(twin_tree(tree).depth))


LEARNERS: dict[str, tuple[Maker, Twin]] = {
    "UCB1": (UCB1, lambda t: reference.UCB1(t.leaves, t, 1.0)),
    "UCB1 pessimistic": (
        lambda t: UCB1(t, exploration="pessimistic", horizon=2000),
        lambda t: reference.UCB1(t.leaves, t, 4 * np.log(2000)),
    ),
    "EXP3": (lambda t: EXP3(t, horizon=2000), lambda t: reference.EXP3(t.leaves, t, 2000)),
    "Grid(UCB1)": (lambda t: Grid(UCB1(t)), lambda t: reference.Grid(t, "UCB1")),
    "Grid(EXP3)": (lambda t: Grid(EXP3(t)), lambda t: reference.Grid(t, "EXP3")),
    "Grid(UCB1) replayed": (
        lambda t: Grid(UCB1(t, exploration=0.25), replay=True),
        lambda t: reference.Grid(t, "UCB1", 0.25, replay=True),
    ),
    "Grid(UCB1) replayed, hasty": (
        lambda t: Grid(UCB1(t), stretch=0.2, replay=True),
        lambda t: reference.Grid(t, "UCB1", stretch=0.2, replay=True),
    ),
    "Grid(UCB1) from depth 2, longer": (
        lambda t: Grid(UCB1(t), start=at_most(2, t), stretch=1.7),
        lambda t: reference.Grid(t, "UCB1", start=2, stretch=1.7),
    ),
    "Grid(EXP3) from depth 1, hasty": (
        lambda t: Grid(EXP3(t), start=1, stretch=0.3),
        lambda t: reference.Grid(t, "EXP3", start=1, stretch=0.3),
    ),
    "Zooming": (Zooming, lambda t: reference.Zooming(t, 1.0)),
    "Zooming C=0.3": (lambda t: Zooming(t, exploration=0.3), lambda t: reference.Zooming(t, 0.3)),
    "Zooming correlated": (
        lambda t: Zooming(t, correlated=True),
        lambda t: reference.Zooming(t, 1.0, correlated=True),
    ),
    "ContextualZooming": (ContextualZooming, lambda t: reference.ContextualZooming(t, 1.0, 1.0)),
    "ContextualZooming scale 0.2": (
        lambda t: ContextualZooming(t, scale=0.2, exploration=0.3),
        lambda t: reference.ContextualZooming(t, 0.3, 0.2),
    ),
    "KLUCB": (KLUCB, lambda t: reference.KLUCB(t, 1.0)),
    "KLUCB C=0.1": (lambda t: KLUCB(t, exploration=0.1), lambda t: reference.KLUCB(t, 0.1)),
    "Anytime(Zooming pessimistic)": (
        lambda t: Anytime(Zooming(t, exploration="pessimistic", horizon=1)),
        lambda t: reference.Anytime(lambda horizon: reference.Zooming(t, 4 * np.log(horizon))),
    ),
    "Anytime(Zooming)": (
        lambda t: Anytime(Zooming(t)),
        lambda t: reference.Anytime(lambda horizon: reference.Zooming(t, 1.0)),
    ),
    "Anytime(EXP3)": (
        lambda t: Anytime(EXP3(t)),
        lambda t: reference.Anytime(lambda horizon: reference.EXP3(t.leaves, t, horizon)),
    ),
    "Anytime(Grid(UCB1))": (
        lambda t: Anytime(Grid(UCB1(t))),
        lambda t: reference.Anytime(lambda horizon: reference.Grid(t, "UCB1")),
    ),
    "Anytime(Grid(UCB1) replayed)": (
        lambda t: Anytime(Grid(UCB1(t), stretch=0.1, replay=True)),
        lambda t: reference.Anytime(lambda horizon: reference.Grid(t, "UCB1", stretch=0.1, replay=True)),
    ),
    "Anytime(ContextualZooming)": (
        lambda t: Anytime(ContextualZooming(t, scale=0.5)),
        lambda t: reference.Anytime(lambda horizon: reference.ContextualZooming(t, 1.0, 0.5)),
    ),
}


def twins(name: str, tree: reference.Tree, slots: int) -> list[reference.Learner]:
    if name in SHARED:
        return SHARED[name][1](tree, slots, **SHARED[name][2])
    return [LEARNERS[name][1](tree) for _ in range(slots)]


def made(name: str, tree: DocumentTree) -> Bandit:
    return SHARED[name][0](tree, **SHARED[name][2]) if name in SHARED else LEARNERS[name][0](tree)


def twin_tree(tree: DocumentTree) -> reference.Tree:
    shape = tree.shape
    return reference.Tree([int(p) for p in shape.parent], tree.width.tolist(), [int(n) for n in shape.leaf])


def random_collection(rng: np.random.Generator) -> DocumentTree:
    kind = rng.integers(3)
    if kind == 0:
        return DocumentTree.exponential(depth=int(rng.integers(1, 5)), branching=2, epsilon=0.7)
    if kind == 1:
        return DocumentTree.exponential(depth=int(rng.integers(1, 3)), branching=int(rng.integers(3, 12)), epsilon=0.6)
    return random_tree(rng, nodes=int(rng.integers(4, 26)))


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 8), marks=pytest.mark.full)], ids=["few", "more"])
@pytest.mark.parametrize("duplicates", [False, True])
@pytest.mark.parametrize("name", [*LEARNERS, *SHARED])
def test_same_choices_as_the_literal_twin(name: str, duplicates: bool, seeds: range) -> None:
    for seed in seeds:
        rng = np.random.default_rng([seed, 17])
        tree = random_collection(rng)
        slots = int(rng.integers(1, min(4, len(tree)) + 1))
        plain = twin_tree(tree)
        slow = reference.Ranked(plain, twins(name, plain, slots), duplicates, seed)
        fast = Ranked(made(name, tree), slots, seed=seed, duplicates=duplicates)
        mean = rng.random(len(tree)) ** 2
        for _ in range(400):
            shown, picks, chances = slow.rank()
            ranking = fast.rank()
            assert tree.documents.positions(dict.fromkeys(ranking.documents)).tolist() == list(dict.fromkeys(shown))
            assert ranking.arrays.shown[0].tolist() == shown
            assert ranking.arrays.pick[0].tolist() == picks
            np.testing.assert_allclose(ranking.arrays.chance[0], chances, rtol=1e-12)
            relevant = rng.random(len(tree)) < mean
            click = next((slot for slot in range(slots) if relevant[shown[slot]]), None)
            slow.learn(shown, picks, chances, slots if click is None else click)
            fast.learn(ranking, click)


LIKENESS = {  # trees in which documents are near enough to each other to change places
    "binary": DocumentTree.exponential(depth=4, branching=2, epsilon=0.5),
    "wide": DocumentTree.exponential(depth=2, branching=5, epsilon=0.3),
    "uneven": DocumentTree.from_parents([-1, 0, 0, 0, 1, 1, 1, 2, 2, 5, 5, 5, 5, 8, 8, 14, 14, 14], epsilon=0.5),
}


def visit_both(slow: reference.Ranked, fast: Ranked, mean: Array, rng: np.random.Generator) -> None:
    """One visitor, who may see some documents only, meets both: they choose the same, and learn the same."""
    tree, plain, slots = fast.tree, slow.tree, fast.slots
    restricted = rng.random() < 0.2
    away = rng.choice(len(tree), size=int(rng.integers(len(tree) - slots)) if restricted else 0, replace=False)
    plain.ineligible = set(away.tolist())
    shown, picks, chances = slow.rank()
    ranking = fast.rank(tree.documents.at(np.delete(np.arange(len(tree)), away)) if restricted else None)
    assert ranking.arrays.shown[0].tolist() == shown
    assert ranking.arrays.pick[0].tolist() == picks
    relevant = rng.random(len(tree)) < mean
    click = next((slot for slot in range(slots) if relevant[shown[slot]]), slots)
    slow.learn(shown, picks, chances, click)
    fast.learn(ranking, None if click == slots else click)


@pytest.mark.parametrize("visits", [600, pytest.param(2000, marks=pytest.mark.full)])
@pytest.mark.parametrize("shape", LIKENESS)
def test_same_choices_as_the_literal_twin_near_a_peak(shape: str, visits: int) -> None:
    """For many visits to a world with one good corner; some visitors may see some documents only."""
    tree, slots = LIKENESS[shape], 4
    plain = twin_tree(tree)
    paths = reference.PathZooming(plain, slots)
    slow, fast = reference.Ranked(plain, paths.each(), False, 3), Ranked(PathZooming(tree), slots, seed=3)
    rng = np.random.default_rng(21)
    mean = np.where(np.arange(len(tree)) < len(tree) // 3, 0.3 + 0.4 * rng.random(len(tree)), 0.02)
    for _ in range(visits):
        visit_both(slow, fast, mean, rng)
    assert paths.passed_down > 10


@pytest.mark.parametrize("visits", [300, pytest.param(600, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", [*LEARNERS, *SHARED])
def test_late_and_missing_answers(name: str, visits: int) -> None:
    """Answers come in any order, or never: credit goes to whatever strategy now holds the document."""
    rng = np.random.default_rng(3)
    tree = DocumentTree.exponential(depth=4, branching=2, epsilon=0.7)
    plain = twin_tree(tree)
    slow = reference.Ranked(plain, twins(name, plain, 3), False, 5)
    fast = Ranked(made(name, tree), 3, seed=5)
    waiting: list[Any] = []
    for _ in range(visits):
        waiting.append((slow.rank(), fast.rank(), int(rng.integers(0, 4))))
        assert waiting[-1][0][0] == waiting[-1][1].arrays.shown[0].tolist()
        if rng.random() < 0.9 and waiting:
            (shown, picks, chances), ranking, click = waiting.pop(int(rng.integers(len(waiting))))
            slow.learn(shown, picks, chances, click)
            fast.learn(ranking, None if click == 3 else click)
