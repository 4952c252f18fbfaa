"""`replay`: let a learner learn from a log as if it had shown it, as far as that is honest.

At every impression the learner ranks. If its ranking begins as the visitor saw it, down to where she stopped looking,
what she did is what she would have done with the learner, and the impression may be kept. It is kept the more rarely
the likelier the log was to show it, so that those kept are drawn as the learner draws; the others are as if they had
not been. So of a log the share that is kept is the smallest chance that a beginning had in it: replays need short
rankings of few documents, shown nearly at random.

Li, Chu, Langford and Wang (WSDM 2011) replayed uniform logs; to keep by propensities makes it exact for others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from zoomrank.documents.logged_impressions import positions_of
from zoomrank.errors import CannotTellError, ParameterError
from zoomrank.judging.estimators import Estimate
from zoomrank.judging.impression_log import ImpressionLog
from zoomrank.judging.intervals import Share, share
from zoomrank.judging.logged_rows import NOTHING
from zoomrank.judging.refusals import LEAST_SAMPLE, check_known
from zoomrank.numbers import Array, Seed
from zoomrank.rankers import Ranked
from zoomrank.rankers.ranking_arrays import RankingArrays

WINDOWS = 10
_CERTAIN = 4.0  # standard errors


@dataclass(frozen=True, eq=False)
class Replay:
    """What became of a learner that learned from a log.

    Attributes
    ----------
    kept : int
        How many impressions it learned from.
    impressions : int
        How many there were.
    satisfied : Share
        The share of visitors that it satisfied, over all that were kept.
    visits : ndarray of int
        How many had been kept at the end of each window.
    rates : ndarray
        The share that was satisfied in each window.

    Examples
    --------
    >>> import zoomrank as zr
    >>> tree = zr.DocumentTree.exponential(depth=1)
    >>> log = ImpressionLog.from_rows(
    ...     {"query": "", "shown": [one], "propensity": [0.5], "clicked": one if one == 1 and i % 4 else None}
    ...     for i in range(400) for one in (0, 1)
    ... )
    >>> found = replay(log, lambda: zr.ZoomRank(tree, slots=1, seed=1), seed=1)
    >>> found.impressions, bool(found.rates[-1] > 0.6)
    (800, True)
    """

    kept: int
    impressions: int
    satisfied: Share
    visits: Array
    rates: Array

    def __str__(self) -> str:
        return (
            f"satisfied by the learner      {self.satisfied}\n"
            f"kept                          {self.kept:,} of {self.impressions:,} impressions\n"
            f"window by window              {' '.join(f'{rate:.3f}' for rate in self.rates)}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Say the same as numbers, for a file.

        Returns
        -------
        dict
            What JSON can say.

        Examples
        --------
        >>> Replay(100, 200, Share(0.5, 0.4, 0.6, 0.05), np.array([100]), np.array([0.5])).as_dict()["kept"]
        100
        """
        return {
            "kept": self.kept,
            "impressions": self.impressions,
            "satisfied": self.satisfied._asdict(),
            "visits": self.visits.tolist(),
            "rates": self.rates.tolist(),
        }


