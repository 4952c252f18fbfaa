"""Reading experiments from a store; `Store` writes them."""

from __future__ import annotations

from typing import NamedTuple

from zoomrank.service.storage.database import Database


class StoredExperiment(NamedTuple):
    """An experiment as stored."""

    id: int
    collection: int  # home collection
    name: str
    created: float
    ended: float | None
    content: str  # JSON of `zoomrank.service.experiments`


class ExperimentReader(Database):
    """Reads experiments."""

    def experiments(self) -> list[StoredExperiment]:
        """Return all experiments, oldest first."""
        rows = self._read("SELECT id, collection, name, created, ended, content FROM experiments ORDER BY id")
        return [StoredExperiment(*row) for row in rows]

    def arm_visits(self, experiment: int) -> list[tuple[int, int, int, int]]:
        """Return visitor counts of an experiment as (minute, arm, outcome, count), oldest first."""
        rows = self._read(
            "SELECT minute, arm, outcome, SUM(count) FROM arm_visits WHERE experiment = ? "
            "GROUP BY minute, arm, outcome ORDER BY minute",
            (experiment,),
        )
        return [(int(minute), int(arm), int(outcome), int(count)) for minute, arm, outcome, count in rows]

    def visitors(self, experiment: int) -> list[bytes]:
        """Return the digests of visitors counted in an experiment."""
        rows = self._read("SELECT visitor FROM visitors WHERE experiment = ?", (experiment,))
        return [bytes(visitor) for (visitor,) in rows]
