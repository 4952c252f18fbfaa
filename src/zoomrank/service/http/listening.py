"""Sockets of a service, and the configuration of the HTTP server on them."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn

from zoomrank.errors import ParameterError
from zoomrank.service.http.asgi import App
from zoomrank.service.http.time_limits import TIME_LIMITS, TimeLimits, timed

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
