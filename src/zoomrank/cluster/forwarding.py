"""`Forwarding`: requests reach the replica that owns their partition, whichever replica received them.

A query, an impression and a copy each belong to a partition, which one replica owns. Requests that make or change
collections and experiments go to the coordinator. Those that void impressions of many queries go to all replicas. Any
replica can answer everything else, since it is in the store.

The owner of a partition may just have changed, or may be gone: the replica that forwards a request looks again and
tries again, until the time is over. A ranking without an `Idempotency-Key` is not repeated where the first attempt may
have succeeded.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs

from pydantic import ValidationError
from pydantic_core import from_json

from zoomrank import wire
from zoomrank.cluster.leases import ClusterMember
from zoomrank.cluster.ownership import CATCH_UP, OwnsByLeases
from zoomrank.cluster.peer_server import ForwardedRequest, ForwardedResponse, Peers, UnansweredError, UnreachedError
from zoomrank.cluster.replica_sync import ReplicaSync
from zoomrank.service.copies import partition_of_copy
from zoomrank.service.engine import Engine
from zoomrank.service.errors import NotFoundError, NotOwnerError, ServiceError, StorageError, UnprocessableError
from zoomrank.service.http import schema
from zoomrank.service.http.fast_path import (
    BODY,
    CALLER,
    COPIES,
    COPY_FEEDBACK,
    COPY_RANK,
    FEEDBACK,
    FEEDBACK_BATCH,
    RANK,
    RANK_BATCH,
    SEEN,
    VOID,
    App,
    Receive,
    RouteRule,
    Send,
    refusal,
    send_json,
    whole_body,
)
from zoomrank.service.storage.events import partition_of_impression
from zoomrank.service.storage.ownership import COORDINATOR, partition_of

_GIVE_UP_AFTER = 8.0  # seconds
_ANSWER_WITHIN = 2.0  # seconds, after which it is checked whether the other replica is still there
_PAUSE = 0.05  # seconds
_ELSEWHERE = NotOwnerError.status
_RETRIED = (NotOwnerError.code, StorageError.code)  # errors of items of a batch that another replica may take
_QUERY_PATHS = [RouteRule(path).pattern for path in (wire.QUERY, wire.CURVE, wire.TREE)]
_CLICKS, _VOID = RouteRule(wire.CLICKS).pattern, VOID.pattern


class Forwarding:
    """Wraps the application of one replica."""

    def __init__(
        self,
        app: App,
        engine: Engine,
        ownership: OwnsByLeases,
        sync: ReplicaSync,
        peers: Peers,
        door: int | None = None,  # the port at which each replica takes requests of clients
    ) -> None:
        self._app = app
        self._door = door
        self._engine = engine
        self._ownership = ownership
        self._sync = sync
        self._peers = peers
        self._finders: Sequence[tuple[re.Pattern[str], Callable[[Mapping[str, str], ForwardedRequest], int | None]]] = (
            (FEEDBACK.pattern, _of_impression),
            (RANK.pattern, self._of_query_in_body),
            (SEEN.pattern, _of_impression),
            (COPY_RANK.pattern, _of_copy),
            (COPY_FEEDBACK.pattern, _of_copy),
            (COPIES.pattern, self._of_query_in_body),
            *((pattern, self._of_query_in_path) for pattern in _QUERY_PATHS),
            (_VOID, self._of_query_in_body),
        )

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Respond to a request, or forward it to the replica that can."""
        if scope["type"] != "http" or self._is_local(scope):
            if scope["type"] == "http" and _has_counts(scope["path"]):
                await self._sync.refresh_counts()
            await self._app(scope, receive, send)
            return
        body = await whole_body(receive)
        if body is None:
            return
        headers = list(scope["headers"])
        method, path, query = scope["method"], scope["path"], scope["query_string"]
        try:
            response = await self._respond(ForwardedRequest(method, path, query, headers, body, scope.get(CALLER)))
        except ServiceError as error:
            await send_json(send, *refusal(error))
            return
        await response.send(send)

    def _is_local(self, scope: Any) -> bool:
        """Return whether any replica can respond to a request."""
        path = scope["path"]
        if scope["method"] not in ("GET", "HEAD"):
            return not path.startswith("/v1/")
        return not any(pattern.fullmatch(path) for pattern in _QUERY_PATHS)

    async def respond_here(self, request: ForwardedRequest) -> ForwardedResponse:
        """Respond to a request that another replica has forwarded; `NotOwnerError.status` if this is not the owner."""
        if _is_batch(request):  # each item is refused by itself
            return await self._here(request)
        if request.path == CATCH_UP:
            await self._sync.catch_up()
            return ForwardedResponse(200, [], b"{}")
        partition = self._partition(request)
        if partition is not None and partition not in self._ownership:
            return _error(NotOwnerError())
        return await (self._here(request) if partition is None else self._done_here(request))

    # The owner of a request.

    def _is_control(self, request: ForwardedRequest) -> bool:
        """Return whether a request makes or changes what all replicas have: then the coordinator does it."""
        return request.method != "GET" and not any(known.fullmatch(request.path) for known, _ in self._finders)

    def _partition(self, request: ForwardedRequest) -> int | None:
        """Return the partition of a request; None if it has none, so that any replica may refuse it."""
        path = request.path
        for known, find in self._finders:
            found = known.fullmatch(path)
            if found is not None:
                return find(found.groupdict(), request)
        return COORDINATOR

    def _of_query_in_body(self, names: Mapping[str, str], request: ForwardedRequest) -> int | None:
        query = _object(request).get("query")
        return self._of_query(names["name"], query) if isinstance(query, str) else None

    def _of_query_in_path(self, names: Mapping[str, str], request: ForwardedRequest) -> int | None:
        asked = parse_qs(request.query.decode("latin-1")).get("query", [])
        return self._of_query(names["name"], asked[0]) if asked else None

    def _of_query(self, collection: str, query: str) -> int | None:
        try:
            served = self._engine.collections.find(collection)
        except NotFoundError:  # it may be new: the coordinator knows
            return COORDINATOR
        return partition_of(served.home.id, served.folded(query))

    # Responding.

    async def _respond(self, request: ForwardedRequest) -> ForwardedResponse:
        if _is_batch(request):
            return await self._ask_owners(request)
        if _CLICKS.fullmatch(request.path):
            raise UnprocessableError(
                "Several replicas cannot learn one click log together: stop them, learn it with “zoomrank import "
                "--store …”, and start them again."
            )
        partition = self._partition(request)
        if partition is not None:
            return await self._ask_owner(partition, request)
        return await (self._ask_all(request) if _VOID.fullmatch(request.path) else self._here(request))

    async def _ask_owner(self, partition: int, request: ForwardedRequest) -> ForwardedResponse:
        """Return the response of a partition's owner, which may change meanwhile."""
        until = time.monotonic() + _GIVE_UP_AFTER
        while True:
            response = await self._ask_owner_once(partition, request)
            if response is not None and not _is_retried(request, response):
                return response
            if time.monotonic() > until:
                raise StorageError("No replica owns this at the moment: try again.")
            await asyncio.sleep(_PAUSE)
            if not _is_batch(request):
                if partition == COORDINATOR:  # it may be about a collection that another replica has just made
                    await self._sync.catch_up()
                partition = self._partition(request) or COORDINATOR

    async def _ask_owner_once(self, partition: int, request: ForwardedRequest) -> ForwardedResponse | None:
        """Ask the partition's owner once; None if it does not answer."""
        if partition in self._ownership:
            return await self._done_here(request)
        replica = self._ownership.members.owner(partition)
        if replica is None or replica.number == self._ownership.number:  # it is not ready for it
            return None
        try:
            if self._is_control(request):
                return await self._ask_while_there(replica, request)
            return self._with_owner(replica, await self._peers.ask(replica, request, _ANSWER_WITHIN))
        except UnansweredError as error:
            if not request.is_safe_to_retry and not isinstance(error, UnreachedError):
                raise StorageError("A replica did not answer: try again.") from error
            return None

    def _with_owner(self, replica: ClusterMember, response: ForwardedResponse) -> ForwardedResponse:
        """Return a response that names the owner, so that the client may send the next request there."""
        if self._door is None:
            return response
        owner = f"http://{replica.name.rpartition(':')[0]}:{self._door}"
        return response._replace(headers=[*response.headers, (wire.OWNER.lower().encode(), owner.encode())])

    async def _ask_while_there(self, replica: ClusterMember, request: ForwardedRequest) -> ForwardedResponse:
        """Ask a replica for what may take long, while it is a member: a lost machine never says that it is gone."""
        asked = asyncio.ensure_future(self._peers.ask(replica, request, None))
        try:
            while not (await asyncio.wait({asked}, timeout=_ANSWER_WITHIN))[0]:
                if all(one.number != replica.number for one in self._ownership.members.replicas):
                    raise UnansweredError
            return await asked
        finally:
            asked.cancel()

    async def _done_here(self, request: ForwardedRequest) -> ForwardedResponse:
        """Respond as the owner; all other replicas know of a change before the client does."""
        response = await self._here(request)
        if response.status < 300 and self._is_control(request) and not _is_batch(request):
            await self._ownership.wait_for_replicas()
        return response

    async def _here(self, request: ForwardedRequest) -> ForwardedResponse:
        """Let the application of this replica respond."""
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": request.method,
            "path": request.path,
            "raw_path": request.path.encode(),
            "root_path": "",
            "scheme": "http",
            "query_string": request.query,
            "headers": request.headers,
            CALLER: request.caller,
            BODY: request.content if request.is_parsed else None,
        }
        status, headers, parts = 500, list[tuple[bytes, bytes]](), list[bytes]()
        sent = False

        async def receive() -> Mapping[str, Any]:
            nonlocal sent
            if sent:
                await asyncio.Event().wait()  # there is no client that could hang up
            sent = True
            return {"type": "http.request", "body": request.body, "more_body": False}

        async def send(message: Mapping[str, Any]) -> None:
            nonlocal status, headers
            if message["type"] == "http.response.start":
                status, headers = message["status"], list(message["headers"])
            else:
                parts.append(message.get("body", b""))

        await self._app(scope, receive, send)
        return ForwardedResponse(status, headers, b"".join(parts))

    async def _ask_owners(self, request: ForwardedRequest) -> ForwardedResponse:
        """Send each item of a batch to the owner of its impression or query; results are in the order of the items."""
        field = "feedback" if request.path == FEEDBACK_BATCH.path else "requests"
        items = _object(request).get(field)
        if not isinstance(items, list) or (field == "requests" and not _is_valid(request)):
            return await self._here(request)
        results: list[Any] = [None] * len(items)
        retried = _RETRIED if request.is_safe_to_retry else _RETRIED[:1]  # where surely nothing was done

        async def some(partitions: Sequence[int], whose: Mapping[int, list[int]]) -> ForwardedResponse | None:
            places = sorted(place for partition in partitions for place in whose[partition])
            part = request.with_content({field: [items[place] for place in places]})
            response = await self._ask_owner(partitions[0], part)
            if response.status != 200:
                return response
            for place, result in zip(places, from_json(response.body)["results"], strict=True):
                results[place] = result
            return None

        left, until = [*range(len(items))], time.monotonic() + _GIVE_UP_AFTER
        while True:
            whose: dict[int, list[int]] = defaultdict(list)  # positions of the items of each partition
            for place in left:
                whose[self._partition_in_batch(request, items[place]) or COORDINATOR].append(place)
            asked = await asyncio.gather(*(some(partitions, whose) for partitions in self._by_replica(whose)))
            failed = next((response for response in asked if response is not None), None)
            if failed is not None:
                return failed
            left = [place for place in left if results[place].get("error") in retried]
            if not left or time.monotonic() > until:
                return _json({"results": results})
            await asyncio.sleep(_PAUSE)
            await self._sync.catch_up()  # it may be about a collection that another replica has just made

    def _partition_in_batch(self, request: ForwardedRequest, item: Any) -> int | None:
        """Return the partition of an item of a batch."""
        found = RANK_BATCH.pattern.fullmatch(request.path)
        return _of_report(item) if found is None else self._of_query(found["name"], item["query"])

    def _by_replica(self, partitions: Iterable[int]) -> list[list[int]]:
        """Group partitions by their owner."""
        found: dict[int | None, list[int]] = defaultdict(list)
        for partition in partitions:
            found[self._ownership.members.owners.get(partition)].append(partition)
        free = found.pop(None, [])
        return [*found.values(), *([partition] for partition in free)]

    async def _ask_all(self, request: ForwardedRequest) -> ForwardedResponse:
        """Void impressions on all replicas, each of its own queries; returns the sums."""
        members, number = self._ownership.members, self._ownership.number
        asked = (
            self._here(request) if replica.number == number else self._ask_while_there(replica, request)
            for replica in members.replicas
        )
        try:
            responses = await asyncio.gather(*asked)
        except UnansweredError as error:
            raise StorageError("A replica did not answer: try again.") from error
        moved = self._ownership.members.owners != members.owners or members.free
        if moved or any(one.status == _ELSEWHERE for one in responses):  # voiding twice is harmless
            raise StorageError("Partitions have just moved, and some may have been left out: try again.")
        failed = next((one for one in responses if one.status != 200), None)
        if failed is not None:
            return failed
        results = [from_json(one.body) for one in responses]
        sums = {name: sum(result[name] for result in results) for name in ("impressions", "queries")}
        return _json({**results[0], **sums})


