"""What a service and its clients say to each other: the paths that matter to both, and the shapes of responses.

The service makes its OpenAPI document of these shapes, and `zoomrank.client` returns them. Plain types, so that neither
needs what the other needs.
"""

from __future__ import annotations

from typing import Any

from typing_extensions import (
    NotRequired,
    TypedDict,
)  # the service checks by these: Python's own before 3.12 say too little

COLLECTIONS = "/v1/collections"
COLLECTION = "/v1/collections/{name}"
RANK = "/v1/collections/{name}/rank"
DOCUMENTS = "/v1/collections/{name}/documents"
DOCUMENT = "/v1/collections/{name}/documents/{document}"
CHANGES = "/v1/collections/{name}/changes"
REMAKE = "/v1/collections/{name}/remake"
QUERIES = "/v1/collections/{name}/queries"
QUERY = "/v1/collections/{name}/query"
CURVE = "/v1/collections/{name}/query/curve"
TREE = "/v1/collections/{name}/tree"
COLLECTION_ACTIVITY = "/v1/collections/{name}/activity"
ACTIVITY = "/v1/activity"
COPIES = "/v1/collections/{name}/copies"
COPY_RANK = "/v1/copies/{copy}/rank"
COPY_FEEDBACK = "/v1/copies/{copy}/feedback"
FEEDBACK = "/v1/feedback"
FEEDBACK_BATCH = "/v1/feedback/batch"
SEEN = "/v1/seen"
EXPORT = "/v1/collections/{name}/export"
VOID = "/v1/collections/{name}/void"
CLICKS = "/v1/collections/{name}/clicks"
EXPERIMENTS = "/v1/collections/{name}/experiments"
EXPERIMENT = "/v1/collections/{name}/experiments/{experiment}"
STOP = "/v1/collections/{name}/experiments/{experiment}/stop"
PROMOTE = "/v1/collections/{name}/experiments/{experiment}/promote"
HEALTH = "/v1/health"
READY = "/v1/ready"
ROLE = "/v1/role"
REPLICAS = "/v1/replicas"

LARGEST_BATCH = 10_000  # reports of one request

Id = int | str  # a document's, as JSON can carry it


class ErrorResponse(TypedDict):
    """What went wrong: a word for programs, a sentence for people."""

    error: str
    message: str


class ShownDocument(TypedDict):
    """A document as a page shows it."""

    id: Id
    title: str
    url: str


class RankResponse(TypedDict):
    """A ranking; send its impression back with what became of it. It is null where nothing could be shown.

    To who asks for them, `propensities` say how likely each document was in its slot, given those above; null where
    that is not known.
    """

    impression: str | None
    query: str
    documents: list[ShownDocument]
    propensities: NotRequired[list[float | None]]


class FeedbackResponse(TypedDict):
    """`learned`, or `noted` if it does not say yet what became of the ranking, or teaches nothing more; `repeated` if
    the same feedback had come before.
    """

    impression: str
    status: str


class SeenResponse(TypedDict):
    """`noted`, or `repeated` if it was known."""

    impression: str
    status: str


class Voided(TypedDict):
    """How many impressions are void, or would be, and of how many queries; how many of that time, at most, the log has
    no more, so that they stay.
    """

    impressions: int
    queries: int
    retired: int
    dry_run: bool


class RemovedQuery(TypedDict):
    """A query that is no more."""

    query: str
    status: str


class Changed(TypedDict):
    """What a collection has become: its edition, how many documents it has, and how many of which changes were made."""

    edition: int
    documents: int
    added: int
    changed: int
    removed: int
    categories: int


class RemovedCollection(TypedDict):
    """A collection that is no more."""

    name: str
    status: str


class FeedbackResult(TypedDict, total=False):
    """What became of one report of a batch: a status, or an error and a message."""

    impression: str
    status: str
    error: str
    message: str


class BatchResponse(TypedDict):
    """What became of each report."""

    results: list[FeedbackResult]


