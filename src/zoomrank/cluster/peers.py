"""`HttpPeers`: the other replicas, each at its own door, by plain HTTP.

Ray Serve could carry these calls as well; that takes ten times as long, at both ends (`python -m bench cluster`).
"""

from __future__ import annotations

import asyncio
import io
from urllib.parse import quote

import aiohttp
from yarl import URL

from zoomrank.service.http.passing import Passed, Said, UnansweredError, UnreachedError
from zoomrank.service.http.peer_door import PASSED_FOR, PEERS_KEPT, TOKEN
from zoomrank.service.storage.leases import Replica

_CONNECT_WITHIN = 1.0  # seconds
_KEPT = PEERS_KEPT - 15.0  # seconds for which a connection is kept that nobody uses: who asks hangs up first
_LARGE = 2**18  # bytes of a body that is sent piece by piece, with others in between
# What is about one connection, or was settled before it was passed on.
_OURS = {b"authorization", b"connection", b"content-length", b"expect", b"host", b"keep-alive", b"transfer-encoding"}
_THEIRS = {b"connection", b"date", b"keep-alive", b"transfer-encoding"}


class HttpPeers:
    """Asks other replicas; one that is gone is noticed at once."""

    def __init__(self) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEPT),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent", "Content-Type"),
        )

    async def ask(self, replica: Replica, request: Passed, seconds: float | None) -> Said:
        """What another replica says to a request."""
        headers = [
            (name.decode(), value.decode(errors="replace")) for name, value in request.headers if name not in _OURS
        ]
        headers.append((TOKEN.decode(), replica.token))
        if request.asker is not None:
            headers.append((PASSED_FOR.decode(), request.asker.hex()))
        query = f"?{request.query.decode('latin-1')}" if request.query else ""
        url = URL(f"http://{replica.name}{quote(request.path)}{query}", encoded=True)
        try:
            async with self._session.request(
                request.method,
                url,
                data=io.BytesIO(request.body) if len(request.body) > _LARGE else request.body or None,
                headers=headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=seconds, sock_connect=_CONNECT_WITHIN),
            ) as response:
                named = ((name.lower(), value) for name, value in response.raw_headers)
                said = [(name, value) for name, value in named if name not in _THEIRS]
                return Said(response.status, said, await response.read())
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise UnreachedError from error
        except (asyncio.TimeoutError, aiohttp.ClientError, OSError) as error:
            raise UnansweredError from error

    async def close(self) -> None:
        """Hang up."""
        await self._session.close()
