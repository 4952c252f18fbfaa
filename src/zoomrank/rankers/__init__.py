"""Learners of whole rankings: one bandit per slot."""

from zoomrank.rankers.explanation import SlotExplanation
from zoomrank.rankers.forecast import Forecast, SlotForecast, TriedSubtree
from zoomrank.rankers.named.arm_rankers import RankEXP3, RankGridEXP3, RankGridUCB1, RankUCB1
from zoomrank.rankers.named.baseline_rankers import FixedRanking, RankRandom
from zoomrank.rankers.named.other_rankers import CascadeKLUCB, RankExploreCommit, RankKLUCB, RankThompson
from zoomrank.rankers.named.zoom_rank import ZoomRank
from zoomrank.rankers.named.zooming_rankers import RankContextZoom, RankCorrZoom, RankZoom
from zoomrank.rankers.ranked import Ranked
from zoomrank.rankers.ranker_file import load
from zoomrank.rankers.ranking import Ranking, Rankings

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
