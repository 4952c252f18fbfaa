"""Which is better: by an experiment, or by what a log can tell of another ranking, where its propensities are known."""

from zoomrank.judging.asking import target_of
from zoomrank.judging.comparing import Differences, difference
from zoomrank.judging.impression_log import ImpressionLog, read_log
from zoomrank.judging.intervals import Share
from zoomrank.judging.judgment import Judgment, judge, judge_by_query
from zoomrank.judging.ranker_targets import KnowsPropensities, TargetRanker
from zoomrank.judging.ranking_files import read_rankings
from zoomrank.judging.ranking_targets import TargetMix, TargetRankings
from zoomrank.judging.replaying import Replay, replay
from zoomrank.judging.targets import Target

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
