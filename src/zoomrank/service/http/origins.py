"""`Origins`: whose pages may give feedback themselves, from a browser, across origins (CORS).

A browser lets a page talk to another origin only if that one says so. The service says so of no page, unless it was
told to, and then of feedback alone: rankings are asked for by somebody's server, which has a key that browsers must not
have. Before a browser sends JSON or a key to another origin, it asks whether it may; that question needs no key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from zoomrank.errors import ParameterError
from zoomrank.service.http.asgi import Send
from zoomrank.service.http.known_paths import KnownPath

_ORIGIN = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?")
_MAY = [
    (b"access-control-allow-methods", b"POST"),
    (b"access-control-allow-headers", b"authorization, content-type"),
    (b"access-control-max-age", b"7200"),  # seconds for which it need not ask again; the most that browsers take
]

Headers = Mapping[bytes, bytes]


def check_origins(origins: Iterable[str]) -> None:
    """Refuse what no browser would call the origin of a page."""
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            raise ParameterError(
                f"{origin!r} is not the origin of a page: write it as browsers do, such as https://shop.example or "
                "http://localhost:3000, in small letters and without a path."
            )


class Origins:
    """The origins whose pages may give feedback; none, as a rule."""

    def __init__(self, origins: Iterable[str] = ()) -> None:
        self._allowed = frozenset(origin.encode() for origin in origins)

    def headers(self, known: KnownPath, headers: Headers) -> list[tuple[bytes, bytes]]:
        """What a response says of who may read it."""
        if not self._allowed or not known.is_feedback:
            return []
        varies = (b"vary", b"origin")
        origin = headers.get(b"origin", b"")
        return [(b"access-control-allow-origin", origin), varies] if origin in self._allowed else [varies]

    def is_question(self, method: str, known: KnownPath, headers: Headers) -> bool:
        """Whether a browser asks if a page of an origin that is allowed may send feedback."""
        return (
            method == "OPTIONS"
            and known.is_feedback
            and b"access-control-request-method" in headers
            and headers.get(b"origin", b"") in self._allowed
        )

    @staticmethod
    async def answer(send: Send) -> None:
        """Say that it may, and how."""
        await send({"type": "http.response.start", "status": 204, "headers": list(_MAY)})
        await send({"type": "http.response.body", "body": b""})
