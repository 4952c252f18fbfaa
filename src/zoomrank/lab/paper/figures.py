"""The experiments and figures of the paper's evaluation (Section 6) and beyond it, as data.

Experiments of the paper follow one reading of what it leaves open (`readings.py`); most are shown both with and without
visitors who belong to a peak. Those beyond it are three documents, more documents, wrong metrics, late feedback and no
duplicates; in all but the first no document is shown twice, which is zoomrank's default. Another reading is run only
where it changes something: its curves are added by rule to the experiments that they belong to, or to new ones. A
figure says which curves of which experiments are drawn together, and so which runs that takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from zoomrank.errors import CatalogueError
from zoomrank.lab.paper.readings import CHOICES, OTHERS, READING, PaperWorld, PublishedCurve, Reading, differences
from zoomrank.lab.recipes import ALL_VISITS, SEED, Curve, Experiment, Setting, recipe
from zoomrank.lab.registry import GREEDY

# The paper's experiments, as its figures show them.

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
    size = {} if name in MAIN else {"depth": 7, "slots": 2, "visits": 1_000_000}
    return replace(_two_peaks(name, title, curves, **size), users=world.recipe(READING))


def _two_peaks(
    name: str, title: str, curves: tuple[Curve, ...], *, depth: int = 15, slots: int = 5, visits: int = 300_000
) -> Experiment:
    """Return an experiment with the paper's two peaks; by default of the size of its main experiments."""
    tree, users = recipe("exponential", depth=depth), recipe("two-peaks")
    return Experiment(name, title, tree, users, slots, visits, curves)


PUBLISHED = {world.experiment: _as_published(world) for world in WORLDS}


# Experiments beyond the paper's.

_GREEDY = Curve(GREEDY, recipe(GREEDY))
_ZOOM, _CORR = "RankZoom", "RankCorrZoom"
_ZOOMING = tuple(curve for curve in CURVES if "Zoom" in curve.name)


def _size(depth: int) -> Experiment:
    names = ("RankUCB1", "RankGridUCB1", _ZOOM, _CORR, "RankRandom")
    curves = (*(Curve(name, recipe(name)) for name in names), _GREEDY)
    return _two_peaks(f"size-{2**depth}", f"two peaks, {2**depth:,} documents", curves, depth=depth, visits=100_000)


_BELIEFS = (
    ("", None),
    ("-halved", recipe("scaled", factor=0.5)),
    ("-doubled", recipe("scaled", factor=2.0)),
    ("-shuffled-10", recipe("shuffled", share=0.1)),
    ("-shuffled-30", recipe("shuffled", share=0.3)),
)
_DELAYS = (0, 100, 1_000, 10_000)

