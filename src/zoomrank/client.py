"""`Client`: a ranking service, as Python sees it. See docs/service.md; the extra is `zoomrank[client]`."""

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
from types import EllipsisType, TracebackType
from typing import Any, cast
from urllib.parse import quote

from zoomrank.errors import MissingExtraError, ParameterError, ZoomrankError

try:
    import httpx
except ModuleNotFoundError as error:
    raise MissingExtraError("The client needs httpx: pip install 'zoomrank[client]'.") from error

from zoomrank import wire
from zoomrank.documents import Collection, Document
from zoomrank.files import whole_file
from zoomrank.wire import (
    Activity,
    Changed,
    CollectionInfo,
    Curve,
    DocumentInfo,
    ExperimentInfo,
    ExperimentSummary,
    FeedbackResult,
    Id,
    ImportProgress,
    ImportResponse,
    ListedQuery,
    Node,
    PlacedDocument,
    QueryInfo,
    ReplicasResponse,
    Voided,
)

__all__ = ["Client", "ClientError", "ShownRanking"]

_LOGS = {
    ".jsonl": "application/x-ndjson",
    ".ndjson": "application/x-ndjson",
    ".parquet": "application/vnd.apache.parquet",
}
_LONGEST_PAUSE = 5.0  # seconds between two attempts, whatever the service asks for
_LINES_AT_ONCE = 20_000  # documents or changes of one request


