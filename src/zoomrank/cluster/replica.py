"""`Replica`: one process of a service that has several, as Ray Serve starts it."""

from __future__ import annotations

import asyncio
import gc
import secrets
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import ray
from ray import serve

from zoomrank.cluster.peers import HttpPeers
from zoomrank.errors import ZoomrankError
from zoomrank.service.engine import Engine
from zoomrank.service.held import Held
from zoomrank.service.http.access import Keys
from zoomrank.service.http.app import make_app
from zoomrank.service.http.asgi import App, Receive, Send
from zoomrank.service.http.listening import Listener, address_of, listen, spoken
from zoomrank.service.http.passing import Passing
from zoomrank.service.http.peer_door import PEERS_KEPT, PeerDoor
from zoomrank.service.load import Load
from zoomrank.service.membership import Membership
from zoomrank.service.storage.shared_store import SharedStore

APP, DEPLOYMENT = "zoomrank", "Replica"  # as Ray Serve calls them
_LOOK_EVERY = 1.0  # seconds between two looks at the file of keys
_POLL = 0.01  # seconds


class Options(NamedTuple):
    """What all replicas are told."""

    store: str  # where PostgreSQL is
    folder: str  # for files without a name, on the machine of each
    memory: int  # bytes that learners may take
    largest_body: int
    origins: tuple[str, ...] = ()
    keys: str | None = None  # the file of keys, on the machine of each
    host: str = "127.0.0.1"  # where each takes requests directly, if there is
    door: int | None = None  # a port for that, which those on one machine take together
    between: str | None = None  # where each takes what others pass on; None: where Ray knows its machine


@serve.ingress()
class Replica:
    """An engine among others, and those who ask it."""

    async def __init__(self, options: Options) -> None:  # type: ignore[misc]  # as Ray Serve has it
        options = Options(*options)
        folder = Path(options.folder)
        folder.mkdir(parents=True, exist_ok=True)
        sys.setswitchinterval(0.0005)  # as one process alone does
        self._keys = Keys.read(Path(options.keys)) if options.keys else Keys({})
        store = await asyncio.to_thread(SharedStore, options.store)
        self._engine = Engine(store, folder, options.memory, time.time, time.monotonic, Held([]))
        await self._engine.start()
        load = Load(self._engine)
        token = secrets.token_hex(16)
        known: Any = ray.util.get_node_ip_address
        between = listen(options.between or known(), 0)
        outside = None if options.door is None else listen(options.host, options.door, together=True)
        self._membership = Membership(
            self._engine, store, address_of(between).removeprefix("http://"), token, load.says
        )
        self._peers = HttpPeers()
        self._app = make_app(
            self._engine,
            self._keys,
            options.largest_body,
            options.origins,
            self._around,
            load,
            lambda: self._membership.roster,
        )
        self._doors = [await _open(PeerDoor(self._passing, token), between)]
        self._stopped = False
        await self._membership.start()
        if outside is not None:
            self._doors.append(await _open(self._app, outside))
        self._looking = asyncio.create_task(self._look())
        gc.collect()
        gc.freeze()  # as one process alone does

    def _around(self, app: App) -> App:
        self._passing = Passing(app, self._membership, self._peers)
        return self._passing

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            self._keys.look_again()

    def __serve_build_asgi_app__(self) -> App:
        """What Ray Serve hands requests to."""
        return _without_lifespan(self._app)

    async def __del__(self) -> None:
        """Write everything down, and let others have it."""
        if getattr(self, "_stopped", True):
            return
        self._stopped = True
        if hasattr(self, "_looking"):
            self._looking.cancel()
        between, *others = self._doors
        await asyncio.gather(*(door.close() for door in others))  # who came here first
        with suppress(ZoomrankError):
            await self._membership.stop()
            await self._engine.stop()
        await between.close()
        await self._peers.close()


class _Door(NamedTuple):
    """Where requests come in."""

    listener: Listener
    listening: asyncio.Task[None]

    async def close(self) -> None:
        """Take no more requests; those that are here have some seconds."""
        self.listener.should_exit = True
        await self.listening


async def _open(app: App, taken: socket.socket) -> _Door:
    """Take requests, from now on; who asks hangs up first, if nobody uses a connection."""
    listener = Listener(spoken(app, timeout_keep_alive=PEERS_KEPT))
    listening = asyncio.create_task(listener.serve([taken]))
    while not listener.started:
        if listening.done():
            listening.result()
            raise ZoomrankError("A door of this replica was closed before it was open.")
        await asyncio.sleep(_POLL)
    return _Door(listener, listening)


def _without_lifespan(app: App) -> App:
    """An application that has begun already when its server says so."""

    async def whole(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        for said in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{said}.complete"})

    return whole
