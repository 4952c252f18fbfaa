"""`PeerDoor`: where a replica takes what other replicas pass on to it; nobody else is let in.

Who may pass something on knows the token of this replica, which is in the database, and only there. A process that has
the same address later has another token: so a request reaches the replica that it was meant for, or is told that it is
somewhere else. And a response says whose it is (`seal`), in a way that only who knows the token can.

All comes as POST, whatever it is: clients of HTTP like to send other methods twice, and here that has to be decided by
whoever passes them on.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
from collections.abc import Mapping
from typing import Any

from zoomrank.service.http.asgi import Receive, Send, send_json
from zoomrank.service.http.error_responses import refusal, unexpected
from zoomrank.service.http.passing import Passed, Passing, whole_body
from zoomrank.service.logs import REQUEST, request_id
from zoomrank.service.refusals import ElsewhereError, ServiceError, StoppingError

# Headers between replicas: whom a request is meant for, how it came in and by which key; and who responds.
TOKEN, METHOD, PASSED_FOR, SEAL = b"zoomrank-token", b"zoomrank-method", b"zoomrank-asker", b"zoomrank-seal"
BETWEEN = {TOKEN, METHOD, PASSED_FOR, SEAL}
PEERS_KEPT = 75  # seconds for which a connection is kept that nobody uses

_log = logging.getLogger(__name__)


def seal(token: str) -> bytes:
    """What shows that somebody knows a token, and does not say it."""
    return hashlib.sha256(token.encode()).hexdigest().encode()


class PeerDoor:
    """An application that only replicas ask."""

    def __init__(self, passing: Passing, token: str) -> None:
        self._passing = passing
        self._token = token.encode()
        self._seal = (SEAL, seal(token))

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Respond to what was passed on to this replica."""
        headers = dict(scope["headers"])
        if not hmac.compare_digest(headers.get(TOKEN, b""), self._token):
            await send_json(send, *refusal(ElsewhereError()))
            return

        async def sealed(message: Mapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], self._seal]}
            await send(message)

        REQUEST.set(request_id(headers.get(b"x-request-id")))
        body = await whole_body(receive)
        if body is not None:
            await self._respond(_request(scope, headers, body), sealed)

    async def _respond(self, request: Passed, send: Send) -> None:
        try:
            said = await self._passing.taken(request)
        except ServiceError as error:
            await send_json(send, *refusal(error))
        except asyncio.CancelledError:  # a stop has waited for it as long as it could
            await send_json(send, *refusal(StoppingError()))
        except Exception:  # noqa: BLE001  (whatever it is, whoever asked is told)
            _log.exception("%s %s, which was passed on", request.method, request.path)
            await send_json(send, *unexpected())
        else:
            await said.send(send)


def _request(scope: Any, headers: Mapping[bytes, bytes], body: bytes) -> Passed:
    """The request as it came in, elsewhere."""
    asker = headers.get(PASSED_FOR)
    return Passed(
        headers[METHOD].decode(),
        scope["path"],
        scope["query_string"],
        [(name, value) for name, value in scope["headers"] if name not in BETWEEN],
        body,
        None if asker is None else bytes.fromhex(asker.decode()),
    )
