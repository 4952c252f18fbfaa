"""`Access`: what every request passes first: API keys, allowed origins, size of the body, load, logging.

A key has a role. `feedback` keys send feedback, which is all that a browser should be able to do; `rank` keys rank as
well, `read` keys read, `admin` keys do everything. Pages of allowed origins may send feedback from a browser. Each
request gets an id, is counted by kind and status, and is timed (`LoadMeter`).
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import itertools
import logging
import os
import re
import secrets
import socket
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from zoomrank.errors import ParameterError
from zoomrank.service.engine import Engine
from zoomrank.service.errors import (
    BodyTooLargeError,
    ForbiddenError,
    MediaTypeError,
    MissingKeyError,
    ServiceError,
    StoppingError,
)
from zoomrank.service.http.builder import LINES, is_lines
from zoomrank.service.http.fast_path import (
    CALLER,
    App,
    Receive,
    RouteRule,
    Send,
    internal_error_response,
    refusal,
    rule_for,
    send_json,
)
from zoomrank.service.logs import REQUEST, RateLimitedLogger
from zoomrank.service.storage.events import CALLER_SIZE

# A browser lets a page call another origin only with that origin's consent (CORS). The service consents to feedback
# only: rankings are requested by a server, with a key that browsers must not have. A preflight request needs no key.

_ORIGIN = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?")
_MAY = [
    (b"access-control-allow-methods", b"POST"),
    (b"access-control-allow-headers", b"authorization, content-type"),
    (b"access-control-max-age", b"7200"),  # seconds that browsers may cache the permission; their maximum
]

Headers = Mapping[bytes, bytes]


def check_origins(origins: Iterable[str]) -> None:
    """Raise unless every string is a valid origin."""
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            raise ParameterError(
                f"{origin!r} is not an origin: write it as browsers do, such as https://shop.example or "
                "http://localhost:3000, in lower case and without a path."
            )


class AllowedOrigins:
    """The origins whose pages may send feedback; none by default."""

    def __init__(self, origins: Iterable[str] = ()) -> None:
        self._allowed = frozenset(origin.encode() for origin in origins)

    def headers(self, known: RouteRule, headers: Headers) -> list[tuple[bytes, bytes]]:
        """Return the CORS headers of a response."""
        if not self._allowed or not known.is_feedback:
            return []
        varies = (b"vary", b"origin")
        allowed = (b"access-control-allow-origin", headers.get(b"origin", b""))
        return [allowed, varies] if self._allows(known, headers) else [varies]

    def is_preflight(self, method: str, known: RouteRule, headers: Headers) -> bool:
        """Return whether a request is the preflight for feedback from an allowed origin."""
        return method == "OPTIONS" and b"access-control-request-method" in headers and self._allows(known, headers)

    def may_send(self, known: RouteRule, headers: Headers) -> bool:
        """Return whether no page sent a request, or the service's own, or one that may send feedback."""
        origin = headers.get(b"origin")
        own = origin is None or origin.lower().partition(b"://")[2] == headers.get(b"host", b"").lower()
        return own or self._allows(known, headers)

    def _allows(self, known: RouteRule, headers: Headers) -> bool:
        return known.is_feedback and headers.get(b"origin", b"") in self._allowed

    @staticmethod
    async def answer(send: Send) -> None:
        """Answer a preflight request."""
        await send({"type": "http.response.start", "status": 204, "headers": list(_MAY)})
        await send({"type": "http.response.body", "body": b""})


ROLES = {"feedback": "give feedback", "rank": "rank", "read": "read", "admin": "admin"}  # role: what it permits
SHORTEST_KEY = 16
SMALL_BODY = 4 * 2**20  # bytes of ranking and feedback requests; collections may be larger
SAFE = ("GET", "HEAD", "OPTIONS")
_LOCAL = re.compile(rb"(localhost|127\.[0-9.]+|\[::1\])(:[0-9]+)?", re.IGNORECASE)
_EVERYWHERE = [(b"x-content-type-options", b"nosniff")]
_ON_PAGES = [
    *_EVERYWHERE,
    (b"referrer-policy", b"no-referrer"),
    (
        b"content-security-policy",
        b"default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; frame-ancestors 'none'",
    ),
]


