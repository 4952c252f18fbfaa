"""`FastPath`: the few paths that are requested a hundred times as often as all others, without the framework.

Ranking and learning take less time than a framework takes for its general case. The routes are declared to it all the
same, so that they are documented, and both call the same functions with the same checks.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from zoomrank.service.http.asgi import BODY, CALLER, App, Receive, Send, send_json, whole_body
from zoomrank.service.http.error_responses import refusal
from zoomrank.service.http.known_paths import RouteRule
from zoomrank.service.rank_options import Caller
from zoomrank.service.refusals import ServiceError, UnprocessableError

IDEMPOTENCY_KEY = "[!-~]{1,255}"  # form of an Idempotency-Key
_ONCE = re.compile(IDEMPOTENCY_KEY.encode())

Endpoint = Callable[..., Awaitable[Any]]


class FastRoute(NamedTuple):
    """A path, the type of its body, and its function."""

    path: re.Pattern[str]
    body: TypeAdapter[Any]
    endpoint: Endpoint
    has_caller: bool  # True if the function takes the caller

    @classmethod
    def to(cls, endpoint: Endpoint, known: RouteRule, has_caller: bool = False) -> FastRoute:
        """Return the route of a path that takes JSON."""
        body: Any = known.body
        return cls(known.pattern, TypeAdapter(body), endpoint, has_caller)

    def parsed(self, body: bytes, content: Any = None) -> Any:
        """Return a body as its type; `content` is its JSON, where that was parsed before."""
        if isinstance(content, dict):
            try:
                return self.body.validate_python(content)
            except ValidationError:
                pass  # parsed once more, since its errors are worded differently
        return self.body.validate_json(body)


class FastPath:
    """Serves its own routes, and hands other requests on."""

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


def caller_of(scope: Any) -> Caller:
    """Return the caller of a request, with the idempotency key in its headers."""
    once = next((value for name, value in scope["headers"] if name == b"idempotency-key"), None)
    if once is not None and not _ONCE.fullmatch(once):
        raise UnprocessableError(
            "The Idempotency-Key is invalid: use 1 to 255 printable ASCII characters without spaces."
        )
    return Caller(scope.get(CALLER), None if once is None else once.decode())


async def _respond(route: FastRoute, names: dict[str, Any], scope: Any, receive: Receive, send: Send) -> None:
    body = await whole_body(receive)
    if body is None:
        return
    status = 200
    headers: dict[str, str] = {}
    try:
        if route.has_caller:
            names["caller"] = caller_of(scope)
        content = await route.endpoint(route.parsed(body, scope.get(BODY)), **names)
    except (ServiceError, ValidationError) as error:
        status, content, headers = refusal(error)
    await send_json(send, status, content, headers)
