"""The paper's figures as data: complete, and every run of theirs can be made."""

import numpy as np

from zoomrank.lab import registry
from zoomrank.lab.paper.figures import EXPERIMENTS, FIGURES, PAPER, figures_named, settings_for
from zoomrank.lab.recipes import Setting
from zoomrank.lab.registry import GREEDY


def test_every_setting_survives_being_written_down() -> None:
    settings = settings_for(figures_named(["all"]), instances=2)
    assert len({setting.id for setting in settings}) == len(settings)
    for setting in settings:
        assert Setting.from_json(setting.to_json()) == setting
        assert hash(setting) == hash(Setting.from_json(setting.to_json()))


def test_the_papers_figures_are_complete() -> None:
    seven = {"RankUCB1", "RankEXP3", "RankGridUCB1", "RankGridEXP3", "RankZoom", "RankCorrZoom", "RankContextZoom"}
    for name in ("1", "2"):
        for panel in FIGURES[name].panels:
            assert seven | {"RankRandom", GREEDY} <= set(panel.curves)
    for name in ("3", "4"):
        for panel in FIGURES[name].panels:
            for ranker in seven - {"RankEXP3", "RankGridEXP3"}:
                assert {ranker, f"{ranker}--"} <= set(panel.curves)
    assert PAPER == ("1", "2", "3", "4", "5")
    for experiment in ("two-peaks", "restaurant", "restaurant-mixture"):
        (setting,) = EXPERIMENTS[experiment].settings(["RankEXP3"], instances=1)
        tree, _ = registry.world(setting)
        assert (len(tree), setting.slots, setting.visits) == (32_768, 5, 300_000)
        assert setting.ranker.given == {"duplicates": True, "horizon": 300_000}
    (setting,) = EXPERIMENTS["small"].settings(["RankZoom"], instances=1)
    assert (len(registry.world(setting)[0]), setting.slots) == (128, 2)
    assert setting.visits >= 1_000_000


def test_figures_share_runs() -> None:
    alone = len(settings_for(figures_named(["1"]), 1)) + len(settings_for(figures_named(["3"]), 1))
    assert len(settings_for(figures_named(["1", "3"]), 1)) < alone


def test_every_ranker_and_belief_can_be_made() -> None:
    for setting in settings_for(figures_named(["all"]), instances=1, visits=100):
        if not setting.experiment.startswith("size-"):
            tree, users = registry.believed(setting)
            assert len(registry.ranker(setting, tree, users).rank().documents) == setting.slots


def test_readings_of_an_instance_have_the_same_mean() -> None:
    one, other = (
        EXPERIMENTS[name].settings([GREEDY], instances=3)[2] for name in ("restaurant@shares", "restaurant-mixture")
    )
    assert np.allclose(registry.world(one)[1].mean(), registry.world(other)[1].mean())