class ClientError(ZoomrankError):
    """The service refused, or could not be reached: then the status is 0, and the code "unreachable" or "timeout".

    Parameters
    ----------
    status
        The HTTP status, or 0.
    code
        A word for programs.
    message
        A sentence for people.

    Examples
    --------
    >>> raise ClientError(410, "expired", "This impression has expired.")
    Traceback (most recent call last):
        ...
    zoomrank.client.ClientError: This impression has expired. (410 expired)
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(status, code, message)
        self.status, self.code, self.message = status, code, message

    def __str__(self) -> str:
        return f"{self.message} ({self.status} {self.code})" if self.status else self.message


@dataclass(frozen=True)
class ShownRanking:
    """A ranking to show. Report what became of it with `Client.feedback(shown, clicked)`.

    Attributes
    ----------
    impression
        The name by which its feedback comes back; empty if nothing could be shown, and `fewer` was said to do.
    query
        What the visitor asked for.
    documents
        What to show, from the top.
    propensities
        How likely each document was in its slot, given those above, if that was asked for; None where it is not known.

    Examples
    --------
    >>> ShownRanking("1", "owls", [Document("barn", title="Barn owls"), Document("snow")]).documents[0].title
    'Barn owls'
    """

    impression: str
    query: str
    documents: list[Document] = field(default_factory=list)
    propensities: list[float | None] | None = None

    @property
    def ids(self) -> list[Id]:
        """The documents' ids, from the top.

        Returns
        -------
        list of int or str
            What `Client.feedback` knows documents by.

        Examples
        --------
        >>> ShownRanking("1", "owls", [Document("barn"), Document("snow")]).ids
        ['barn', 'snow']
        """
        return [document.id for document in self.documents]


class Client:
    """A service at a URL. Threads may share a client.

    Parameters
    ----------
    url
        Where the service is, such as `http://127.0.0.1:8000`.
    key
        One that the service knows, with the role that is needed; none if it has no keys.
    timeout
        Seconds that a request may take.
    retries
        How often to try again, where that is safe, when the connection fails, the service says 503, or something on the
        way to it says that it could not be reached.
    backoff
        Seconds before the second attempt, about; twice as many before each further one.
    **options
        Anything else that `httpx.Client` takes.

    Raises
    ------
    ParameterError
        The key cannot be sent: headers carry plain ASCII alone.

    Examples
    --------
    With a service that runs (see docs/service.md), `Client("http://127.0.0.1:8000")` is enough. Here one is made up.

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
        **options: Any,
    ) -> None:
        self.url = url.rstrip("/")
        self._retries, self._backoff = retries, backoff
        headers = {"Authorization": f"Bearer {_sendable(key)}"} if key else {}
        self._http = httpx.Client(base_url=self.url, headers=headers, timeout=timeout, **options)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of all connections.

        Examples
        --------
        >>> client.close()  # doctest: +SKIP
        """
        self._http.close()

    # Collections.

    def create_collection(
        self,
        name: str,
        documents: Collection | Iterable[Document | Mapping[str, Any]],
        settings: Mapping[str, Any] | None = None,
        *,
        timeout: float = 600.0,
    ) -> CollectionInfo:
        """Make a collection. Never repeated by itself: an attempt that seemed to fail may have made the collection.

        Parameters
        ----------
        name
            64 letters, digits, `.`, `_` and `-` at most.
        documents
            A `Collection`, or documents that all have a `path`, all a `vector` or all a `text`.
        settings
            What differs from the usual, such as `{"slots": 3}`: see docs/service.md.
        timeout
            Seconds that this may take.

        Returns
        -------
        CollectionInfo
            The collection in few words.

        Examples
        --------
        >>> documents = [{"id": "barn", "text": "barn owl"}, {"id": "snow", "text": "snowy owl"}]
        >>> client.create_collection("birds", documents, {"slots": 1})["documents"]  # doctest: +SKIP
        2
        """
        chosen = dict(settings or {})
        if isinstance(documents, Collection):
            made = self._send(
                "PUT",
                _path(wire.COLLECTION, name),
                again=False,
                params={"settings": json.dumps(chosen)},
                content=_content(documents),
                headers={"Content-Type": "application/octet-stream"},
                timeout=timeout,
            )
        else:
            body = {"name": name, "documents": [_document(one) for one in documents], "settings": chosen}
            made = self._send("POST", wire.COLLECTIONS, again=False, json=body, timeout=timeout)
        return cast(CollectionInfo, made)

    def collections(self) -> list[CollectionInfo]:
        """List all collections.

        Returns
        -------
        list of CollectionInfo
            Each in few words.

        Examples
        --------
        >>> [collection["name"] for collection in client.collections()]  # doctest: +SKIP
        ['birds']
        """
        return cast(list[CollectionInfo], self._get(wire.COLLECTIONS)["collections"])

    def collection(self, name: str) -> CollectionInfo:
        """Look a collection up.

        Parameters
        ----------
        name
            Its name.

        Returns
        -------
        CollectionInfo
            The collection in few words.

        Examples
        --------
        >>> client.collection("birds")["documents"]  # doctest: +SKIP
        2
        """
        return cast(CollectionInfo, self._get(_path(wire.COLLECTION, name)))

    def documents(
        self, collection: str, offset: int = 0, limit: int = 100, *, search: str = ""
    ) -> list[PlacedDocument]:
        """List documents, in the order of the tree, so that neighbours are alike.

        Parameters
        ----------
        collection
            The name of the collection.
        offset
            How many to leave out at the beginning.
        limit
            How many to return at most.
        search
            Letters that they have in their title, id or address, in whatever case.

        Returns
        -------
        list of PlacedDocument
            Each with its categories.

        Examples
        --------
        >>> client.documents("birds", limit=10)[0]["path"]  # doctest: +SKIP
        ['Owls']
        """
        asked: dict[str, int | str] = {"offset": offset, "limit": limit, "search": search}
        return cast(list[PlacedDocument], self._get(_path(wire.DOCUMENTS, collection), **asked)["documents"])

    def document(self, collection: str, document: Id) -> DocumentInfo:
        """Look a document up: where it lies, and in which queries it stands.

        Parameters
        ----------
        collection
            The name of the collection.
        document
            Its id.

        Returns
        -------
        DocumentInfo
            The document with its categories, and queries whose next ranking has it or whose visitors looked at it.

        Examples
        --------
        >>> client.document("birds", "barn")["queries"][0]["slot"]  # doctest: +SKIP
        0
        """
        return cast(DocumentInfo, self._get(_path(wire.DOCUMENT, collection, document)))

    # Documents come and go.

    def add_documents(
        self,
        collection: str,
        documents: Iterable[Document | Mapping[str, Any]],
        there: str = "refuse",
        progress: Callable[[int], None] | None = None,
        *,
        timeout: float = 600.0,
    ) -> Changed:
        """Add documents, however many; learners keep what they know.

        Parameters
        ----------
        collection
            Its name.
        documents
            Each with an `id`, what is known of it (`title`, `url`, `text`), and where it belongs: a `path`, a `vector`,
            or the id of a document that it is `near` to; otherwise its text decides.
        there
            "refuse" documents that are there already, or "change" them: then it can be tried again after a failure.
        progress
            Told how many are there, now and then.
        timeout
            Seconds that some thousand of them may take.

        Returns
        -------
        Changed
            What the collection has become, and how many documents were added.

        Examples
        --------
        >>> client.add_documents("birds", [{"id": "eagle", "text": "eagle owl"}])["added"]  # doctest: +SKIP
        1
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
    ) -> Changed:
        """Make changes of documents and categories, however many; some thousand at a time, each of those all or none.

        Parameters
        ----------
        collection
            Its name.
        changes
            Each is `{"add": ID, …}`, `{"put": ID, …}` (add it, or change it if it is there), `{"change": ID, …}`,
            `{"remove": ID}`, or `{"category": PATH, "to": PATH}`, which renames a category or moves it.
        unknown
            "refuse" changes of documents that are not there, or "skip" them.
        progress
            Told how many are made, now and then.
        timeout
            Seconds that some thousand of them may take.

        Returns
        -------
        Changed
            What the collection has become, and how many of which changes were made.

        Examples
        --------
        >>> client.change_documents("birds", [{"category": "Birds > Owls", "to": "Owls"}])["edition"]  # doctest: +SKIP
        2
        """
        sent = ({"unknown": unknown}, (dict(change) for change in changes))
        return self._send_lines(_path(wire.CHANGES, collection), *sent, progress, timeout, again=False)

    def change_document(self, collection: str, document: Id, **known: Any) -> Changed:
        """Change what is known of a document, or where it belongs.

        Parameters
        ----------
        collection
            The collection's name.
        document
            The document's id.
        **known
            Any of `title`, `url`, `text`, `path`, `vector` and `near`; what is left out stays as it is.

        Returns
        -------
        Changed
            What the collection has become.

        Examples
        --------
        >>> client.change_document("birds", "barn", title="Barn owls")["changed"]  # doctest: +SKIP
        1
        """
        path = _path(wire.DOCUMENT, collection, document)
        return cast(Changed, self._send("PATCH", path, json=known))

    def remove_document(self, collection: str, document: Id) -> Changed:
        """Remove a document; its category keeps what was learned. Never repeated by itself.

        Parameters
        ----------
        collection
            The collection's name.
        document
            The document's id.

        Returns
        -------
        Changed
            What the collection has become.

        Examples
        --------
        >>> client.remove_document("birds", "barn")["documents"]  # doctest: +SKIP
        1
        """
        return cast(Changed, self._send("DELETE", _path(wire.DOCUMENT, collection, document), again=False))

    def remake_tree(self, collection: str, seed: int = 0, *, timeout: float = 600.0) -> Changed:
        """Make the tree of a collection anew; what was learned is carried over document by document.

        Parameters
        ----------
        collection
            Its name.
        seed
            Where chance begins.
        timeout
            Seconds that this may take.

        Returns
        -------
        Changed
            What the collection has become.

        Examples
        --------
        >>> client.remake_tree("birds")["edition"]  # doctest: +SKIP
        3
        """
        sent = {"params": {"seed": seed}, "timeout": timeout}
        return cast(Changed, self._send("POST", _path(wire.REMAKE, collection), again=False, **sent))

    def remove_collection(self, name: str, *, timeout: float = 600.0) -> None:
        """Remove a collection with all that was learned in it. Never repeated by itself.

        Parameters
        ----------
        name
            Its name.
        timeout
            Seconds that this may take.

        Examples
        --------
        >>> client.remove_collection("birds")  # doctest: +SKIP
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
    ) -> Changed:
        """Send many small things, some thousand at a time."""
        told: Changed | None = None
        done, lines = 0, iter(lines)
        while (some := list(islice(lines, _LINES_AT_ONCE))) or told is None:
            content = b"".join(json.dumps(one).encode() + b"\n" for one in some)
            headers = {"Content-Type": "application/x-ndjson"}
            sent = {"params": params, "content": content, "headers": headers, "timeout": timeout}
            answer: Changed = self._send("POST", path, again=again, **sent)
            told = answer if told is None else _added_up(told, answer)
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
        """Ask what to show a visitor.

        Parameters
        ----------
        collection, query
            What she asked for, and where; each query has a learner of its own.
        slots
            How many documents, if fewer than the collection's settings say.
        eligible, excluded
            Ids of the only documents that may be shown to her, and of those that may not.
        about
            Where a query belongs that nobody has asked before: its path ("Animals > Cats", or a list of steps) or its
            vector, as the collection's setting `similar` says. Later it changes nothing.
        once
            A key of this request, of up to 255 letters: the service answers whoever sends it again, within ten minutes,
            with the same ranking. A new one unless told; give your own to ask again after a timeout.
        unknown
            What is done with ids that the collection lacks: "refuse", or "skip".
        fewer
            Whether it will do to get fewer documents than slots, where no more may be shown; else that is refused.
        order
            Ids from the best, in an order that you have: what the first visitors of a query are shown, as far as clicks
            do not overrule it. Later it changes nothing. Ids that the collection lacks are skipped.
        visitor
            A name of hers, such as the value of a cookie: while there is an experiment, she meets the same arm whenever
            she comes, and counts once. Only a hash of it is kept.
        propensities
            Whether to say how likely each document was in its slot.

        Returns
        -------
        ShownRanking
            Documents from the top, and the impression to send back with what became of them.

        Notes
        -----
        Tried again if there was no response. If the first attempt did arrive, the second gets what the first was
        answered: one visitor, one impression.

        Examples
        --------
        >>> client.rank("birds", "owls", slots=1).ids  # doctest: +SKIP
        ['barn']
        """
        body: dict[str, Any] = {"query": query}
        if slots is not None:
            body["slots"] = slots
        if eligible is not None:
            body["eligible"] = list(eligible)
        if excluded is not None:
            body["excluded"] = list(excluded)
        if order is not None:
            body["order"] = list(order)
        if about is not None:
            body["about"] = about if isinstance(about, str) else [_said(one) for one in about]
        if unknown != "refuse":
            body["unknown"] = unknown
        if fewer:
            body["fewer"] = True
        if visitor is not None:
            body["visitor"] = visitor
        if propensities:
            body["propensities"] = True
        headers = {"Idempotency-Key": once or secrets.token_hex(16)}
        shown: wire.RankResponse = self._send("POST", _path(wire.RANK, collection), json=body, headers=headers)
        documents = [Document(**document) for document in shown["documents"]]
        return ShownRanking(shown["impression"] or "", shown["query"], documents, shown.get("propensities"))

    def feedback(
        self,
        impression: ShownRanking | str,
        clicked: Id | Iterable[Id] | EllipsisType | None = ...,
        *,
        purchased: Id | Iterable[Id] | None = None,
        disliked: Iterable[Id] = (),
        looked_at: int | None = None,
    ) -> str:
        """Report what became of a ranking, all at once or bit by bit.

        Parameters
        ----------
        impression
            What `rank` returned, or its impression alone.
        clicked
            The id of the document that was clicked, or those of several; None if she has left without a click (or,
            where purchases count, without a purchase). Leave it out where that is not known yet.
        purchased
            The id of what she bought, or several.
        disliked
            Ids of what she looked at and did not want.
        looked_at
            How many documents, from the top, were on her screen.

        Returns
        -------
        str
            "learned"; "noted" if it does not say yet what became of the ranking, or teaches nothing more; "repeated" if
            it was known.

        Notes
        -----
        Tried again if there was no response. An impression learns once: if the first attempt did arrive, the service
        knows the second for the same and says "repeated".

        Examples
        --------
        >>> client.feedback(shown, clicked="barn")  # doctest: +SKIP
        'learned'
        >>> client.feedback(shown, clicked=None, looked_at=3)  # doctest: +SKIP
        'learned'
        """
        report = _report(impression, clicked)
        if purchased is not None:
            report["purchased"] = _one_or_more(purchased)
        if disliked := list(disliked):
            report["disliked"] = disliked
        if looked_at is not None:
            report["looked_at"] = looked_at
        return str(self._send("POST", wire.FEEDBACK, json=report)["status"])

    def feedback_batch(
        self, reports: Iterable[tuple[ShownRanking | str, Id | Iterable[Id] | None]]
    ) -> list[FeedbackResult]:
        """Report what became of many rankings at once. Each is taken or refused by itself.

        Parameters
        ----------
        reports
            Pairs of what `feedback` takes: an impression, and the id that was clicked, several, or None.

        Returns
        -------
        list of FeedbackResult
            What became of each report, in the same order: a status, or an error and a message.

        Examples
        --------
        >>> client.feedback_batch([(shown, "barn"), (another, None)])[1]["status"]  # doctest: +SKIP
        'learned'
        """
        sent = [_report(impression, clicked) for impression, clicked in reports]
        results: list[FeedbackResult] = []
        for start in range(0, len(sent), wire.LARGEST_BATCH):
            body = {"feedback": sent[start : start + wire.LARGEST_BATCH]}
            results += self._send("POST", wire.FEEDBACK_BATCH, json=body)["results"]
        return results

    def seen(self, impression: ShownRanking | str) -> str:
        """Say that a ranking is on the visitor's screen. Needed where `no_feedback` is `unseen`.

        Parameters
        ----------
        impression
            What `rank` returned, or its impression alone.

        Returns
        -------
        str
            "noted", or "repeated" if it was known.

        Examples
        --------
        >>> client.seen(shown)  # doctest: +SKIP
        'noted'
        """
        return str(self._send("POST", wire.SEEN, json={"impression": _name(impression)})["status"])

    # What another ranker has learned.

    def import_clicks(
        self,
        collection: str,
        log: str | os.PathLike[str],
        unknown: str = "refuse",
        *,
        once: str | None = None,
        timeout: float = 24 * 3600.0,
    ) -> ImportResponse:
        """Let queries learn from the click log of another ranker: a warm start.

        Parameters
        ----------
        collection
            The name of the collection.
        log
            A JSONL or Parquet file, in one of the two forms of `zoomrank.documents.read_impressions`.
        unknown
            What to do with documents that the collection lacks: "refuse" or "skip".
        once
            A key of this log. It is learned once; without a key the same file is, however often it is sent.
        timeout
            Seconds that this may take.

        Returns
        -------
        ImportResponse
            How much was learned, and what that was worth, by the last visits of the log.

        Notes
        -----
        Tried again if there was no response: what was learned is not learned twice, and what was interrupted goes on.

        Examples
        --------
        >>> client.import_clicks("birds", "clicks.jsonl")["words"]  # doctest: +SKIP
        """
        file = Path(log)
        kind = _LOGS.get(file.suffix.lower())
        if kind is None:
            raise ParameterError(f"{file} is not a click log that can be sent: give a {' or '.join(_LOGS)} file.")
        headers = {"Content-Type": kind} | ({} if once is None else {"Idempotency-Key": once})
        return cast(
            ImportResponse,
            self._send(
                "POST",
                _path(wire.CLICKS, collection),
                params={"unknown": unknown},
                content=file.read_bytes(),
                headers=headers,
                timeout=timeout,
            ),
        )

    def import_progress(self, collection: str) -> ImportProgress:
        """Say how far the import of a click log has come.

        Parameters
        ----------
        collection
            The name of the collection.

        Returns
        -------
        ImportProgress
            So many impressions of how many; 0 of 0 if none is going on.

        Examples
        --------
        >>> client.import_progress("birds")["of"]  # doctest: +SKIP
        0
        """
        return cast(ImportProgress, self._get(_path(wire.CLICKS, collection)))

    # What is taken back.

    def void(
        self,
        collection: str,
        *,
        query: str | None = None,
        since: float | None = None,
        until: float | None = None,
        key: str | None = None,
        dry_run: bool = False,
    ) -> Voided:
        """Take impressions back: what they taught is untaught, as if they had never been.

        Parameters
        ----------
        collection
            The name of the collection.
        query
            Those of this query alone.
        since, until
            Those shown from this time on, and before that one: seconds since 1970.
        key
            Those that were asked for with this key.
        dry_run
            Whether to count them only.

        Returns
        -------
        Voided
            How many impressions, and of how many queries.

        Examples
        --------
        >>> client.void("birds", since=time.time() - 3600, dry_run=True)["impressions"]  # doctest: +SKIP
        12
        """
        span = {"query": query, "since": since, "until": until, "key": key, "dry_run": dry_run}
        return cast(Voided, self._send("POST", _path(wire.VOID, collection), json=span, timeout=600.0))

    def remove_query(self, collection: str, query: str) -> None:
        """Remove a query with all that it has learned.

        Parameters
        ----------
        collection
            The name of the collection.
        query
            What visitors ask for.

        Examples
        --------
        >>> client.remove_query("birds", "owls")  # doctest: +SKIP
        """
        self._send("DELETE", _path(wire.QUERY, collection), again=False, params={"query": query})

    # What is taken out.

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
        """Write impressions and what became of them to a file, which appears whole or not at all.

        Parameters
        ----------
        collection
            The name of the collection.
        path
            The file.
        since, until
            Those shown from this time on, and before that one: seconds since 1970.
        form
            "jsonl" or "parquet".
        learned
            Whether to take those alone that something was learned from: what `read_clicks` should read.

        Returns
        -------
        int
            How many bytes the file has.

        Examples
        --------
        >>> client.export("birds", "impressions.jsonl")  # doctest: +SKIP
        18204
        """
        wish = {"since": since, "until": until, "format": form, "learned": learned or None}
        parameters = {name: value for name, value in wish.items() if value is not None}
        try:
            with self._http.stream("GET", _path(wire.EXPORT, collection), params=parameters) as response:
                if not response.is_success:
                    response.read()
                    _checked(response)
                with whole_file(path) as file:
                    for piece in response.iter_bytes():
                        file.write(piece)
                    return file.tell()
        except httpx.HTTPError as error:
            raise ClientError(0, "unreachable", f"{self.url} did not send all of it: {error}.") from error

    # What was learned.

    def queries(
        self, collection: str, offset: int = 0, limit: int = 50, *, search: str = "", sort: str = "asked"
    ) -> list[ListedQuery]:
        """List the queries of a collection, those with most impressions first.

        Parameters
        ----------
        collection
            The name of the collection.
        offset
            How many to leave out at the beginning.
        limit
            How many to return at most.
        search
            Letters that they have in them.
        sort
            Another order: "worst" (least satisfied first), "newest", or "trend" (falling most first).

        Returns
        -------
        list of ListedQuery
            Each with its counts.

        Examples
        --------
        >>> client.queries("birds")[0]["query"]  # doctest: +SKIP
        'owls'
        """
        asked: dict[str, int | str] = {"offset": offset, "limit": limit, "search": search, "sort": sort}
        return cast(list[ListedQuery], self._get(_path(wire.QUERIES, collection), **asked)["queries"])

    def query(self, collection: str, query: str) -> QueryInfo:
        """Look a query up: what became of its impressions, what the next visitor will see, and why. Changes nothing.

        Parameters
        ----------
        collection
            The name of the collection.
        query
            What visitors ask for.

        Returns
        -------
        QueryInfo
            Counts, and a ranking with the reasons for it.

        Examples
        --------
        >>> client.query("birds", "owls")["ranking"][0]["why"]  # doctest: +SKIP
        """
        return cast(QueryInfo, self._get(_path(wire.QUERY, collection), query=query))

    def curve(self, collection: str, query: str) -> Curve:
        """Look at how a query has learned: of its impressions one after the other, how many were satisfied.

        Parameters
        ----------
        collection
            The name of the collection.
        query
            What visitors ask for.

        Returns
        -------
        Curve
            Counts by impressions, beside those of the first hundred and of the first twenty.

        Examples
        --------
        >>> client.curve("birds", "owls")["points"][0]["answered"]  # doctest: +SKIP
        50
        """
        return cast(Curve, self._get(_path(wire.CURVE, collection), query=query))

    def tree(self, collection: str, query: str, limit: int = 400) -> list[Node]:
        """Look at the tree as a query's learner sees it.

        Parameters
        ----------
        collection
            The name of the collection.
        query
            What visitors ask for.
        limit
            How many parts to return at most, the most visited first.

        Returns
        -------
        list of Node
            Parents before children.

        Examples
        --------
        >>> client.tree("birds", "owls")[0]["parent"] is None  # doctest: +SKIP
        True
        """
        return cast(list[Node], self._get(_path(wire.TREE, collection), query=query, limit=limit)["nodes"])

    def activity(self, collection: str | None = None, seconds: int = 3600, points: int = 120) -> Activity:
        """Say what became of impressions over time, in one collection or in all.

        Parameters
        ----------
        collection
            The name of the collection; all of them, if left out.
        seconds
            How far to look back.
        points
            Into how many steps the time is divided.

        Returns
        -------
        Activity
            Counts for each step.

        Examples
        --------
        >>> sum(client.activity("birds", seconds=60)["impressions"])  # doctest: +SKIP
        2
        """
        path = wire.ACTIVITY if collection is None else _path(wire.COLLECTION_ACTIVITY, collection)
        return cast(Activity, self._get(path, seconds=seconds, points=points))

    def health(self) -> str:
        """Ask whether the service is there.

        Returns
        -------
        str
            "ok" if it responds.

        Examples
        --------
        >>> client.health()  # doctest: +SKIP
        'ok'
        """
        return str(self._get(wire.HEALTH)["status"])

    def replicas(self) -> ReplicasResponse:
        """Say who serves: one service, or several that share a store, and how much each has to do.

        Returns
        -------
        ReplicasResponse
            The replicas, and how many partitions there are, and nobody has.

        Examples
        --------
        >>> [replica["partitions"] for replica in client.replicas()["replicas"]]  # doctest: +SKIP
        [128, 128]
        """
        return cast(ReplicasResponse, self._get(wire.REPLICAS))

    # How it is sent.

    # Experiments.

    def create_experiment(
        self, collection: str, name: str, arms: Iterable[Mapping[str, Any]], *, timeout: float = 600.0
    ) -> ExperimentInfo:
        """Begin an experiment: visitors are shared out among arms, each with learners of its own.

        Parameters
        ----------
        collection
            The collection's name.
        name
            A name for the experiment, of letters, digits, `-`, `_` and `.`.
        arms
            Each with a `name`, its `share` of the visitors, and the `settings` in which it differs from the collection;
            without settings it is the collection as it is. The others are compared with the first.
        timeout
            Seconds that this may take: an algorithm that nobody has used on this machine is compiled first.

        Returns
        -------
        ExperimentInfo
            The experiment, of which nothing is known yet.

        Examples
        --------
        >>> arms = [{"name": "now", "share": 0.5}, {"name": "new", "share": 0.5, "settings": {"algorithm": "RankUCB1"}}]
        >>> client.create_experiment("birds", "ucb1", arms)["says"]  # doctest: +SKIP
        ['Nothing is known of new beside now yet.']
        """
        body = {"name": name, "arms": [dict(arm) for arm in arms]}
        sent = {"json": body, "timeout": timeout}
        return cast(ExperimentInfo, self._send("POST", _path(wire.EXPERIMENTS, collection), again=False, **sent))

    def experiments(self, collection: str) -> list[ExperimentSummary]:
        """List the experiments of a collection.

        Parameters
        ----------
        collection
            Its name.

        Returns
        -------
        list of ExperimentSummary
            The newest first.

        Examples
        --------
        >>> [one["name"] for one in client.experiments("birds")]  # doctest: +SKIP
        ['ucb1']
        """
        return cast(list[ExperimentSummary], self._get(_path(wire.EXPERIMENTS, collection))["experiments"])

    def experiment(self, collection: str, name: str) -> ExperimentInfo:
        """Look at what an experiment says so far, whenever you like: its intervals hold at all times at once.

        Parameters
        ----------
        collection, name
            Which one.

        Returns
        -------
        ExperimentInfo
            Who came to each arm, how many were satisfied, by how much arms differ from the first, and how that came
            about.

        Examples
        --------
        >>> client.experiment("birds", "ucb1")["arms"][1]["difference"]  # doctest: +SKIP
        {'estimate': -0.08, 'low': -0.12, 'high': -0.04}
        """
        return cast(ExperimentInfo, self._get(_experiment(wire.EXPERIMENT, collection, name)))

    def stop_experiment(self, collection: str, name: str, arm: str | None = None) -> ExperimentInfo:
        """Stop an arm, or the whole experiment: its visitors then meet the collection as it is.

        Parameters
        ----------
        collection, name
            Which one.
        arm
            The arm; None: all of it.

        Returns
        -------
        ExperimentInfo
            What it says.

        Examples
        --------
        >>> client.stop_experiment("birds", "ucb1")["ended"]  # doctest: +SKIP
        1763400000.0
        """
        body = {} if arm is None else {"arm": arm}
        return cast(ExperimentInfo, self._send("POST", _experiment(wire.STOP, collection, name), json=body))

    def promote_arm(self, collection: str, name: str, arm: str) -> ExperimentInfo:
        """End an experiment, and have an arm serve the collection from now on, with all that it has learned.

        Parameters
        ----------
        collection, name
            Which experiment.
        arm
            The arm.

        Returns
        -------
        ExperimentInfo
            What the experiment says.

        Examples
        --------
        >>> client.promote_arm("birds", "ucb1", "now")["promoted"]  # doctest: +SKIP
        'now'
        """
        path = _experiment(wire.PROMOTE, collection, name)
        return cast(ExperimentInfo, self._send("POST", path, json={"arm": arm}))

    def remove_experiment(self, collection: str, name: str) -> None:
        """Let go of an experiment that has ended, with the learners of its arms that serve nobody.

        Parameters
        ----------
        collection, name
            Which one.

        Examples
        --------
        >>> client.remove_experiment("birds", "ucb1")  # doctest: +SKIP
        """
        self._send("DELETE", _experiment(wire.EXPERIMENT, collection, name), again=False)

    def _get(self, path: str, **parameters: int | str) -> Any:
        return self._send("GET", path, params=parameters)

    def _send(self, method: str, path: str, *, again: bool = True, **options: Any) -> Any:
        for attempt in range(self._retries + 1 if again else 1):
            last = attempt == self._retries or not again
            asked = 0.0
            try:
                response = self._http.request(method, path, **options)
            except httpx.TimeoutException as error:  # the caller's patience is over: that is not for us to prolong
                raise ClientError(0, "timeout", f"{self.url} took too long to respond.") from error
            except (httpx.NetworkError, httpx.RemoteProtocolError) as error:
                if last:
                    raise ClientError(0, "unreachable", f"{self.url} cannot be reached: {error}.") from error
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise ClientError(0, "unreachable", f"{self.url} cannot be reached: {error}.") from error
            else:
                if not _may_come_again(response) or last:
                    return _checked(response)
                asked = _seconds(response.headers.get("Retry-After", ""))
            pause = self._backoff * 2**attempt * random.uniform(0.5, 1.5)
            time.sleep(min(max(pause, asked), _LONGEST_PAUSE))
        raise AssertionError  # the last attempt returns or raises


def _path(path: str, collection: str, document: Id | None = None, experiment: str = "") -> str:
    return path.format(
        name=quote(collection, safe=""), document=quote(str(document), safe=""), experiment=quote(experiment, safe="")
    )


def _experiment(path: str, collection: str, name: str) -> str:
    return _path(path, collection, experiment=name)


def _added_up(one: Changed, other: Changed) -> Changed:
    """What two answers say together: the later one knows what the collection has become."""
    return {
        **other,
        "added": one["added"] + other["added"],
        "changed": one["changed"] + other["changed"],
        "removed": one["removed"] + other["removed"],
        "categories": one["categories"] + other["categories"],
    }


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


def _one_or_more(named: Id | Iterable[Id] | None) -> Id | list[Id] | None:
    return named if named is None or isinstance(named, int | str) else list(named)


def _name(impression: ShownRanking | str) -> str:
    name = impression.impression if isinstance(impression, ShownRanking) else impression
    if not name:
        raise ParameterError("Nothing was shown, so there is nothing to say of it.")
    return name


def _said(one: str | float) -> str | float:
    """A step of a path, or a number of a vector, which may be one of NumPy's."""
    return one if isinstance(one, str) else float(one)


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # none, or a date
        return 0.0


def _may_come_again(response: httpx.Response) -> bool:
    """Whether the service could not do it just now, or what stands before it, a proxy say, lost it on the way."""
    if response.status_code == 500:  # which the service itself says in JSON
        return not response.headers.get("Content-Type", "").startswith("application/json")
    return response.status_code in (502, 503, 504)


def _checked(response: httpx.Response) -> Any:
    """What the service said; an error becomes an exception."""
    try:
        content = response.json()
    except ValueError:
        content = None
    if response.is_success and content is not None:
        return content
    if isinstance(content, Mapping) and "error" in content:
        raise ClientError(response.status_code, str(content["error"]), str(content.get("message", "")))
    text = response.text.strip()[:200] or response.reason_phrase
    raise ClientError(response.status_code, "http", f"This is not what a ranking service says: {text}")


def _sendable(key: str) -> str:
    """A key that a header can carry; the others are not repeated, since they may be secret for the most part."""
    wrong = [letter for letter in key if not (letter.isascii() and letter.isprintable())]
    if wrong:
        raise ParameterError(
            f"This key has {wrong[0]!r} in it and cannot be sent, since headers carry plain ASCII alone: "
            "was it copied whole, and not its placeholder?"
        )
    return key
