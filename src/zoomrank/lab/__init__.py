"""Experiments: rankers meet users here, and nowhere below."""

from zoomrank.lab.simulate import Trace, simulate

__all__ = ["Trace", "simulate"]