_CLIENT_CLOSED = 499  # logged when the client has disconnected before the response
_log = logging.getLogger(__name__)


class Keys:
    """API keys and their roles; without any, everything is open."""

    def __init__(self, keys: Mapping[str, str]) -> None:
        self._roles = {_digest(key): role for key, role in keys.items()}
        self._more: dict[bytes, str] = {}  # keys that are in no file
        self._path: Path | None = None
        self._stamp: object = None

    def __bool__(self) -> bool:
        return bool(self._roles)

    @classmethod
    def read(cls, path: Path) -> Keys:
        """Read a file with a role and a key on each line."""
        stamp = _stamp(path)
        keys = {}
        for number, line in enumerate(path.read_text().splitlines(), 1):
            role, _, key = line.partition("#")[0].strip().partition(" ")
            if not role:
                continue
            if role not in ROLES or len(key.strip()) < SHORTEST_KEY:
                raise ParameterError(
                    f"Line {number} of {path} is not a role ({', '.join(ROLES)}) and a key of at least {SHORTEST_KEY} "
                    "characters."
                )
            keys[key.strip()] = role
        if not keys:
            raise ParameterError(f"{path} has no keys: write a role and a key on each line, such as “admin SECRET…”.")
        read = cls(keys)
        read._path, read._stamp = path, stamp
        return read

    def look_again(self, anyway: bool = False) -> None:
        """Reload the key file if it has changed; keep the current keys if it is invalid."""
        if self._path is None:
            return
        stamp = _stamp(self._path)
        if stamp == self._stamp and not anyway:
            return
        self._stamp = stamp  # report an error once
        try:
            self._roles = Keys.read(self._path)._roles | self._more
            _log.info("The key file was reloaded.")
        except (OSError, UnicodeError, ParameterError) as error:
            _log.error("The key file is invalid, so the keys stay as they were: %s", error)

    def also(self, key: str, role: str) -> Keys:
        """Return these keys and one more."""
        self._more[_digest(key)] = role
        self._roles |= self._more
        return self

    def check(self, needed: str, given: bytes) -> bytes:
        """Raise unless a key has the needed role; return its digest, as it is logged with impressions."""
        role, digest = self._known(given)
        if role is None:
            raise MissingKeyError("No valid API key was sent: send the header Authorization: Bearer KEY.")
        if role not in allowed_roles(needed):
            raise ForbiddenError(f"This key may {ROLES[role]}, but this request needs a key that may {ROLES[needed]}.")
        return digest[:CALLER_SIZE]

    def role(self, given: bytes) -> str | None:
        """Return the role of a key; admin if there are no keys."""
        return self._known(given)[0] if self else "admin"

    def _known(self, given: bytes) -> tuple[str | None, bytes]:
        """Return the role of a key, if any, and its digest."""
        kind, _, key = given.partition(b" ")
        role, digest = None, b""
        if kind.lower() == b"bearer":
            digest = _digest(key.strip().decode("latin-1"))
            for known, its_role in self._roles.items():
                if hmac.compare_digest(known, digest):
                    role = its_role
        return role, digest


