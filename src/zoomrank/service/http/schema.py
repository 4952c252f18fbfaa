"""Schemas of requests; the OpenAPI document is built from these and from the responses in `zoomrank.wire`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from zoomrank import wire
from zoomrank.service.catalogue.settings import (
    LONGEST_NAME,
    LONGEST_QUERY,
    MOST_NAMED,
    MOST_SLOTS,
    NAME_PATTERN,
    DocumentName,
    NewDocumentName,
    Settings,
)
from zoomrank.service.experiments import MOST_ARMS
from zoomrank.service.feedback import ImpressionFeedback
from zoomrank.service.rank_options import Path, PathText, RankOptions, Vector

CollectionName = Annotated[str, StringConstraints(pattern=f"^{NAME_PATTERN}$", max_length=LONGEST_NAME)]
# Arms of experiments can be ranked and inspected like collections: NAME~EXPERIMENT~ARM.
ServedName = Annotated[str, StringConstraints(pattern=f"^{NAME_PATTERN}(~{NAME_PATTERN}){{0,2}}$")]
ExperimentName = Annotated[str, StringConstraints(pattern=f"^{NAME_PATTERN}$", max_length=LONGEST_NAME)]
OF_ARMS = ("algorithm", "parameters", "seed", "shows", "prior", "similar", "explore")
CopyName = Annotated[str, StringConstraints(pattern="^[0-9a-f]{1,32}$")]
QueryText = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_QUERY, pattern=r"^[^\x00]*$")]
Text = Annotated[str, StringConstraints(max_length=100_000)]

Documents = Annotated[list[DocumentName], Field(max_length=MOST_SLOTS)]
Step = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Time = Annotated[float, Field(ge=0, le=1e11, allow_inf_nan=False)]  # seconds since 1970


def _named(one_or_more: int | str | list[int | str] | None) -> list[int | str]:
    if one_or_more is None:
        return []
    return one_or_more if isinstance(one_or_more, list) else [one_or_more]


class Strict(BaseModel):
    """Rejects unknown fields."""

    model_config = ConfigDict(extra="forbid")


class QueryRequest(Strict):
    """A request about one query."""

    query: QueryText


class RankRequest(RankOptions, QueryRequest):
    """A request for a ranking. `about` places a new query by its path or vector, and `order` is the caller's own order,
    best first, with which a new query begins.

    `unknown` says how to treat ids that the collection lacks. With `fewer` a ranking may have fewer documents than
    slots, if no more are eligible; with none it is empty and its impression null. `visitor` names the visitor, for
    example by a cookie's value: during an experiment a visitor always gets the same arm. With `propensities` the
    response has the probability of each document in its slot.
    """

    propensities: bool = False


class RankBatchRequest(Strict):
    """Requests for several rankings of one collection."""

    requests: list[RankRequest] = Field(min_length=1, max_length=wire.MOST_RANKINGS)


class FeedbackRequest(Strict):
    """Feedback on a ranking: the documents that were clicked (an id, a list, or null if the visitor left without a
    click), purchased and disliked, and how many from the top the visitor looked at. Whatever is omitted is unknown.
    """

    impression: str = Field(max_length=100)
    clicked: DocumentName | Documents | None = None
    purchased: DocumentName | Documents | None = None
    disliked: Documents = Field(default_factory=list)
    looked_at: int | None = Field(default=None, ge=1, le=MOST_SLOTS)

    @property
    def answer(self) -> ImpressionFeedback:
        """The same as the engine's type."""
        left = self.clicked in (None, []) and "clicked" in self.model_fields_set
        return ImpressionFeedback(
            _named(self.clicked), left, self.looked_at or 0, self.disliked, _named(self.purchased)
        )


class BatchRequest(Strict):
    """Feedback on several rankings."""

    feedback: list[FeedbackRequest] = Field(min_length=1, max_length=wire.LARGEST_BATCH)


class SeenRequest(Strict):
    """A ranking that is on the visitor's screen."""

    impression: str = Field(max_length=100)


