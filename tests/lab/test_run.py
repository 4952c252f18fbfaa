"""Runs depend on their setting alone, and say what a simulation says."""

import dataclasses
from typing import Any

import numpy as np
import pytest

import zoomrank as zr
from tests.lab.tiny_world import SMALL
from zoomrank.errors import CatalogueError, ParameterError
from zoomrank.lab import registry
from zoomrank.lab.paper.figures import figures_named
from zoomrank.lab.recipes import recipe
from zoomrank.lab.registry import GREEDY
from zoomrank.lab.results_folder import to_parquet
from zoomrank.lab.run import checkpoints, run, sources
from zoomrank.lab.sweep import Local


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: figures_named(["6"]), "Unknown figure '6'"),
        (lambda: SMALL.settings(instances=0), "at least one"),
        (lambda: SMALL.settings(instances=1, visits=0), "at least one"),
        (lambda: SMALL.settings(["nobody"], instances=1), "no curve 'nobody'"),
        (lambda: Local(0), "at least one"),
    ],
)
def test_what_cannot_be_asked_for(ask: object, message: str) -> None:
    with pytest.raises((CatalogueError, ParameterError), match=message):
        ask()  # type: ignore[operator]


def test_names_that_stand_for_nothing() -> None:
    (setting, *_) = SMALL.settings(instances=1)
    for name, message in (("RankNothing", "RankUCB1"), ("nowhere:Ranker", "cannot be imported"), ("json:No", "import")):
        with pytest.raises(CatalogueError, match=message):
            run(dataclasses.replace(setting, ranker=recipe(name)))
    with pytest.raises(ParameterError, match="cannot be made"):
        run(dataclasses.replace(setting, ranker=recipe("RankZoom", colour="red")))


def test_looks_are_log_spaced_and_end_with_the_run() -> None:
    at = checkpoints(300_000)
    assert at[-1] == 300_000
    assert at == sorted(set(at))
    assert set(range(5_000, 300_001, 5_000)) <= set(at)
    assert sum(10 <= look < 100 for look in at) >= 15
    assert checkpoints(1) == [1]


def test_rows_say_what_a_simulation_says() -> None:
    setting = SMALL.settings(["RankCorrZoom"], instances=1)[0]
    rows = run(setting)
    tree, users = registry.world(setting)
    ranker = registry.ranker(setting, tree, users)
    trace = zr.simulate(ranker, users, 500, seed=registry.visitors(setting), windows=checkpoints(500))
    assert rows.satisfied[-1] == trace.satisfied.sum()
    assert np.array_equal(np.diff(rows.clicks, axis=0, prepend=0), trace.clicks)
    assert rows.expected[7] == users.satisfaction(trace.shown[7])


def test_all_curves_meet_the_same_instances() -> None:
    first, second = (SMALL.settings([name], instances=1)[0] for name in ("RankCorrZoom", "RankEXP3"))
    assert registry.world(first)[1] is registry.world(second)[1]
    other = SMALL.settings(["RankCorrZoom"], instances=2)[1]
    assert not np.array_equal(registry.world(first)[1].mean(), registry.world(other)[1].mean())


def test_a_wrong_belief_is_about_the_same_visitors() -> None:
    setting = SMALL.settings(["shuffled"], instances=1)[0]
    true_tree, users = registry.world(setting)
    tree, seen = registry.believed(setting)
    moved = sum(a != b for a, b in zip(tree.documents, true_tree.documents, strict=True))
    assert moved == 16
    for document in true_tree.documents:
        assert seen.mean(document) == pytest.approx(users.mean(document))
    assert seen.greedy(2).satisfaction == pytest.approx(users.greedy(2).satisfaction)
    halved = dataclasses.replace(setting, belief=recipe("scaled", factor=0.5))
    assert np.array_equal(registry.believed(halved)[0].width, true_tree.width / 2)


def test_rows_say_how_many_strategies_were_active() -> None:
    """Active subtrees partition the documents; slots count for themselves, and those without strategies not at all."""
    setting = SMALL.settings(["RankCorrZoom"], instances=1)[0]
    for name, parameters in (("RankZoom", {}), ("RankCorrZoom", {}), ("RankContextZoom", {"scale": 0.2})):
        asked = dataclasses.replace(setting, ranker=recipe(name, **parameters))
        tree, users = registry.world(asked)
        learner: Any = registry.ranker(asked, tree, users)
        zr.simulate(learner, users, 500, seed=registry.visitors(asked), windows=checkpoints(500))
        state = learner.state
        expected = [sum(state.child[slot, entry] == 0 for entry in range(state.used[slot])) for slot in range(2)]
        if name == "RankContextZoom":
            expected[1] = sum(state.pair[1, entry]["known_for"] == 2**64 - 1 for entry in range(state.pair_used[1]))
        active = run(asked).active
        assert active == tuple(expected)
        assert min(active) > 1
    for name in ("RankUCB1", "RankRandom", GREEDY):
        assert run(dataclasses.replace(setting, ranker=recipe(name))).active is None


def test_greedy_is_as_good_as_it_says() -> None:
    setting = SMALL.settings([GREEDY], instances=1)[0]
    rows = run(setting)
    best = registry.world(setting)[1].greedy(2).satisfaction
    assert rows.expected == pytest.approx(best)
    assert abs(rows.satisfied[-1] / 500 - best) < 0.1


class Restless(zr.users.PlainUsers):
    """Visitors whose taste changes with every one that was drawn."""

    def __init__(self, tree: zr.DocumentTree, seed: object = None) -> None:
        super().__init__(tree, sample=10)
        self.drawn = 0

    def visitor(self, rng: np.random.Generator) -> list[int]:
        self.drawn += 1
        return [self.drawn % len(self)]


def test_rows_do_not_depend_on_what_ran_before() -> None:
    restless = dataclasses.replace(SMALL, users=recipe(f"{__name__}:Restless"))
    (setting,) = restless.settings(["RankCorrZoom"], instances=1)
    assert to_parquet(run(setting)) == to_parquet(run(setting))


def test_the_version_covers_whatever_makes_rows() -> None:
    makes_rows = {"recipes", "registry", "run", "simulator"}
    assert {f"lab/{name}.py" for name in makes_rows} | {"documents/collection.py"} <= sources().keys()
    assert not any(name.startswith(("cli/", "service/", "client")) for name in sources())
