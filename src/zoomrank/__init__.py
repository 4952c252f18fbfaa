"""zoomrank learns, from clicks alone, a short and diverse ranking over a large collection of documents."""

__version__ = "0.1.0.dev0"  # before the imports: the lab writes it down

from zoomrank import bandits, errors, lab, spaces, users
from zoomrank.lab import Trace, simulate
from zoomrank.rankers import (
    CascadeKLUCB,
    FixedRanking,
    Forecast,
    RankContextZoom,
    RankCorrZoom,
    Ranked,
    RankEXP3,
    RankGridEXP3,
    RankGridUCB1,
    Ranking,
    Rankings,
    RankKLUCB,
    RankRandom,
    RankThompson,
    RankUCB1,
    RankZoom,
    SlotExplanation,
    SlotForecast,
    TriedSubtree,
    ZoomRank,
    load,
)
from zoomrank.spaces import DocumentTree, EdgeWeightedTree, FiniteMetric

__all__ = [
    "CascadeKLUCB",
    "DocumentTree",
    "EdgeWeightedTree",
    "FiniteMetric",
    "FixedRanking",
    "Forecast",
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
    "SlotForecast",
    "Trace",
    "TriedSubtree",
    "ZoomRank",
    "bandits",
    "errors",
    "lab",
    "load",
    "simulate",
    "spaces",
    "users",
]
