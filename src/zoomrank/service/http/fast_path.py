"""`FastPath`: the few busiest paths, requested a hundred times as often as all others, served without the framework.

Ranking and learning take less time than the framework's general handling. The routes are also declared to the framework
for documentation; both call the same functions with the same checks.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from zoomrank.service.engine import Asker
from zoomrank.service.http.asgi import ASKER, App, Receive, Send, send_json
from zoomrank.service.http.error_responses import refusal
from zoomrank.service.http.known_paths import KnownPath
from zoomrank.service.refusals import ServiceError, UnusableError

ONCE = "[!-~]{1,255}"  # form of an Idempotency-Key
_ONCE = re.compile(ONCE.encode())

Endpoint = Callable[..., Awaitable[Any]]


class FastRoute(NamedTuple):
    """A path, the type of its body, and its function."""

    path: re.Pattern[str]
    body: TypeAdapter[Any]
    endpoint: Endpoint
    asks: bool  # the function needs the caller

    @classmethod
    def to(cls, endpoint: Endpoint, known: KnownPath, asks: bool = False) -> FastRoute:
        """Return the route of a path that takes JSON."""
        body: Any = known.body
        return cls(known.pattern, TypeAdapter(body), endpoint, asks)


class FastPath:
    """ASGI application that serves its own routes and passes on the rest."""

    def __init__(self, app: App, routes: list[FastRoute]) -> None:
        self._app = app
        self._routes = routes

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Respond to a request."""
        if scope["type"] == "http" and scope["method"] == "POST":
            path = scope["path"]
            for route in self._routes:
                found = route.path.fullmatch(path)
                if found is not None:
                    await _respond(route, found.groupdict(), scope, receive, send)
                    return
        await self._app(scope, receive, send)


def asker(scope: Any) -> Asker:
    """Return the caller, from a request's headers."""
    once = next((value for name, value in scope["headers"] if name == b"idempotency-key"), None)
    if once is not None and not _ONCE.fullmatch(once):
        raise UnusableError("The Idempotency-Key is invalid: use 1 to 255 printable ASCII characters without spaces.")
    return Asker(scope.get(ASKER), None if once is None else once.decode())


async def _respond(route: FastRoute, names: dict[str, Any], scope: Any, receive: Receive, send: Send) -> None:
    body = b""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body += message.get("body", b"")
        more = message.get("more_body", False)
    status = 200
    headers: dict[str, str] = {}
    try:
        if route.asks:
            names["asker"] = asker(scope)
        content = await route.endpoint(route.body.validate_json(body), **names)
    except (ServiceError, ValidationError) as error:
        status, content, headers = refusal(error)
    await send_json(send, status, content, headers)
