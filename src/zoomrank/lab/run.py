"""One run: a setting in, rows out. Rows do not depend on when, where or after what the run was carried out.

Rows can stand beside each other if they come from the same version: the release, and a hash of every source that rows
depend on. Rows of zooming rankers also say how many strategies each slot has in the end: active subtrees, or
pairs with contexts.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from zoomrank import __version__
from zoomrank.bandits.contextual_zooming.learner import ContextualState
from zoomrank.bandits.contextual_zooming.pairs import ACTIVE
from zoomrank.bandits.zooming import ZoomState
from zoomrank.compiled import without_docstrings
from zoomrank.lab.recipes import Setting
from zoomrank.lab.registry import believed, ranker, visitors  # by name: `this_version` follows such imports
from zoomrank.lab.simulator import simulate, window_ends
from zoomrank.types import Array

Counts = tuple[int, ...]  # by slot

_PACKAGE = Path(__file__).parents[1]
_ROOT = "lab/run.py"
_IMPORTS = re.compile(r"^ *from zoomrank\.([a-z0-9_.]+) import", re.MULTILINE)
FIRST_LOOK = 10
LOOKS_PER_DECADE = 20
MARKS = (50, 100, 200, 500, 1_000, 10_000, 50_000)  # visits by which clicks are counted: always checkpoints


@dataclass(frozen=True)
class RunRows:
    """Counts at each checkpoint; clicks are counted from the first visit on, so windows are differences.

    Attributes
    ----------
    setting
        The setting of the run.
    visits
        Number of visits at each checkpoint.
    clicks
        Number of clicks on each slot so far; a row per checkpoint.
    expected
        The exact probability that the ranking shown last satisfies a visitor.
    active
        The final number of active strategies of each slot; None for rankers that do not zoom.
    """

    setting: Setting
    visits: Array
    clicks: Array
    expected: Array
    active: Counts | None = None

    @property
    def satisfied(self) -> Array:
        """Number of visitors who clicked.

        Returns
        -------
        ndarray of int
            The number at each checkpoint.
        """
        return np.asarray(self.clicks.sum(axis=1))


def checkpoints(visits: int) -> list[int]:
    """Return the checkpoints: evenly spaced on a logarithmic scale from the tenth visit on, the marks, and the ends of
    equal windows.
    """
    decades = np.log10(max(visits / FIRST_LOOK, 1.0))
    spaced = FIRST_LOOK * 10 ** np.arange(0, decades, 1 / LOOKS_PER_DECADE)
    marks = {mark for mark in MARKS if mark <= visits}
    return sorted({int(look) for look in spaced if look < visits} | marks | set(window_ends(visits)))


def run(setting: Setting) -> RunRows:
    """Carry out one run.

    Parameters
    ----------
    setting
        The setting, which determines the rows.

    Returns
    -------
    RunRows
        Counts at each checkpoint.

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
        windows=checkpoints(setting.visits),
    )
    expected = [users.satisfaction(dict.fromkeys(shown)) for shown in trace.shown]  # repeats add nothing
    clicks = np.cumsum(trace.clicks, axis=0)
    return RunRows(setting, trace.visits, clicks, np.array(expected), active_strategies(learner))


def active_strategies(ranker: Any) -> Counts | None:
    """Count the active strategies of each slot; None for rankers that do not zoom.

    For contextual zooming, only pairs of contexts that have occurred are counted; others are not stored.

    >>> from zoomrank import DocumentTree, RankZoom
    >>> active_strategies(RankZoom(DocumentTree.exponential(depth=3), slots=2))
    (1, 1)
    """
    state = getattr(ranker, "state", None)
    if isinstance(state, ZoomState):
        return tuple(_subtrees(state, slot) for slot in range(len(state.used)))
    if isinstance(state, ContextualState):  # nothing is above the first slot: it has a plain zoom tree
        return (_subtrees(state, 0), *(_pairs(state, slot) for slot in range(1, len(state.pair_used))))
    return None


def _subtrees(state: Any, slot: int) -> int:
    return int(np.count_nonzero(state.child[slot, : state.used[slot]] == 0))


def _pairs(state: Any, slot: int) -> int:
    return int(np.count_nonzero(state.pair["known_for"][slot, : state.pair_used[slot]] == ACTIVE))


@cache
def this_version() -> str:
    """Return the version: rows of one version can stand beside each other, whatever comments and docstrings say."""
    digest = hashlib.sha256()
    for name, text in sources().items():
        digest.update(f"{name}\n{without_docstrings(text)}\n".encode())
    return f"{__version__}+{digest.hexdigest()[:12]}"


def sources() -> dict[str, str]:
    """Return the sources that rows come from, by file: those of runs, of kernels, and all that these import."""
    texts = {file.relative_to(_PACKAGE).as_posix(): file.read_text("utf-8") for file in _PACKAGE.rglob("*.py")}
    kernels = {name for name, text in texts.items() if "from zoomrank.compiled import" in text}
    wanted = {name for name in kernels if not name.startswith(("cli/", "service/"))} | {_ROOT}  # these make no rows
    todo = list(wanted)
    while todo:
        for module in _IMPORTS.findall(texts[todo.pop()]):
            path = module.replace(".", "/")
            found = {f"{path}.py", f"{path}/__init__.py"} & texts.keys() - wanted
            wanted |= found
            todo += found
    return {name: texts[name] for name in sorted(wanted)}
