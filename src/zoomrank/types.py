"""Common types and checks of numbers: arrays, seeds, whole numbers, and rounding for ties."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from zoomrank.errors import ParameterError

Array = np.ndarray[Any, Any]
Seed = int | np.random.Generator | None  # source of random numbers; the same seed gives the same numbers


def whole_number(value: Any, name: str) -> int:
    """Return the value as an integer; 2.5 is an error, not cut to 2."""
    try:
        return operator.index(value)
    except TypeError:
        raise ParameterError(f"{name} must be a whole number, not {value!r}.") from None


def rounded_for_ties(values: Array) -> Array:
    """Round off the last digits, so that values that differ only by rounding errors are equal.

    >>> rounded_for_ties(np.array([0.1 + 0.2, 0.3])).tolist()
    [0.3, 0.3]
    """
    return np.asarray(np.round(values, 12))
