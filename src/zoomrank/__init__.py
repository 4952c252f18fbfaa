"""zoomrank learns, from clicks alone, a short and diverse ranking over a large collection of documents."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from zoomrank import bandits, errors, lab, queries, spaces, users
    from zoomrank.lab import Trace, simulate
    from zoomrank.queries import QueryRank, QueryTree, Support
    from zoomrank.rankers import (
        CascadeKLUCB,
        FixedRanking,
        Forecast,
        RankContextZoom,
        RankCorrZoom,
        Ranked,
        RankEXP3,
        RankExploreCommit,
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
    "QueryRank",
    "QueryTree",
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
    "Support",
    "Trace",
    "TriedSubtree",
    "ZoomRank",
    "bandits",
    "errors",
    "lab",
    "load",
    "queries",
    "simulate",
    "spaces",
    "users",
]

_HOMES = ("spaces", "rankers", "queries", "lab")  # of the names above that are not packages, searched in this order

if not TYPE_CHECKING:  # it would take any name for right

    def __getattr__(name: str) -> Any:
        """Import a package when it is first needed: a program that needs only a ranker does not wait for the lab."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name.islower() and find_spec(f"{__name__}.{name}"):
            return import_module(f"{__name__}.{name}")
        homes = (import_module(f"{__name__}.{home}") for home in _HOMES)
        globals()[name] = found = next(getattr(home, name) for home in homes if name in home.__all__)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
