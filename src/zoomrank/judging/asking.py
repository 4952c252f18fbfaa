"""Conversion of a ranking, a ranker, or a mapping of either by query into a `Target`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zoomrank.errors import ParameterError
from zoomrank.judging.impression_log import ImpressionLog
from zoomrank.judging.ranker_targets import KnowsPropensities, TargetRanker
from zoomrank.judging.ranking_targets import TargetRankings
from zoomrank.judging.targets import Target


def target_of(log: ImpressionLog, given: Any) -> Target:
    """Convert a ranking or a ranker into a target for a log.

    Parameters
    ----------
    log : ImpressionLog
        The log to judge by.
    given : Target, ranker, sequence or mapping
        A target; a ranker that has `propensities`; a ranking, which is for all queries; or rankings or rankers by their
        queries.

    Returns
    -------
    Target
        The target, with documents numbered as in the log.
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
