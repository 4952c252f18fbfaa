"""Seeds of tests that are repeated with many: the first few in `make test`, the others in `make test-all`."""

from typing import Any

import pytest


def seeds(first: int, count: int) -> list[Any]:
    """Return the seeds 0 to `count` - 1; those from `first` on are marked `full`."""
    return [*range(first), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(first, count))]
