"""What a log can tell: how another ranking or ranker would have done, from impressions whose propensities are known."""

from zoomrank.judging.impression_log import ImpressionLog, read_log
from zoomrank.judging.intervals import Share
from zoomrank.judging.judgment import Judgment, judge, judge_by_query
from zoomrank.judging.ranking_files import read_rankings
from zoomrank.judging.replaying import Replay, replay
from zoomrank.judging.targets import KnowsPropensities, Target, TargetMix, TargetRanker, TargetRankings, target_of

__all__ = [
    "ImpressionLog",
    "Judgment",
    "KnowsPropensities",
    "Replay",
    "Share",
    "Target",
    "TargetMix",
    "TargetRanker",
    "TargetRankings",
    "judge",
    "judge_by_query",
    "read_log",
    "read_rankings",
    "replay",
    "target_of",
]
