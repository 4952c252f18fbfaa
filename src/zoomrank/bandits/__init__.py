"""One-slot learners. Each is usable on its own; `zoomrank.rankers` builds rankings from them."""

from zoomrank.bandits.anytime import Anytime
from zoomrank.bandits.bandit import Bandit, Choice
from zoomrank.bandits.baselines import ExploreThenCommit, Fixed, Uniform
from zoomrank.bandits.contextual_zooming.learner import ContextualZooming
from zoomrank.bandits.exp3 import EXP3
from zoomrank.bandits.grid import Grid
from zoomrank.bandits.kl_ucb import KLUCB
from zoomrank.bandits.path_zooming.learner import PathZooming
from zoomrank.bandits.path_zooming.loans import Loan, LoanZooming
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