BEYOND_FIGURES = {
    experiment.name: experiment
    for experiment in (
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
        _two_peaks(
            "belief",
            "two peaks, with a metric that is wrong",
            (
                *(Curve(f"{name}{words}", recipe(name), belief=belief)
                  for name in (_ZOOM, _CORR) for words, belief in _BELIEFS),
                _GREEDY,
            ),
        ),
        _two_peaks(
            "delay",
            "two peaks, feedback that comes late",
            (
                *(Curve(f"{name}-late-{delay}" if delay else name, recipe(name), delay=delay)
                  for name in (_ZOOM, _CORR) for delay in _DELAYS),
                _GREEDY,
            ),
        ),
        _two_peaks(
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


# All experiments, with those that other readings of the paper need.

_FIGURES = {**PUBLISHED, **BEYOND_FIGURES}


def source(experiment: str, curve: str, reading: Reading) -> tuple[str, str]:
    """Return the experiment and curve that hold the rows of a figure's curve under another reading."""
    world = next(each for each in WORLDS if each.experiment == experiment)
    wanted = next(each for each in published(experiment) if each.name == curve)
    return world.under(reading, wanted), wanted.under(reading).name


def _of_reading(world: PaperWorld, reading: Reading) -> Iterator[tuple[Experiment, Curve]]:
    """Iterate over the curves of an experiment that a reading changes, each with the experiment it is run in."""
    usual = _FIGURES[world.experiment]
    words = ", ".join(CHOICES[name][choice] for name, choice in differences(reading).items())
    title = f"{title_of(world.experiment, reading)}: {words}"
    for each in published(world.experiment):
        name, curve = world.under(reading, each), each.under(reading)
        if (name, curve.name) != (world.experiment, each.name) and name != world.twin:
            yield replace(usual, name=name, title=title, users=world.recipe(reading), curves=()), curve


def _with_readings() -> dict[str, Experiment]:
    """Return all experiments, including those that only other readings need."""
    found = dict(_FIGURES)
    for reading in OTHERS:
        for world in WORLDS:
            for home, curve in _of_reading(world, reading):
                there = found.setdefault(home.name, home)
                if curve not in there.curves:
                    found[home.name] = replace(there, curves=(*there.curves, curve))
    return found


EXPERIMENTS = _with_readings()
READINGS = {  # needed by other readings beyond the figures: curves by experiment
    name: tuple(each for each in one.curves if name not in _FIGURES or each not in _FIGURES[name].curves)
    for name, one in EXPERIMENTS.items()
    if one != _FIGURES.get(name)
}


INSTANCES = 10


@dataclass(frozen=True)
class Panel:
    """One experiment in a figure, with some of its curves."""

    experiment: str
    curves: tuple[str, ...]


@dataclass(frozen=True)
class Figure:
    """Panels that are drawn together."""

    name: str
    title: str
    kind: str  # see `plots.py`; a "table" is not drawn
    panels: tuple[Panel, ...]
    in_paper: bool = True

    def settings(self, instances: int, visits: int | None = None, seed: int = SEED) -> list[Setting]:
        """Return the runs that it needs."""
        return [
            setting
            for panel in self.panels
            for setting in EXPERIMENTS[panel.experiment].settings(
                panel.curves, instances=instances, visits=visits, seed=seed
            )
        ]


def _panel(experiment: str, curves: Iterable[Curve] | None = None) -> Panel:
    chosen = EXPERIMENTS[experiment].curves if curves is None else tuple(curves)
    return Panel(experiment, tuple(curve.name for curve in chosen))


_ALL = (*CURVES, *EXPLORING, *BASELINES)
_BOTH = (*(c for c in CURVES if "EXP3" not in c.name), *PESSIMISTIC, *BASELINES)

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
        Figure("delay", "What late feedback costs", "variants", (_panel("delay"),), in_paper=False),
        Figure("distinct", "No document shown twice", "learning", (_panel("distinct"),), in_paper=False),
        Figure(
            "readings",
            "The paper's sentences under other readings of it",
            "table",
            tuple(_panel(name, curves) for name, curves in READINGS.items()),
            in_paper=False,
        ),
    )
}
PAPER = tuple(name for name, figure in FIGURES.items() if figure.in_paper)
BEYOND = tuple(name for name, figure in FIGURES.items() if not figure.in_paper and figure.kind != "table")


def figures_named(names: Iterable[str]) -> list[Figure]:
    """Return the figures of these names; `paper`, `beyond` and `all` stand for several."""
    groups = {"paper": PAPER, "beyond": BEYOND, "all": tuple(FIGURES)}
    wanted: dict[str, Figure] = {}
    for name in names:
        for member in groups.get(name, (name,)):
            if member not in FIGURES:
                raise CatalogueError(
                    f"Unknown figure {name!r}; choose from {', '.join(FIGURES)}, or paper, beyond, all for several."
                )
            wanted[member] = FIGURES[member]
    return list(wanted.values())


def settings_of(
    curves: Mapping[str, Iterable[str]], instances: int, visits: int | None = None, seed: int = SEED
) -> list[Setting]:
    """Return the runs of these curves, by experiment."""
    panels = tuple(Panel(experiment, tuple(names)) for experiment, names in curves.items())
    return settings_for([Figure("", "", "table", panels)], instances, visits, seed)


def settings_for(
    figures: Iterable[Figure], instances: int, visits: int | None = None, seed: int = SEED
) -> list[Setting]:
    """Return all runs that these figures need, each once, instance by instance, so that first results come early."""
    runs = {setting.id: setting for figure in figures for setting in figure.settings(instances, visits, seed)}
    return sorted(runs.values(), key=lambda setting: setting.instance)
