"""Experiments as plain data: what can be compared, printed, stored beside results and sent to another machine.

A `Recipe` names a tree, visitors or a ranker and its parameters. A `Curve` is a ranker in an `Experiment`; an
experiment, asked for so many instances, yields one `Setting` per curve and instance, with an id such as
`two-peaks/RankCorrZoom/3`.
Instance i has the same kind of visitors for every curve, so that curves can be compared in pairs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from zoomrank.errors import ParameterError
from zoomrank.numbers import whole_number

ALL_VISITS = "{visits}"  # as a parameter: however many visits there are
LOG_VISITS = "{log visits}"  # and their natural logarithm
SEED = 2013  # from which all instances are drawn unless said otherwise


@dataclass(frozen=True)
class Recipe:
    """What to make, and with which parameters; `recipe` writes one.

    Attributes
    ----------
    name
        A name in the catalogue, or `module:Name`.
    parameters
        Pairs of a name and a value, sorted.

    Examples
    --------
    >>> print(Recipe("two-peaks", (("background", 0.1),)))
    two-peaks(background=0.1)
    """

    name: str
    parameters: tuple[tuple[str, Any], ...] = ()

    @property
    def given(self) -> dict[str, Any]:
        """The parameters by name.

        Returns
        -------
        dict
            From names to values.

        Examples
        --------
        >>> recipe("two-peaks", background=0.1).given
        {'background': 0.1}
        """
        return dict(self.parameters)

    def __str__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.parameters)
        return f"{self.name}({inside})"


def recipe(what: str | Callable[..., Any], **parameters: Any) -> Recipe:
    """Write a recipe.

    Parameters
    ----------
    what
        A name in the catalogue, `module:Name`, or a class or function, which is named by where it can be imported from.
    **parameters
        What it is made with; numbers, texts and tuples, so that they can be written down.

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
    """One run: everything that its rows depend on. `Experiment.settings` makes them.

    Attributes
    ----------
    experiment, curve
        What the run belongs to.
    instance
        Which drawing of the world it is in.
    tree, users, ranker
        What to make.
    slots
        How many documents a ranking has.
    visits
        How many visitors come.
    delay
        How many visits late feedback comes.
    belief
        How the tree that the ranker is given differs from the one that visitors live in; None if it does not.
    seed
        Where the chance of all instances begins.

    Examples
    --------
    >>> world = {"tree": recipe("exponential", depth=4), "users": recipe("two-peaks")}
    >>> curves = (Curve("ZoomRank", recipe("ZoomRank")), Curve("random", recipe("RankRandom")))
    >>> experiment = Experiment("small", "A small world", **world, slots=2, visits=200, curves=curves)
    >>> setting = experiment.settings(instances=2)[0]
    >>> setting.curve, setting.visits
    ('ZoomRank', 200)
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
        """A readable name.

        Returns
        -------
        str
            The experiment, the curve and the instance.

        Examples
        --------
        >>> world = {"tree": recipe("exponential", depth=4), "users": recipe("two-peaks")}
        >>> curves = (Curve("ZoomRank", recipe("ZoomRank")), Curve("random", recipe("RankRandom")))
        >>> experiment = Experiment("small", "A small world", **world, slots=2, visits=200, curves=curves)
        >>> experiment.settings(instances=1)[1].id
        'small/random/0'
        """
        return f"{self.experiment}/{self.curve}/{self.instance}"

    def to_json(self) -> str:
        """Write everything down, always in the same words: two settings are the same if these are.

        Returns
        -------
        str
            JSON, for `from_json`.

        Examples
        --------
        >>> world = {"tree": recipe("exponential", depth=4), "users": recipe("two-peaks")}
        >>> curves = (Curve("ZoomRank", recipe("ZoomRank")), Curve("random", recipe("RankRandom")))
        >>> experiment = Experiment("small", "A small world", **world, slots=2, visits=200, curves=curves)
        >>> setting = experiment.settings(instances=1)[0]
        >>> Setting.from_json(setting.to_json()) == setting
        True
        """
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Setting:
        """Read what `to_json` wrote.

        Parameters
        ----------
        text
            JSON.

        Returns
        -------
        Setting
            The same as the one that was written.

        Examples
        --------
        >>> world = {"tree": recipe("exponential", depth=4), "users": recipe("two-peaks")}
        >>> curves = (Curve("ZoomRank", recipe("ZoomRank")), Curve("random", recipe("RankRandom")))
        >>> experiment = Experiment("small", "A small world", **world, slots=2, visits=200, curves=curves)
        >>> setting = experiment.settings(instances=1)[1]
        >>> Setting.from_json(setting.to_json()).id
        'small/random/0'
        """
        fields = json.loads(text)
        for name in ("tree", "users", "ranker", "belief"):
            if fields[name] is not None:
                pairs = ((key, tuple(v) if isinstance(v, list) else v) for key, v in fields[name]["parameters"])
                fields[name] = Recipe(fields[name]["name"], tuple(pairs))
        return cls(**fields)


@dataclass(frozen=True)
class Curve:
    """A ranker under a name, and what is special about the circumstances it is put in.

    Attributes
    ----------
    name
        What it is called in reports.
    ranker
        What to make.
    delay
        How many visits late feedback comes.
    belief
        How the tree that the ranker is given differs from the one that visitors live in; None if it does not.

    Examples
    --------
    >>> Curve("ZoomRank, late", recipe("ZoomRank"), delay=100).delay
    100
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
        What it is called in results.
    title
        What it is called in reports.
    tree, users
        The world: what to make.
    slots
        How many documents a ranking has.
    visits
        How many visitors come.
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
        """The runs of an experiment, instance by instance.

        Parameters
        ----------
        curves
            The names of those that are wanted; all of them unless said otherwise.
        instances
            How many worlds are drawn; all curves meet the same.
        visits
            Other than the experiment's own, for a quick look.
        seed
            From which all instances are drawn.

        Returns
        -------
        list of Setting
            One per curve and instance.

        Examples
        --------
        >>> world = {"tree": recipe("exponential", depth=4), "users": recipe("two-peaks")}
        >>> curves = (Curve("ZoomRank", recipe("ZoomRank")), Curve("random", recipe("RankRandom")))
        >>> experiment = Experiment("small", "A small world", **world, slots=2, visits=200, curves=curves)
        >>> [setting.id for setting in experiment.settings(["random"], instances=2)]
        ['small/random/0', 'small/random/1']
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
        raise ParameterError(f"{count} {what} are nothing to look at; ask for at least one.")
    return count


def _with_visits(ranker: Recipe, visits: int) -> Recipe:
    stand_for = {ALL_VISITS: visits, LOG_VISITS: math.log(visits)}
    filled = tuple(
        (name, stand_for.get(value, value) if isinstance(value, str) else value) for name, value in ranker.parameters
    )
    return replace(ranker, parameters=filled)
