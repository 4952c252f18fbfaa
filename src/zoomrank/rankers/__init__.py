"""Learners of whole rankings: one bandit per slot."""

from zoomrank.rankers.arm_rankers import RankEXP3, RankGridEXP3, RankGridUCB1, RankUCB1
from zoomrank.rankers.baselines import FixedRanking, RankRandom
from zoomrank.rankers.competitors import CascadeKLUCB, RankKLUCB, RankThompson
from zoomrank.rankers.explanation import SlotExplanation
from zoomrank.rankers.ranked import Ranked
from zoomrank.rankers.ranker_file import load
from zoomrank.rankers.ranking import Ranking, Rankings
from zoomrank.rankers.zoom_rank import ZoomRank
from zoomrank.rankers.zooming_rankers import RankContextZoom, RankCorrZoom, RankZoom

__all__ = [
    "CascadeKLUCB",
    "FixedRanking",
    "RankContextZoom",
    "RankCorrZoom",
    "RankEXP3",
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
    "ZoomRank",
    "load",
]
