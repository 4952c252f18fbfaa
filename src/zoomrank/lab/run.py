"""One run: a setting in, rows out. Nothing in the rows depends on when, where or after what it was run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zoomrank.lab.catalogue import believed, ranker, visitors  # so written, `code_version` sees it
from zoomrank.lab.recipes import Setting
from zoomrank.lab.simulator import simulate, window_ends
from zoomrank.numbers import Array

FIRST_LOOK = 10
LOOKS_PER_DECADE = 20


@dataclass(frozen=True)
class RunRows:
    """What was seen at each look: clicks are counted from the first visit on, so windows are differences."""

    setting: Setting
    visits: Array  # how many visits there had been
    clicks: Array  # by slot, a row per look
    expected: Array  # the exact chance that the ranking shown last satisfies a visitor

    @property
    def satisfied(self) -> Array:
        """Visitors who clicked."""
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
    """
    tree, users = believed(setting)
    trace = simulate(
        ranker(setting, tree, users),
        users,
        setting.visits,
        seed=visitors(setting),
        delay=setting.delay,
        windows=looks(setting.visits),
    )
    expected = [users.satisfaction(dict.fromkeys(shown)) for shown in trace.shown]  # the same one twice adds nothing
    return RunRows(setting, trace.visits, np.cumsum(trace.clicks, axis=0), np.array(expected))
