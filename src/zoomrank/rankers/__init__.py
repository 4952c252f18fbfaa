"""Learners of whole rankings: one bandit per slot."""

from zoomrank.rankers.arm_rankers import RankEXP3, RankGridEXP3, RankGridUCB1, RankUCB1
from zoomrank.rankers.baseline_rankers import (
    CascadeKLUCB,
    FixedRanking,
    RankExploreCommit,
    RankKLUCB,
    RankRandom,
    RankThompson,
)
from zoomrank.rankers.explanation import SlotExplanation
from zoomrank.rankers.forecast import Forecast, SlotForecast, TriedSubtree
from zoomrank.rankers.ranked import Ranked
from zoomrank.rankers.ranker_file import load
from zoomrank.rankers.ranking import Ranking, Rankings
from zoomrank.rankers.zoom_rank import ZoomRank
from zoomrank.rankers.zooming_rankers import RankContextZoom, RankCorrZoom, RankZoom

__all__ = [
    "CascadeKLUCB",
    "FixedRanking",
    "Forecast",
    "RankContextZoom",
    "RankCorrZoom",
    "RankEXP3",
    "RankExploreCommit",
    "RankGridEXP3",
    "RankGridUCB1",
    "RankKLUCB",
    "RankRandom",
    "RankThompson",
    "RankUCB1",
    "RankZoom",
    "Ranked",
    "Ranking",
    "Rankings",
    "SlotExplanation",
    "SlotForecast",
    "TriedSubtree",
    "ZoomRank",
    "load",
]
