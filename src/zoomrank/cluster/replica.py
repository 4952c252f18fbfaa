"""`ServeReplica`: one process of a cluster, as Ray Serve starts it."""

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

from zoomrank.cluster.forwarding import Forwarding
from zoomrank.cluster.membership import ClusterReplicas, Membership
from zoomrank.cluster.ownership import OwnsByLeases
from zoomrank.cluster.peer_server import PEERS_KEPT, HttpPeers, PeerServer
from zoomrank.cluster.replica_sync import ReplicaSync
from zoomrank.cluster.shared_database import SharedDatabase
from zoomrank.errors import ZoomrankError
from zoomrank.service.engine import Engine
from zoomrank.service.http.access import Access, AllowedOrigins, Keys, LoadMeter
from zoomrank.service.http.app import make_routes
from zoomrank.service.http.fast_path import App, Receive, Send
from zoomrank.service.http.listener import BackgroundServer, listen, url_of, uvicorn_config
from zoomrank.service.storage.store import Store

APP, DEPLOYMENT = "zoomrank", "Replica"  # as Ray Serve calls them
_LOOK_EVERY = 1.0  # seconds between two checks of the file of keys
_POLL = 0.01  # seconds


class Options(NamedTuple):
    """Options of all replicas."""

    store: str  # address of PostgreSQL
    folder: str  # for temporary files, on the machine of each
    memory: int  # bytes that learners may take
    largest_body: int
    origins: tuple[str, ...] = ()
    keys: str | None = None  # the file of keys, on the machine of each
    host: str = "127.0.0.1"  # address at which each takes requests directly, if there is
    door: int | None = None  # a port for that, which those on one machine share
    between: str | None = None  # address for requests of other replicas; None: as Ray knows its machine


@serve.ingress()
class ServeReplica:
    """An engine in a cluster, and the listeners through which requests reach it."""

    async def __init__(self, options: Options) -> None:  # type: ignore[misc]  # as Ray Serve has it
        options = Options(*options)
        folder = Path(options.folder)
        folder.mkdir(parents=True, exist_ok=True)
        sys.setswitchinterval(0.0005)  # as one process alone does
        self._keys = Keys.read(Path(options.keys)) if options.keys else Keys({})
        self._peers = HttpPeers()
        ownership = OwnsByLeases(self._peers)
        database = await asyncio.to_thread(SharedDatabase, options.store)
        self._engine = engine = Engine(Store(database), folder, options.memory, time.time, time.monotonic, ownership)
        await engine.start()
        sync, load, token = ReplicaSync(engine, ownership), LoadMeter(engine), secrets.token_hex(16)
        known: Any = ray.util.get_node_ip_address
        between = listen(options.between or known(), 0)
        outside = None if options.door is None else listen(options.host, options.door, together=True)
        address = url_of(between).removeprefix("http://")
        self._membership = Membership(database, ownership, sync, address, token, load.says)
        routes = make_routes(engine, self._keys, ClusterReplicas(ownership, load))
        forwarding = Forwarding(routes, engine, ownership, sync, self._peers, options.door)
        self._app = Access(forwarding, self._keys, load, options.largest_body, AllowedOrigins(options.origins))
        self._listening = [await _open(PeerServer(forwarding.respond_here, token), between)]
        self._stopped = False
        await self._membership.start()
        if outside is not None:
            self._listening.append(await _open(self._app, outside))
        self._looking = asyncio.create_task(self._look())
        gc.collect()
        gc.freeze()  # as one process alone does

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            self._keys.look_again()

    def __serve_build_asgi_app__(self) -> App:
        """Return the application that Ray Serve hands requests to."""
        return _without_lifespan(self._app)

    async def __del__(self) -> None:
        """Write all learners down, and give up the partitions."""
        if getattr(self, "_stopped", True):
            return
        self._stopped = True
        if hasattr(self, "_looking"):
            self._looking.cancel()
        between, *others = self._listening
        await asyncio.gather(*(listening.close() for listening in others))  # requests of clients end first
        with suppress(ZoomrankError):
            await self._membership.stop()
            await self._engine.stop()
        await between.close()
        await self._peers.close()


class _Listening(NamedTuple):
    """A listener that takes requests, and its task."""

    listener: BackgroundServer
    task: asyncio.Task[None]

    async def close(self) -> None:
        """Take no more requests; those that are here have some seconds."""
        self.listener.should_exit = True
        await self.task


async def _open(app: App, taken: socket.socket) -> _Listening:
    """Take requests from now on; the client of an idle connection hangs up first."""
    listener = BackgroundServer(uvicorn_config(app, timeout_keep_alive=PEERS_KEPT))
    task = asyncio.create_task(listener.serve([taken]))
    while not listener.started:
        if task.done():
            task.result()
            raise ZoomrankError("A listener of this replica was closed before it was open.")
        await asyncio.sleep(_POLL)
    return _Listening(listener, task)


def _without_lifespan(app: App) -> App:
    """Return an application that ignores the events of its server's start and end."""

    async def whole(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        for said in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{said}.complete"})

    return whole
