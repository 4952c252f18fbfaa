"""`Passing`: requests reach the replica that looks after what they are about, whichever replica they came to.

A query, an impression and a copy each belong to a partition, and one replica has that. What makes or changes
collections and experiments is done by whoever has the chair. What takes back impressions of many queries is done by all
of them. Everything else anybody can say, since it is in the store.

Who has a partition may have just changed, or may be gone: whoever passes a request on looks again and asks again, until
the time is over. A ranking without an `Idempotency-Key` is not asked for twice where the first may have come true.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qs

from pydantic_core import from_json

from zoomrank import wire
from zoomrank.service.copies import partition_of_copy
from zoomrank.service.engine import Engine
from zoomrank.service.http.asgi import ASKER, App, Receive, Send, send_json
from zoomrank.service.http.error_responses import refusal
from zoomrank.service.http.known_paths import (
    COPIES,
    COPY_FEEDBACK,
    COPY_RANK,
    FEEDBACK,
    FEEDBACK_BATCH,
    RANK,
    SEEN,
    VOID,
    KnownPath,
)
from zoomrank.service.impression_names import partition_of_impression
from zoomrank.service.membership import Membership
from zoomrank.service.refusals import ElsewhereError, NotFoundError, ServiceError, StorageError, UnusableError
from zoomrank.service.storage.leases import Replica
from zoomrank.service.storage.partitions import CHAIR, partition_of

CATCH_UP = "/replicas/catch-up"  # a path that only replicas ask each other for
_PATIENCE = 8.0  # seconds after which nobody is asked any more
_A_TRY = 2.0  # seconds for an answer, after which it is looked whether the other is there still
_PAUSE = 0.05  # seconds
_ELSEWHERE = ElsewhereError.status
_AGAIN = (ElsewhereError.code, StorageError.code)  # of reports that another may be told
_QUERY_PATHS = [KnownPath(path).pattern for path in (wire.QUERY, wire.CURVE, wire.TREE)]
_CLICKS, _VOID = KnownPath(wire.CLICKS).pattern, VOID.pattern


class Passed(NamedTuple):
    """A request that was let in."""

    method: str
    path: str
    query: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes
    asker: bytes | None  # by which key

    @property
    def may_come_twice(self) -> bool:
        """Whether nothing happens twice if it does: what became of an impression is learned once."""
        if self.method == "GET" or self.path in (FEEDBACK.path, FEEDBACK_BATCH.path, SEEN.path):
            return True
        return any(name == b"idempotency-key" for name, _ in self.headers)


class Said(NamedTuple):
    """A response to it."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes

    async def send(self, send: Send) -> None:
        """Say it to whoever asked."""
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await send({"type": "http.response.body", "body": self.body})


class UnansweredError(Exception):
    """A replica did not answer: it may be gone, and may have done what it was asked for."""


class UnreachedError(UnansweredError):
    """A replica was not there to be asked: it has done nothing."""


class Peers(Protocol):
    """The other replicas."""

    async def ask(self, replica: Replica, request: Passed, seconds: float | None) -> Said:
        """What another replica says to a request; `UnansweredError` if it does not, in time."""