class CopyResponse(TypedDict):
    """A copy of a query's learner: its name, the query, and how many impressions the query had when it was made."""

    copy: str
    query: str
    impressions: int


class HeldOut(TypedDict):
    """What an import was worth, by the last visits of the log, before they were learned: the share of their clicks on
    documents that stood in the learner's ranking, and the bits of surprise at a document that was looked at.
    """

    visits: int
    clicks: int
    found_before: float
    found_after: float
    surprise_usual: float
    surprise_before: float
    surprise_after: float


class ImportResponse(TypedDict):
    """A click log that was `learned`, or `repeated` if it had come before; so many times documents were left out that
    the collection lacks.
    """

    status: str
    impressions: int
    clicks: int
    queries: int
    left_out: int
    held_out: HeldOut
    words: str


class ImportProgress(TypedDict):
    """How many impressions of a log were learned, of how many; 0 of 0 if none is being imported."""

    learned: int
    of: int


class CollectionSummary(TypedDict):
    """A collection in few words, without its settings."""

    name: str
    documents: int
    depth: int
    edition: int  # how often its documents were changed
    crowded: list[str]  # where its tree no longer fits, in words
    queries: int
    impressions: int
    satisfied: int
    abandoned: int
    created: float


class CollectionInfo(CollectionSummary):
    """A collection in few words."""

    settings: dict[str, Any]


class PlacedDocument(ShownDocument):
    """A document and its categories."""

    path: list[str]


class DocumentsResponse(TypedDict):
    """Some documents of a collection."""

    documents: list[PlacedDocument]
    total: int


class Standing(TypedDict):
    """What a query thinks of a document: its slot in the next ranking, or null, and visitors who looked and clicked."""

    query: str
    impressions: int
    slot: int | None
    visits: int
    clicks: int


class DocumentInfo(PlacedDocument):
    """A document, and the queries in which it stands, or was looked at; so many were looked through, of so many."""

    queries: list[Standing]
    queries_looked_at: int
    queries_total: int


class ExplainedDocument(PlacedDocument):
    """A document, and why it is where it is."""

    why: str
    subtree: str
    documents_in_subtree: int
    visits: int
    clicks: int
    estimate: float
    bound: float | None
    cap: float | None
    record: float | None
    trial: bool | None


class QueryRow(TypedDict):
    """What became of a query's impressions; `learned` counts those that it has learned from, `recent` is the satisfied
    share of about the last fifty of them, and null before there are a hundred.
    """

    query: str
    impressions: int
    learned: int
    satisfied: int
    abandoned: int
    last: float
    recent: float | None


class ListedQuery(QueryRow):
    """A query in a list, and when it was first asked."""

    created: float


class QueriesResponse(TypedDict):
    """Queries, and how many there are in all."""

    queries: list[ListedQuery]
    total: int


class TriedPart(TypedDict):
    """A part of a collection of which documents are tried, and on how many visits."""

    label: str
    documents: int
    visits: int


class SlotTrials(TypedDict):
    """What a slot is about to try: the share of visits, the clicks that it costs, and what is tried most."""

    share: float
    cost_per_100_visits: float
    cost_per_day: float
    tried: list[TriedPart]


class Trials(TypedDict):
    """What will be tried on the next visits, slot by slot; costs of a day are for about so many impressions a day."""

    visits: int
    impressions_per_day: float
    slots: list[SlotTrials]


class Lender(TypedDict):
    """A similar query that lends what it has seen, and how often it was asked."""

    query: str
    impressions: int


class Support(TypedDict):
    """How far similar queries help: like so many visitors of its own, the share of the loan that is believed, and who
    lends, the nearest first.
    """

    visitors: float
    faith: float
    lenders: list[Lender]


