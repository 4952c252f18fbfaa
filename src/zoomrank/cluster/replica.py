"""`Replica`: one process of a service that has several, as Ray Serve starts it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ray import serve
from ray.exceptions import RayError
from ray.serve.exceptions import RayServeException

from zoomrank.errors import ZoomrankError
from zoomrank.service.engine import Engine
from zoomrank.service.held import Held
from zoomrank.service.http.access import Keys
from zoomrank.service.http.app import make_app
from zoomrank.service.http.asgi import App, Receive, Send
from zoomrank.service.http.passing import Passed, Passing, Said, UnansweredError
from zoomrank.service.load import Load
from zoomrank.service.membership import Membership
from zoomrank.service.storage.leases import Replica as Other
from zoomrank.service.storage.shared_store import SharedStore

APP, DEPLOYMENT = "zoomrank", "Replica"  # as Ray Serve calls them
_LOOK_EVERY = 1.0  # seconds between two looks at the file of keys


class Options(NamedTuple):
    """What all replicas are told."""

    store: str  # where PostgreSQL is
    folder: str  # for files without a name, on the machine of each
    memory: int  # bytes that learners may take
    largest_body: int
    origins: tuple[str, ...] = ()
    keys: str | None = None  # the file of keys, on the machine of each


class RayPeers:
    """The other replicas, by way of Ray Serve."""

    def __init__(self) -> None:
        self._handle: Any = None

    async def ask(self, replica: Other, request: Passed, seconds: float | None) -> Said:
        """What another replica says to a request."""
        if self._handle is None:
            self._handle = serve.get_deployment_handle(DEPLOYMENT, APP)
        asked = self._handle.options(method_name="take", session_id=replica.name).remote(tuple(request))
        try:
            return Said(*await asyncio.wait_for(asked, seconds))
        except asyncio.TimeoutError as error:
            asked.cancel()
            raise UnansweredError from error
        except (RayError, RayServeException) as error:
            raise UnansweredError from error


@serve.ingress()
class Replica:
    """An engine among others, and those who ask it."""

    async def __init__(self, options: Options) -> None:  # type: ignore[misc]  # as Ray Serve has it
        options = Options(*options)
        folder = Path(options.folder)
        folder.mkdir(parents=True, exist_ok=True)
        self._keys = Keys.read(Path(options.keys)) if options.keys else Keys({})
        store = await asyncio.to_thread(SharedStore, options.store)
        self._engine = Engine(store, folder, options.memory, time.time, time.monotonic, Held([]))
        await self._engine.start()
        name = serve.get_replica_context().replica_id.unique_id
        load = Load(self._engine)
        self._membership = Membership(self._engine, store, name, load.says)
        self._app = make_app(
            self._engine,
            self._keys,
            options.largest_body,
            options.origins,
            self._around,
            load,
            lambda: self._membership.roster,
        )
        await self._membership.start()
        self._looking = asyncio.create_task(self._look())
        self._stopped = False

    def _around(self, app: App) -> App:
        self._passing = Passing(app, self._membership, RayPeers())
        return self._passing

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            self._keys.look_again()

    def __serve_build_asgi_app__(self) -> App:
        """What Ray Serve hands requests to."""
        return _without_lifespan(self._app)

    async def take(self, request: tuple[Any, ...]) -> tuple[Any, ...]:
        """Respond to what another replica passes on."""
        return tuple(await self._passing.taken(Passed(*request)))

    async def __del__(self) -> None:
        """Write everything down, and let others have it."""
        if getattr(self, "_stopped", True):
            return
        self._stopped = True
        self._looking.cancel()
        with suppress(ZoomrankError):
            await self._membership.stop()
            await self._engine.stop()


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
