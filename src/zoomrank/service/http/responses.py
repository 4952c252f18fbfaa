"""Error responses: a status, a code for programs, a sentence for people."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_json

from zoomrank.service.errors import ServiceError


def refusal(error: ServiceError | ValidationError) -> tuple[int, dict[str, str], dict[str, str]]:
    """Return status, body and headers for an error."""
    if isinstance(error, ValidationError):
        return malformed_response(error.errors(include_url=False, include_input=False))
    headers = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "60"}, 503: {"Retry-After": "1"}}.get(
        error.status, {}
    )
    return error.status, {"error": error.code, "message": str(error)}, headers


def malformed_response(errors: Sequence[Any]) -> tuple[int, dict[str, str], dict[str, str]]:
    """Return the response to a malformed request."""
    return 422, {"error": "malformed", "message": in_words(errors)}, {}


def in_words(errors: Sequence[Any], *within: str) -> str:
    """Describe the first of some validation errors: where it is, and what it is."""
    first = errors[0]
    where = ".".join(str(step) for step in (*within, *first["loc"])) or "the body"
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{where}: {first['msg']}{more}."


def internal_error_response() -> tuple[int, dict[str, str], dict[str, str]]:
    """Return the response to an unexpected failure."""
    message = "Internal error. The log of the service has more, beside the X-Request-Id of this response."
    return 500, {"error": "internal", "message": message}, {}


# HTTP without a framework, by Python's ASGI: its types, how to read a body, and how to send JSON.

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