class VoidRequest(Strict):
    """Impressions to void: those of a query, shown since one time and until another, requested with a key. All given
    conditions must hold, and at least one must be given. A dry run only counts them.
    """

    query: QueryText | None = None
    since: Time | None = None
    until: Time | None = None
    key: Annotated[str, StringConstraints(min_length=1, max_length=1000)] | None = None
    dry_run: bool = False


class NewArm(Strict):
    """An arm: its share of visitors, and the settings in which it differs from the collection. Without settings it is
    the collection as it is, with its learners.
    """

    name: ExperimentName
    share: float = Field(gt=0, lt=1)
    settings: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _check_settings(self) -> NewArm:
        fixed = next((name for name in self.settings or {} if name not in OF_ARMS), None)
        if fixed is not None:
            raise ValueError(f"an arm has the {fixed} of its collection; it can only have its own {', '.join(OF_ARMS)}")
        return self


class NewExperiment(Strict):
    """Arms to compare; the first is the baseline."""

    name: ExperimentName
    arms: list[NewArm] = Field(min_length=2, max_length=MOST_ARMS)


class StopRequest(Strict):
    """The arm to stop; without one, the whole experiment."""

    arm: ExperimentName | None = None


class PromoteRequest(Strict):
    """The arm that serves the collection from now on."""

    arm: ExperimentName


class CopyRequest(Strict):
    """The query to copy."""

    query: QueryText


class CopyRankRequest(Strict):
    """A request to a copy for a ranking; it has no options."""


class NewDocument(Strict):
    """A document with its place: a path of categories, a vector or a text, the same kind for all."""

    id: NewDocumentName
    title: Text = ""
    url: Annotated[str, StringConstraints(max_length=4000)] = ""
    text: Text = ""
    path: list[Step] | None = Field(default=None, min_length=1, max_length=50)
    vector: list[float] | None = Field(default=None, min_length=1, max_length=4096)


class DocumentChange(Strict):
    """New data of a document, and its new place: in a category, by its vector, or beside another document. What is
    omitted stays unchanged.
    """

    title: Text | None = None
    url: Annotated[str, StringConstraints(max_length=4000)] | None = None
    text: Text | None = None
    path: Path | PathText | None = None
    vector: Vector | None = None
    near: DocumentName | None = None


class AddedDocument(DocumentChange):
    """A document to add; without a path, a vector or a neighbour it is placed by its text."""

    id: NewDocumentName


class DocumentsRequest(Strict):
    """Documents to add."""

    documents: list[AddedDocument] = Field(min_length=1, max_length=MOST_NAMED)


class Change(DocumentChange):
    """One change: a document that is added, put (added, or changed if it exists), changed or removed; or a category
    that is renamed or moved to another path.
    """

    add: NewDocumentName | None = None
    put: NewDocumentName | None = None
    change: DocumentName | None = None
    remove: DocumentName | None = None
    category: Path | PathText | None = None
    to: Path | PathText | None = None

    @model_validator(mode="after")
    def _is_one(self) -> Change:
        verbs = [name for name in ("add", "put", "change", "remove", "category") if getattr(self, name) is not None]
        if len(verbs) != 1:
            raise ValueError("a change needs one of `add`, `put`, `change`, `remove` and `category`")
        if (self.category is None) != (self.to is None):
            raise ValueError("a category needs `to`, its new path")
        return self


class ChangesRequest(Strict):
    """Changes that are applied together, or not at all."""

    changes: list[Change] = Field(min_length=1, max_length=MOST_NAMED)


class NewCollection(Strict):
    """Documents, and settings for their queries."""

    name: CollectionName
    documents: list[NewDocument] = Field(min_length=1, max_length=1_000_000)
    settings: Settings = Settings()


class CollectionResponse(wire.CollectionSummary):
    """Head data of a collection."""

    settings: Settings


class CollectionsResponse(BaseModel):
    """All collections."""

    collections: list[CollectionResponse]
