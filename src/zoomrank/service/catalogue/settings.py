"""Settings of a collection, and limits that apply to every collection."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, StringConstraints, model_validator

from zoomrank.bandits import Bandit, LoanZooming
from zoomrank.errors import ParameterError
from zoomrank.rankers.registry import WITHOUT_HORIZON, anytime_bandit
from zoomrank.rankers.slot_bandits import BELIEVED
from zoomrank.spaces import DocumentTree

LONGEST_NAME = 64
NAME_PATTERN = rf"[A-Za-z0-9][A-Za-z0-9_.-]{{0,{LONGEST_NAME - 1}}}"  # of a collection
LONGEST_QUERY = 512
MOST_SLOTS = 50
MOST_STEPS, LONGEST_STEP = 32, 512  # of a query's path
MOST_DIMENSIONS = 4096  # of a query's vector
MOST_NAMED = 100_000  # documents named in one request
DocumentName = Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)] | Annotated[str, StringConstraints(max_length=1000)]
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def _check_new(name: int | str) -> int | str:
    """Reject ids that a path, a line of a log or a file cannot carry; stores of earlier versions may have them."""
    if name in {"", ".", ".."}:
        raise ValueError(f"an id cannot be {name!r}: clients and proxies take it out of paths")
    if isinstance(name, str) and _CONTROL.search(name):
        raise ValueError(f"an id cannot have control characters, as {name[:100]!r} has")
    return name


NewDocumentName = Annotated[DocumentName, AfterValidator(_check_new)]
ALGORITHMS = WITHOUT_HORIZON  # visitors never stop coming


class Settings(BaseModel):
    """Settings of a collection: how its queries learn."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    algorithm: Literal[ALGORITHMS] = "ZoomRank"  # type: ignore[valid-type]
    parameters: dict[str, float | bool | str] = Field(default_factory=dict, max_length=20)
    slots: int = Field(default=5, ge=1, le=MOST_SLOTS)
    seed: int = Field(default=0, ge=0, lt=2**63)
    feedback_within: float = Field(default=1800.0, gt=0, le=30 * 86_400)  # seconds
    no_feedback: Literal["abandoned", "unseen"] = "abandoned"  # outcome of an impression without feedback
    satisfied_by: Literal["click", "purchase"] = "click"
    # What is shown: the learned ranking, the caller's order, or these documents.
    shows: Literal["learned", "order"] | tuple[DocumentName, ...] = "learned"
    prior: float = Field(default=BELIEVED, ge=0, le=1000)  # weight of the caller's order, in visitors
    explore: float = Field(default=0.0, ge=0, le=1)  # share of rankings with one slot replaced at random
    similar: Literal["off", "words", "paths", "vectors"] = "off"  # measure of similarity between queries
    fold: bool = True  # treat spellings of a query as one query
    most_queries: int = Field(default=250_000, ge=1)
    new_queries: int = Field(default=10_000, ge=1)  # per hour and API key
    # Seconds after which a query asked only once is removed.
    asked_again_within: float = Field(default=90 * 86_400.0, gt=0)
    # Retention time of events in seconds; None: for ever.
    keep_events: float | None = Field(default=400 * 86_400.0, ge=3600)

    @model_validator(mode="after")
    def _check_retention(self) -> Settings:
        if self.keep_events is not None and self.keep_events < 2 * self.feedback_within:
            raise ValueError("keep_events must be at least twice feedback_within, or null to keep events for ever")
        return self

    def bandit(self, tree: DocumentTree) -> Bandit:
        """Return the bandit of this algorithm, which the slots of all queries share."""
        if self.slots > len(tree):
            raise ParameterError(f"{self.slots} slots cannot be filled from {len(tree)} documents: use fewer slots.")
        bandit = anytime_bandit(self.algorithm, tree, self.parameters)
        if self.shows != "learned" and not bandit.counts_visits:
            raise ParameterError(f"{self.algorithm} can only show its own ranking: set `shows` to learned.")
        if self.similar == "off":
            return bandit
        if self.algorithm != "ZoomRank":
            raise ParameterError(
                f"Only queries of ZoomRank can borrow from similar queries: with {self.algorithm}, set `similar` to "
                "off."
            )
        return LoanZooming(tree, **bandit.settings)
