"""Clicks collected on each topic, as shares of what the greedy optimum collects there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote, unquote

import numpy as np

from zoomrank.lab.catalogue import GREEDY
from zoomrank.lab.curves import Results
from zoomrank.lab.measures import MARKS, collected, collected_so_far
from zoomrank.numbers import Array

_PREFIX = "topic-"


def marks(visits: int) -> list[int]:
    """Return the visits by which clicks are counted, including the last."""
    return [mark for mark in MARKS if mark < visits] + [visits]


def topics_in(results: Results, *curves: str) -> list[str]:
    """Return the topics on which all of these curves and greedy have run, in natural order (2 before 10)."""
    there = [name for name in results.experiments() if results.comparable(name, GREEDY, *curves)]
    names = [unquote(name.removeprefix(_PREFIX)) for name in there if name.startswith(_PREFIX)]
    return sorted(names, key=_words_and_numbers)


def _words_and_numbers(name: str) -> list[str | int]:
    """Split a name into words and numbers, which alternate, so that like is compared with like."""
    return [int(part) if at % 2 else part for at, part in enumerate(re.split(r"([0-9]+)", name))]


def experiment_of(topic: str) -> str:
    """Return the name of a topic's experiment."""
    return _PREFIX + quote(topic, safe="")


def shares(results: Results, topics: Sequence[str], curve: str, visits: int) -> Array:
    """Return clicks by some visit as shares of greedy's, a number per topic: the mean of its instances."""
    pairs = (results.together(experiment_of(topic), curve, GREEDY) for topic in topics)
    return np.array([float(collected(mine, greedy, visits).mean()) for mine, greedy in pairs])


def learning_curves(results: Results, topics: Sequence[str], curve: str) -> tuple[Array, Array]:
    """Return the checkpoints, and clicks so far as shares of greedy's: a row per topic, a column per checkpoint."""
    rows = []
    for topic in topics:
        mine, greedy = results.together(experiment_of(topic), curve, GREEDY)
        rows.append(collected_so_far(mine, greedy))
    return mine.visits, np.array(rows)
