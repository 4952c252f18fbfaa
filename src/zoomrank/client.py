"""`Client`: Python client of the ranking service (docs/how-to/call-from-python.md); the extra is `zoomrank[client]`."""

from __future__ import annotations

import json
import os
import random
import secrets
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import EllipsisType
from typing import Any, cast
from urllib.parse import quote

from zoomrank.errors import MissingExtraError, ParameterError, ZoomrankError

try:
    import httpx
except ModuleNotFoundError as error:
    raise MissingExtraError("The client needs httpx: pip install 'zoomrank[client]'.") from error

from zoomrank import wire
from zoomrank.documents import Collection, Document
from zoomrank.files import atomic_file
from zoomrank.wire import Id

__all__ = ["Client", "ClientError", "ShownRanking"]

_LOGS = {
    ".jsonl": "application/x-ndjson",
    ".ndjson": "application/x-ndjson",
    ".parquet": "application/vnd.apache.parquet",
}
_LONGEST_PAUSE = 5.0  # most seconds between two attempts
_CONNECT_WITHIN = 1.0  # seconds, to the owner of a partition, since any other replica will do
_MOST_QUERIES = 100_000  # whose partitions a client remembers
_LINES_AT_ONCE = 20_000  # most documents or changes per request


class ClientError(ZoomrankError):
    """The service returned an error, or could not be reached: then the status is 0, and the code "unreachable" or
    "timeout".

    Parameters
    ----------
    status
        The HTTP status, or 0.
    code
        Error code for programs.
    message
        Message for people.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(status, code, message)
        self.status, self.code, self.message = status, code, message

    def __str__(self) -> str:
        return f"{self.message} ({self.status} {self.code})" if self.status else self.message


@dataclass(frozen=True)
class ShownRanking:
    """A ranking to show. Report its outcome with `Client.feedback(shown, clicked)`.

    Attributes
    ----------
    impression
        Name to send the feedback with; empty if no document could be shown, with `fewer`.
    query
        The visitor's query.
    documents
        Documents to show, from the top.
    propensities
        Probability of each document in its slot, given those above, if requested; None if unknown.
    """

    impression: str
    query: str
    documents: list[Document] = field(default_factory=list)
    propensities: list[float | None] | None = None

    @property
    def ids(self) -> list[Id]:
        """Ids of the documents, from the top.

        Returns
        -------
        list of int or str
            Ids to pass to `Client.feedback`.
        """
        return [document.id for document in self.documents]


class Client:
    """Client of a service at a URL. Threads may share a client.

    Parameters
    ----------
    url
        Address of the service, such as `http://127.0.0.1:8000`.
    key
        API key with the required role; none if the service has no keys.
    timeout
        Seconds that a request may take.
    retries
        Number of retries, where a retry is safe, after a connection error, a 503, or an error of a proxy in between.
    backoff
        Seconds before the second attempt, approximately; doubled before each further one.
    direct
        Send rankings and feedback to the replica that owns the query, at the address that an earlier response named,
        and to `url` if that fails: for clients in the network of a cluster's replicas.
    **options
        Further arguments of `httpx.Client`.

    Raises
    ------
    ParameterError
        The key cannot be sent: headers are plain ASCII.

    Examples
    --------
    With a running service (see docs/how-to/call-from-python.md), `Client("http://127.0.0.1:8000")` is enough. This one
    is a mock.

    >>> def respond(request):
    ...     if request.url.path == "/v1/feedback":
    ...         return httpx.Response(200, json={"status": "learned"})
    ...     documents = [{"id": "barn", "title": "Barn owls", "url": ""}]
    ...     return httpx.Response(200, json={"impression": "1", "query": "owls", "documents": documents})
    >>> with Client("http://127.0.0.1:8000", transport=httpx.MockTransport(respond)) as client:
    ...     shown = client.rank("birds", "owls")
    ...     shown.ids, client.feedback(shown, clicked="barn")
    (['barn'], 'learned')
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        timeout: float = 10.0,
        *,
        retries: int = 3,
        backoff: float = 0.1,
        direct: bool = False,
        **options: Any,
    ) -> None:
        self.url = url.rstrip("/")
        self._direct = direct
        self._partitions: dict[tuple[str, str], str] = {}  # of queries
        self._owners: dict[str, str] = {}  # addresses, by partition
        self._retries, self._backoff = retries, backoff
        headers = {"Authorization": f"Bearer {_checked_key(key)}"} if key else {}
        self._http = httpx.Client(base_url=self.url, headers=headers, timeout=timeout, **options)
        self._of_owners = httpx.Timeout(**{**self._http.timeout.as_dict(), "connect": _CONNECT_WITHIN})

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    # Collections.

    def create_collection(
        self,
        name: str,
        documents: Collection | Iterable[Document | Mapping[str, Any]],
        settings: Mapping[str, Any] | None = None,
        *,
        timeout: float = 600.0,
    ) -> wire.CollectionInfo:
        """Create a collection. Not retried: an attempt that seemed to fail may have created it.

        Parameters
        ----------
        name
            At most 64 letters, digits, `.`, `_` and `-`.
        documents
            A `Collection`, or documents that all have a `path`, all a `vector` or all a `text`.
        settings
            Settings that differ from the defaults, such as `{"slots": 3}`: see docs/how-to/call-from-python.md.
        timeout
            Time limit in seconds.

        Returns
        -------
        CollectionInfo
            Summary of the collection.

        Examples
        --------
        >>> documents = [{"id": "barn", "text": "barn owl"}, {"id": "snow", "text": "snowy owl"}]
        >>> client.create_collection("birds", documents, {"slots": 1})["documents"]  # doctest: +SKIP
        2
        """
        chosen = dict(settings or {})
        if isinstance(documents, Collection):
            params, headers = {"settings": json.dumps(chosen)}, {"Content-Type": "application/octet-stream"}
            sent = {"params": params, "content": _content(documents), "headers": headers}
            made = self._send("PUT", _path(wire.COLLECTION, name), again=False, timeout=timeout, **sent)
        else:
            body = {"name": name, "documents": [_document(one) for one in documents], "settings": chosen}
            made = self._send("POST", wire.COLLECTIONS, again=False, json=body, timeout=timeout)
        return cast(wire.CollectionInfo, made)

    def collections(self) -> list[wire.CollectionInfo]:
        """List all collections.

        Returns
        -------
        list of CollectionInfo
            Summary of each collection.
        """
        return cast(list[wire.CollectionInfo], self._get(wire.COLLECTIONS)["collections"])

    def collection(self, name: str) -> wire.CollectionInfo:
        """Look a collection up.

        Parameters
        ----------
        name
            Name of the collection.

        Returns
        -------
        CollectionInfo
            Summary of the collection.
        """
        return cast(wire.CollectionInfo, self._get(_path(wire.COLLECTION, name)))

    def documents(
        self, collection: str, offset: int = 0, limit: int = 100, *, search: str = ""
    ) -> list[wire.PlacedDocument]:
        """List documents in the order of the tree, so that neighbours are similar.

        Parameters
        ----------
        collection
            Name of the collection.
        offset
            Number to skip at the beginning.
        limit
            Most to return.
        search
            Substring of their title, id or address, case-insensitive.

        Returns
        -------
        list of PlacedDocument
            Documents with their categories.
        """
        asked: dict[str, int | str] = {"offset": offset, "limit": limit, "search": search}
        return cast(list[wire.PlacedDocument], self._get(_path(wire.DOCUMENTS, collection), **asked)["documents"])

    def document(self, collection: str, document: Id) -> wire.DocumentInfo:
        """Look a document up: its categories, and the queries that show it.

        Parameters
        ----------
        collection
            Name of the collection.
        document
            Id of the document.

        Returns
        -------
        DocumentInfo
            The document with its categories, and the queries whose next ranking has it or whose visitors examined it.
        """
        return cast(wire.DocumentInfo, self._get(_path(wire.DOCUMENT, collection, document)))

    # Changes of documents.

    def add_documents(
        self,
        collection: str,
        documents: Iterable[Document | Mapping[str, Any]],
        there: str = "refuse",
        progress: Callable[[int], None] | None = None,
        *,
        timeout: float = 600.0,
    ) -> wire.CollectionChange:
        """Add any number of documents; learners keep their state.

        Parameters
        ----------
        collection
            Name of the collection.
        documents
            Each with an `id`, optional `title`, `url` and `text`, and its place: a `path`, a `vector`, or the id of a
            document that it is `near` to; otherwise its text decides.
        there
            "refuse" existing documents, or "change" them: then the call can be retried after a failure.
        progress
            Called now and then with the number added so far.
        timeout
            Time limit in seconds per batch of some thousand.

        Returns
        -------
        CollectionChange
            State of the collection, and the number of documents added.
        """
        sent = ({"there": there}, (_document(one) for one in documents))
        return self._send_lines(_path(wire.DOCUMENTS, collection), *sent, progress, timeout, again=there == "change")

    def change_documents(
        self,
        collection: str,
        changes: Iterable[Mapping[str, Any]],
        unknown: str = "refuse",
        progress: Callable[[int], None] | None = None,
        *,
        timeout: float = 600.0,
    ) -> wire.CollectionChange:
        """Apply any number of changes to documents and categories, in atomic batches of some thousand.

        Parameters
        ----------
        collection
            Name of the collection.
        changes
            Each is `{"add": ID, …}`, `{"put": ID, …}` (add it, or change it if it is there), `{"change": ID, …}`,
            `{"remove": ID}`, or `{"category": PATH, "to": PATH}`, which renames or moves a category.
        unknown
            "refuse" changes of unknown documents, or "skip" them.
        progress
            Called now and then with the number made so far.
        timeout
            Time limit in seconds per batch of some thousand.

        Returns
        -------
        CollectionChange
            State of the collection, and the number of changes by type.
        """
        sent = ({"unknown": unknown}, (dict(change) for change in changes))
        return self._send_lines(_path(wire.CHANGES, collection), *sent, progress, timeout, again=False)

    def change_document(self, collection: str, document: Id, **known: Any) -> wire.CollectionChange:
        """Change the data of a document, or its place.

        Parameters
        ----------
        collection
            Name of the collection.
        document
            Id of the document.
        **known
            Any of `title`, `url`, `text`, `path`, `vector` and `near`; the others stay unchanged.

        Returns
        -------
        CollectionChange
            State of the collection.
        """
        path = _path(wire.DOCUMENT, collection, document)
        return cast(wire.CollectionChange, self._send("PATCH", path, json=known))

    def remove_document(self, collection: str, document: Id) -> wire.CollectionChange:
        """Remove a document; its category keeps its counts. Not retried.

        Parameters
        ----------
        collection
            Name of the collection.
        document
            Id of the document.

        Returns
        -------
        CollectionChange
            State of the collection.
        """
        path = _path(wire.DOCUMENT, collection, document)
        return cast(wire.CollectionChange, self._send("DELETE", path, again=False))

    def remake_tree(self, collection: str, seed: int = 0, *, timeout: float = 600.0) -> wire.CollectionChange:
        """Rebuild the tree of a collection; learned counts are carried over document by document.

        Parameters
        ----------
        collection
            Name of the collection.
        seed
            Seed of the random draws.
        timeout
            Time limit in seconds.

        Returns
        -------
        CollectionChange
            State of the collection.
        """
        sent = {"params": {"seed": seed}, "timeout": timeout}
        return cast(wire.CollectionChange, self._send("POST", _path(wire.REMAKE, collection), again=False, **sent))

    def remove_collection(self, name: str, *, timeout: float = 600.0) -> None:
        """Remove a collection with everything learned in it. Not retried.

        Parameters
        ----------
        name
            Name of the collection.
        timeout
            Time limit in seconds.
        """
        self._send("DELETE", _path(wire.COLLECTION, name), again=False, timeout=timeout)

    def _send_lines(
        self,
        path: str,
        params: dict[str, str],
        lines: Iterable[dict[str, Any]],
        progress: Callable[[int], None] | None,
        timeout: float,
        again: bool,
    ) -> wire.CollectionChange:
        """Send many small items, some thousand at a time."""
        told: wire.CollectionChange | None = None
        done, lines = 0, iter(lines)
        while (some := list(islice(lines, _LINES_AT_ONCE))) or told is None:
            content = b"".join(json.dumps(one).encode() + b"\n" for one in some)
            headers = {"Content-Type": "application/x-ndjson"}
            sent = {"params": params, "content": content, "headers": headers, "timeout": timeout}
            answer: wire.CollectionChange = self._send("POST", path, again=again, **sent)
            told = answer if told is None else _merged_changes(told, answer)
            done += len(some)
            if progress is not None and some:
                progress(done)
        return told

    # Ranking and learning.

    def rank(
        self,
        collection: str,
        query: str,
        slots: int | None = None,
        eligible: Iterable[Id] | None = None,
        excluded: Iterable[Id] | None = None,
        about: str | Iterable[str] | Iterable[float] | None = None,
        once: str | None = None,
        *,
        unknown: str = "refuse",
        fewer: bool = False,
        order: Iterable[Id] | None = None,
        visitor: str | None = None,
        propensities: bool = False,
    ) -> ShownRanking:
        """Request a ranking for a visitor.

        Parameters
        ----------
        collection, query
            Name of the collection, and the visitor's query; each query has its own learner.
        slots
            Number of documents, if fewer than in the collection's settings.
        eligible, excluded
            Ids of the only documents that may be shown to this visitor, and of those that may not.
        about
            Place of a new query: its path ("Animals > Cats", or a list of steps) or its vector, depending on the
            collection's setting `similar`. Ignored for known queries.
        once
            Idempotency key of this request, of up to 255 letters: the service returns the same ranking to a request
            with the same key within ten minutes. A new key by default; pass your own to retry after a timeout.
        unknown
            Treatment of unknown ids: "refuse", or "skip".
        fewer
            Accept fewer documents than slots if no more may be shown; otherwise that is an error.
        order
            Prior order of ids, best first: shown to the first visitors of a query, as far as clicks do not overrule it.
            Ignored later. Unknown ids are skipped.
        visitor
            Name of the visitor, such as the value of a cookie: in an experiment, the visitor stays in the same arm and
            counts once. Only a hash of it is kept.
        propensities
            Return the probability of each document in its slot.

        Returns
        -------
        ShownRanking
            Documents from the top, and the impression to send the feedback with.

        Notes
        -----
        Retried if there was no response. If the first attempt did arrive, the second gets the same response: one
        visitor, one impression.

        Examples
        --------
        >>> client.rank("birds", "owls", slots=1).ids  # doctest: +SKIP
        ['barn']
        """
        options = {"slots": slots, "eligible": eligible, "excluded": excluded, "order": order, "about": about}
        unknown_ids = None if unknown == "refuse" else unknown
        more = {"unknown": unknown_ids, "fewer": fewer, "visitor": visitor, "propensities": propensities}
        headers = {"Idempotency-Key": once or secrets.token_hex(16)}
        body = _ranking_request({"query": query, **options, **more})
        partition = self._partitions.get((collection, query), "")
        path = _path(wire.RANK, collection)
        shown = _shown(self._send("POST", path, partition, json=body, headers=headers))
        if self._direct and shown.impression and _partition(shown.impression) != partition:
            if len(self._partitions) >= _MOST_QUERIES:
                self._partitions.clear()
            self._partitions[collection, query] = _partition(shown.impression)
        return shown

    def rank_batch(
        self, collection: str, requests: Iterable[str | Mapping[str, Any]], once: str | None = None
    ) -> list[ShownRanking | ClientError]:
        """Request up to 100 rankings at once: those of a page with several lists, or of several visitors.

        Parameters
        ----------
        collection
            Name of the collection.
        requests
            Queries, or mappings with a `query` and options of `rank`: each is answered as if it were requested alone.
        once
            Idempotency key of the whole batch, as in `rank`.

        Returns
        -------
        list of ShownRanking or ClientError
            The rankings in the order of the requests. An error that concerns one request is in the place of its
            ranking, with the status 200 of the whole response; its code says which it is.

        Examples
        --------
        >>> owls, cranes = client.rank_batch("birds", ["owls", {"query": "cranes", "slots": 1}])  # doctest: +SKIP
        """
        body = {"requests": [_ranking_request({"query": one} if isinstance(one, str) else one) for one in requests]}
        headers = {"Idempotency-Key": once or secrets.token_hex(16)}
        results = self._send("POST", _path(wire.RANK_BATCH, collection), json=body, headers=headers)["results"]
        return [ClientError(200, one["error"], one["message"]) if "error" in one else _shown(one) for one in results]

    def feedback(
        self,
        impression: ShownRanking | str,
        clicked: Id | Iterable[Id] | EllipsisType | None = ...,
        *,
        purchased: Id | Iterable[Id] | None = None,
        disliked: Iterable[Id] = (),
        looked_at: int | None = None,
    ) -> str:
        """Report the outcome of a ranking, all at once or step by step.

        Parameters
        ----------
        impression
            Result of `rank`, or its impression alone.
        clicked
            Id of the clicked document, or several; None if the visitor left without a click (or, where purchases count,
            without a purchase). Leave it out while that is unknown.
        purchased
            Id of the purchased document, or several.
        disliked
            Ids of documents that the visitor examined and did not want.
        looked_at
            Number of documents, from the top, that were on the visitor's screen.

        Returns
        -------
        str
            "learned"; "noted" if the outcome of the ranking is still open, or nothing more is learned; "repeated" if it
            was known.

        Notes
        -----
        Retried if there was no response. Feedback counts once: if the first attempt did arrive, the second returns
        "repeated".

        Examples
        --------
        >>> client.feedback(shown, clicked="barn")  # doctest: +SKIP
        'learned'
        >>> client.feedback(shown, clicked=None, looked_at=3)  # doctest: +SKIP
        'learned'
        """
        more = {"purchased": _one_or_more(purchased), "disliked": list(disliked) or None, "looked_at": looked_at}
        report = _report(impression, clicked) | _given(more)
        partition = _partition(report["impression"])
        return str(self._send("POST", wire.FEEDBACK, partition, json=report)["status"])

    def feedback_batch(
        self, reports: Iterable[tuple[ShownRanking | str, Id | Iterable[Id] | None]]
    ) -> list[wire.FeedbackResult]:
        """Report the outcomes of many rankings at once. Each is accepted or rejected by itself.

        Parameters
        ----------
        reports
            Pairs of arguments of `feedback`: an impression, and the clicked id, several, or None.

        Returns
        -------
        list of FeedbackResult
            Result of each report, in the same order: a status, or an error and a message.
        """
        sent = [_report(impression, clicked) for impression, clicked in reports]
        results: list[wire.FeedbackResult] = []
        for start in range(0, len(sent), wire.LARGEST_BATCH):
            body = {"feedback": sent[start : start + wire.LARGEST_BATCH]}
            results += self._send("POST", wire.FEEDBACK_BATCH, json=body)["results"]
        return results

    def seen(self, impression: ShownRanking | str) -> str:
        """Report that a ranking is on the visitor's screen. Needed where `no_feedback` is `unseen`.

        Parameters
        ----------
        impression
            Result of `rank`, or its impression alone.

        Returns
        -------
        str
            "noted", or "repeated" if it was known.
        """
        name = _name(impression)
        return str(self._send("POST", wire.SEEN, _partition(name), json={"impression": name})["status"])

    # Imports of click logs.

    def import_clicks(
        self,
        collection: str,
        log: str | os.PathLike[str],
        unknown: str = "refuse",
        *,
        once: str | None = None,
        timeout: float = 24 * 3600.0,
    ) -> wire.ImportResponse:
        """Let queries learn from the click log of another ranker: a warm start.

        Parameters
        ----------
        collection
            Name of the collection.
        log
            A JSONL or Parquet file, in one of the two forms of `zoomrank.documents.read_impressions`.
        unknown
            Treatment of unknown documents: "refuse" or "skip".
        once
            Idempotency key of this log, which is learned once; by default the content of the file identifies it.
        timeout
            Time limit in seconds.

        Returns
        -------
        ImportResponse
            Counts of the import, and its value measured on the last visits of the log.

        Notes
        -----
        Retried if there was no response: nothing is learned twice, and an interrupted import continues.
        """
        file = Path(log)
        kind = _LOGS.get(file.suffix.lower())
        if kind is None:
            raise ParameterError(f"{file} is not a click log that can be sent: pass a {' or '.join(_LOGS)} file.")
        headers = _given({"Content-Type": kind, "Idempotency-Key": once})
        sent: dict[str, Any] = {"params": {"unknown": unknown}, "content": file.read_bytes(), "headers": headers}
        path = _path(wire.CLICKS, collection)
        return cast(wire.ImportResponse, self._send("POST", path, timeout=timeout, **sent))

    def import_progress(self, collection: str) -> wire.ImportProgress:
        """Return the progress of the import of a click log.

        Parameters
        ----------
        collection
            Name of the collection.

        Returns
        -------
        ImportProgress
            Number of impressions learned, and in all; 0 of 0 if no import is running.
        """
        return cast(wire.ImportProgress, self._get(_path(wire.CLICKS, collection)))

    # Void and removal.

    def void(
        self,
        collection: str,
        *,
        query: str | None = None,
        since: float | None = None,
        until: float | None = None,
        key: str | None = None,
        dry_run: bool = False,
    ) -> wire.Voided:
        """Void impressions: learners are rebuilt as if those had never been.

        Parameters
        ----------
        collection
            Name of the collection.
        query
            Only impressions of this query.
        since, until
            Only impressions shown from `since` on, and before `until`: seconds since 1970.
        key
            Only impressions requested with this key.
        dry_run
            Only count them.

        Returns
        -------
        Voided
            Number of impressions, and of their queries.
        """
        span = {"query": query, "since": since, "until": until, "key": key, "dry_run": dry_run}
        return cast(wire.Voided, self._send("POST", _path(wire.VOID, collection), json=span, timeout=600.0))

    def remove_query(self, collection: str, query: str) -> None:
        """Remove a query with everything it has learned.

        Parameters
        ----------
        collection
            Name of the collection.
        query
            The query.
        """
        self._send("DELETE", _path(wire.QUERY, collection), again=False, params={"query": query})

    # Export.

    def export(
        self,
        collection: str,
        path: str | os.PathLike[str],
        *,
        since: float | None = None,
        until: float | None = None,
        form: str = "jsonl",
        learned: bool = False,
    ) -> int:
        """Export impressions and their outcomes to a file, written atomically.

        Parameters
        ----------
        collection
            Name of the collection.
        path
            Path of the file.
        since, until
            Only impressions shown from `since` on, and before `until`: seconds since 1970.
        form
            "jsonl" or "parquet".
        learned
            Only impressions that were learned from, as `read_clicks` needs them.

        Returns
        -------
        int
            Size of the file in bytes.
        """
        parameters = _given({"since": since, "until": until, "format": form, "learned": learned or None})
        try:
            with self._http.stream("GET", _path(wire.EXPORT, collection), params=parameters) as response:
                if not response.is_success:
                    response.read()
                    _checked(response)
                with atomic_file(path) as file:
                    for piece in response.iter_bytes():
                        file.write(piece)
                    return file.tell()
        except httpx.HTTPError as error:
            raise ClientError(0, "unreachable", f"{self.url} did not send all of it: {error}. Try again.") from error

    # Queries and learners.

    def queries(
        self, collection: str, offset: int = 0, limit: int = 50, *, search: str = "", sort: str = "asked"
    ) -> list[wire.ListedQuery]:
        """List the queries of a collection, those with most impressions first.

        Parameters
        ----------
        collection
            Name of the collection.
        offset
            Number to skip at the beginning.
        limit
            Most to return.
        search
            Substring of the query.
        sort
            Another order: "worst" (least satisfied first), "newest", or "trend" (falling most first).

        Returns
        -------
        list of ListedQuery
            Queries with their counts.
        """
        asked: dict[str, int | str] = {"offset": offset, "limit": limit, "search": search, "sort": sort}
        return cast(list[wire.ListedQuery], self._get(_path(wire.QUERIES, collection), **asked)["queries"])

    def query(self, collection: str, query: str) -> wire.QueryInfo:
        """Look a query up: its outcomes, and the next ranking with explanations. Changes nothing.

        Parameters
        ----------
        collection
            Name of the collection.
        query
            The query.

        Returns
        -------
        QueryInfo
            Counts, and a ranking with the reason for each place.
        """
        return cast(wire.QueryInfo, self._get(_path(wire.QUERY, collection), query=query))

    def curve(self, collection: str, query: str) -> wire.LearningCurve:
        """Return the learning curve of a query: the satisfied share along its impressions.

        Parameters
        ----------
        collection
            Name of the collection.
        query
            The query.

        Returns
        -------
        LearningCurve
            Counts along impressions, and those of the first hundred and the first twenty.
        """
        return cast(wire.LearningCurve, self._get(_path(wire.CURVE, collection), query=query))

    def tree(self, collection: str, query: str, limit: int = 400) -> list[wire.Node]:
        """Return the tree with the estimates of a query's learner.

        Parameters
        ----------
        collection
            Name of the collection.
        query
            The query.
        limit
            Most parts to return, the most visited first.

        Returns
        -------
        list of Node
            Parts, parents before children.
        """
        return cast(list[wire.Node], self._get(_path(wire.TREE, collection), query=query, limit=limit)["nodes"])

    def activity(self, collection: str | None = None, seconds: int = 3600, points: int = 120) -> wire.Activity:
        """Return the outcomes of impressions over time, in one collection or in all.

        Parameters
        ----------
        collection
            Name of the collection; all collections by default.
        seconds
            Length of the period, up to now.
        points
            Number of steps of the period.

        Returns
        -------
        Activity
            Counts for each step.
        """
        path = wire.ACTIVITY if collection is None else _path(wire.COLLECTION_ACTIVITY, collection)
        return cast(wire.Activity, self._get(path, seconds=seconds, points=points))

    def health(self) -> str:
        """Check that the service responds.

        Returns
        -------
        str
            "ok" if it responds.
        """
        return str(self._get(wire.HEALTH)["status"])

    def replicas(self) -> wire.ReplicasResponse:
        """List the replicas that share the store, and the load of each.

        Returns
        -------
        ReplicasResponse
            The replicas, and the number of partitions in all and without an owner.
        """
        return cast(wire.ReplicasResponse, self._get(wire.REPLICAS))

    # Experiments.

    def create_experiment(
        self, collection: str, name: str, arms: Iterable[Mapping[str, Any]], *, timeout: float = 600.0
    ) -> wire.ExperimentInfo:
        """Start an experiment: visitors are split among arms, each with its own learners.

        Parameters
        ----------
        collection
            Name of the collection.
        name
            Name of the experiment, of letters, digits, `-`, `_` and `.`.
        arms
            Each with a `name`, its `share` of the visitors, and the `settings` in which it differs from the collection;
            without settings it is the collection unchanged. The others are compared with the first.
        timeout
            Time limit in seconds; an algorithm used for the first time on a machine is compiled first.

        Returns
        -------
        ExperimentInfo
            The new experiment.
        """
        body = {"name": name, "arms": [dict(arm) for arm in arms]}
        sent = {"json": body, "timeout": timeout}
        return cast(wire.ExperimentInfo, self._send("POST", _path(wire.EXPERIMENTS, collection), again=False, **sent))

    def experiments(self, collection: str) -> list[wire.ExperimentSummary]:
        """List the experiments of a collection.

        Parameters
        ----------
        collection
            Name of the collection.

        Returns
        -------
        list of ExperimentSummary
            Experiments, the newest first.
        """
        return cast(list[wire.ExperimentSummary], self._get(_path(wire.EXPERIMENTS, collection))["experiments"])

    def experiment(self, collection: str, name: str) -> wire.ExperimentInfo:
        """Return the results of an experiment so far; its intervals are valid at any time.

        Parameters
        ----------
        collection, name
            Names of the collection and the experiment.

        Returns
        -------
        ExperimentInfo
            Visitors of each arm, those satisfied, the differences from the first arm, and their history.
        """
        return cast(wire.ExperimentInfo, self._get(_path(wire.EXPERIMENT, collection, name)))

    def stop_experiment(self, collection: str, name: str, arm: str | None = None) -> wire.ExperimentInfo:
        """Stop an arm, or the whole experiment: its visitors then get the collection unchanged.

        Parameters
        ----------
        collection, name
            Names of the collection and the experiment.
        arm
            Name of the arm; None: the whole experiment.

        Returns
        -------
        ExperimentInfo
            The experiment and its results.
        """
        path = _path(wire.STOP, collection, name)
        return cast(wire.ExperimentInfo, self._send("POST", path, json=_given({"arm": arm})))

    def promote_arm(self, collection: str, name: str, arm: str) -> wire.ExperimentInfo:
        """End an experiment; an arm serves the collection from now on, with everything it has learned.

        Parameters
        ----------
        collection, name
            Names of the collection and the experiment.
        arm
            Name of the arm.

        Returns
        -------
        ExperimentInfo
            The experiment and its results.
        """
        path = _path(wire.PROMOTE, collection, name)
        return cast(wire.ExperimentInfo, self._send("POST", path, json={"arm": arm}))

    def remove_experiment(self, collection: str, name: str) -> None:
        """Remove an ended experiment, with the learners of the arms that no longer serve.

        Parameters
        ----------
        collection, name
            Names of the collection and the experiment.
        """
        self._send("DELETE", _path(wire.EXPERIMENT, collection, name), again=False)

    # Requests.

    def _get(self, path: str, **parameters: int | str) -> Any:
        return self._send("GET", path, params=parameters)

    def _send(self, method: str, path: str, partition: str = "", /, *, again: bool = True, **options: Any) -> Any:
        for attempt in range(self._retries + 1 if again else 1):
            last = attempt == self._retries or not again
            asked = 0.0
            owner = self._owners.get(partition)
            try:
                if owner is None:
                    response = self._http.request(method, path, **options)
                else:
                    response = self._ask_owner(owner, method, path, **options)
            except httpx.TimeoutException as error:  # the caller's time limit is over: no retry
                raise ClientError(0, "timeout", f"{self.url} took too long: pass a longer timeout.") from error
            except (httpx.NetworkError, httpx.RemoteProtocolError) as error:
                if last:
                    raise ClientError(0, "unreachable", f"{self.url} cannot be reached: {error}.") from error
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise ClientError(0, "unreachable", f"{self.url} cannot be reached: {error}.") from error
            else:
                if not _is_retryable(response) or last:
                    content = _checked(response)
                    if self._direct and wire.OWNER in response.headers and content.get("impression"):
                        self._owners[_partition(content["impression"])] = response.headers[wire.OWNER]
                    return content
                asked = _seconds(response.headers.get("Retry-After", ""))
            pause = self._backoff * 2**attempt * random.uniform(0.5, 1.5)
            time.sleep(min(max(pause, asked), _LONGEST_PAUSE))
        raise AssertionError  # the last attempt returns or raises

    def _ask_owner(self, owner: str, method: str, path: str, **options: Any) -> httpx.Response:
        """Ask a replica; if it has no good answer, its partitions may have another owner."""
        is_good = False
        try:
            response = self._http.request(method, owner + path, timeout=self._of_owners, **options)
            is_good = not _is_retryable(response)
        except httpx.ConnectTimeout as error:
            raise httpx.ConnectError(str(error)) from error
        finally:
            if not is_good:
                self._owners = {one: its for one, its in self._owners.copy().items() if its != owner}
        return response


