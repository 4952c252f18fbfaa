"""ASGI without a framework: types, and a JSON response."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pydantic_core import to_json

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
App = Callable[[Any, Any, Any], Awaitable[None]]

ASKER = "zoomrank.asker"  # scope entry: digest of the caller's API key


async def send_json(send: Send, status: int, content: Any, headers: Mapping[str, str]) -> None:
    """Respond with JSON."""
    body = to_json(content)
    named = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    named += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": named})
    await send({"type": "http.response.body", "body": body})