class Passing:
    """Wraps the application of one replica."""

    def __init__(self, app: App, membership: Membership, peers: Peers) -> None:
        self._app = app
        self._membership = membership
        self._engine: Engine = membership.engine
        self._peers = peers
        self._finders: Sequence[tuple[re.Pattern[str], Callable[[Mapping[str, str], Passed], int | None]]] = (
            (FEEDBACK.pattern, _of_impression),
            (RANK.pattern, self._of_query_in_body),
            (SEEN.pattern, _of_impression),
            (COPY_RANK.pattern, _of_copy),
            (COPY_FEEDBACK.pattern, _of_copy),
            (COPIES.pattern, self._of_query_in_body),
            *((pattern, self._of_query_in_path) for pattern in _QUERY_PATHS),
            (_VOID, self._of_query_in_body),
        )
        membership.tell = self._tell

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Respond to a request, or have somebody respond."""
        if scope["type"] != "http" or self._is_anybodys(scope):
            if scope["type"] == "http" and _counts(scope["path"]):
                await self._membership.look_again()
            await self._app(scope, receive, send)
            return
        body = await whole_body(receive)
        if body is None:
            return
        headers = list(scope["headers"])
        request = Passed(scope["method"], scope["path"], scope["query_string"], headers, body, scope.get(ASKER))
        try:
            said = await self._said(request)
        except ServiceError as error:
            await send_json(send, *refusal(error))
            return
        await said.send(send)

    def _is_anybodys(self, scope: Any) -> bool:
        path = scope["path"]
        if scope["method"] not in ("GET", "HEAD"):
            return not path.startswith("/v1/")
        return not any(pattern.fullmatch(path) for pattern in _QUERY_PATHS)

    async def taken(self, request: Passed) -> Said:
        """What this replica says to what another has passed on; `ElsewhereError.status` if it is not the one."""
        if request.path == FEEDBACK_BATCH.path:  # each report is refused by itself
            return await self._here(request)
        if request.path == CATCH_UP:
            await self._engine.catching_up()
            return Said(200, [], b"{}")
        partition = self._partition(request)
        if partition is not None and partition not in self._engine.held:
            return _refused(ElsewhereError())
        return await (self._here(request) if partition is None else self._done_here(request))

    async def _tell(self, replica: Replica) -> bool:
        asked = Passed("POST", CATCH_UP, b"", [], b"", None)
        try:
            return (await self._peers.ask(replica, asked, 2 * _A_TRY)).status == 200
        except UnansweredError:
            return False

    # Whose it is.

    def _is_control(self, request: Passed) -> bool:
        """Whether a request makes or changes what all replicas have: then whoever has the chair does it."""
        return request.method != "GET" and not any(known.fullmatch(request.path) for known, _ in self._finders)

    def _partition(self, request: Passed) -> int | None:
        """The partition that a request is about; None if that cannot be said of it, so that anybody may refuse it."""
        path = request.path
        for known, find in self._finders:
            found = known.fullmatch(path)
            if found is not None:
                return find(found.groupdict(), request)
        return CHAIR

    def _of_query_in_body(self, names: Mapping[str, str], request: Passed) -> int | None:
        query = _object(request.body).get("query")
        return self._of_query(names["name"], query) if isinstance(query, str) else None

    def _of_query_in_path(self, names: Mapping[str, str], request: Passed) -> int | None:
        asked = parse_qs(request.query.decode("latin-1")).get("query", [])
        return self._of_query(names["name"], asked[0]) if asked else None

    def _of_query(self, collection: str, query: str) -> int | None:
        try:
            served = self._engine.collections.find(collection)
        except NotFoundError:  # which may be new: whoever has the chair knows
            return CHAIR
        return partition_of(served.home.id, served.settings.folded(query))

    # Having it done.

    async def _said(self, request: Passed) -> Said:
        if request.path == FEEDBACK_BATCH.path:
            return await self._said_of_each(request)
        if _CLICKS.fullmatch(request.path):
            raise UnusableError(
                "Several replicas cannot learn one click log together: stop them, learn it with “zoomrank import "
                "--store …”, and start them again."
            )
        partition = self._partition(request)
        if partition is not None:
            return await self._said_of(partition, request)
        return await (self._said_by_all(request) if _VOID.fullmatch(request.path) else self._here(request))

    async def _said_of(self, partition: int, request: Passed) -> Said:
        """What whoever has a partition says."""
        until = time.monotonic() + _PATIENCE
        while True:
            said = await self._said_once(partition, request)
            if said is not None and not _may_ask_again(request, said):
                return said
            if time.monotonic() > until:
                raise StorageError("Nobody looks after this just now: ask again.")
            await asyncio.sleep(_PAUSE)
            if request.path != FEEDBACK_BATCH.path:
                if partition == CHAIR:  # it may be about what was made just now, elsewhere
                    await self._engine.catching_up()
                partition = self._partition(request) or CHAIR

    async def _said_once(self, partition: int, request: Passed) -> Said | None:
        """What whoever has a partition says, if somebody has, and says something."""
        if partition in self._engine.held:
            return await self._done_here(request)
        replica = self._membership.roster.replica(partition)
        if replica is None or replica.number == self._membership.number:  # which is not ready for it
            return None
        try:
            if self._is_control(request):
                return await self._asked_while_there(replica, request)
            return await self._peers.ask(replica, request, _A_TRY)
        except UnansweredError as error:
            if not request.may_come_twice and not isinstance(error, UnreachedError):
                raise StorageError("A replica did not answer: ask again.") from error
            return None

    async def _asked_while_there(self, replica: Replica, request: Passed) -> Said:
        """What another says to what may take long; a machine that is lost never says that it will not."""
        asked = asyncio.ensure_future(self._peers.ask(replica, request, None))
        try:
            while not (await asyncio.wait({asked}, timeout=_A_TRY))[0]:
                if all(one.number != replica.number for one in self._membership.roster.replicas):
                    raise UnansweredError
            return await asked
        finally:
            asked.cancel()

    async def _done_here(self, request: Passed) -> Said:
        """What this replica says; what it has made or changed all others know when it has said so."""
        said = await self._here(request)
        if said.status < 300 and self._is_control(request):
            await self._membership.others_know()
        return said

    async def _here(self, request: Passed) -> Said:
        """What this replica says."""
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
            ASKER: request.asker,
        }
        status, headers, parts = 500, list[tuple[bytes, bytes]](), list[bytes]()
        sent = False

        async def receive() -> Mapping[str, Any]:
            nonlocal sent
            if sent:
                await asyncio.Event().wait()  # nobody hangs up
            sent = True
            return {"type": "http.request", "body": request.body, "more_body": False}

        async def send(message: Mapping[str, Any]) -> None:
            nonlocal status, headers
            if message["type"] == "http.response.start":
                status, headers = message["status"], list(message["headers"])
            else:
                parts.append(message.get("body", b""))

        await self._app(scope, receive, send)
        return Said(status, headers, b"".join(parts))

    async def _said_of_each(self, request: Passed) -> Said:
        """Reports of many impressions, each taken by whoever has it; the results are in the order of the reports."""
        reports = _object(request.body).get("feedback")
        if not isinstance(reports, list):
            return await self._here(request)
        whose: dict[int, list[int]] = defaultdict(list)  # the places of reports of each partition
        for place, report in enumerate(reports):
            whose[_partition_of_report(report)].append(place)
        results: list[Any] = [None] * len(reports)

        async def some(partitions: Sequence[int]) -> Said | None:
            places = sorted(place for partition in partitions for place in whose[partition])
            body = json.dumps({"feedback": [reports[place] for place in places]}).encode()
            said = await self._said_of(partitions[0], request._replace(body=body, headers=_without_length(request)))
            if said.status != 200:
                return said
            for place, result in zip(places, from_json(said.body)["results"], strict=True):
                results[place] = result
            return None

        groups = self._by_replica(whose)
        until = time.monotonic() + _PATIENCE
        while groups:
            failed = [said for said in await asyncio.gather(*map(some, groups)) if said is not None]
            if failed:
                return failed[0]
            again = {place for place, result in enumerate(results) if result.get("error") in _AGAIN}
            groups = [[partition] for partition, places in whose.items() if again & {*places}]
            if groups and time.monotonic() > until:
                break
            await asyncio.sleep(_PAUSE if groups else 0)
        return _json({"results": results})

    def _by_replica(self, partitions: Iterable[int]) -> list[list[int]]:
        """Partitions that the same replica has, together."""
        found: dict[int | None, list[int]] = defaultdict(list)
        for partition in partitions:
            found[self._membership.roster.owners.get(partition)].append(partition)
        nobodys = found.pop(None, [])
        return [*found.values(), *([partition] for partition in nobodys)]

    async def _said_by_all(self, request: Passed) -> Said:
        """What all replicas have taken back, each of its own queries."""
        roster, me = self._membership.roster, self._membership.number
        asked = (
            self._here(request) if replica.number == me else self._asked_while_there(replica, request)
            for replica in roster.replicas
        )
        try:
            said = await asyncio.gather(*asked)
        except UnansweredError as error:
            raise StorageError("A replica did not answer: ask again.") from error
        moved = self._membership.roster.owners != roster.owners or roster.free
        if moved or any(one.status == _ELSEWHERE for one in said):  # what is void already may be void again
            raise StorageError("Partitions have just moved, and some may have been left out: ask again.")
        failed = next((one for one in said if one.status != 200), None)
        if failed is not None:
            return failed
        results = [from_json(one.body) for one in said]
        sums = {name: sum(result[name] for result in results) for name in ("impressions", "queries")}
        return _json({**results[0], **sums})


def _counts(path: str) -> bool:
    """Whether a response may have sums in it; whether this one is well must not depend on the store."""
    return path.startswith(("/v1", "/metrics")) and path not in (wire.HEALTH, wire.READY)


def _refused(error: ServiceError) -> Said:
    status, content, headers = refusal(error)
    named = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    return Said(status, [*named, (b"content-type", b"application/json")], json.dumps(content).encode())


def _of_impression(_: Mapping[str, str], request: Passed) -> int | None:
    name = _object(request.body).get("impression")
    return partition_of_impression(name) if isinstance(name, str) else None


def _partition_of_report(report: Any) -> int:
    """The partition of the impression that a report is about; anybody can refuse one that is about none."""
    name = report.get("impression") if isinstance(report, dict) else None
    partition = partition_of_impression(name) if isinstance(name, str) else None
    return CHAIR if partition is None else partition


def _of_copy(names: Mapping[str, str], _: Passed) -> int | None:
    return partition_of_copy(names["copy"])


def _may_ask_again(request: Passed, said: Said) -> bool:
    """Whether another may be asked: this one is not, or is no more, the right one; or it could not write it down, which
    another may.
    """
    if said.status == _ELSEWHERE:
        return True
    return said.status == 503 and b'"storage"' in said.body and request.may_come_twice


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        found = from_json(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _json(content: Any) -> Said:
    return Said(200, [(b"content-type", b"application/json")], json.dumps(content).encode())


def _without_length(request: Passed) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in request.headers if name != b"content-length"]


async def whole_body(receive: Receive) -> bytes | None:
    """The body of a request; None if whoever sends it hung up."""
    parts, more = list[bytes](), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)
