"""One-slot learners. Each is usable on its own; `zoomrank.rankers` builds rankings from them."""

from zoomrank.bandits.anytime import Anytime
from zoomrank.bandits.contextual_zooming import ContextualZooming
from zoomrank.bandits.exp3 import EXP3
from zoomrank.bandits.explore_commit import ExploreThenCommit
from zoomrank.bandits.grid import Grid
from zoomrank.bandits.interface import Bandit, Choice
from zoomrank.bandits.kl_ucb import KLUCB
from zoomrank.bandits.loan_zooming import Loan, LoanZooming
from zoomrank.bandits.not_learning import Fixed, Uniform
from zoomrank.bandits.path_zooming import PathZooming
from zoomrank.bandits.thompson import TreeThompson
from zoomrank.bandits.ucb1 import UCB1
from zoomrank.bandits.zooming import Zooming

__all__ = [
    "EXP3",
    "KLUCB",
    "UCB1",
    "Anytime",
    "Bandit",
    "Choice",
    "ContextualZooming",
    "ExploreThenCommit",
    "Fixed",
    "Grid",
    "Loan",
    "LoanZooming",
    "PathZooming",
    "TreeThompson",
    "Uniform",
    "Zooming",
]
