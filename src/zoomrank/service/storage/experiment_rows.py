"""`StoredExperiment`: the row of an experiment; `StoreReader` reads it, `Store` writes it."""

from __future__ import annotations

from typing import NamedTuple


class StoredExperiment(NamedTuple):
    """An experiment as a row of its table."""

    id: int
    collection: int  # home collection
    name: str
    created: float
    ended: float | None
    content: str  # JSON, see `experiments`
