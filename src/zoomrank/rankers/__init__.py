"""Learners of whole rankings: one bandit per slot."""

from zoomrank.rankers.explanation import SlotExplanation
from zoomrank.rankers.named import (
    CascadeKLUCB,
    FixedRanking,
    RankContextZoom,
    RankCorrZoom,
    RankEXP3,
    RankGridEXP3,
    RankGridUCB1,
    RankKLUCB,
    RankRandom,
    RankThompson,
    RankUCB1,
    RankZoom,
    ZoomRank,
)
from zoomrank.rankers.ranked import Ranked, Ranking, Rankings
from zoomrank.rankers.ranker_file import load

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
