"""Which of two is better: experiments, and what a log can tell."""

from zoomrank.judging.comparing import Differences, difference

__all__ = ["Differences", "difference"]
