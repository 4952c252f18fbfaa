"""Shared API of the service and its clients: common paths, and the shapes of responses.

The service builds its OpenAPI document from these shapes, and `zoomrank.client` returns them. They are plain types, so
that neither needs the other's dependencies.
"""

from __future__ import annotations

from typing import Any

from typing_extensions import NotRequired, TypedDict  # typing's, before Python 3.12, cannot be validated

COLLECTIONS = "/v1/collections"
COLLECTION = "/v1/collections/{name}"
RANK = "/v1/collections/{name}/rank"
RANK_BATCH = "/v1/collections/{name}/rank/batch"
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

OWNER = "Zoomrank-Owner"  # header of a forwarded response: the owner's address, where replicas have a port of their own

LARGEST_BATCH = 10_000  # most reports in one request
MOST_RANKINGS = 100  # in one request

Id = int | str  # a document id, as JSON can represent it


class ErrorResponse(TypedDict):
    """Error: a code for programs and a message for people."""

    error: str
    message: str


class ShownDocument(TypedDict):
    """Document as shown on a page."""

    id: Id
    title: str
    url: str


class RankResponse(TypedDict):
    """Ranking to show; send its impression back with the feedback. The impression is null if no document could be
    shown.

    `propensities`, on request, are the probability of each document in its slot, given those above; null if unknown.
    """

    impression: str | None
    query: str
    documents: list[ShownDocument]
    propensities: NotRequired[list[float | None]]


class RankResult(TypedDict, total=False):
    """Result of one request of a batch: a ranking, or an error and a message."""

    impression: str | None
    query: str
    documents: list[ShownDocument]
    propensities: list[float | None]
    error: str
    message: str


class RankBatchResponse(TypedDict):
    """Result of each request, in the order of the requests."""

    results: list[RankResult]


class FeedbackResponse(TypedDict):
    """`learned`; `noted` if the outcome of the ranking is still open, or nothing more is learned; `repeated` if the
    same feedback was sent before.
    """

    impression: str
    status: str


class SeenResponse(TypedDict):
    """`noted`, or `repeated` if it was known."""

    impression: str
    status: str


class Voided(TypedDict):
    """Number of voided impressions, or of those that would be, and of their queries; and the number of impressions of
    that time, at most, that the log no longer has, so that they stay.
    """

    impressions: int
    queries: int
    retired: int
    dry_run: bool


class RemovedQuery(TypedDict):
    """Removed query."""

    query: str
    status: str


class CollectionChange(TypedDict):
    """Collection after changes: its version, its number of documents, and the number of changes by type."""

    edition: int
    documents: int
    added: int
    changed: int
    removed: int
    categories: int


class RemovedCollection(TypedDict):
    """Removed collection."""

    name: str
    status: str


class FeedbackResult(TypedDict, total=False):
    """Result of one report of a batch: a status, or an error and a message."""

    impression: str
    status: str
    error: str
    message: str


class BatchResponse(TypedDict):
    """Result of each report."""

    results: list[FeedbackResult]


class CopyResponse(TypedDict):
    """Copy of a query's learner: its name, the query, and the query's impressions when it was made."""

    copy: str
    query: str
    impressions: int


class HeldOut(TypedDict):
    """Value of an import, measured on the last visits of the log before they were learned: the share of their clicks on
    documents in the learner's ranking, and the log loss in bits per examined document.
    """

    visits: int
    clicks: int
    found_before: float
    found_after: float
    surprise_usual: float
    surprise_before: float
    surprise_after: float


class ImportResponse(TypedDict):
    """Click log that was `learned`, or `repeated` if it was sent before; with the number of unknown documents
    left out.
    """

    status: str
    impressions: int
    clicks: int
    queries: int
    left_out: int
    held_out: HeldOut
    words: str


class ImportProgress(TypedDict):
    """Number of impressions learned so far, and in all; 0 of 0 if no import is running."""

    learned: int
    of: int


class CollectionSummary(TypedDict):
    """Summary of a collection, without its settings."""

    name: str
    documents: int
    depth: int
    edition: int  # version of its tree; metadata changes without a new one
    crowded: list[str]  # parts where its tree no longer fits, in words
    queries: int
    impressions: int
    satisfied: int
    abandoned: int
    created: float


class CollectionInfo(CollectionSummary):
    """Summary of a collection, with its settings."""

    settings: dict[str, Any]


class PlacedDocument(ShownDocument):
    """Document and its categories."""

    path: list[str]


class DocumentsResponse(TypedDict):
    """Page of the documents of a collection."""

    documents: list[PlacedDocument]
    total: int


class DocumentUsage(TypedDict):
    """Usage of a document by a query: its slot in the next ranking, or null, and the visitors who examined and clicked
    it.
    """

    query: str
    impressions: int
    slot: int | None
    visits: int
    clicks: int


class DocumentInfo(PlacedDocument):
    """Document, and the queries that show it or whose visitors examined it; with the number of queries searched, and in
    all.
    """

    queries: list[DocumentUsage]
    queries_looked_at: int
    queries_total: int


