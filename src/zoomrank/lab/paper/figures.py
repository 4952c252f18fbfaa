"""The figures, as data: which curves of which experiments are drawn together, and which runs that takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from zoomrank.errors import CatalogueError
from zoomrank.lab.paper.experiments import EXPERIMENTS, READINGS
from zoomrank.lab.paper.published import BASELINES, CURVES, EXPLORING, PESSIMISTIC
from zoomrank.lab.recipes import SEED, Curve, Setting

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
