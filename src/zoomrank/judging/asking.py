"""From what somebody means to a target: a ranking, rankings by query, a ranker, rankers by query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zoomrank.errors import ParameterError
from zoomrank.judging.impression_log import ImpressionLog
from zoomrank.judging.ranker_targets import KnowsPropensities, TargetRanker
from zoomrank.judging.ranking_targets import TargetRankings
from zoomrank.judging.targets import Target


def target_of(log: ImpressionLog, given: Any) -> Target:
    """The target that somebody means, for a log.

    Parameters
    ----------
    log : ImpressionLog
        What is asked.
    given : Target, ranker, sequence or mapping
        A target; a ranker that has `propensities`; a ranking, which is for all queries; or rankings or rankers by their
        queries.

    Returns
    -------
    Target
        The same, in the numbers of the log.

    Examples
    --------
    >>> row = {"query": "owls", "shown": ["barn", "snow"], "propensity": [0.5, 1.0], "clicked": "snow"}
    >>> target_of(ImpressionLog.from_rows([row]), {"owls": ["snow"]}).queries
    ['owls']
    """
    if isinstance(given, Target):
        return given
    if isinstance(given, Mapping) and given and all(isinstance(one, KnowsPropensities) for one in given.values()):
        return TargetRanker(log, given)
    if isinstance(given, Mapping):
        return TargetRankings(log, given)
    if isinstance(given, KnowsPropensities):
        return TargetRanker(log, given)
    if isinstance(given, Sequence) and not isinstance(given, str):
        return TargetRankings(log, {}, given)
    raise ParameterError(f"{given!r} is no target: give a ranking, rankings by query, or a ranker with propensities.")