def _stamp(path: Path) -> object:
    """Return a value that changes when the file does."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def caller_digest(key: str) -> bytes:
    """Return the digest of a key that is stored with each impression."""
    return _digest(key.strip())[:CALLER_SIZE]


def allowed_roles(needed: str) -> tuple[str, ...]:
    """Return the roles that include the needed one: a key that may rank may also send feedback."""
    return ("feedback", "rank", "admin") if needed == "feedback" else (needed, "admin")


def needed_role(method: str, known: RouteRule) -> str | None:
    """Return the role that a request needs; None if it needs no key."""
    if known.is_open:
        return None
    if known.is_feedback:
        return "feedback"
    if known.is_ranking:
        return "rank"
    if known.is_private:
        return "admin"
    return "read" if known.is_reading or method in SAFE else "admin"


_GIVEN_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_FIRST_PART, _NUMBERS = secrets.token_hex(6), itertools.count(1)


def request_id(given: bytes | None) -> str:
    """Return the id of a request: the given one if it is valid, or a new one.

    >>> request_id(b"mine-1")
    'mine-1'
    """
    if given is not None and _GIVEN_ID.fullmatch(given):
        return given.decode()
    return f"{_FIRST_PART}-{next(_NUMBERS):x}"


# Several readers ask for the load at their own pace, so reading resets nothing; any thread may read.

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)  # seconds
_OF_LATE = 5  # seconds
_KEPT = 8  # seconds with counts; some more than the rate needs


class LoadMeter:
    """Request counts, beside the engine's own counts."""

    def __init__(self, engine: Engine, steady: Callable[[], float] = time.monotonic) -> None:
        self.began = engine.now()
        self._engine = engine
        self._steady = steady
        self._requests: Counter[tuple[str, int]] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}
        self._of_late = [0] * _KEPT  # requests per second, a ring indexed by second
        self._which = [-1] * _KEPT  # the second of each entry

    def count(self, kind: str, status: int, seconds: float) -> None:
        """Count one external request and its duration."""
        self._requests[kind, status] += 1
        buckets = self._buckets.setdefault(kind, [0] * (len(BOUNDS) + 1))
        buckets[bisect_left(BOUNDS, seconds)] += 1
        self._seconds[kind] = self._seconds.get(kind, 0.0) + seconds
        second = int(self._steady())
        place = second % _KEPT
        if self._which[place] != second:
            self._which[place], self._of_late[place] = second, 0
        self._of_late[place] += 1

    def says(self) -> dict[str, Any]:
        """Return all counts as JSON-compatible data."""
        engine, now = self._engine, int(self._steady())
        counted = zip(self._which, self._of_late, strict=True)
        lately = sum(number for second, number in counted if now - _OF_LATE <= second < now)
        return {
            "requests_per_second": lately / _OF_LATE,
            "learners": len(engine.learners),
            "learner_bytes": engine.learners.size,
            "writes": engine.write_queue.batches,
            "failed_writes": engine.write_queue.failures,
            "process": os.getpid(),
            "host": socket.gethostname(),
            "requests": [[kind, status, number] for (kind, status), number in sorted(dict(self._requests).items())],
            "times": {
                kind: {"buckets": list(buckets), "seconds": self._seconds.get(kind, 0.0)}
                for kind, buckets in sorted(dict(self._buckets).items())
            },
        }