def _partition(impression: str) -> str:
    """Return the partition of an impression: the last two digits of the learner, with which its name begins."""
    return impression.partition("-")[0][-2:]


def _path(path: str, collection: str, part: Id = "") -> str:
    """Fill the placeholders of a path; `part` is a document or an experiment of the collection.

    Parts that HTTP libraries and proxies take out of paths are refused: `DELETE …/documents/..` is `DELETE …`.
    """
    for one in (collection, str(part)):
        if one in {".", ".."}:
            raise ParameterError(
                f"{one!r} cannot be part of a path. Documents with such an id, of earlier versions, are changed and "
                f"removed by change_documents(collection, [{{'remove': {one!r}}}])."
            )
    inside = quote(str(part), safe="")
    return path.format(name=quote(collection, safe=""), document=inside, experiment=inside)


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what is None: the service then applies its default."""
    return {name: value for name, value in values.items() if value is not None}


def _merged_changes(one: wire.CollectionChange, other: wire.CollectionChange) -> wire.CollectionChange:
    """Add up two results; the later one has the current state of the collection."""
    counts = ("added", "changed", "removed", "categories")
    sums = {name: one[name] + other[name] for name in counts}  # type: ignore[literal-required]
    return cast(wire.CollectionChange, {**other, **sums})


def _content(collection: Collection) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "collection"
        collection.save(file)
        return file.read_bytes()


def _document(document: Document | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(document, Document):
        return {"id": document.id, "title": document.title, "url": document.url, "text": document.text}
    return dict(document)


def _report(impression: ShownRanking | str, clicked: Id | Iterable[Id] | EllipsisType | None) -> dict[str, Any]:
    said = {} if clicked is ... else {"clicked": _one_or_more(clicked)}
    return {"impression": _name(impression), **said}


def _ranking_request(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a request for a ranking; defaults are left out."""
    body = {name: value for name, value in options.items() if value is not None and value is not False}
    for name in {"eligible", "excluded", "order"} & body.keys():
        body[name] = list(body[name])
    if not isinstance(body.get("about", ""), str):
        body["about"] = [_plain_value(one) for one in body["about"]]
    return body