def _has_counts(path: str) -> bool:
    """Return whether a response may have counts in it; health must not depend on the store."""
    return path.startswith(("/v1", "/metrics")) and path not in (wire.HEALTH, wire.READY)


def _error(error: ServiceError) -> ForwardedResponse:
    status, content, headers = refusal(error)
    named = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    return ForwardedResponse(status, [*named, (b"content-type", b"application/json")], json.dumps(content).encode())


def _of_impression(_: Mapping[str, str], request: ForwardedRequest) -> int | None:
    return _of_report(request.content)


def _of_report(report: Any) -> int | None:
    """Return the partition of the impression of a report; any replica can refuse a report without one."""
    name = report.get("impression") if isinstance(report, dict) else None
    return partition_of_impression(name) if isinstance(name, str) else None


def _of_copy(names: Mapping[str, str], _: ForwardedRequest) -> int | None:
    return partition_of_copy(names["copy"])


def _is_batch(request: ForwardedRequest) -> bool:
    """Return whether the items of a request may have several owners."""
    return request.path == FEEDBACK_BATCH.path or RANK_BATCH.pattern.fullmatch(request.path) is not None


def _is_valid(request: ForwardedRequest) -> bool:
    """Return whether all items of a batch of rankings are well formed, so that all or none of its parts are served."""
    try:
        schema.RankBatchRequest.model_validate(request.content)
    except ValidationError:
        return False
    return True


def _is_retried(request: ForwardedRequest, response: ForwardedResponse) -> bool:
    """Return whether another replica may be asked: this one is not, or is no longer, the owner; or it could not write,
    which another may.
    """
    if response.status == _ELSEWHERE:
        return True
    return response.status == 503 and b'"storage"' in response.body and request.is_safe_to_retry


def _object(request: ForwardedRequest) -> Mapping[str, Any]:
    return request.content if isinstance(request.content, dict) else {}


def _json(content: Any) -> ForwardedResponse:
    return ForwardedResponse(200, [(b"content-type", b"application/json")], json.dumps(content).encode())
