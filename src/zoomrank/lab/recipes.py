"""Experiments as plain data, which can be compared, printed, stored beside results and sent to another machine.

A `Recipe` names a tree, visitors or a ranker and its parameters. A `Curve` is a ranker in an `Experiment`; an
experiment yields one `Setting` per curve and instance, with an id such as `two-peaks/RankCorrZoom/3`. Instance i has
the same kind of visitors for every curve, so that curves can be compared in pairs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from zoomrank.errors import ParameterError
from zoomrank.types import whole_number

ALL_VISITS = "{visits}"  # as a parameter: the number of visits
LOG_VISITS = "{log visits}"  # and their natural logarithm
SEED = 2013  # the default seed of all instances


@dataclass(frozen=True)
class Recipe:
    """A name in the catalogue with parameters; `recipe` makes one.

    Attributes
    ----------
    name
        A name in the catalogue, or `module:Name`.
    parameters
        Pairs of a name and a value, sorted.
    """

    name: str
    parameters: tuple[tuple[str, Any], ...] = ()

    @property
    def given(self) -> dict[str, Any]:
        """Parameters by name.

        Returns
        -------
        dict
            From names to values.
        """
        return dict(self.parameters)

    def __str__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.parameters)
        return f"{self.name}({inside})"


def recipe(what: str | Callable[..., Any], **parameters: Any) -> Recipe:
    """Make a recipe.

    Parameters
    ----------
    what
        A name in the catalogue, `module:Name`, or an importable class or function.
    **parameters
        Its parameters: numbers, texts and tuples, which can be stored as JSON.

    Returns
    -------
    Recipe
        The name, and the parameters.

    Examples
    --------
    >>> print(recipe("RankContextZoom", scale=0.2))
    RankContextZoom(scale=0.2)
    """
    if not isinstance(what, str):
        what = f"{what.__module__}:{what.__qualname__}"
    return Recipe(what, tuple(sorted(parameters.items())))


@dataclass(frozen=True)
class Setting:
    """All that the rows of one run depend on. `Experiment.settings` makes them.

    Attributes
    ----------
    experiment, curve
        The experiment and the curve that the run belongs to.
    instance
        The number of the instance, a random draw of the world.
    tree, users, ranker
        Recipes of the tree, the visitors and the ranker.
    slots
        Number of documents in a ranking.
    visits
        Number of visits.
    delay
        Number of visits by which feedback is late.
    belief
        The difference between the tree that the ranker is given and the true one; None if there is none.
    seed
        The seed of all instances.
    """

    experiment: str
    curve: str
    instance: int
    tree: Recipe
    users: Recipe
    ranker: Recipe
    slots: int
    visits: int
    delay: int
    belief: Recipe | None
    seed: int

    @property
    def id(self) -> str:
        """Readable name of the run.

        Returns
        -------
        str
            The experiment, the curve and the instance.
        """
        return f"{self.experiment}/{self.curve}/{self.instance}"

    def to_json(self) -> str:
        """Serialise the setting canonically: two settings are equal if their texts are.

        Returns
        -------
        str
            JSON, for `from_json`.
        """
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Setting:
        """Parse a setting that `to_json` wrote.

        Parameters
        ----------
        text
            JSON.

        Returns
        -------
        Setting
            A setting equal to the one that was written.
        """
        fields = json.loads(text)
        for name in ("tree", "users", "ranker", "belief"):
            if fields[name] is not None:
                pairs = ((key, tuple(v) if isinstance(v, list) else v) for key, v in fields[name]["parameters"])
                fields[name] = Recipe(fields[name]["name"], tuple(pairs))
        return cls(**fields)


@dataclass(frozen=True)
class Curve:
    """A named ranker in an experiment, with special circumstances if there are any.

    Attributes
    ----------
    name
        Its name in reports.
    ranker
        The recipe of the ranker.
    delay
        Number of visits by which feedback is late.
    belief
        The difference between the tree that the ranker is given and the true one; None if there is none.
    """

    name: str
    ranker: Recipe
    delay: int = 0
    belief: Recipe | None = None


@dataclass(frozen=True)
class Experiment:
    """Rankers in the same world, with the same visitors.

    Attributes
    ----------
    name
        Its name in results.
    title
        Its title in reports.
    tree, users
        Recipes of the tree and the visitors.
    slots
        Number of documents in a ranking.
    visits
        Number of visits.
    curves
        The rankers.

    Examples
    --------
    >>> world = {"tree": recipe("exponential", depth=4), "users": recipe("two-peaks")}
    >>> curves = (Curve("ZoomRank", recipe("ZoomRank")), Curve("random", recipe("RankRandom")))
    >>> experiment = Experiment("small", "A small world", **world, slots=2, visits=200, curves=curves)
    >>> len(experiment.settings(instances=3))
    6
    """

    name: str
    title: str
    tree: Recipe
    users: Recipe
    slots: int
    visits: int
    curves: tuple[Curve, ...]

    def settings(
        self, curves: Sequence[str] | None = None, *, instances: int, visits: int | None = None, seed: int = SEED
    ) -> list[Setting]:
        """Return the runs of an experiment, instance by instance.

        Parameters
        ----------
        curves
            The names of the curves to run; by default all of them.
        instances
            Number of instances to draw, shared by all curves.
        visits
            Number of visits, if different from the experiment's.
        seed
            The seed of all instances.

        Returns
        -------
        list of Setting
            One per curve and instance.
        """
        count = _at_least_one(instances, "instances")
        length = _at_least_one(self.visits if visits is None else visits, "visits")
        names = {curve.name for curve in self.curves}
        missing = [name for name in curves or () if name not in names]
        if missing:
            raise ParameterError(f"{self.name} has no curve {missing[0]!r}; it has {', '.join(sorted(names))}.")
        chosen = [curve for curve in self.curves if curves is None or curve.name in curves]
        return [self._setting(curve, instance, length, seed) for instance in range(count) for curve in chosen]

    def _setting(self, curve: Curve, instance: int, visits: int, seed: int) -> Setting:
        return Setting(
            experiment=self.name,
            curve=curve.name,
            instance=instance,
            tree=self.tree,
            users=self.users,
            ranker=_with_visits(curve.ranker, visits),
            slots=self.slots,
            visits=visits,
            delay=curve.delay,
            belief=curve.belief,
            seed=seed,
        )


def _at_least_one(value: int, what: str) -> int:
    count = whole_number(value, what)
    if count < 1:
        raise ParameterError(f"{count} {what} cannot be run; ask for at least one.")
    return count


def _with_visits(ranker: Recipe, visits: int) -> Recipe:
    stand_for = {ALL_VISITS: visits, LOG_VISITS: math.log(visits)}
    filled = tuple(
        (name, stand_for.get(value, value) if isinstance(value, str) else value) for name, value in ranker.parameters
    )
    return replace(ranker, parameters=filled)
