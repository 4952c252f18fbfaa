"""What the owner of a collection chooses, and the limits that hold for everybody."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from zoomrank.bandits import Bandit
from zoomrank.errors import ParameterError
from zoomrank.rankers.registry import WITHOUT_HORIZON, endless_bandit
from zoomrank.spaces import DocumentTree

LONGEST_NAME = 64
NAME_PATTERN = rf"[A-Za-z0-9][A-Za-z0-9_.-]{{0,{LONGEST_NAME - 1}}}"  # of a collection
LONGEST_QUERY = 512
MOST_SLOTS = 50
MOST_NAMED = 100_000  # documents that one request may name
ALGORITHMS = WITHOUT_HORIZON  # visitors come for ever


class Settings(BaseModel):
    """How the queries of a collection learn."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    algorithm: Literal[ALGORITHMS] = "ZoomRank"  # type: ignore[valid-type]
    parameters: dict[str, float | bool | str] = Field(default_factory=dict, max_length=20)
    slots: int = Field(default=5, ge=1, le=MOST_SLOTS)
    seed: int = Field(default=0, ge=0, lt=2**63)
    feedback_within: float = Field(default=1800.0, gt=0, le=30 * 86_400)  # seconds
    no_feedback: Literal["abandoned", "unseen"] = "abandoned"  # what it is taken for

    def bandit(self, tree: DocumentTree) -> Bandit:
        """The learner of each slot, of which all queries share one."""
        if self.slots > len(tree):
            raise ParameterError(f"{self.slots} slots cannot be filled from {len(tree)} documents.")
        return endless_bandit(self.algorithm, tree, self.parameters)
