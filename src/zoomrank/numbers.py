"""The kinds of numbers that everything here is made of: arrays, seeds, whole numbers."""

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