class ExplainedDocument(PlacedDocument):
    """Document with the reason for its place."""

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
    """Outcomes of a query's impressions; `learned` counts those learned from, `recent` is the satisfied share of about
    the last fifty of them, null before there are a hundred.
    """

    query: str
    impressions: int
    learned: int
    satisfied: int
    abandoned: int
    last: float
    recent: float | None


class ListedQuery(QueryRow):
    """Query in a list, and when it was first asked."""

    created: float


class QueriesResponse(TypedDict):
    """Page of queries, and their total number."""

    queries: list[ListedQuery]
    total: int


class TriedPart(TypedDict):
    """Part of a collection whose documents are tried, and on how many visits."""

    label: str
    documents: int
    visits: int


class SlotTrials(TypedDict):
    """Forecast trials of a slot: the share of visits, the clicks lost, and the parts tried most."""

    share: float
    cost_per_100_visits: float
    cost_per_day: float
    tried: list[TriedPart]


class Trials(TypedDict):
    """Forecast trials of the next visits, slot by slot; daily costs assume this many impressions a day."""

    visits: int
    impressions_per_day: float
    slots: list[SlotTrials]


class Lender(TypedDict):
    """Similar query that lends its visits, and how often it was asked."""

    query: str
    impressions: int


class SupportInfo(TypedDict):
    """Support by similar queries: its worth in visitors, the trust in the loan (the share that counts), and the
    lenders, the nearest first.
    """

    visitors: float
    faith: float
    lenders: list[Lender]


class QueryInfo(QueryRow):
    """Query, and what the next visitor will see; `forecast` is null for rankers that keep no records, `support` where
    queries learn alone.
    """

    waiting: int
    unseen: int
    clicks_by_slot: list[int]
    examined_by_slot: list[int]
    ranking: list[ExplainedDocument]
    forecast: Trials | None
    support: SupportInfo | None


class FeedbackCounts(TypedDict):
    """Number of impressions with feedback, by a click or by leaving, and number of clicks among them."""

    answered: int
    satisfied: int


class CurvePoint(FeedbackCounts):
    """Impressions of a query from number `start` to before `end`; if there are very many, the first of them."""

    start: int
    end: int


class LearningCurve(TypedDict):
    """Learning curve of a query. `first` counts its first hundred impressions; `unlearned` the first twenty, before
    much was learned: the best estimate of a random ranking. It is null if similar queries had already lent, or a click
    log was imported among them; both are null if none of them had feedback, or the log no longer has them. If the
    caller's prior order led them, it measures that order.
    """

    query: str
    points: list[CurvePoint]
    first: FeedbackCounts | None
    unlearned: FeedbackCounts | None


class Node(TypedDict):
    """Part of a collection, with the estimates of a query's learner."""

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
    """Zoom tree, parents before children."""

    nodes: list[Node]


class Activity(TypedDict):
    """Outcomes of impressions, per step of time."""

    start: int
    step: int
    impressions: list[int]
    satisfied: list[int]
    abandoned: list[int]
    clicks_by_slot: list[list[int]]


class RoleResponse(TypedDict):
    """Role of a key: `read` or `admin` (full access)."""

    role: str


class ReplicaLoad(TypedDict):
    """Load that a replica reports: recent requests per second; learners in memory and their bytes; durable writes of
    the log and failed ones, since its start; its process, and the name of its machine.
    """

    requests_per_second: float
    learners: int
    learner_bytes: int
    writes: int
    failed_writes: int
    process: int
    host: str


class ReplicaInfo(TypedDict):
    """Running replica, alone or with others: its start, the seconds since it was last heard of, its number of
    partitions, and whether it is the coordinator. Its load is null before the first report.
    """

    number: int
    name: str
    since: float
    silent: float
    partitions: int
    chair: bool
    load: ReplicaLoad | None


class ReplicasResponse(TypedDict):
    """Replicas; the number of partitions in all, and of those without an owner, whose queries wait."""

    replicas: list[ReplicaInfo]
    partitions: int
    free: int


class StatusResponse(TypedDict):
    """Status of the service."""

    status: str


class Difference(TypedDict):
    """Difference of an arm's satisfied share of visitors from the first arm's; the interval is valid at any time."""

    estimate: float
    low: float
    high: float


class ArmInfo(TypedDict):
    """Arm of an experiment: its visitors, those with a known outcome, and those satisfied. `collection` is the name for
    looking at its queries.
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
    """Results at a time, arm by arm; for all but the first, the difference from it."""

    time: float
    visitors: list[int]
    satisfied: list[int]
    differences: list[Difference | None]


class ExperimentSummary(TypedDict):
    """Summary of an experiment."""

    name: str
    created: float
    ended: float | None
    promoted: str | None


class ExperimentInfo(ExperimentSummary):
    """Experiment and its results so far."""

    arms: list[ArmInfo]
    level: float
    points: list[ExperimentPoint]
    says: list[str]


class ExperimentsResponse(TypedDict):
    """Experiments, the newest first."""

    experiments: list[ExperimentSummary]


class RemovedExperiment(TypedDict):
    """Removed experiment."""

    name: str
    status: str
