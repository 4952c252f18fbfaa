"""HTTP without a framework, by Python's ASGI: its types, how to read a body, and how to send JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pydantic_core import to_json

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
