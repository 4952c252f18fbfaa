"""Simulation: the whole loop of ranking, clicking and learning.

Rankers of the library and visitors that have a compiled `state` run in one compiled loop. Anything else that can `rank`
and `learn`, and visitors written in plain Python, run in the plain loop below it: slower, but the same experiment.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from zoomrank.bandits.kernel_interface import roomy
from zoomrank.compiled import Scalar, compiled, expecting
from zoomrank.errors import ParameterError, SlotsError, UnknownDocumentError
from zoomrank.rankers import Ranked
from zoomrank.rankers.ranking import SECONDS_A_RANKING, RankingArrays, empty_rankings, learn_row, rank_row
from zoomrank.spaces import DocumentId
from zoomrank.types import Array, Seed, whole_number
from zoomrank.users import UserDistribution
from zoomrank.users.first_click import first_click

WINDOWS = 60  # by default


class Ranker(Protocol):
    """Interface of rankers that can be simulated: those of the library, and your own.

    Examples
    --------
    >>> import zoomrank as zr
    >>> class Stubborn:
    ...     def rank(self):
    ...         return [0, 1]
    ...     def learn(self, ranking, click):
    ...         pass
    >>> users = zr.users.two_peaks(zr.DocumentTree.exponential(depth=4), seed=1)
    >>> len(simulate(Stubborn(), users, visits=100, windows=4).shown)
    4
    """

    def rank(self) -> Any:
        """Choose the ranking for one visitor.

        Returns
        -------
        list of DocumentId, or a Ranking
            The documents from the top, or an object with an attribute `documents`.
        """

    def learn(self, ranking: Any, click: int | None) -> None:
        """Learn from the visitor's feedback.

        Parameters
        ----------
        ranking
            The value that `rank` returned.
        click
            The slot of the first click, counted from 0, or None.
        """


@dataclass(frozen=True)
class Trace:
    """Result of a simulation, window by window.

    Attributes
    ----------
    visits
        Number of visits at the end of each window.
    satisfied
        Number of visitors of each window who clicked.
    clicks
        Number of clicks on each slot, a row per window.
    shown
        The last ranking of each window.
    """

    visits: Array
    satisfied: Array
    clicks: Array
    shown: list[list[DocumentId]]

    @property
    def rate(self) -> float:
        """Share of all visitors who clicked.

        Returns
        -------
        float
            From 0 to 1.
        """
        return float(self.satisfied.sum() / self.visits[-1]) if len(self.visits) else float("nan")

    @property
    def rates(self) -> Array:
        """Share of visitors of each window who clicked.

        Returns
        -------
        ndarray
            From 0 to 1, one per window.
        """
        return np.asarray(self.satisfied / np.diff(self.visits, prepend=0))


def simulate(
    ranker: Ranker,
    users: UserDistribution,
    visits: int,
    *,
    seed: Seed = None,
    delay: int = 0,
    windows: Sequence[int] | int = WINDOWS,
) -> Trace:
    """Simulate visits: show each visitor a ranking and let the ranker learn from the clicks.

    Parameters
    ----------
    ranker
        One of the library, or anything that can `rank` and `learn`.
    users
        The distribution that visitors are drawn from.
    visits
        Number of visitors.
    seed
        It alone determines the visitors: two rankers with the same seed meet the same visitors in the same order.
    delay
        Number of visits by which feedback is late. Feedback still pending at the end is dropped.
    windows
        Number of equal windows to record, or the last visit of each.

    Returns
    -------
    Trace
        Clicks by window and slot, and the last ranking of each window.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 2, the k-slot Lipschitz MAB problem; Section 6.

    Examples
    --------
    >>> import zoomrank as zr
    >>> tree = zr.DocumentTree.exponential(depth=8)
    >>> users = zr.users.two_peaks(tree, seed=1)
    >>> trace = simulate(zr.RankCorrZoom(tree, slots=3, seed=1), users, visits=20_000, seed=1)
    >>> bool(trace.rates[-1] > trace.rates[0])
    True
    """
    total, late = whole_number(visits, "visits"), whole_number(delay, "delay")
    if total < 1 or late < 0:
        raise ParameterError(
            f"{total} visits with a delay of {late} cannot be simulated; visits must be at least 1, delay at least 0."
        )
    ends = window_ends(total, windows)
    rng = np.random.default_rng(seed)
    if isinstance(ranker, Ranked) and users.state is not None:
        return _simulate_compiled(ranker, users, ends, late, rng)
    return _simulate_in_python(ranker, users, ends, late, rng)


def window_ends(visits: int, windows: Sequence[int] | int = WINDOWS) -> list[int]:
    """Return the ends of windows: equal ones if given a number, or the given ends after a check."""
    if isinstance(windows, int | np.integer):
        if windows < 1:
            raise ParameterError(f"{windows} windows cannot be recorded; ask for at least one.")
        return sorted({round(visits * (i + 1) / int(windows)) for i in range(int(windows))} - {0})
    ends = [whole_number(end, "a window's end") for end in windows]
    if not ends or ends[0] < 1 or ends[-1] != visits or any(a >= b for a, b in pairwise(ends)):
        raise ParameterError(f"Windows must end at ascending visits, the last at {visits}; these end at {ends}.")
    return ends


@compiled
def _play(
    state: Any, users: Any, log: RankingArrays, clicks: Array, counts: Array, span: Array, duplicates: Scalar, rngs: Any
) -> Scalar:
    """Play visits span[0] .. span[1] - 1, with feedback len(clicks) - 1 visits late; return the visit reached."""
    delay = len(clicks) - 1
    slots = log.shown.shape[1]
    for t in range(span[0], span[1]):
        if not roomy(state):
            return t
        row = t % len(clicks)
        rank_row(state, log, row, duplicates, rngs[0])
        clicks[row] = first_click(users, log.shown[row], rngs[1])
        counts[clicks[row]] += 1
        if t >= delay:
            told = (t - delay) % len(clicks)
            learn_row(state, log, told, min(clicks[told], slots))
    return span[1]


def _simulate_compiled(
    ranker: Ranked, users: UserDistribution, ends: list[int], late: int, rng: np.random.Generator
) -> Trace:
    if users.documents is not ranker.tree.documents and list(users.documents) != list(ranker.tree.documents):
        raise UnknownDocumentError(
            "The visitors and the ranker have different documents, or the same in another order; make both from one "
            "tree."
        )
    log = empty_rankings(late + 1, ranker.slots, weighed=False)
    pending = np.zeros(late + 1, np.int64)
    clicks = np.zeros((len(ends), ranker.slots + 1), np.int64)
    shown = []
    at = 0
    for window, end in enumerate(ends):
        while at < end:
            span = np.array([at, end])
            with expecting(SECONDS_A_RANKING * ends[-1]):
                at = _play(
                    ranker.restricted(ranker.present),
                    users.state,
                    log,
                    pending,
                    clicks[window],
                    span,
                    ranker.duplicates,
                    (ranker.rng, rng),
                )
            if at < end:
                ranker.make_room()
        shown.append(ranker.tree.documents.at(log.shown[(end - 1) % (late + 1)]))
    return _trace(ends, clicks, shown)


def _simulate_in_python(
    ranker: Ranker, users: UserDistribution, ends: list[int], late: int, rng: np.random.Generator
) -> Trace:
    pending: deque[tuple[Any, int | None]] = deque()
    clicks = np.zeros((0, 0), np.int64)
    shown: list[list[DocumentId]] = []
    at = 0
    for window, end in enumerate(ends):
        documents: list[DocumentId] = []
        for _ in range(at, end):
            ranking = ranker.rank()
            documents = list(getattr(ranking, "documents", ranking))
            slots = len(documents)
            if clicks.size == 0:
                clicks = np.zeros((len(ends), slots + 1), np.int64)
            if slots == 0 or slots + 1 != clicks.shape[1]:
                raise SlotsError(
                    f"A ranking has {slots} documents, those before it {clicks.shape[1] - 1}; all must have equally "
                    "many, at least 1."
                )
            click = users.click(documents, rng)
            clicks[window, slots if click is None else click] += 1
            pending.append((ranking, click))
            if len(pending) > late:
                ranker.learn(*pending.popleft())
        shown.append(documents)
        at = end
    return _trace(ends, clicks, shown)


def _trace(ends: list[int], clicks: Array, shown: list[list[DocumentId]]) -> Trace:
    """Build a trace; the last column of `clicks` counts visitors who left without a click."""
    return Trace(np.array(ends), clicks[:, :-1].sum(axis=1), clicks[:, :-1], shown)
