"""What a store knows of experiments; `Store` writes it."""

from __future__ import annotations

from typing import NamedTuple

from zoomrank.service.storage.database import Database


class StoredExperiment(NamedTuple):
    """An experiment, as it is kept."""

    id: int
    collection: int  # whose documents and visitors it is about
    name: str
    created: float
    ended: float | None
    content: str  # JSON, which whoever runs the experiment understands


class ExperimentReader(Database):
    """Reads it."""

    def experiments(self) -> list[StoredExperiment]:
        """All experiments, the oldest first."""
        rows = self._read("SELECT id, collection, name, created, ended, content FROM experiments ORDER BY id")
        return [StoredExperiment(*row) for row in rows]

    def arm_visits(self, experiment: int) -> list[tuple[int, int, int, int]]:
        """What became of those who count in an experiment: (minute, arm, outcome, count), the oldest first."""
        rows = self._read(
            "SELECT minute, arm, outcome, SUM(count) FROM arm_visits WHERE experiment = ? "
            "GROUP BY minute, arm, outcome ORDER BY minute",
            (experiment,),
        )
        return [(int(minute), int(arm), int(outcome), int(count)) for minute, arm, outcome, count in rows]

    def visitors(self, experiment: int) -> list[bytes]:
        """Who has been counted in an experiment."""
        rows = self._read("SELECT visitor FROM visitors WHERE experiment = ?", (experiment,))
        return [bytes(visitor) for (visitor,) in rows]
