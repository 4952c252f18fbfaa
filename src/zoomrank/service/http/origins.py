"""`AllowedOrigins`: sites whose pages may send feedback directly from a browser (CORS).

A browser lets a page call another origin only with that origin's consent. By default the service consents to none; if
configured, to feedback only: rankings are requested by a server with a key that browsers must not have. The preflight
request needs no key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from zoomrank.errors import ParameterError
from zoomrank.service.http.asgi import Send
from zoomrank.service.http.known_paths import RouteRule

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
        origin = headers.get(b"origin", b"")
        return [(b"access-control-allow-origin", origin), varies] if origin in self._allowed else [varies]

    def is_preflight(self, method: str, known: RouteRule, headers: Headers) -> bool:
        """Return whether a request is the preflight for feedback from an allowed origin."""
        return (
            method == "OPTIONS"
            and known.is_feedback
            and b"access-control-request-method" in headers
            and headers.get(b"origin", b"") in self._allowed
        )

    @staticmethod
    async def answer(send: Send) -> None:
        """Answer a preflight request."""
        await send({"type": "http.response.start", "status": 204, "headers": list(_MAY)})
        await send({"type": "http.response.body", "body": b""})