def replay(log: ImpressionLog, make: Callable[[], Ranked], *, seed: Seed = None) -> Replay:
    """Let a learner learn from a log, query by query, from those impressions that it might have shown itself.

    Parameters
    ----------
    log : ImpressionLog
        What was shown, how likely that was, and what became of it.
    make : callable
        Makes a learner that knows nothing; each query gets one.
    seed : int, Generator or None
        Where chance begins, which decides what is kept.

    Returns
    -------
    Replay
        The share of visitors that it satisfied. Where the log has too little for it, `CannotTellError` says so.

    References
    ----------
    Li, Chu, Langford and Wang, *Unbiased offline evaluation of contextual-bandit-based news article recommendation
    algorithms*, WSDM 2011.

    Examples
    --------
    >>> import zoomrank as zr
    >>> tree = zr.DocumentTree.exponential(depth=1)
    >>> row = {"query": "", "shown": [0], "propensity": [0.5], "clicked": None}
    >>> replay(ImpressionLog.from_rows([row] * 150), lambda: zr.ZoomRank(tree, slots=1, seed=1), seed=1)
    Traceback (most recent call last):
    zoomrank.errors.CannotTellError: Of 150 impressions the learner ...
    """
    slots = make().slots
    if slots > log.slots:
        raise ParameterError(f"The learner shows {slots} documents, the log {log.slots} at most: make it that short.")
    log = log.cut(slots)
    check_known(log)
    rng = np.random.default_rng(seed)
    likely = _likely(log)
    least = float(likely.min())
    kept = _Replayed(log, make).kept(least / likely, rng)
    _check(len(log), int(kept.sum()), least)
    return _summed_up(log, kept)


def _likely(log: ImpressionLog) -> Array:
    """How likely the log was to show what each visitor looked at."""
    looked = np.arange(log.slots) < log.looks[:, None]
    return np.asarray(np.where(looked, log.propensity, 1.0).prod(axis=1))


class _Replayed:
    """A learner for each query."""

    def __init__(self, log: ImpressionLog, make: Callable[[], Ranked]) -> None:
        self._log, self._make = log, make
        self._learners: dict[int, Ranked] = {}
        positions = positions_of(make().tree.documents)
        places = np.array([*(positions.get(document, NOTHING) for document in log.documents), NOTHING])
        self._shown = places[log.shown]  # the last place is that of NOTHING

    def kept(self, chances: Array, rng: np.random.Generator) -> Array:
        """Which impressions were kept; the learners have learned from them."""
        lucky = rng.random(len(chances)) < chances
        kept = np.zeros(len(chances), bool)
        for row in np.flatnonzero(lucky):  # who is not lucky need not be looked at
            learner = self._learner(int(self._log.query[row]))
            ranking, looks = learner.rank_arrays(1), int(self._log.looks[row])
            kept[row] = (ranking.shown[0, :looks] == self._shown[row, :looks]).all()
            if kept[row]:
                self._learn(learner, ranking, looks, self._log.click[row])
        return kept

    def _learner(self, query: int) -> Ranked:
        if query not in self._learners:
            self._learners[query] = self._make()
        return self._learners[query]

    @staticmethod
    def _learn(learner: Ranked, ranking: RankingArrays, looks: int, click: int) -> None:
        ranking.pick[0, looks:] = -1  # nobody knows about these
        learner.learn_arrays(ranking, np.array([click]))


def _check(impressions: int, kept: int, least: float) -> None:
    few = f"Of {impressions:,} impressions the learner might have shown {kept:,}"
    rule = (
        f"a replay keeps one of {1 / least:,.0f} here, as rare as the rarest beginning that was looked at. With more "
        "than a slot or two over many documents that is nearly always too few; judge a ranking or a ranker instead"
    )
    if kept < impressions * least - _CERTAIN * np.sqrt(impressions * least):
        raise CannotTellError(
            f"{few}, where {impressions * least:,.0f} would be due: it wants to show what the log never does. Let the "
            "log explore all that the learner may show."
        )
    if kept < LEAST_SAMPLE:
        raise CannotTellError(f"{few}, and {LEAST_SAMPLE} is the least: {rule}.")


def _summed_up(log: ImpressionLog, kept: Array) -> Replay:
    satisfied = (log.click[kept] < log.slots).astype(float)
    mean = float(satisfied.mean())
    ends = np.unique(np.linspace(0, len(satisfied), WINDOWS + 1).round().astype(int))
    rates = np.add.reduceat(satisfied, ends[:-1]) / np.diff(ends)
    estimate = Estimate(mean, satisfied - mean)
    return Replay(len(satisfied), len(log), share(estimate, len(satisfied)), ends[1:], rates)
