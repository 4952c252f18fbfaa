"""The kinds of numbers that everything here is made of: arrays, seeds, whole numbers, and numbers that tie."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from zoomrank.errors import ParameterError

Array = np.ndarray[Any, Any]
Seed = int | np.random.Generator | None  # where chance comes from: the same seed, the same numbers


def whole_number(value: Any, name: str) -> int:
    """The value as an integer; 2.5 is refused, not cut to 2."""
    try:
        return operator.index(value)
    except TypeError:
        raise ParameterError(f"{name} must be a whole number, not {value!r}.") from None


def rounded_for_ties(values: Array) -> Array:
    """The values without their last digits: those that differ by errors of rounding alone are equal.

    >>> rounded_for_ties(np.array([0.1 + 0.2, 0.3])).tolist()
    [0.3, 0.3]
    """
    return np.asarray(np.round(values, 12))
