"""Sockets of a service, the configuration of the HTTP server on them, and time limits for clients (`TimedProtocol`).

A client that connects and sends nothing, or stops in the middle, would hold a connection and delay a shutdown. So
headers must arrive within some seconds of the first byte, bodies may not pause for long, and the small bodies of
rankings and feedback have a limit in total. A client that is too slow gets status 408, and the connection is closed.
So is one whose headers never end: they would all be kept in memory.
Requests that arrive in one piece, as nearly all do, never start a timer.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import Iterator
from typing import Any, NamedTuple

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from zoomrank.errors import ParameterError
from zoomrank.service.http.fast_path import App, rule_for


class TimeLimits(NamedTuple):
    """Limits in seconds."""

    headers: float = 10.0  # since connecting, or since the first byte of the next request
    pause: float = 30.0  # without a byte of the body
    small_body: float = 30.0  # in total, for rankings and feedback


TIME_LIMITS = TimeLimits()
LARGEST_HEAD = 2**16  # bytes of a request line and headers
_TOO_LONG = f"The headers of this request exceed {LARGEST_HEAD // 1024} kB: send fewer, or smaller cookies."


class TimedProtocol(HttpToolsProtocol):
    """One connection."""

    limits = TIME_LIMITS
    _clock: asyncio.TimerHandle | None = None
    _begun = 0.0  # when the current wait began
    _heard = 0.0  # when the last byte arrived
    _of: Any = None  # the request whose body is awaited; None: headers
    _head = 0  # bytes of headers that are incomplete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for headers."""
        super().connection_made(transport)
        self._wait_for(None)

    def data_received(self, data: bytes) -> None:
        """Process received bytes."""
        super().data_received(data)
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._head = 0
        if cycle is not None and not cycle.more_body and not cycle.response_complete:  # the request is complete
            self._stop_clock()
        elif cycle is None or cycle.response_complete:
            self._head += len(data)
            if self._head > LARGEST_HEAD:
                self._refuse(431, "Request Header Fields Too Large", "headers", _TOO_LONG)
            elif self._clock is None:
                self._wait_for(None)
        else:
            self._heard = self.loop.time()
            if self._clock is None or self._of is not cycle:
                self._wait_for(cycle)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_clock()
        super().connection_lost(exc)

    def _wait_for(self, cycle: Any) -> None:
        self._stop_clock()
        self._of = cycle
        self._begun = self._heard = self.loop.time()
        self._look_again()

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _look_again(self) -> None:
        """Close the connection if its time is over, or check again when it would be."""
        self._clock = None
        if self.transport.is_closing() or (self._of is not None and self._of.response_complete):
            return
        if self.flow.read_paused:  # the client is not at fault
            self._heard = self.loop.time()
        left = self._until() - self.loop.time()
        if left <= 0:
            self._give_up()
        else:
            self._clock = self.loop.call_later(left, self._look_again)

    def _until(self) -> float:
        if self._of is None:
            return self._begun + self.limits.headers
        until = self._heard + self.limits.pause
        if rule_for(self._of.scope["path"]).is_ranking:
            until = min(until, self._begun + self.limits.small_body)
        return until

    def _give_up(self) -> None:
        cycle = self._of
        if (cycle is None and self.scope is not None) or (cycle is not None and not cycle.response_started):
            what = "headers" if cycle is None else "body"
            message = f"The {what} of this request arrived too slowly: send it again, all at once."
            self._refuse(408, "Request Timeout", "timeout", message)
        if cycle is not None:  # end the application's wait for the body
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.close()

    def _refuse(self, status: int, reason: str, error: str, message: str) -> None:
        """Write a response that no application makes, and close the connection."""
        body = json.dumps({"error": error, "message": message}).encode()
        head = (
            f"HTTP/1.1 {status} {reason}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


def timed(limits: TimeLimits) -> type[TimedProtocol]:
    """Return the protocol with these limits."""
    return type("TimedProtocol", (TimedProtocol,), {"limits": limits})


SHUTDOWN_GRACE = 5  # seconds that requests may take at shutdown


def listen(host: str, port: int, together: bool = False) -> socket.socket:
    """Take a port; with `together` several processes may take it, and each gets some connections."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if together:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind(address)
    except OSError as error:
        raise ParameterError(
            f"Port {port} of {host} cannot be used ({error.strerror}): choose another, or 0 for any free port."
        ) from error
    return listening


def url_of(listening: socket.socket) -> str:
    """Return the address of a socket."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def uvicorn_config(app: App, limits: TimeLimits = TIME_LIMITS, **options: Any) -> uvicorn.Config:
    """Return the configuration of a server of an application."""
    return uvicorn.Config(
        app,
        http=timed(limits),
        ws="none",
        lifespan="off",  # the caller starts and stops the engine, so that its errors are reported in words
        timeout_graceful_shutdown=SHUTDOWN_GRACE,
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        backlog=2048,
        proxy_headers=False,
        **options,
    )


class BackgroundServer(uvicorn.Server):
    """A server beside other work of this process, which keeps its signal handlers."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signal handlers as they are."""
        yield