class QueryInfo(QueryRow):
    """A query, and what the next visitor will see; `forecast` is null for rankers that keep no records, `support` where
    queries learn alone.
    """

    waiting: int
    unseen: int
    clicks_by_slot: list[int]
    examined_by_slot: list[int]
    ranking: list[ExplainedDocument]
    forecast: Trials | None
    support: Support | None


class AnswerCounts(TypedDict):
    """Of some impressions, how many were answered, by a click or by leaving, and how many of them by a click."""

    answered: int
    satisfied: int


class CurvePoint(AnswerCounts):
    """The impressions of a query from one number on and before another; of very many, the first of them."""

    start: int
    end: int


class Curve(TypedDict):
    """How a query has learned. `first` counts its first hundred impressions; `unlearned` the first twenty, when nearly
    nothing was known: the nearest that there is to a random ranking. It is null where similar queries had lent already
    or a click log was imported among them, and both are where nothing of them was answered, or the log has them no
    more. Where the caller's order led them, it counts what that order was worth.
    """

    query: str
    points: list[CurvePoint]
    first: AnswerCounts | None
    unlearned: AnswerCounts | None


class Node(TypedDict):
    """A part of a collection, as a query's learner sees it."""

    id: int
    parent: int | None
    label: str
    documents: int
    visits: int
    clicks: int
    estimate: float
    leaf: bool
    others: bool


class TreeResponse(TypedDict):
    """The zoom tree, parents before children."""

    nodes: list[Node]


class Activity(TypedDict):
    """What became of impressions, per step of time."""

    start: int
    step: int
    impressions: list[int]
    satisfied: list[int]
    abandoned: list[int]
    clicks_by_slot: list[list[int]]


class RoleResponse(TypedDict):
    """The role of a key: `read` or `admin` (who may do everything)."""

    role: str


class ReplicaLoad(TypedDict):
    """What a replica says of itself: requests per second that came to it of late; learners in memory and their bytes;
    durable writes of the log and those that failed, since it began; its process, and the name of its machine.
    """

    requests_per_second: float
    learners: int
    learner_bytes: int
    writes: int
    failed_writes: int
    process: int
    host: str


class ReplicaInfo(TypedDict):
    """A service that works, alone or with others: since when, for how many seconds nothing was heard of it, how many
    partitions it has, and whether it has the chair. Its load is null before it has said anything.
    """

    number: int
    name: str
    since: float
    silent: float
    partitions: int
    chair: bool
    load: ReplicaLoad | None


class ReplicasResponse(TypedDict):
    """Who serves; how many partitions there are in all, and how many of them nobody has: their queries wait."""

    replicas: list[ReplicaInfo]
    partitions: int
    free: int


class StatusResponse(TypedDict):
    """How the service is."""

    status: str


class Difference(TypedDict):
    """How many more visitors an arm satisfies than the first one, as a share of all; the interval holds whenever one
    looks.
    """

    estimate: float
    low: float
    high: float


class ArmInfo(TypedDict):
    """An arm of an experiment: who came, of how many it is known what became of them, and how many were satisfied.
    `collection` is the name under which its queries can be looked at.
    """

    name: str
    collection: str
    share: float
    settings: dict[str, Any]
    stopped: float | None
    visitors: int
    counted: int
    satisfied: int
    difference: Difference | None


class ExperimentPoint(TypedDict):
    """What was known at a time, arm by arm; of all but the first, how they differ from it."""

    time: float
    visitors: list[int]
    satisfied: list[int]
    differences: list[Difference | None]


class ExperimentSummary(TypedDict):
    """An experiment in few words."""

    name: str
    created: float
    ended: float | None
    promoted: str | None


class ExperimentInfo(ExperimentSummary):
    """An experiment, and what it says so far."""

    arms: list[ArmInfo]
    level: float
    points: list[ExperimentPoint]
    says: list[str]


class ExperimentsResponse(TypedDict):
    """Experiments, the newest first."""

    experiments: list[ExperimentSummary]


class RemovedExperiment(TypedDict):
    """An experiment that is no more."""

    name: str
    status: str
