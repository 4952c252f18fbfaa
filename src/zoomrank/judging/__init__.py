"""Judgments of rankings: the difference of two arms of an experiment, and off-policy estimates from a log with
propensities.
"""

from zoomrank.judging.comparison import Differences, difference
from zoomrank.judging.impression_log import ImpressionLog, read_log
from zoomrank.judging.intervals import Share
from zoomrank.judging.judgment import Judgment, judge, judge_by_query
from zoomrank.judging.replay import Replay, replay
from zoomrank.judging.targets import (
    KnowsPropensities,
    Target,
    TargetMix,
    TargetRanker,
    TargetRankings,
    read_rankings,
    target_of,
)

__all__ = [
    "Differences",
    "ImpressionLog",
    "Judgment",
    "KnowsPropensities",
    "Replay",
    "Share",
    "Target",
    "TargetMix",
    "TargetRanker",
    "TargetRankings",
    "difference",
    "judge",
    "judge_by_query",
    "read_log",
    "read_rankings",
    "replay",
    "target_of",
]