def _shown(ranked: wire.RankResponse) -> ShownRanking:
    documents = [Document(**document) for document in ranked["documents"]]
    return ShownRanking(ranked["impression"] or "", ranked["query"], documents, ranked.get("propensities"))


def _one_or_more(named: Id | Iterable[Id] | None) -> Id | list[Id] | None:
    return named if named is None or isinstance(named, int | str) else list(named)


def _name(impression: ShownRanking | str) -> str:
    name = impression.impression if isinstance(impression, ShownRanking) else impression
    if not name:
        raise ParameterError("Nothing was shown, so there is no feedback to send.")
    return name


def _plain_value(one: str | float) -> str | float:
    """Convert a step of a path, or a number of a vector, which may be one of NumPy's."""
    return one if isinstance(one, str) else float(one)


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # missing, or a date
        return 0.0


def _is_retryable(response: httpx.Response) -> bool:
    """Return whether the service is temporarily unavailable, or a proxy lost the request."""
    if response.status_code == 500:  # the service itself sends JSON with it
        return not response.headers.get("Content-Type", "").startswith("application/json")
    return response.status_code in (502, 503, 504)


def _checked(response: httpx.Response) -> Any:
    """Return the response's content; raise an exception for an error."""
    try:
        content = response.json()
    except ValueError:
        content = None
    if response.is_success and content is not None:
        return content
    if isinstance(content, Mapping) and "error" in content:
        raise ClientError(response.status_code, str(content["error"]), str(content.get("message", "")))
    text = response.text.strip()[:200] or response.reason_phrase
    raise ClientError(response.status_code, "http", f"This is not a ranking service's response: {text}")


def _checked_key(key: str) -> str:
    """Return a key that a header can carry; an invalid key is not printed, since most of it may be secret."""
    wrong = [letter for letter in key if not (letter.isascii() and letter.isprintable())]
    if wrong:
        raise ParameterError(
            f"This key has {wrong[0]!r} in it and cannot be sent, since headers carry plain ASCII alone: "
            "was it copied whole, and not its placeholder?"
        )
    return key
