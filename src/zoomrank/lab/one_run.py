"""One run: a setting in, rows out. Nothing in the rows depends on when, where or after what it was run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zoomrank.lab.active_strategies import Counts, active_strategies
from zoomrank.lab.catalogue import believed, ranker, visitors  # so written, `code_version` sees it
from zoomrank.lab.recipes import Setting
from zoomrank.lab.simulator import simulate, window_ends
from zoomrank.numbers import Array

FIRST_LOOK = 10
LOOKS_PER_DECADE = 20


@dataclass(frozen=True)
class RunRows:
    """What was seen at each look: clicks are counted from the first visit on, so windows are differences.

    Attributes
    ----------
    setting
        What they come from.
    visits
        How many visits there had been at each look.
    clicks
        How many clicks there had been on each slot; a row per look.
    expected
        The exact chance that the ranking shown last satisfies a visitor.
    active
        How many strategies each slot told apart in the end; None for rankers that do not zoom.

    Examples
    --------
    >>> from zoomrank.lab import Curve, Experiment, recipe
    >>> world = {"tree": recipe("exponential", depth=4), "users": recipe("two-peaks")}
    >>> curves = (Curve("ZoomRank", recipe("ZoomRank")), Curve("random", recipe("RankRandom")))
    >>> experiment = Experiment("small", "A small world", **world, slots=2, visits=200, curves=curves)
    >>> rows = run(experiment.settings(["random"], instances=1)[0])
    >>> rows.visits[-1], rows.clicks.shape == (len(rows.visits), 2)
    (np.int64(200), True)
    """

    setting: Setting
    visits: Array
    clicks: Array
    expected: Array
    active: Counts | None = None

    @property
    def satisfied(self) -> Array:
        """Visitors who clicked.

        Returns
        -------
        ndarray of int
            How many there had been at each look.

        Examples
        --------
        >>> from zoomrank.lab import Curve, Experiment, recipe
        >>> world = {"tree": recipe("exponential", depth=4), "users": recipe("two-peaks")}
        >>> curves = (Curve("ZoomRank", recipe("ZoomRank")), Curve("random", recipe("RankRandom")))
        >>> experiment = Experiment("small", "A small world", **world, slots=2, visits=200, curves=curves)
        >>> rows = run(experiment.settings(["random"], instances=1)[0])
        >>> bool((rows.satisfied <= rows.visits).all())
        True
        """
        return np.asarray(self.clicks.sum(axis=1))


def looks(visits: int) -> list[int]:
    """When to look: evenly on a logarithmic scale from the tenth visit on, and at the ends of equal windows."""
    decades = np.log10(max(visits / FIRST_LOOK, 1.0))
    spaced = FIRST_LOOK * 10 ** np.arange(0, decades, 1 / LOOKS_PER_DECADE)
    return sorted({int(look) for look in spaced if look < visits} | set(window_ends(visits)))


def run(setting: Setting) -> RunRows:
    """Carry out one run.

    Parameters
    ----------
    setting
        All that the rows depend on.

    Returns
    -------
    RunRows
        What was seen at each look.

    Examples
    --------
    >>> from zoomrank.lab import Curve, Experiment, recipe
    >>> world = {"tree": recipe("exponential", depth=4), "users": recipe("two-peaks")}
    >>> curves = (Curve("ZoomRank", recipe("ZoomRank")), Curve("random", recipe("RankRandom")))
    >>> experiment = Experiment("small", "A small world", **world, slots=2, visits=200, curves=curves)
    >>> setting = experiment.settings(["random"], instances=1)[0]
    >>> bool((run(setting).clicks == run(setting).clicks).all())
    True
    """
    tree, users = believed(setting)
    learner = ranker(setting, tree, users)
    trace = simulate(
        learner,
        users,
        setting.visits,
        seed=visitors(setting),
        delay=setting.delay,
        windows=looks(setting.visits),
    )
    expected = [users.satisfaction(dict.fromkeys(shown)) for shown in trace.shown]  # the same one twice adds nothing
    clicks = np.cumsum(trace.clicks, axis=0)
    return RunRows(setting, trace.visits, clicks, np.array(expected), active_strategies(learner))
