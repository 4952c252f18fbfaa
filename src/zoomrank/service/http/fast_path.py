"""`FastPath`: the few paths that are requested a hundred times as often as all others, without the framework.

Ranking and learning take less time than a framework takes for its general case. The routes are declared to it all the
same, so that they are documented, and both call the same functions with the same checks.

All that is needed of HTTP without a framework is here: rules by path (`RouteRule`), reading a body, and responses; a
response to an error has a status, a code for programs and a sentence for people.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import to_json

from zoomrank import wire
from zoomrank.service.catalogue.settings import NAME_PATTERN
from zoomrank.service.errors import MalformedError, ServiceError, UnprocessableError
from zoomrank.service.http import schema
from zoomrank.service.rank_options import Caller

# Error responses: a status, a code for programs, a sentence for people.


Model = TypeVar("Model", bound=BaseModel)


def refusal(error: ServiceError | ValidationError) -> tuple[int, dict[str, str], dict[str, str]]:
    """Return status, body and headers for an error."""
    if isinstance(error, ValidationError):
        return malformed_response(error.errors(include_url=False, include_input=False))
    headers = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "60"}, 503: {"Retry-After": "1"}}
    return error.status, {"error": error.code, "message": str(error)}, headers.get(error.status, {})


def malformed_response(errors: Sequence[Any]) -> tuple[int, dict[str, str], dict[str, str]]:
    """Return the response to a malformed request."""
    return 422, {"error": "malformed", "message": in_words(errors)}, {}


def in_words(errors: Sequence[Any], *within: str) -> str:
    """Describe the first of some validation errors: where it is, and what it is."""
    first = errors[0]
    where = ".".join(str(step) for step in (*within, *first["loc"])) or "the body"
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{where}: {first['msg']}{more}."


def validated(kind: type[Model] | TypeAdapter[Model], body: bytes | str, *within: str) -> Model:
    """Return JSON as a type; MalformedError says what is wrong with it, and where."""
    try:
        return kind.validate_json(body) if isinstance(kind, TypeAdapter) else kind.model_validate_json(body)
    except ValidationError as error:
        raise MalformedError(in_words(error.errors(include_url=False, include_input=False), *within)) from error


def internal_error_response() -> tuple[int, dict[str, str], dict[str, str]]:
    """Return the response to an unexpected failure."""
    message = "Internal error. The log of the service has more, beside the X-Request-Id of this response."
    return 500, {"error": "internal", "message": message}, {}


# Types of Python's ASGI.

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
App = Callable[[Any, Any, Any], Awaitable[None]]

# Entries of a request's scope.
CALLER = "zoomrank.caller"  # digest of the key with which it was let in
BODY = "zoomrank.body"  # its JSON, where that was parsed before


async def whole_body(receive: Receive) -> bytes | None:
    """Return the body of a request; None if the client hung up."""
    parts, more = list[bytes](), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


async def send_json(send: Send, status: int, content: Any, headers: Mapping[str, str]) -> None:
    """Respond with JSON."""
    body = to_json(content)
    named = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    named += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": named})
    await send({"type": "http.response.body", "body": body})


# Paths with special rules before the framework sees them, each declared once: `Access` has rules for ranking and
# feedback, for paths without keys and for JSON bodies, and metrics count requests by kind.

_PARAMETER = re.compile(r"{(\w+)}")


@dataclass(frozen=True)
class RouteRule:
    """A path in the framework's notation."""

    path: str
    kind: str = "other"  # label in metrics
    is_ranking: bool = False  # a ranking, or feedback on one
    is_feedback: bool = False
    is_reading: bool = False  # a POST that changes nothing stored
    is_private: bool = False  # readable with an admin key only
    is_open: bool = False  # needs no key
    body: type[BaseModel] | None = None  # type of the JSON that is posted
    takes_lines: bool = False  # also accepts JSON lines

    @property
    def is_small(self) -> bool:
        """True if its bodies are small: all but those with documents."""
        return self.is_ranking or self.is_reading

    @property
    def pattern(self) -> re.Pattern[str]:
        """Regular expression of this path, with valid collection names."""
        return re.compile(_PARAMETER.sub(rf"(?P<\1>{NAME_PATTERN}(?:~{NAME_PATTERN}){{0,2}})", self.path))


RANK = RouteRule(wire.RANK, "rank", is_ranking=True, body=schema.RankRequest)
RANK_BATCH = RouteRule(wire.RANK_BATCH, "rank/batch", is_ranking=True, body=schema.RankBatchRequest)
FEEDBACK = RouteRule(wire.FEEDBACK, "feedback", is_ranking=True, is_feedback=True, body=schema.FeedbackRequest)
FEEDBACK_BATCH = RouteRule(
    wire.FEEDBACK_BATCH, "feedback/batch", is_ranking=True, is_feedback=True, body=schema.BatchRequest
)
SEEN = RouteRule(wire.SEEN, "seen", is_ranking=True, is_feedback=True, body=schema.SeenRequest)
COPIES = RouteRule(wire.COPIES, "copies", is_reading=True, body=schema.CopyRequest)
COPY_RANK = RouteRule(wire.COPY_RANK, "copies", is_reading=True, body=schema.CopyRankRequest)
COPY_FEEDBACK = RouteRule(wire.COPY_FEEDBACK, "copies", is_reading=True, body=schema.BatchRequest)
COLLECTIONS = RouteRule(wire.COLLECTIONS, body=schema.NewCollection)
NEW_DOCUMENTS = RouteRule(wire.DOCUMENTS, body=schema.DocumentsRequest, takes_lines=True)
CHANGES = RouteRule(wire.CHANGES, body=schema.ChangesRequest, takes_lines=True)
VOID = RouteRule(wire.VOID, body=schema.VoidRequest)
EXPERIMENTS = RouteRule(wire.EXPERIMENTS, body=schema.NewExperiment)
STOP = RouteRule(wire.STOP, body=schema.StopRequest)
PROMOTE = RouteRule(wire.PROMOTE, body=schema.PromoteRequest)
EXPORT = RouteRule(wire.EXPORT, "export", is_private=True)
HEALTH = RouteRule(wire.HEALTH, "health", is_open=True)
READY = RouteRule(wire.READY, "ready", is_open=True)
PAGE = RouteRule("/", "page", is_open=True)
PAGE_FILE = RouteRule("/page/{file}", "page", is_open=True)

_ALL = (
    *(RANK, FEEDBACK, RANK_BATCH, FEEDBACK_BATCH, SEEN, COPIES, COPY_RANK, COPY_FEEDBACK),
    *(NEW_DOCUMENTS, CHANGES, VOID, EXPORT, COLLECTIONS, EXPERIMENTS, STOP, PROMOTE, HEALTH, READY, PAGE, PAGE_FILE),
)
_ANY = re.compile("|".join(f"({_PARAMETER.sub('[^/]+', known.path)})" for known in _ALL))
_OTHER = RouteRule("")


def rule_for(path: str) -> RouteRule:
    """Return the rules of a request path, whatever its method and whether or not its names are valid."""
    found = _ANY.fullmatch(path)
    return _OTHER if found is None else _ALL[(found.lastindex or 0) - 1]


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
