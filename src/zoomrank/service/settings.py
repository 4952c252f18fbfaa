"""What the owner of a collection chooses, and the limits that hold for everybody."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StringConstraints, model_validator

from zoomrank.bandits import Bandit, LoanZooming
from zoomrank.errors import ParameterError
from zoomrank.rankers.leading import BELIEVED
from zoomrank.rankers.registry import WITHOUT_HORIZON, endless_bandit
from zoomrank.spaces import DocumentTree

LONGEST_NAME = 64
NAME_PATTERN = rf"[A-Za-z0-9][A-Za-z0-9_.-]{{0,{LONGEST_NAME - 1}}}"  # of a collection
LONGEST_QUERY = 512
MOST_SLOTS = 50
MOST_STEPS, LONGEST_STEP = 32, 512  # of the path of a query
MOST_DIMENSIONS = 4096  # of its vector
MOST_NAMED = 100_000  # documents that one request may name
DocumentName = Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)] | Annotated[str, StringConstraints(max_length=1000)]
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
    satisfied_by: Literal["click", "purchase"] = "click"
    # What is shown: what was learned, the order that the caller brings, or these documents.
    shows: Literal["learned", "order"] | tuple[DocumentName, ...] = "learned"
    prior: float = Field(default=BELIEVED, ge=0, le=1000)  # visitors that an order of the caller is believed for
    explore: float = Field(default=0.0, ge=0, le=1)  # share of rankings of which one slot is replaced at random
    similar: Literal["off", "words", "paths", "vectors"] = "off"  # by what queries are alike
    fold: bool = True  # whether spellings of a query are one query
    most_queries: int = Field(default=250_000, ge=1)
    new_queries: int = Field(default=10_000, ge=1)  # in an hour, of one key
    asked_again_within: float = Field(default=90 * 86_400.0, gt=0)  # seconds, or the query is removed
    keep_events: float | None = Field(default=400 * 86_400.0, ge=3600)  # seconds that the log goes back; None: for ever

    @model_validator(mode="after")
    def _keep_what_waits(self) -> Settings:
        if self.keep_events is not None and self.keep_events < 2 * self.feedback_within:
            raise ValueError("keep_events has to be twice feedback_within or more, or null for ever")
        return self

    def bandit(self, tree: DocumentTree) -> Bandit:
        """The learner of each slot, of which all queries share one."""
        if self.slots > len(tree):
            raise ParameterError(f"{self.slots} slots cannot be filled from {len(tree)} documents.")
        bandit = endless_bandit(self.algorithm, tree, self.parameters)
        if self.shows != "learned" and not bandit.counts_visits:
            raise ParameterError(f"{self.algorithm} shows what it has learned: `shows` has to be learned.")
        if self.similar == "off":
            return bandit
        if self.algorithm != "ZoomRank":
            raise ParameterError(
                f"Only queries of ZoomRank lend each other anything: with {self.algorithm}, `similar` has to be off."
            )
        return LoanZooming(tree, **bandit.settings)

    def folded(self, query: str) -> str:
        """A query without what its spellings differ in, if they are to be one query.

        >>> Settings().folded("  Stra\u00dfe  nach\u3000\uff32om ")
        'strasse nach rom'
        """
        return _folded(query) if self.fold else query


def _folded(text: str) -> str:
    if text.isascii():
        return " ".join(text.lower().split())
    while (once := " ".join(unicodedata.normalize("NFKC", text).casefold().split())) != text:
        text = once  # until nothing changes: what pages show and link to has to be the query itself
    return text
