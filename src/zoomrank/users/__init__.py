"""Who clicks: models of visitors, and the exact answers that only an all-knowing observer has. Learners never look
here.
"""

from zoomrank.users.best import BestRanking
from zoomrank.users.checks import Check, Sampling, check_continuity, check_correlation
from zoomrank.users.distribution import UserDistribution
from zoomrank.users.echo import Echo
from zoomrank.users.expressiveness import ExpressivenessBound, Stretched
from zoomrank.users.independent import Independent
from zoomrank.users.mean import choose_peaks, peaks_mean, seat_customers
from zoomrank.users.metric_network import MetricNetwork
from zoomrank.users.mixture import Mixture
from zoomrank.users.models import (
    READINGS,
    chinese_restaurant,
    decoy,
    peaks,
    random_peaks,
    three_documents,
    twins,
    two_peaks,
)
from zoomrank.users.network import TreeNetwork
from zoomrank.users.plain import PlainUsers
from zoomrank.users.table import RelevanceTable

__all__ = [
    "READINGS",
    "BestRanking",
    "Check",
    "Echo",
    "ExpressivenessBound",
    "Independent",
    "MetricNetwork",
    "Mixture",
    "PlainUsers",
    "RelevanceTable",
    "Sampling",
    "Stretched",
    "TreeNetwork",
    "UserDistribution",
    "check_continuity",
    "check_correlation",
    "chinese_restaurant",
    "choose_peaks",
    "decoy",
    "peaks",
    "peaks_mean",
    "random_peaks",
    "seat_customers",
    "three_documents",
    "twins",
    "two_peaks",
]
