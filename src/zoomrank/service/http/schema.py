"""What requests and answers look like; the OpenAPI document is made of these."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StringConstraints

from zoomrank.service.settings import LONGEST_NAME, LONGEST_QUERY, MOST_NAMED, MOST_SLOTS, Settings

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=LONGEST_NAME)]
Query = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_QUERY, pattern=r"^[^\x00]*$")]
Text = Annotated[str, StringConstraints(max_length=100_000)]
DocumentName = Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)] | Annotated[str, StringConstraints(max_length=1000)]
Step = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class Strict(BaseModel):
    """Nothing that nobody knows is taken in silence."""

    model_config = ConfigDict(extra="forbid")


class RankRequest(Strict):
    """Who asks for what."""

    query: Query
    slots: int | None = Field(default=None, ge=1, le=MOST_SLOTS)
    eligible: list[DocumentName] | None = Field(default=None, max_length=MOST_NAMED)
    excluded: list[DocumentName] | None = Field(default=None, max_length=MOST_NAMED)


class ShownDocument(BaseModel):
    """A document as a page shows it."""

    id: int | str
    title: str
    url: str


class RankAnswer(BaseModel):
    """A ranking; send its impression back with what became of it."""

    impression: str
    query: str
    documents: list[ShownDocument]


class FeedbackRequest(Strict):
    """The document that was clicked first, or null if none was."""

    impression: str = Field(max_length=100)
    clicked: DocumentName | None


class FeedbackAnswer(BaseModel):
    """`learned`, or `repeated` if the same answer had come before."""

    impression: str
    status: str


class BatchRequest(Strict):
    """Many answers at once."""

    feedback: list[FeedbackRequest] = Field(min_length=1, max_length=10_000)


class BatchAnswer(BaseModel):
    """For each of them a status, or an error and a message."""

    results: list[dict[str, Any]]


class NewDocument(Strict):
    """A document, and where it belongs: a path of categories, a vector or a text, the same for all."""

    id: DocumentName
    title: Text = ""
    url: Annotated[str, StringConstraints(max_length=4000)] = ""
    text: Text = ""
    path: list[Step] | None = Field(default=None, min_length=1, max_length=50)
    vector: list[float] | None = Field(default=None, min_length=1, max_length=4096)


class NewCollection(Strict):
    """Documents and how their queries are to learn."""

    name: Name
    documents: list[NewDocument] = Field(min_length=1, max_length=1_000_000)
    settings: Settings = Settings()


class CollectionAnswer(BaseModel):
    """A collection in few words."""

    name: str
    documents: int
    depth: int
    queries: int
    settings: Settings
    impressions: int
    satisfied: int
    abandoned: int
    created: float


class CollectionsAnswer(BaseModel):
    """All collections."""

    collections: list[CollectionAnswer]


class ErrorAnswer(BaseModel):
    """What went wrong: a word for programs, a sentence for people."""

    error: str
    message: str


class QueryRowAnswer(BaseModel):
    """A query in a list."""

    query: str
    impressions: int
    answered: int
    satisfied: int
    abandoned: int
    last: float


class QueriesAnswer(BaseModel):
    """Queries, those with most impressions first."""

    queries: list[QueryRowAnswer]
    total: int


class ExplainedDocument(ShownDocument):
    """A document, and why it is where it is."""

    path: list[str]
    why: str
    subtree: str
    documents_in_subtree: int
    visits: int
    clicks: int
    estimate: float
    bound: float | None
    cap: float | None


class QueryAnswer(QueryRowAnswer):
    """A query, and what the next visitor will see."""

    waiting: int
    unseen: int
    clicks_by_slot: list[int]
    examined_by_slot: list[int]
    ranking: list[ExplainedDocument]


class NodeAnswer(BaseModel):
    """A part of the collection, as the query's learner sees it."""

    id: int
    parent: int | None
    label: str
    documents: int
    visits: int
    clicks: int
    estimate: float
    leaf: bool
    others: bool


class TreeAnswer(BaseModel):
    """The zoom tree, parents before children."""

    nodes: list[NodeAnswer]


class ActivityAnswer(BaseModel):
    """What became of impressions, per step of time."""

    start: int
    step: int
    impressions: list[int]
    satisfied: list[int]
    abandoned: list[int]
    clicks_by_slot: list[list[int]]


class PlacedDocument(ShownDocument):
    """A document and its categories."""

    path: list[str]


class DocumentsAnswer(BaseModel):
    """Some documents of a collection."""

    documents: list[PlacedDocument]
    total: int


class StatusAnswer(BaseModel):
    """How the service is."""

    status: str
