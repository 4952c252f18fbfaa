"""All experiments by name: the paper's, those beyond it, and those that other readings of the paper need.

Another reading is run only where it changes something: its curves are added by rule to the experiments that they belong
to, or to new experiments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from zoomrank.lab.paper.beyond import BEYOND
from zoomrank.lab.paper.published import PAPER, WORLDS, published, title_of
from zoomrank.lab.paper.readings import CHOICES, OTHERS, PaperWorld, Reading, differences
from zoomrank.lab.recipes import Curve, Experiment

_FIGURES = {**PAPER, **BEYOND}


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
