"""Several replicas of a service in one process, which pass requests on to each other without a network."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.support.services import Place
from zoomrank.service.engine import Engine
from zoomrank.service.held import Held
from zoomrank.service.http.app import make_app
from zoomrank.service.http.asgi import App
from zoomrank.service.http.passing import Passed, Passing, Said, UnansweredError
from zoomrank.service.load import Load
from zoomrank.service.membership import Membership
from zoomrank.service.storage.leases import Replica
from zoomrank.service.storage.partitions import PARTITIONS
from zoomrank.service.storage.shared_store import SharedStore


@dataclass
class Member:
    """A replica."""

    name: str
    engine: Engine
    membership: Membership
    client: httpx.AsyncClient
    passing: Passing

    async def crash(self) -> None:
        """End as a killed process does: nothing more is written, and nobody is told."""
        self.membership._stopped.set()
        await asyncio.to_thread(self.membership._thread.join)
        await self.engine.abandon()
        await self.client.aclose()

    async def stop(self) -> None:
        """End as a service does that is told to stop."""
        await self.membership.stop()
        await self.engine.stop()
        await self.client.aclose()


@dataclass
class Company:
    """Replicas that know each other."""

    place: Place
    members: dict[str, Member] = field(default_factory=dict)
    passed: int = 0  # requests
    lost: set[str] = field(default_factory=set)  # names of those that never answer again

    async def ask(self, replica: Replica, request: Passed, seconds: float | None) -> Said:
        if replica.name in self.lost:
            await asyncio.Event().wait()
        member = self.members.get(replica.name)
        if member is None:
            raise UnansweredError
        self.passed += 1
        try:
            return await asyncio.wait_for(member.passing.taken(request), seconds)
        except asyncio.TimeoutError as error:
            raise UnansweredError from error

    async def join(self, name: str) -> Member:
        assert self.place.address is not None
        store = await asyncio.to_thread(SharedStore, self.place.address)
        engine = Engine(store, self.place.folder, held=Held([]), steady=time.monotonic)
        self.place.folder.mkdir(exist_ok=True, parents=True)
        await engine.start()
        load = Load(engine)
        membership = Membership(engine, store, name, "", load.says)
        wrapped: list[Passing] = []

        def around(app: App) -> App:
            wrapped.append(Passing(app, membership, self))
            return wrapped[0]

        app: Any = make_app(engine, around=around, load=load, roster=lambda: membership.roster)
        client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost", timeout=60)
        await membership.start()
        self.members[name] = Member(name, engine, membership, client, wrapped[0])
        return self.members[name]

    async def settled(self) -> None:
        """Wait until each has its share, and nothing is nobody's."""
        for _ in range(600):
            counts = [len(member.engine.held) for member in self.members.values()]
            if sum(counts) == PARTITIONS and max(counts) - min(counts) <= len(counts):
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"nobody has taken some partitions: {counts}")


@contextlib.asynccontextmanager
async def company(place: Place, *names: str) -> AsyncIterator[Company]:
    """Some replicas, which stop at the end."""
    together = Company(place)
    try:
        for name in names:
            await together.join(name)
        await together.settled()
        yield together
    finally:
        for member in list(together.members.values()):
            await member.stop()
