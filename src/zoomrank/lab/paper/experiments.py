"""The paper's evaluation as data (Section 6), and what we ask beyond it.

Figures of the paper show a document twice where two slots choose it, as the paper does (`duplicates=True`); the
experiments beyond it never do, as zoomrank does unless told otherwise. Where the paper can be read in two ways, an
experiment exists twice, once under each reading.
"""

from __future__ import annotations

from dataclasses import replace

from zoomrank.lab.catalogue import GREEDY
from zoomrank.lab.recipes import ALL_VISITS, Curve, Experiment, Recipe, recipe


def _curve(name: str, ranker: str, **parameters: object) -> Curve:
    return Curve(name, recipe(ranker, duplicates=True, **parameters))


def _pessimistic(name: str, ranker: str, **parameters: object) -> Curve:
    """The paper writes these names with two dashes."""
    return _curve(f"{name}--", ranker, exploration="pessimistic", horizon=ALL_VISITS, **parameters)


_GREEDY = Curve(GREEDY, recipe(GREEDY))
CURVES = (
    _curve("RankUCB1", "RankUCB1"),
    _curve("RankEXP3", "RankEXP3", horizon=ALL_VISITS),
    _curve("RankGridUCB1", "RankGridUCB1"),
    _curve("RankGridEXP3", "RankGridEXP3"),
    _curve("RankZoom", "RankZoom"),
    _curve("RankCorrZoom", "RankCorrZoom"),
    _curve("RankContextZoom", "RankContextZoom"),
    _curve("RankContextZoom-0.2", "RankContextZoom", scale=0.2),
)
EXPLORING = (_curve("RankExploreCommit", "RankExploreCommit"),)  # the paper's REC, of which it draws no curve
PESSIMISTIC = (
    _pessimistic("RankUCB1", "RankUCB1"),
    _pessimistic("RankGridUCB1", "RankGridUCB1"),
    _pessimistic("RankZoom", "RankZoom"),
    _pessimistic("RankCorrZoom", "RankCorrZoom"),
    _pessimistic("RankContextZoom", "RankContextZoom"),
)
BASELINES = (_curve("RankRandom", "RankRandom"), _GREEDY)
_ZOOMING = tuple(curve for curve in CURVES if "Zoom" in curve.name)
MAIN = ("two-peaks", "restaurant", "restaurant-mixture")
SMALL = ("small", "small-mixture")
_ZOOM, _CORR = "RankZoom", "RankCorrZoom"


def _main(name: str, title: str, users: Recipe) -> Experiment:
    return replace(_large(name, title, CURVES + EXPLORING + PESSIMISTIC + BASELINES), users=users)


def _secondary(name: str, title: str, users: Recipe) -> Experiment:
    return Experiment(
        name=name,
        title=title,
        tree=recipe("exponential", depth=7),
        users=users,
        slots=2,
        visits=1_000_000,
        curves=(*_ZOOMING, *BASELINES),
    )


def _large(name: str, title: str, curves: tuple[Curve, ...]) -> Experiment:
    """The size of the paper's main experiments, with its two peaks."""
    return Experiment(
        name=name,
        title=title,
        tree=recipe("exponential", depth=15),
        users=recipe("two-peaks"),
        slots=5,
        visits=300_000,
        curves=curves,
    )


def _size(depth: int) -> Experiment:
    names = ("RankUCB1", "RankGridUCB1", _ZOOM, _CORR, "RankRandom")
    return Experiment(
        name=f"size-{2**depth}",
        title=f"two peaks, {2**depth:,} documents",
        tree=recipe("exponential", depth=depth),
        users=recipe("two-peaks"),
        slots=5,
        visits=100_000,
        curves=(*(Curve(name, recipe(name)) for name in names), _GREEDY),
    )


_BELIEFS = (
    ("", None),
    ("-halved", recipe("scaled", factor=0.5)),
    ("-doubled", recipe("scaled", factor=2.0)),
    ("-shuffled-10", recipe("shuffled", share=0.1)),
    ("-shuffled-30", recipe("shuffled", share=0.3)),
)
_DELAYS = (0, 100, 1_000, 10_000)

EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        _main("two-peaks", "two peaks", recipe("two-peaks")),
        _main("restaurant", "Chinese Restaurant, one network", recipe("chinese-restaurant")),
        _main(
            "restaurant-mixture",
            "Chinese Restaurant, each visitor belongs to a peak",
            recipe("chinese-restaurant", reading="mixture"),
        ),
        _secondary("small", "two peaks, 128 documents, one network", recipe("two-peaks")),
        _secondary(
            "small-mixture",
            "two peaks, 128 documents, each visitor belongs to a peak",
            recipe("two-peaks", reading="mixture"),
        ),
        Experiment(
            name="three-documents",
            title="the three documents of Section 5.1",
            tree=recipe("three-documents"),
            users=recipe("three-documents"),
            slots=2,
            visits=1_000_000,
            curves=(*CURVES[:2], *_ZOOMING[:3], *BASELINES),
        ),
        *(_size(depth) for depth in (10, 12, 15, 18, 20)),
        _large(
            "belief",
            "two peaks, with a metric that is wrong",
            (
                *(Curve(f"{name}{words}", recipe(name), belief=belief)
                  for name in (_ZOOM, _CORR) for words, belief in _BELIEFS),
                _GREEDY,
            ),
        ),
        _large(
            "delay",
            "two peaks, feedback that comes late",
            (
                *(Curve(f"{name}-late-{delay}" if delay else name, recipe(name), delay=delay)
                  for name in (_ZOOM, _CORR) for delay in _DELAYS),
                _GREEDY,
            ),
        ),
        _large(
            "distinct",
            "two peaks, no document shown twice",
            (
                *(Curve(curve.name, recipe(curve.ranker.name, **{**curve.ranker.given, "duplicates": False}))
                  for curve in (*CURVES, BASELINES[0])),
                _GREEDY,
            ),
        ),
    )
}  # fmt: skip
