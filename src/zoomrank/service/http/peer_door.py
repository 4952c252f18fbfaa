"""`PeerDoor`: where a replica takes what other replicas pass on to it; nobody else is let in.

Who may pass something on knows the token of this replica, which is in the database, and only there. A process that has
the same address later has another token: so a request reaches the replica that it was meant for, or is told that it is
somewhere else.
"""

from __future__ import annotations

import hmac
import logging
from typing import Any

from zoomrank.service.http.asgi import Receive, Send, send_json
from zoomrank.service.http.error_responses import refusal, unexpected
from zoomrank.service.http.passing import Passed, Passing, whole_body
from zoomrank.service.refusals import ElsewhereError, ServiceError

TOKEN, PASSED_FOR = b"zoomrank-token", b"zoomrank-asker"  # headers: whom it is meant for, and by which key it came
PEERS_KEPT = 75  # seconds for which a connection is kept that nobody uses

_log = logging.getLogger(__name__)


class PeerDoor:
    """An application that only replicas ask."""

    def __init__(self, passing: Passing, token: str) -> None:
        self._passing = passing
        self._token = token.encode()

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Respond to what was passed on to this replica."""
        headers = dict(scope["headers"])
        if not hmac.compare_digest(headers.get(TOKEN, b""), self._token):
            await send_json(send, *refusal(ElsewhereError()))
            return
        asker = headers.get(PASSED_FOR)
        body = await whole_body(receive)
        if body is None:
            return
        request = Passed(
            scope["method"],
            scope["path"],
            scope["query_string"],
            [(name, value) for name, value in scope["headers"] if name not in (TOKEN, PASSED_FOR)],
            body,
            None if asker is None else bytes.fromhex(asker.decode()),
        )
        try:
            said = await self._passing.taken(request)
        except ServiceError as error:
            await send_json(send, *refusal(error))
        except Exception:  # noqa: BLE001  (whatever it is, whoever asked is told)
            _log.exception("%s %s, which was passed on", request.method, request.path)
            await send_json(send, *unexpected())
        else:
            await said.send(send)
