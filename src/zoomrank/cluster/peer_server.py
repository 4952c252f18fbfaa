"""Requests between replicas, by plain HTTP: `HttpPeers` sends them, `PeerServer` takes them.

A request carries the token of the replica that it is meant for, which is in the database, and only there. A process
that has the same address later has another token: so a request reaches the right replica, or is told that it is
elsewhere. A response is signed with a digest of the token (`seal`), which shows that the right replica sent it.

All requests are sent as POST, whatever their method: HTTP clients like to repeat other methods, and here the replica
that forwards a request has to decide that.

Ray Serve could carry these calls as well; that takes ten times as long, at both ends (`python -m research bench
cluster`).
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import hmac
import io
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

import aiohttp
from pydantic_core import from_json
from yarl import URL

from zoomrank.cluster.leases import ClusterMember
from zoomrank.service.errors import NotOwnerError, ServiceError, StoppingError
from zoomrank.service.http.fast_path import FEEDBACK, FEEDBACK_BATCH, SEEN
from zoomrank.service.http.responses import Receive, Send, internal_error_response, refusal, send_json, whole_body
from zoomrank.service.logs import REQUEST, request_id

# Headers between replicas: the receiver's token, the method, the digest of the caller's key; the sender of a response.
TOKEN, METHOD, CALLER, SEAL = b"zoomrank-token", b"zoomrank-method", b"zoomrank-asker", b"zoomrank-seal"
BETWEEN = {TOKEN, METHOD, CALLER, SEAL}
PEERS_KEPT = 75  # seconds for which an idle connection is kept
_CONNECT_WITHIN = 1.0  # seconds
_KEPT = PEERS_KEPT - 15.0  # seconds for which the client keeps an idle connection: it hangs up first
_LARGE = 2**18  # bytes of a body that is sent piece by piece, with others in between
# Headers of one connection, those that were settled before forwarding, and those between replicas alone.
_OF_CONNECTIONS = {b"connection", b"keep-alive", b"transfer-encoding"}
_OURS = {b"authorization", b"content-length", b"expect", b"host", b"x-request-id", *_OF_CONNECTIONS, *BETWEEN}
_THEIRS = {b"date", *_OF_CONNECTIONS, *BETWEEN}

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ForwardedRequest:
    """A request whose access was checked."""

    method: str
    path: str
    query: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes
    caller: bytes | None  # digest of its key

    @cached_property
    def content(self) -> Any:
        """The JSON of the body, parsed once; None if it is not JSON."""
        try:
            return from_json(self.body)
        except ValueError:
            return None

    @property
    def is_parsed(self) -> bool:
        """True if the body was parsed."""
        return "content" in self.__dict__

    def with_content(self, content: Any) -> ForwardedRequest:
        """Return the same request with another body."""
        headers = [(name, value) for name, value in self.headers if name != b"content-length"]
        made = dataclasses.replace(self, body=json.dumps(content).encode(), headers=headers)
        made.__dict__["content"] = content
        return made

    @property
    def is_safe_to_retry(self) -> bool:
        """True if sending it twice has the effect of sending it once: feedback on an impression is learned once."""
        if self.method == "GET" or self.path in (FEEDBACK.path, FEEDBACK_BATCH.path, SEEN.path):
            return True
        return any(name == b"idempotency-key" for name, _ in self.headers)


class ForwardedResponse(NamedTuple):
    """The response to a forwarded request."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes

    async def send(self, send: Send) -> None:
        """Send it to the client."""
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await send({"type": "http.response.body", "body": self.body})


class UnansweredError(Exception):
    """A replica did not respond: it may be gone, and may have done what it was asked for."""


class UnreachedError(UnansweredError):
    """A replica could not be reached: it has done nothing."""


class Peers(Protocol):
    """The other replicas."""

    async def ask(self, replica: ClusterMember, request: ForwardedRequest, seconds: float | None) -> ForwardedResponse:
        """Return the response of another replica; `UnansweredError` if there is none in time."""


class HttpPeers:
    """Sends requests to other replicas; one that is gone is noticed at once."""

    def __init__(self) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEPT),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent", "Content-Type"),
        )

    async def ask(self, replica: ClusterMember, request: ForwardedRequest, seconds: float | None) -> ForwardedResponse:
        """Return the response of another replica."""
        headers = [
            (name.decode(), value.decode(errors="replace")) for name, value in request.headers if name not in _OURS
        ]
        headers += [(TOKEN.decode(), replica.token), (METHOD.decode(), request.method)]
        if request.caller is not None:
            headers.append((CALLER.decode(), request.caller.hex()))
        if REQUEST.get():
            headers.append(("x-request-id", REQUEST.get()))
        query = f"?{request.query.decode('latin-1')}" if request.query else ""
        try:
            async with self._session.post(
                URL(f"http://{replica.name}{quote(request.path)}{query}", encoded=True),
                data=io.BytesIO(request.body) if len(request.body) > _LARGE else request.body or None,
                headers=headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=seconds, sock_connect=_CONNECT_WITHIN),
            ) as response:
                named = [(name.lower(), value) for name, value in response.raw_headers]
                kept = [one for one in named if one[0] not in _THEIRS]
                found = ForwardedResponse(response.status, kept, await response.read())
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise UnreachedError from error
        except (asyncio.TimeoutError, aiohttp.ClientError, OSError) as error:
            raise UnansweredError from error
        if found.status != NotOwnerError.status and (SEAL, seal(replica.token)) not in named:
            raise UnansweredError  # another process has its address by now
        return found

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()


def seal(token: str) -> bytes:
    """Return a digest that proves knowledge of a token without telling it."""
    return hashlib.sha256(token.encode()).hexdigest().encode()


class PeerServer:
    """An application for requests of other replicas alone."""

    def __init__(self, respond: Callable[[ForwardedRequest], Awaitable[ForwardedResponse]], token: str) -> None:
        self._respond = respond
        self._token = token.encode()
        self._seal = (SEAL, seal(token))

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Respond to a request that was forwarded to this replica."""
        headers = dict(scope["headers"])
        if not hmac.compare_digest(headers.get(TOKEN, b""), self._token):
            await send_json(send, *refusal(NotOwnerError()))
            return

        async def sealed(message: Mapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], self._seal]}
            await send(message)

        REQUEST.set(request_id(headers.get(b"x-request-id")))
        body = await whole_body(receive)
        if body is not None:
            await self._send_response(_request(scope, headers, body), sealed)

    async def _send_response(self, request: ForwardedRequest, send: Send) -> None:
        try:
            response = await self._respond(request)
        except ServiceError as error:
            await send_json(send, *refusal(error))
        except asyncio.CancelledError:  # this replica stops, and has waited for it as long as it could
            await send_json(send, *refusal(StoppingError()))
        except Exception:  # noqa: BLE001  (whatever it is, the other replica is told)
            _log.exception("%s %s, forwarded by another replica", request.method, request.path)
            await send_json(send, *internal_error_response())
        else:
            await response.send(send)


def _request(scope: Any, headers: Mapping[bytes, bytes], body: bytes) -> ForwardedRequest:
    """Return the request as the first replica received it."""
    caller = headers.get(CALLER)
    return ForwardedRequest(
        headers[METHOD].decode(),
        scope["path"],
        scope["query_string"],
        [(name, value) for name, value in scope["headers"] if name not in BETWEEN],
        body,
        None if caller is None else bytes.fromhex(caller.decode()),
    )
