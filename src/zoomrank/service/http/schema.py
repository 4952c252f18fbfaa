"""What requests look like; the OpenAPI document is made of this, and of the responses in `zoomrank.wire`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from zoomrank import wire
from zoomrank.service.answers import Answer
from zoomrank.service.experiments import MOST_ARMS
from zoomrank.service.rank_options import Path, PathText, RankOptions, Vector
from zoomrank.service.settings import (
    LONGEST_NAME,
    LONGEST_QUERY,
    MOST_NAMED,
    MOST_SLOTS,
    NAME_PATTERN,
    DocumentName,
    Settings,
)

CollectionName = Annotated[str, StringConstraints(pattern=f"^{NAME_PATTERN}$", max_length=LONGEST_NAME)]
# An arm of an experiment can be asked and looked at like a collection: NAME~EXPERIMENT~ARM.
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
    """Who asks for what; `about` says where a new query belongs, by its path or its vector, and `order` is one that the
    caller has, from the best, with which a new query begins.

    `unknown` says what is done with ids that the collection lacks. With `fewer` a ranking may have fewer documents than
    slots, where no more may be shown; with none it is empty, and its impression null. `visitor` is a name of hers, such
    as a cookie's value: while there is an experiment, she meets the same arm whenever she comes. With `propensities`
    the response says how likely each document was in its slot.
    """

    propensities: bool = False


class FeedbackRequest(Strict):
    """What became of a ranking: the documents that were clicked (one, a list, or null if she has left without a click),
    purchased and disliked, and how many from the top she looked at. What is not said is not known.
    """

    impression: str = Field(max_length=100)
    clicked: DocumentName | Documents | None = None
    purchased: DocumentName | Documents | None = None
    disliked: Documents = Field(default_factory=list)
    looked_at: int | None = Field(default=None, ge=1, le=MOST_SLOTS)

    @property
    def answer(self) -> Answer:
        """The same, as the engine understands it."""
        left = self.clicked in (None, []) and "clicked" in self.model_fields_set
        return Answer(_named(self.clicked), left, self.looked_at or 0, self.disliked, _named(self.purchased))


class BatchRequest(Strict):
    """Much feedback at once."""

    feedback: list[FeedbackRequest] = Field(min_length=1, max_length=wire.LARGEST_BATCH)


class SeenRequest(Strict):
    """A ranking that is on somebody's screen."""

    impression: str = Field(max_length=100)


class VoidRequest(Strict):
    """Which impressions are void: those of a query, shown since one time and until another, asked for with a key; all
    that is given has to hold, and something must be. A dry run only counts them.
    """

    query: QueryText | None = None
    since: Time | None = None
    until: Time | None = None
    key: Annotated[str, StringConstraints(min_length=1, max_length=1000)] | None = None
    dry_run: bool = False


class NewArm(Strict):
    """An arm: the share of visitors that it is to have, and the settings in which it differs from the collection.
    Without settings it is the collection as it is, with the learners that it has.
    """

    name: ExperimentName
    share: float = Field(gt=0, lt=1)
    settings: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _differs_in_what_it_may(self) -> NewArm:
        fixed = next((name for name in self.settings or {} if name not in OF_ARMS), None)
        if fixed is not None:
            raise ValueError(f"an arm has the {fixed} of its collection; it may have its own {', '.join(OF_ARMS)}")
        return self


class NewExperiment(Strict):
    """Arms that are to be compared, the others with the first."""

    name: ExperimentName
    arms: list[NewArm] = Field(min_length=2, max_length=MOST_ARMS)


class StopRequest(Strict):
    """The arm that is to be stopped; without one, the whole experiment."""

    arm: ExperimentName | None = None


class PromoteRequest(Strict):
    """The arm that is to serve the collection from now on."""

    arm: ExperimentName


class CopyRequest(Strict):
    """The query that is to be copied."""

    query: QueryText


class CopyRankRequest(Strict):
    """A visitor of a copy asks, and has nothing to say of herself."""


class NewDocument(Strict):
    """A document, and where it belongs: a path of categories, a vector or a text, the same for all."""

    id: DocumentName
    title: Text = ""
    url: Annotated[str, StringConstraints(max_length=4000)] = ""
    text: Text = ""
    path: list[Step] | None = Field(default=None, min_length=1, max_length=50)
    vector: list[float] | None = Field(default=None, min_length=1, max_length=4096)


class DocumentChange(Strict):
    """What is known of a document, and where it belongs: in a category, by its vector, or beside another document.
    What is left out stays as it is.
    """

    title: Text | None = None
    url: Annotated[str, StringConstraints(max_length=4000)] | None = None
    text: Text | None = None
    path: Path | PathText | None = None
    vector: Vector | None = None
    near: DocumentName | None = None


class AddedDocument(DocumentChange):
    """A document that is added; without a path, a vector or a neighbour it is placed by its text."""

    id: DocumentName


class DocumentsRequest(Strict):
    """Documents to be added."""

    documents: list[AddedDocument] = Field(min_length=1, max_length=MOST_NAMED)


class Change(DocumentChange):
    """One change: a document that is added, put (added, or changed if it is there), changed or removed; or a category
    that is renamed or moved to another path.
    """

    add: DocumentName | None = None
    put: DocumentName | None = None
    change: DocumentName | None = None
    remove: DocumentName | None = None
    category: Path | PathText | None = None
    to: Path | PathText | None = None

    @model_validator(mode="after")
    def _is_one(self) -> Change:
        verbs = [name for name in ("add", "put", "change", "remove", "category") if getattr(self, name) is not None]
        if len(verbs) != 1:
            raise ValueError("a change has one of `add`, `put`, `change`, `remove` and `category`")
        if (self.category is None) != (self.to is None):
            raise ValueError("a category comes with `to`, the path that it is to have")
        return self


class ChangesRequest(Strict):
    """Changes that are made together, or not at all."""

    changes: list[Change] = Field(min_length=1, max_length=MOST_NAMED)


class NewCollection(Strict):
    """Documents and how their queries are to learn."""

    name: CollectionName
    documents: list[NewDocument] = Field(min_length=1, max_length=1_000_000)
    settings: Settings = Settings()


class CollectionResponse(wire.CollectionSummary):
    """A collection in few words."""

    settings: Settings


class CollectionsResponse(BaseModel):
    """All collections."""

    collections: list[CollectionResponse]
