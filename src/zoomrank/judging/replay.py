"""`replay`: let a learner learn from a log as if it had shown the rankings itself, where that is unbiased.

At every impression the learner ranks. If its ranking begins as the visitor saw it, down to where the visitor stopped
looking, the visitor would have done the same with the learner, and the impression may be kept. It is kept the more
rarely the likelier the log was to show it, so that kept impressions are distributed as the learner draws; the others
are ignored. So the share of a log that is kept is the smallest probability of a beginning in it: replays need short
rankings of few documents, shown nearly at random.

Li, Chu, Langford and Wang (WSDM 2011) replayed uniform logs; keeping by propensities makes it exact for others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from zoomrank.documents.click_log import positions_of
from zoomrank.errors import CannotTellError, ParameterError
from zoomrank.judging.estimators import ShareEstimate
from zoomrank.judging.impression_log import NOTHING, ImpressionLog
from zoomrank.judging.intervals import Share, share
from zoomrank.judging.judgment import LEAST_SAMPLE, check_known
from zoomrank.rankers import Ranked
from zoomrank.rankers.ranking import RankingArrays
from zoomrank.types import Array, Seed

WINDOWS = 10
_CERTAIN = 4.0  # standard errors


@dataclass(frozen=True, eq=False)
class Replay:
    """Result of a learner that learned from a log.

    Attributes
    ----------
    kept : int
        Number of impressions it learned from.
    impressions : int
        Number of impressions in the log.
    satisfied : Share
        The share of satisfied visitors, over all kept impressions.
    visits : ndarray of int
        Number of impressions kept by the end of each window.
    rates : ndarray
        The share of satisfied visitors in each window.
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
        """Return the numbers as a dict, for a JSON file.

        Returns
        -------
        dict
            JSON types only.
        """
        return {
            "kept": self.kept,
            "impressions": self.impressions,
            "satisfied": self.satisfied._asdict(),
            "visits": self.visits.tolist(),
            "rates": self.rates.tolist(),
        }


def replay(log: ImpressionLog, make: Callable[[], Ranked], *, seed: Seed = None) -> Replay:
    """Let a learner learn from a log, query by query, from the impressions that it might have shown itself.

    Parameters
    ----------
    log : ImpressionLog
        Impressions with propensities and feedback.
    make : callable
        Makes a new learner; called once per query.
    seed : int, Generator or None
        The seed of the random decisions which impressions are kept.

    Returns
    -------
    Replay
        The share of visitors that it satisfied. A log with too few matching impressions raises `CannotTellError`.

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
        raise ParameterError(f"The learner has {slots} slots, the log at most {log.slots}: make the learner shorter.")
    log = log.cut(slots)
    check_known(log)
    rng = np.random.default_rng(seed)
    likely = _exposure_probability(log)
    least = float(likely.min())
    kept = _QueryLearners(log, make).kept(least / likely, rng)
    _check(len(log), int(kept.sum()), least)
    return _summary(log, kept)


def _exposure_probability(log: ImpressionLog) -> Array:
    """Return the probability with which the log showed the slots that each visitor looked at."""
    looked = np.arange(log.slots) < log.looks[:, None]
    return np.asarray(np.where(looked, log.propensity, 1.0).prod(axis=1))


class _QueryLearners:
    """A learner per query."""

    def __init__(self, log: ImpressionLog, make: Callable[[], Ranked]) -> None:
        self._log, self._make = log, make
        self._learners: dict[int, Ranked] = {}
        positions = positions_of(make().tree.documents)
        places = np.array([*(positions.get(document, NOTHING) for document in log.documents), NOTHING])
        self._shown = places[log.shown]  # the last place stands for NOTHING

    def kept(self, chances: Array, rng: np.random.Generator) -> Array:
        """Let the learners learn, and return the indices of the kept impressions."""
        lucky = rng.random(len(chances)) < chances
        kept = np.zeros(len(chances), bool)
        for row in np.flatnonzero(lucky):  # the others would not be kept anyway
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
        ranking.pick[0, looks:] = -1  # the visitor did not look at these
        learner.learn_arrays(ranking, np.array([click]))


def _check(impressions: int, kept: int, least: float) -> None:
    few = f"Of {impressions:,} impressions the learner might have shown {kept:,}"
    rule = (
        f"a replay keeps one of {1 / least:,.0f} here, the rate of the rarest beginning in the log. With more "
        "than a slot or two over many documents that is nearly always too few: judge a ranking or a ranker instead"
    )
    if kept < impressions * least - _CERTAIN * np.sqrt(impressions * least):
        raise CannotTellError(
            f"{few}, where {impressions * least:,.0f} were expected: it shows documents that the log never does. "
            "Let the log explore all documents that the learner may show."
        )
    if kept < LEAST_SAMPLE:
        raise CannotTellError(f"{few}; at least {LEAST_SAMPLE} are needed: {rule}.")


def _summary(log: ImpressionLog, kept: Array) -> Replay:
    satisfied = (log.click[kept] < log.slots).astype(float)
    mean = float(satisfied.mean())
    ends = np.unique(np.linspace(0, len(satisfied), WINDOWS + 1).round().astype(int))
    rates = np.add.reduceat(satisfied, ends[:-1]) / np.diff(ends)
    estimate = ShareEstimate(mean, satisfied - mean)
    return Replay(len(satisfied), len(log), share(estimate, len(satisfied)), ends[1:], rates)
