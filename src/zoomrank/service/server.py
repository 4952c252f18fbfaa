"""`Server`: the service in this process, until it is told to stop."""

from __future__ import annotations

import gc
import ipaddress
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from zoomrank.errors import ParameterError, ZoomrankError
from zoomrank.service.engine import Engine
from zoomrank.service.http.access import Keys, check_origins
from zoomrank.service.http.app import LARGEST_BODY, make_app
from zoomrank.service.http.listener import TIME_LIMITS, TimeLimits, listen, url_of, uvicorn_config
from zoomrank.service.storage.store_snapshot import open_store

_log = logging.getLogger(__name__)
_AT_ONCE = 0.5  # seconds that it may take to end when it is told to twice
LONGEST_STOP = 10.0  # seconds after which a stop ends, whatever hangs
_LOOK_EVERY = 10  # ticks, of which there are ten a second


def make_server(
    data: Path,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    store: str | None = None,
    keys: Keys | None = None,
    memory: int = 2**30,
    largest_body: int = LARGEST_BODY,
    limits: TimeLimits = TIME_LIMITS,
    origins: Sequence[str] = (),
    now: Callable[[], float] = time.time,
    announce: Callable[[str], None] = lambda _: None,
    **options: Any,
) -> Server:
    """Return a server that is ready to run; refused if other machines could reach it without a key.

    It calls `announce` with its address as soon as it takes requests.
    """
    check_reachable(host, bool(keys))
    check_origins(origins)
    listening = listen(host, port)
    sys.setswitchinterval(0.0005)  # seconds that the thread that writes waits for its turn; the default is 0.005
    try:
        engine = Engine(open_store(data, store), data, memory, now, steady=time.monotonic)
    except BaseException:
        listening.close()
        raise
    keys = keys or Keys({})
    config = uvicorn_config(make_app(engine, keys, largest_body, origins), limits, host=host, port=port, **options)
    return Server(config, listening, engine, keys, announce)


def check_reachable(host: str, has_keys: bool) -> None:
    """Refuse to serve without keys where other machines could send requests."""
    if not has_keys and not is_loopback(host):
        raise ParameterError(
            f"{host} can be reached from outside, so keys are needed: write a role and a key on each line of a file "
            "(“admin …”, “rank …”, “read …”) and pass it with --keys FILE."
        )


def is_loopback(host: str) -> bool:
    """Return whether an address is this machine's own."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Server(uvicorn.Server):
    """An engine and the server of its application."""

    def __init__(
        self,
        config: uvicorn.Config,
        listening: socket.socket,
        engine: Engine,
        keys: Keys,
        announce: Callable[[str], None],
    ) -> None:
        super().__init__(config)
        self.listening = listening
        self.announce = announce
        self._engine = engine
        self._keys = keys
        self._hung_up = False  # True after a SIGHUP
        self._refused: ZoomrankError | None = None

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until told to stop."""
        if self._keys and hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGHUP, self._hang_up)
        super().run(sockets or [self.listening])
        if self._refused is not None:
            raise self._refused

    async def startup(self, sockets: Any = None) -> None:
        """Start the engine, and listen."""
        try:
            await self._engine.start()
        except ZoomrankError as error:
            self._refused, self.should_exit = error, True
            self.listening.close()
            self._engine.store.close()
            return
        await super().startup(sockets)
        gc.collect()
        gc.freeze()  # a collection of all that was imported takes a tenth of a second, in which no request is served
        self.announce(url_of(self.listening))

    async def on_tick(self, counter: int) -> bool:
        """Read the file of keys again from time to time."""
        if self._hung_up or counter % _LOOK_EVERY == 0:
            self._keys.look_again(anyway=self._hung_up)
            self._hung_up = False
        return await super().on_tick(counter)

    async def shutdown(self, sockets: Any = None) -> None:
        """Let requests end, some seconds at most; then write all learners down."""
        self._engine.collections.stop()  # requests for new collections end at once
        await super().shutdown(sockets)
        if not self.force_exit:
            await self._engine.stop()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Stop on a signal, which is no failure; on a second one, without waiting."""
        self.force_exit = self.should_exit
        self.should_exit = True
        threading.Thread(target=_end, args=[_AT_ONCE if self.force_exit else LONGEST_STOP], daemon=True).start()

    def _hang_up(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self._hung_up = True


def _end(after: float) -> None:
    """End the process, whatever else it does: the log has everything that was acknowledged."""
    time.sleep(after)
    if after > _AT_ONCE:
        _log.error("Stopping took more than %g seconds, so the process ends; what was acknowledged is stored.", after)
    os._exit(1)
