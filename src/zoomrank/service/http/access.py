"""`Access`: what every request passes before anything looks at it: keys, the size of its body, the clock.

A key has a role. `rank` keys rank and give feedback, `read` keys read, `admin` keys do both and make collections.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zoomrank.errors import ParameterError
from zoomrank.service.http.asgi import ASKER, App, Receive, Send, send_json
from zoomrank.service.http.error_responses import refusal
from zoomrank.service.http.known_paths import KnownPath, known_path
from zoomrank.service.http.metrics import Metrics
from zoomrank.service.refusals import BodyTooLargeError, ForbiddenError, MediaError, MissingKeyError, ServiceError
from zoomrank.service.storage.events import ASKER_SIZE

ROLES = ("rank", "read", "admin")
SHORTEST_KEY = 16
SMALL_BODY = 4 * 2**20  # bytes of rankings and feedback; collections may be larger
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


class Keys:
    """Keys and their roles; without any, everything is open."""

    def __init__(self, keys: Mapping[str, str]) -> None:
        self._roles = {_digest(key): role for key, role in keys.items()}

    def __bool__(self) -> bool:
        return bool(self._roles)

    @classmethod
    def read(cls, path: Path) -> Keys:
        """Read a file with a role and a key on each line."""
        keys = {}
        for number, line in enumerate(path.read_text().splitlines(), 1):
            role, _, key = line.partition("#")[0].strip().partition(" ")
            if not role:
                continue
            if role not in ROLES or len(key.strip()) < SHORTEST_KEY:
                raise ParameterError(
                    f"Line {number} of {path} is not a role ({', '.join(ROLES)}) and a key of {SHORTEST_KEY} letters "
                    "or more."
                )
            keys[key.strip()] = role
        if not keys:
            raise ParameterError(f"{path} has no keys: write a role and a key on each line, such as “admin SECRET…”.")
        return cls(keys)

    def also(self, key: str, role: str) -> Keys:
        """These keys and one more."""
        keys = Keys({key: role})
        keys._roles |= self._roles
        return keys

    def check(self, needed: str, given: bytes) -> bytes:
        """Refuse a key that may not do what is needed; returns what is written down of one that may."""
        kind, _, key = given.partition(b" ")
        role, digest = None, b""
        if kind.lower() == b"bearer":
            digest = _digest(key.strip().decode("latin-1"))
            for known, its_role in self._roles.items():
                if hmac.compare_digest(known, digest):
                    role = its_role
        if role is None:
            raise MissingKeyError("Send a key: Authorization: Bearer KEY.")
        if role not in (needed, "admin"):
            raise ForbiddenError(f"This key may {role}; this needs one that may {needed}.")
        return digest[:ASKER_SIZE]


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def asker_of(key: str) -> bytes:
    """What is written down of a key with each impression that it asked for."""
    return _digest(key.strip())[:ASKER_SIZE]


def needed_role(method: str, known: KnownPath) -> str | None:
    """The role that a request needs; None if nobody needs any."""
    if known.is_open:
        return None
    if known.is_ranking:
        return "rank"
    return "read" if known.is_reading or method in ("GET", "HEAD", "OPTIONS") else "admin"


class Access:
    """Wraps the application."""

    def __init__(self, app: App, keys: Keys, metrics: Metrics, largest_body: int) -> None:
        self._app = app
        self._keys = keys
        self._metrics = metrics
        self._largest_body = largest_body

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Let a request through, or not."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        known = known_path(scope["path"])
        limit = SMALL_BODY if known.is_ranking or known.is_reading else self._largest_body
        status = 500

        async def respond(message: Mapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"].extend(_ON_PAGES if known.kind == "page" else _EVERYWHERE)
            await send(message)

        try:
            self._check(scope, known, limit)
            await self._app(scope, _counted(receive, limit), respond)
        except ServiceError as error:
            if status != 500:
                raise
            await send_json(respond, *refusal(error))
        finally:
            self._metrics.count(known.kind, status, time.perf_counter() - began)

    def _check(self, scope: Any, known: KnownPath, limit: int) -> None:
        """Refuse what is too large, what a page of somebody else could have sent, and who may not."""
        headers = dict(scope["headers"])
        if int(headers.get(b"content-length", 0)) > limit:
            raise _too_large(limit)
        if self._keys:
            role = needed_role(scope["method"], known)
            if role is not None:
                scope[ASKER] = self._keys.check(role, headers.get(b"authorization", b""))
        elif not _LOCAL.fullmatch(headers.get(b"host", b"localhost")):  # a name that somebody let point to this machine
            raise ForbiddenError("Without keys this service serves localhost alone: see serve --keys.")
        if (
            known.body is not None
            and scope["method"] == "POST"
            and not headers.get(b"content-type", b"").lower().startswith(b"application/json")
        ):
            raise MediaError("Send JSON, and say so: Content-Type: application/json.")


def _too_large(limit: int) -> BodyTooLargeError:
    return BodyTooLargeError(f"This is more than the {limit} bytes that are taken here; see serve --largest-body.")


def _counted(receive: Receive, limit: int) -> Receive:
    """Bodies without a length are counted as they come."""
    seen = 0

    async def counting() -> Mapping[str, Any]:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise _too_large(limit)
        return message

    return counting
