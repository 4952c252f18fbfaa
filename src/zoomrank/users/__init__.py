"""Models of visitors: distributions of relevance, and what full information about them implies. Learners never use
them.
"""

from zoomrank.users.best_rankings import BestRanking
from zoomrank.users.continuity_checks import CheckResult, CheckSampling, check_continuity, check_correlation
from zoomrank.users.distribution import UserDistribution
from zoomrank.users.expressiveness import ExpressivenessBound
from zoomrank.users.lifelike_worlds import intents, needles, scattered
from zoomrank.users.models.copied_relevance import CopiedRelevance
from zoomrank.users.models.independent import Independent
from zoomrank.users.models.metric_network import MetricNetwork
from zoomrank.users.models.mixture import Mixture
from zoomrank.users.models.plain_users import PlainUsers
from zoomrank.users.models.relevance_table import RelevanceTable
from zoomrank.users.models.tree_network import TreeNetwork
from zoomrank.users.peaked_means import choose_peaks, peaks_mean, seat_customers
from zoomrank.users.worlds import (
    READINGS,
    chinese_restaurant,
    decoy,
    peaks,
    random_peaks,
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
