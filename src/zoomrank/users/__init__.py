"""Models of visitors: distributions of relevance, and what full information about them implies. Learners never use
them.
"""

from zoomrank.users.best_rankings import BestRanking
from zoomrank.users.continuity import (
    CheckResult,
    CheckSampling,
    ExpressivenessBound,
    check_continuity,
    check_correlation,
)
from zoomrank.users.distribution import UserDistribution
from zoomrank.users.lifelike_worlds import intents, needles, scattered
from zoomrank.users.metric_network import MetricNetwork
from zoomrank.users.mixture import Mixture
from zoomrank.users.plain_users import PlainUsers
from zoomrank.users.relevance_table import CopiedRelevance, Independent, RelevanceTable
from zoomrank.users.tree_network import TreeNetwork
from zoomrank.users.worlds import (
    READINGS,
    chinese_restaurant,
    choose_peaks,
    decoy,
    peaks,
    peaks_mean,
    random_peaks,
    seat_customers,
    three_documents,
    twins,
    two_peaks,
)

__all__ = [
    "READINGS",
    "BestRanking",
    "CheckResult",
    "CheckSampling",
    "CopiedRelevance",
    "ExpressivenessBound",
    "Independent",
    "MetricNetwork",
    "Mixture",
    "PlainUsers",
    "RelevanceTable",
    "TreeNetwork",
    "UserDistribution",
    "check_continuity",
    "check_correlation",
    "chinese_restaurant",
    "choose_peaks",
    "decoy",
    "intents",
    "needles",
    "peaks",
    "peaks_mean",
    "random_peaks",
    "scattered",
    "seat_customers",
    "three_documents",
    "twins",
    "two_peaks",
]
