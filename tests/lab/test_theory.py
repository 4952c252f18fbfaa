"""What the paper promises: bounds that are bounds, and say when they say nothing."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zoomrank as zr
from zoomrank.errors import ParameterError
from zoomrank.lab.paper import theory


@given(st.integers(0, 10_000))
def test_the_steepest_pair_is_found(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = zr.DocumentTree.exponential(depth=int(rng.integers(1, 4)), branching=int(rng.integers(2, 4)), epsilon=0.6)
    mean = rng.random(len(tree))
    steepest = max(abs(mean[x] - mean[y]) / tree.distance(x, y) for x, y in itertools.combinations(range(len(tree)), 2))
    assert theory.steepest(tree, mean) == pytest.approx(steepest)


@given(st.integers(0, 10_000))
def test_the_bound_on_the_optimum_is_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = zr.DocumentTree.exponential(depth=3)
    rows = [rng.choice(8, size=int(rng.integers(1, 4)), replace=False).tolist() for _ in range(6)]
    users = zr.users.RelevanceTable(tree, rows, rng.random(6) + 0.01)
    best = max(users.satisfaction(chosen) for chosen in itertools.combinations(range(8), 2))
    assert best <= users.optimum_bound(2) + 1e-12
    assert users.optimum(2).satisfaction == pytest.approx(best)


def test_guarantees_say_when_they_say_nothing() -> None:
    until = theory.vacuous_until(optimum=0.7, slots=5, dimension=3.9)
    assert theory.guarantee(0.7, 5, 3.9, until) == pytest.approx(0.0, abs=1e-9)
    assert theory.guarantee(0.7, 5, 3.9, 10 * until) > 0
    assert theory.vacuous_until(0.7, 5, 5 * 3.9) > until


def test_regret_bounds_are_ordered_as_in_table_2() -> None:
    tree = zr.DocumentTree.exponential(depth=8)
    mean = zr.users.two_peaks(tree, seed=1).mean()
    by = {name: theory.regret(tree, mean, 100_000, name) for name in ("UCB1", "GridUCB1", "zooming")}
    assert by["zooming"] <= by["GridUCB1"] <= by["UCB1"]
    with pytest.raises(ParameterError, match="EXP3"):
        theory.regret(tree, mean, 100, "EXP3")
