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
from zoomrank.service.http.peer_door import BETWEEN, METHOD, PASSED_FOR, PEERS_KEPT, SEAL, TOKEN, seal
from zoomrank.service.logs import REQUEST
from zoomrank.service.refusals import ElsewhereError
from zoomrank.service.storage.leases import Replica

_CONNECT_WITHIN = 1.0  # seconds
_KEPT = PEERS_KEPT - 15.0  # seconds for which a connection is kept that nobody uses: who asks hangs up first
_LARGE = 2**18  # bytes of a body that is sent piece by piece, with others in between
# What is about one connection, or was settled before it was passed on; and what only replicas say to each other.
_OF_CONNECTIONS = {b"connection", b"keep-alive", b"transfer-encoding"}
_OURS = {b"authorization", b"content-length", b"expect", b"host", b"x-request-id", *_OF_CONNECTIONS, *BETWEEN}
_THEIRS = {b"date", *_OF_CONNECTIONS, *BETWEEN}


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
        headers += [(TOKEN.decode(), replica.token), (METHOD.decode(), request.method)]
        if request.asker is not None:
            headers.append((PASSED_FOR.decode(), request.asker.hex()))
        if REQUEST.get():
            headers.append(("x-request-id", REQUEST.get()))
        query = f"?{request.query.decode('latin-1')}" if request.query else ""
        try:
            async with self._session.post(
                URL(f"http://{replica.name}{quote(request.path)}{query}", encoded=True),
                data=io.BytesIO(request.body) if len(request.body) > _LARGE else request.body or None,
                headers=headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=seconds, sock_connect=_CONNECT_WITHIN),
            ) as response:
                named = [(name.lower(), value) for name, value in response.raw_headers]
                said = Said(response.status, [one for one in named if one[0] not in _THEIRS], await response.read())
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise UnreachedError from error
        except (asyncio.TimeoutError, aiohttp.ClientError, OSError) as error:
            raise UnansweredError from error
        if said.status != ElsewhereError.status and (SEAL, seal(replica.token)) not in named:
            raise UnansweredError  # somebody else has its address by now
        return said

    async def close(self) -> None:
        """Hang up."""
        await self._session.close()
