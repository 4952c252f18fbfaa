"""`serve`: the service in this process, until it is told to stop."""

from __future__ import annotations

import gc
import ipaddress
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from zoomrank.errors import ParameterError
from zoomrank.service.engine import Engine
from zoomrank.service.http.access import Keys
from zoomrank.service.http.app import LARGEST_BODY, make_app
from zoomrank.service.storage.opening import open_store


def make_server(
    data: Path,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    store: str | None = None,
    keys: Keys | None = None,
    memory: int = 2**30,
    largest_body: int = LARGEST_BODY,
    **options: Any,
) -> Server:
    """A server that is ready to run; refused if others could reach it without a key."""
    if not keys and not is_loopback(host):
        raise ParameterError(
            f"{host} can be reached from outside, so keys are needed: write a role and a key on each line of a file "
            "(“admin …”, “rank …”, “read …”) and pass it with --keys FILE."
        )
    listening = _listen(host, port)
    sys.setswitchinterval(0.0005)  # seconds that the thread that writes waits for its turn; the default is 0.005
    try:
        engine = Engine(open_store(data, store), data, memory, steady=time.monotonic)
    except BaseException:
        listening.close()
        raise
    app = make_app(engine, keys, largest_body)
    config = uvicorn.Config(
        app,
        host,
        port,
        log_level="warning",
        access_log=False,
        server_header=False,
        backlog=2048,
        proxy_headers=False,
        **options,
    )
    return Server(config, listening)


def _listen(host: str, port: int) -> socket.socket:
    """Take a port, or say that it cannot be had."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as error:
        raise ParameterError(
            f"Port {port} of {host} cannot be had ({error.strerror}): choose another with --port, or 0 for any that is "
            "free."
        ) from error
    return listening


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Server(uvicorn.Server):
    """Says its address as soon as it takes requests."""

    def __init__(self, config: uvicorn.Config, listening: socket.socket) -> None:
        super().__init__(config)
        self.listening = listening
        self.announce: Callable[[str], None] = lambda _: None

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until told to stop."""
        super().run(sockets or [self.listening])

    async def startup(self, sockets: Any = None) -> None:
        """Start to listen."""
        await super().startup(sockets)
        if self.started:
            gc.collect()
            gc.freeze()  # to look through all that was imported takes a tenth of a second, in which nobody is served
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self.announce(f"http://{f'[{host}]' if ':' in host else host}:{port}")

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """A signal is the usual end, and no failure; a second Ctrl-C does not wait for requests that hang."""
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True