class Access:
    """ASGI middleware around the application."""

    def __init__(self, app: App, keys: Keys, load: LoadMeter, largest_body: int, origins: AllowedOrigins) -> None:
        self._app = app
        self._keys = keys
        self._load = load
        self._largest_body = largest_body
        self._origins = origins
        self._rate_limited = RateLimitedLogger(_log)

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve or reject a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        headers = dict(scope["headers"])
        request = request_id(headers.get(b"x-request-id"))
        REQUEST.set(request)
        known = rule_for(scope["path"])
        always = _ON_PAGES if known.kind == "page" else _EVERYWHERE
        response = _Response(send, [*always, (b"x-request-id", request.encode())])
        response.headers += self._origins.headers(known, headers)
        if scope["method"] == "HEAD":  # as GET, without the body
            scope = {**scope, "method": "GET"}
            response.without_body = True
        failure = await self._pass(scope, receive, response, known, headers)
        self._load.count(known.kind, response.status, time.perf_counter() - began)
        if response.status >= 500:
            said = f"{scope['method']} {scope['path']}: {response.status}"
            if failure is None:  # an expected error, already explained in the response
                self._rate_limited.say(said)
            else:
                _log.error("%s", said, exc_info=failure)

    async def _pass(
        self, scope: Any, receive: Receive, response: _Response, known: RouteRule, headers: Mapping[bytes, bytes]
    ) -> Exception | None:
        """Serve a request, with a response in any case; return an unexpected exception."""
        limit = SMALL_BODY if known.is_small else self._largest_body
        try:
            if self._origins.is_preflight(scope["method"], known, headers):
                await self._origins.answer(response.send)
                return None
            scope[CALLER] = self._check(scope["method"], known, limit, headers)
            # Otherwise the server checks the length.
            if b"content-length" not in headers or b"transfer-encoding" in headers:
                receive = _counted(receive, limit, known)
            await self._app(scope, receive, response.send)
        except ServiceError as error:
            if response.begun:
                return error
            await send_json(response.send, *refusal(error))
        except asyncio.CancelledError:  # the shutdown has waited long enough
            if not response.begun:
                await send_json(response.send, *refusal(StoppingError()))
        except Exception as error:  # noqa: BLE001
            if not response.begun:
                await send_json(response.send, *internal_error_response())
            return error
        return None

    def _check(self, method: str, known: RouteRule, limit: int, headers: Mapping[bytes, bytes]) -> bytes | None:
        """Reject bodies that are too large, requests forged by other sites, and insufficient keys; return the
        caller.
        """
        caller = None
        if int(headers.get(b"content-length", 0)) > limit:
            raise _too_large(limit, known)
        if self._keys:
            role = needed_role(method, known)
            if role is not None:
                caller = self._keys.check(role, headers.get(b"authorization", b""))
        elif not _LOCAL.fullmatch(headers.get(b"host", b"localhost")):  # DNS rebinding: another name for this machine
            raise ForbiddenError("Without keys this service answers requests to localhost only: see serve --keys.")
        elif method not in SAFE and not self._origins.may_send(known, headers):
            raise ForbiddenError("A page of another site sent this request; without keys only the service's own may.")
        if known.body is not None and method == "POST":
            _check_media(known, headers.get(b"content-type", b""))
        return caller


def _check_media(known: RouteRule, said: bytes) -> None:
    """Reject media types that another site's page could send; JSON requires a preflight request."""
    if said.lower().startswith(b"application/json"):
        return
    if not known.takes_lines:
        raise MediaTypeError("The body is not declared as JSON: send Content-Type: application/json.")
    if not is_lines(said.decode("latin-1")):
        raise MediaTypeError(
            f"The body is not declared as JSON: send Content-Type: application/json, or {LINES} for JSON lines."
        )


class _Response:
    """Sends the response with common headers, and records its status."""

    __slots__ = ("_send", "begun", "headers", "status", "without_body")

    def __init__(self, send: Send, headers: list[tuple[bytes, bytes]]) -> None:
        self._send = send
        self.headers = headers
        self.status = _CLIENT_CLOSED
        self.begun = self.without_body = False

    def send(self, message: Mapping[str, Any]) -> Awaitable[None]:
        if message["type"] == "http.response.start":
            self.status, self.begun = message["status"], True
            message["headers"].extend(self.headers)
        elif self.without_body:
            message = {**message, "body": b""}
        return self._send(message)


def _too_large(limit: int, known: RouteRule) -> BodyTooLargeError:
    if known.is_small:
        return BodyTooLargeError(f"The body exceeds the {limit // 2**20} MB allowed for rankings and feedback.")
    return BodyTooLargeError(f"The body exceeds the {limit} bytes allowed here; see serve --largest-body.")


def _counted(receive: Receive, limit: int, known: RouteRule) -> Receive:
    """Enforce the limit on bodies without a declared length."""
    seen = 0

    async def counting() -> Mapping[str, Any]:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise _too_large(limit, known)
        return message

    return counting
