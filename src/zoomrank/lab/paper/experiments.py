"""The paper's evaluation as data (Section 6), and what we ask beyond it.

Figures of the paper show a document twice where two slots choose it, as the paper does (`duplicates=True`); the
experiments beyond it never do, as zoomrank does unless told otherwise. Where the paper can be read in two ways, an
experiment exists twice, once under each reading.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from zoomrank.errors import CatalogueError
from zoomrank.lab.catalogue import GREEDY
from zoomrank.lab.recipes import ROUNDS, SEED, Curve, Experiment, Recipe, Setting, recipe

INSTANCES = 10


def _curve(name: str, ranker: str, **parameters: object) -> Curve:
    return Curve(name, recipe(ranker, duplicates=True, **parameters))


def _pessimistic(name: str, ranker: str, **parameters: object) -> Curve:
    """The paper writes these names with two dashes."""
    return _curve(f"{name}--", ranker, exploration="pessimistic", horizon=ROUNDS, **parameters)


_GREEDY = Curve(GREEDY, recipe(GREEDY))
_LEARNERS = (
    _curve("RankUCB1", "RankUCB1"),
    _curve("RankEXP3", "RankEXP3", horizon=ROUNDS),
    _curve("RankGridUCB1", "RankGridUCB1"),
    _curve("RankGridEXP3", "RankGridEXP3"),
    _curve("RankZoom", "RankZoom"),
    _curve("RankCorrZoom", "RankCorrZoom"),
    _curve("RankContextZoom", "RankContextZoom"),
    _curve("RankContextZoom-0.2", "RankContextZoom", scale=0.2),
)
_PESSIMISTIC = (
    _pessimistic("RankUCB1", "RankUCB1"),
    _pessimistic("RankGridUCB1", "RankGridUCB1"),
    _pessimistic("RankZoom", "RankZoom"),
    _pessimistic("RankCorrZoom", "RankCorrZoom"),
    _pessimistic("RankContextZoom", "RankContextZoom"),
)
_BASELINES = (_curve("RankRandom", "RankRandom"), _GREEDY)
_ZOOMING = tuple(curve for curve in _LEARNERS if "Zoom" in curve.name)
_ZOOM, _CORR = "RankZoom", "RankCorrZoom"


def _main(name: str, title: str, users: Recipe) -> Experiment:
    return replace(_large(name, title, _LEARNERS + _PESSIMISTIC + _BASELINES), users=users)


def _secondary(name: str, title: str, users: Recipe) -> Experiment:
    return Experiment(
        name=name,
        title=title,
        tree=recipe("exponential", depth=7),
        users=users,
        slots=2,
        rounds=1_000_000,
        curves=(*_ZOOMING, *_BASELINES),
    )


def _large(name: str, title: str, curves: tuple[Curve, ...]) -> Experiment:
    """The size of the paper's main experiments, with its two peaks."""
    return Experiment(
        name=name,
        title=title,
        tree=recipe("exponential", depth=15),
        users=recipe("two-peaks"),
        slots=5,
        rounds=300_000,
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
        rounds=100_000,
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
            rounds=1_000_000,
            curves=(*_LEARNERS[:2], *_ZOOMING[:3], *_BASELINES),
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
            "two peaks, answers that come late",
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
                  for curve in (*_LEARNERS, _BASELINES[0])),
                _GREEDY,
            ),
        ),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Panel:
    """One experiment in a figure: which of its curves."""

    experiment: str
    curves: tuple[str, ...]


@dataclass(frozen=True)
class Figure:
    """What is drawn together."""

    name: str
    title: str
    kind: str  # how it is drawn: see `figures.py`
    panels: tuple[Panel, ...]
    in_paper: bool = True

    def settings(self, instances: int, rounds: int | None = None, seed: int = SEED) -> list[Setting]:
        """The runs it needs."""
        return [
            setting
            for panel in self.panels
            for setting in EXPERIMENTS[panel.experiment].settings(
                panel.curves, instances=instances, rounds=rounds, seed=seed
            )
        ]


def _panel(experiment: str, curves: Iterable[Curve] | None = None) -> Panel:
    chosen = EXPERIMENTS[experiment].curves if curves is None else tuple(curves)
    return Panel(experiment, tuple(curve.name for curve in chosen))


_ALL = (*_LEARNERS, *_BASELINES)
_BOTH = (*(c for c in _LEARNERS if "EXP3" not in c.name), *_PESSIMISTIC, *_BASELINES)

FIGURES = {
    figure.name: figure
    for figure in (
        Figure("1", "Learning with two relevance peaks", "learning", (_panel("two-peaks", _ALL),)),
        Figure(
            "2",
            "Learning with Chinese Restaurant relevance",
            "learning",
            (_panel("restaurant", _ALL), _panel("restaurant-mixture", _ALL)),
        ),
        Figure("3", "Optimistic and pessimistic: two relevance peaks", "learning", (_panel("two-peaks", _BOTH),)),
        Figure(
            "4",
            "Optimistic and pessimistic: Chinese Restaurant relevance",
            "learning",
            (_panel("restaurant", _BOTH), _panel("restaurant-mixture", _BOTH)),
        ),
        Figure(
            "5",
            "Zooming on a small collection, two slots",
            "learning",
            (_panel("small"), _panel("small-mixture")),
        ),
        Figure("three", "Three documents, two slots", "learning", (_panel("three-documents"),), in_paper=False),
        Figure(
            "size",
            "What more documents cost",
            "size",
            tuple(_panel(name) for name in EXPERIMENTS if name.startswith("size-")),
            in_paper=False,
        ),
        Figure("belief", "What a wrong metric costs", "variants", (_panel("belief"),), in_paper=False),
        Figure("delay", "What late answers cost", "variants", (_panel("delay"),), in_paper=False),
        Figure("distinct", "No document shown twice", "learning", (_panel("distinct"),), in_paper=False),
    )
}
PAPER = tuple(name for name, figure in FIGURES.items() if figure.in_paper)
BEYOND = tuple(name for name, figure in FIGURES.items() if not figure.in_paper)


def figures_named(names: Iterable[str]) -> list[Figure]:
    """The figures of these names; `paper`, `beyond` and `all` stand for several."""
    groups = {"paper": PAPER, "beyond": BEYOND, "all": (*PAPER, *BEYOND)}
    wanted: dict[str, Figure] = {}
    for name in names:
        for member in groups.get(name, (name,)):
            if member not in FIGURES:
                raise CatalogueError(
                    f"There is no figure {name!r}; there are {', '.join(FIGURES)}, and paper, beyond, all for several."
                )
            wanted[member] = FIGURES[member]
    return list(wanted.values())


def settings_for(
    figures: Iterable[Figure], instances: int, rounds: int | None = None, seed: int = SEED
) -> list[Setting]:
    """All runs that these figures need, each once, instance by instance, so that a first picture comes early."""
    runs = {setting.id: setting for figure in figures for setting in figure.settings(instances, rounds, seed)}
    return sorted(runs.values(), key=lambda setting: setting.instance)
