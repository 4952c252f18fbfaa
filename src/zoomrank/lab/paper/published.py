"""The experiments of the paper's evaluation as data (Section 6), as its figures show them.

They follow one reading of what the paper leaves open (`readings.py`). Most are shown both with and without visitors who
belong to a peak.
"""

from __future__ import annotations

from dataclasses import replace

from zoomrank.lab.catalogue import GREEDY
from zoomrank.lab.paper.readings import READING, PaperWorld, PublishedCurve, Reading
from zoomrank.lab.recipes import ALL_VISITS, Curve, Experiment, recipe

MAIN = ("two-peaks", "restaurant", "restaurant-mixture")
SMALL = ("small", "small-mixture")
_CURVES = (
    PublishedCurve("RankUCB1", "RankUCB1"),
    PublishedCurve("RankEXP3", "RankEXP3", (("horizon", ALL_VISITS),)),
    PublishedCurve("RankGridUCB1", "RankGridUCB1"),
    PublishedCurve("RankGridEXP3", "RankGridEXP3"),
    PublishedCurve("RankZoom", "RankZoom"),
    PublishedCurve("RankCorrZoom", "RankCorrZoom"),
    PublishedCurve("RankContextZoom", "RankContextZoom"),
    PublishedCurve("RankContextZoom-0.2", "RankContextZoom", (("scale", 0.2),)),
)
_EXPLORING = (PublishedCurve("RankExploreCommit", "RankExploreCommit"),)  # the paper's REC, for which it draws no curve
_PESSIMISTIC = tuple(  # the paper writes these names with two dashes
    PublishedCurve(f"{name}--", name, pessimistic=True)
    for name in ("RankUCB1", "RankGridUCB1", "RankZoom", "RankCorrZoom", "RankContextZoom")
)
_BASELINES = (PublishedCurve("RankRandom", "RankRandom"), PublishedCurve(GREEDY, GREEDY))
CURVES, EXPLORING, PESSIMISTIC, BASELINES = (
    tuple(each.under(READING) for each in some) for some in (_CURVES, _EXPLORING, _PESSIMISTIC, _BASELINES)
)
WORLDS = (
    PaperWorld("two-peaks", "two-peaks"),
    PaperWorld("restaurant", "chinese-restaurant", "network", twin="restaurant-mixture"),
    PaperWorld("restaurant-mixture", "chinese-restaurant", "mixture", twin="restaurant"),
    PaperWorld("small", "two-peaks", "network", twin="small-mixture"),
    PaperWorld("small-mixture", "two-peaks", "mixture", twin="small"),
)
_HEIGHTS = {"shares": "peaks as high as their shares", "tallest": "the highest peak ½", "halves": "all peaks ½"}
_TITLES = {
    "two-peaks": "two peaks",
    "restaurant": "Chinese Restaurant, one network, {heights}",
    "restaurant-mixture": "Chinese Restaurant, each visitor belongs to a peak, peaks as high as their shares",
    "small": "two peaks, 128 documents, one network",
    "small-mixture": "two peaks, 128 documents, each visitor belongs to a peak",
}


def title_of(experiment: str, reading: Reading) -> str:
    """Return the title of an experiment under a reading."""
    return _TITLES[experiment].format(heights=_HEIGHTS[reading.heights])


def published(experiment: str) -> tuple[PublishedCurve, ...]:
    """Return the curves of an experiment, independent of a reading."""
    if experiment in MAIN:
        return _CURVES + _EXPLORING + _PESSIMISTIC + _BASELINES
    return (*(each for each in _CURVES if "Zoom" in each.name), *_BASELINES)


def _as_published(world: PaperWorld) -> Experiment:
    """Return an experiment of the paper as the figures show it."""
    name = world.experiment
    curves = tuple(each.under(READING) for each in published(name))
    title = title_of(name, READING)
    one = large(name, title, curves) if name in MAIN else _secondary(name, title, curves)
    return replace(one, users=world.recipe(READING))


def _secondary(name: str, title: str, curves: tuple[Curve, ...]) -> Experiment:
    return Experiment(
        name=name,
        title=title,
        tree=recipe("exponential", depth=7),
        users=recipe("two-peaks"),
        slots=2,
        visits=1_000_000,
        curves=curves,
    )


def large(name: str, title: str, curves: tuple[Curve, ...]) -> Experiment:
    """Return an experiment with the size of the paper's main experiments and its two peaks."""
    return Experiment(
        name=name,
        title=title,
        tree=recipe("exponential", depth=15),
        users=recipe("two-peaks"),
        slots=5,
        visits=300_000,
        curves=curves,
    )


PAPER = {world.experiment: _as_published(world) for world in WORLDS}
