"""Rows combined into curves over instances: means, and 95 % intervals of means and of paired differences.

`collected` and `collected_so_far` measure a curve relative to the greedy optimum.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import stdtrit

from zoomrank.errors import ResultsError
from zoomrank.lab.recipes import Setting
from zoomrank.lab.run import RunRows
from zoomrank.lab.simulator import WINDOWS, window_ends
from zoomrank.types import Array

CONFIDENCE = 0.95
VISITS = 50_000  # of a run, where rankers are compared


@dataclass(frozen=True)
class Estimate:
    """A mean over instances and its 95 % interval; `estimate` makes one.

    Attributes
    ----------
    mean
        The mean.
    low, high
        The ends of the interval, by Student's t; infinite for a single instance.
    instances
        Number of instances.
    """

    mean: float
    low: float
    high: float
    instances: int

    def __str__(self) -> str:
        mean, low, high = (f"{round(value, 3) + 0.0:.3f}" for value in (self.mean, self.low, self.high))  # avoids -0
        return mean if self.instances < 2 else f"{mean} [{low}, {high}]"


def estimate(values: Array | Sequence[float]) -> Estimate:
    """Compute the mean of one number per instance, and its 95 % interval.

    Parameters
    ----------
    values
        A number per instance.

    Returns
    -------
    Estimate
        The mean, with an interval by Student's t.

    Examples
    --------
    >>> print(estimate([0.1, 0.2, 0.3]))
    0.200 [-0.048, 0.448]
    """
    mean, half = _interval(np.asarray(values, dtype=np.float64)[:, None])
    return Estimate(float(mean[0]), float(mean[0] - half[0]), float(mean[0] + half[0]), len(values))


def _interval(values: Array) -> tuple[Array, Array]:
    """Return the mean and the half width of the interval, column by column."""
    count = len(values)
    mean = values.mean(axis=0)
    if count < 2:
        return mean, np.full(mean.shape, np.inf)
    factor = stdtrit(count - 1, (1 + CONFIDENCE) / 2)  # the quantile of Student's t
    return mean, factor * values.std(axis=0, ddof=1) / np.sqrt(count)


@dataclass(frozen=True)
class Band:
    """A curve to draw."""

    visits: Array
    mean: Array
    low: Array
    high: Array


@dataclass(frozen=True)
class CurveRows:
    """All instances of one curve: arrays have a row per instance and a column per checkpoint."""

    settings: tuple[Setting, ...]  # one per instance
    visits: Array
    clicks: Array  # instance, checkpoint, slot
    expected: Array
    active: Array | None = None  # instance, slot: the final number of strategies, for zooming rankers

    @property
    def instances(self) -> tuple[int, ...]:
        """Numbers of the instances."""
        return tuple(setting.instance for setting in self.settings)

    @property
    def length(self) -> int:
        """Number of visits of each run."""
        return int(self.visits[-1])

    @cached_property
    def satisfied(self) -> Array:
        """Number of visitors satisfied so far, per instance and checkpoint."""
        return np.asarray(self.clicks.sum(axis=2))

    def rate(self, start: float = 0.0, end: float = 1.0) -> Array:
        """Return the satisfied fraction between two points of the run (0 is its beginning, 1 its end), per instance."""
        last = max(self._look(end * self.length), 0)
        first = min(self._look(start * self.length), last - 1)  # at least the span between two checkpoints
        before = self.satisfied[:, first] if first >= 0 else 0
        visits = self.visits[last] - (self.visits[first] if first >= 0 else 0)
        return np.asarray((self.satisfied[:, last] - before) / visits)

    def rate_around(self, visits: int) -> Array:
        """Return the satisfied fraction in the equal window that ends at or after this visit, per instance."""
        ends = window_ends(self.length)
        at = int(np.searchsorted(ends, min(visits, self.length)))
        return self.rate(ends[at - 1] / self.length if at else 0.0, ends[at] / self.length)

    def slot_rates(self) -> Array:
        """Return the fraction of visitors who click on each slot, over the whole run, per instance."""
        return np.asarray(self.clicks[:, -1] / self.length)

    def examined(self) -> Array:
        """Return the number of visits that reached each slot, per instance: those that clicked above it did not."""
        clicks = self.clicks[:, -1]
        return np.asarray(self.length - (clicks.cumsum(axis=1) - clicks))

    def window_rates(self) -> Array:
        """Return the satisfied fraction of each of the equal windows, per instance."""
        ends = np.array(window_ends(self.length, WINDOWS))
        counted = self.satisfied[:, np.searchsorted(self.visits, ends)]
        return np.asarray(np.diff(counted, axis=1, prepend=0) / np.diff(ends, prepend=0))

    def windows(self) -> Band:
        """Return the window rates as a curve."""
        return _band(np.array(window_ends(self.length, WINDOWS)), self.window_rates())

    def expectation(self, per_decade: int = 8) -> Band:
        """Return the exact satisfaction of rankings shown, averaged over a few checkpoints since rankers explore."""
        group = np.ceil(np.log10(self.visits) * per_decade - 1e-9)
        numbers = np.unique(group)
        values = np.stack([self.expected[:, group == number].mean(axis=1) for number in numbers], axis=1)
        ends = np.array([self.visits[group == number][-1] for number in numbers])
        return _band(ends, values)

    def _look(self, visits: float) -> int:
        """Return the last checkpoint that is not after this visit; -1 if there is none."""
        return int(np.searchsorted(self.visits, round(visits), side="right")) - 1


def _band(visits: Array, values: Array) -> Band:
    mean, half = _interval(values)
    half = np.where(np.isfinite(half), half, 0.0)
    return Band(visits, mean, mean - half, mean + half)


class Results:
    """All curves of a sweep, by experiment and name.

    Parameters
    ----------
    rows
        The rows of runs, in any order.

    Examples
    --------
    >>> from zoomrank.lab import Curve, Experiment, recipe, run
    >>> world = {"tree": recipe("exponential", depth=4), "users": recipe("two-peaks")}
    >>> curves = (Curve("ZoomRank", recipe("ZoomRank")), Curve("random", recipe("RankRandom")))
    >>> experiment = Experiment("small", "A small world", **world, slots=2, visits=200, curves=curves)
    >>> results = Results(run(setting) for setting in experiment.settings(["random"], instances=2))
    >>> results.curves("small"), results.curve("small", "random").instances
    (['random'], (0, 1))
    """

    def __init__(self, rows: Iterable[RunRows]) -> None:
        grouped: dict[tuple[str, str], list[RunRows]] = defaultdict(list)
        for run in rows:
            grouped[run.setting.experiment, run.setting.curve].append(run)
        self._curves: dict[tuple[str, str], CurveRows] = {}
        for name, runs in grouped.items():
            runs.sort(key=lambda run: run.setting.instance)
            if any(not np.array_equal(run.visits, runs[0].visits) for run in runs):
                raise ResultsError(f"Runs of {'/'.join(name)} were recorded at different visits.")
            self._curves[name] = CurveRows(
                settings=tuple(run.setting for run in runs),
                visits=runs[0].visits,
                clicks=np.stack([run.clicks for run in runs]),
                expected=np.stack([run.expected for run in runs]),
                active=None if any(run.active is None for run in runs) else np.array([run.active for run in runs]),
            )

    def has(self, experiment: str, *curves: str) -> bool:
        """Return whether there are rows of all these curves.

        Parameters
        ----------
        experiment
            The name of the experiment.
        *curves
            The names of the curves.

        Returns
        -------
        bool
            True if all of them have rows.
        """
        return all((experiment, curve) in self._curves for curve in curves)

    def curves(self, experiment: str) -> list[str]:
        """List the curves that have rows.

        Parameters
        ----------
        experiment
            The name of the experiment.

        Returns
        -------
        list of str
            Their names.
        """
        return [curve for name, curve in self._curves if name == experiment]

    def experiments(self) -> list[str]:
        """List the experiments that have rows.

        Returns
        -------
        list of str
            Their names.
        """
        return list(dict.fromkeys(name for name, _ in self._curves))

    def curve(self, experiment: str, curve: str) -> CurveRows:
        """Return the rows of a curve.

        Parameters
        ----------
        experiment
            The name of the experiment.
        curve
            The name of the curve.

        Returns
        -------
        CurveRows
            All its instances, as arrays.
        """
        try:
            return self._curves[experiment, curve]
        except KeyError:
            raise ResultsError(f"There are no rows of {experiment}/{curve}.") from None

    def comparable(self, experiment: str, *curves: str) -> bool:
        """Return whether there is an instance of which all these curves have rows.

        Parameters
        ----------
        experiment
            The name of the experiment.
        *curves
            The names of the curves.

        Returns
        -------
        bool
            True if they can be compared.
        """
        return self.has(experiment, *curves) and bool(self._common(experiment, curves))

    def renamed(self, names: Mapping[tuple[str, str], tuple[str, str]]) -> Results:
        """Return curves under other names, such as those of the experiment that they are compared with.

        Parameters
        ----------
        names
            Maps each new experiment and curve to the experiment and curve whose rows it takes.

        Returns
        -------
        Results
            The curves under their other names; those that have no rows are left out.
        """
        other = Results(())
        other._curves = {new: self._curves[old] for new, old in names.items() if old in self._curves}
        return other

    def first(self, instances: Mapping[str, int]) -> Results:
        """Keep the first instances of each experiment, since some curves may have more than others.

        Parameters
        ----------
        instances
            The number of instances to keep, by experiment.

        Returns
        -------
        Results
            The first instances of all curves.
        """
        other = Results(())
        other._curves = {name: _only(rows, set(range(instances[name[0]]))) for name, rows in self._curves.items()}
        return other

    def _common(self, experiment: str, curves: Sequence[str]) -> set[int]:
        return set.intersection(*(set(self.curve(experiment, curve).instances) for curve in curves))

    def together(self, experiment: str, *curves: str) -> list[CurveRows]:
        """Return several curves, reduced to the instances that all of them have, for paired comparison.

        Parameters
        ----------
        experiment
            The name of the experiment.
        *curves
            The names of the curves.

        Returns
        -------
        list of CurveRows
            One per curve, all with the same instances.
        """
        found = [self.curve(experiment, curve) for curve in curves]
        common = self._common(experiment, curves)
        if not common:
            raise ResultsError(f"The curves {', '.join(curves)} of {experiment} have no instance in common.")
        return [_only(rows, common) for rows in found]


def _only(rows: CurveRows, instances: set[int]) -> CurveRows:
    keep = [at for at, instance in enumerate(rows.instances) if instance in instances]
    active = None if rows.active is None else rows.active[keep]
    settings = tuple(rows.settings[at] for at in keep)
    return CurveRows(settings, rows.visits, rows.clicks[keep], rows.expected[keep], active)


def collected(mine: CurveRows, greedy: CurveRows, visits: int) -> Array:
    """Return clicks by some visit, as a share of what greedy collects on average by then."""
    end = min(visits / mine.length, 1.0)
    return np.asarray(mine.rate(0.0, end) / greedy.expected[:, 0])


def collected_so_far(mine: CurveRows, greedy: CurveRows) -> Array:
    """Return the same share at every checkpoint, averaged over instances: a curve to draw."""
    return np.asarray((mine.satisfied / mine.visits / greedy.expected[:, :1]).mean(axis=0))
