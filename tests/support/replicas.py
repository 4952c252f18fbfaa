"""Several replicas of a service in one process, which pass requests on to each other without a network."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.support.services import Place
from zoomrank.cluster.forwarding import Forwarding
from zoomrank.cluster.leases import ClusterMember
from zoomrank.cluster.membership import ClusterReplicas, Membership
from zoomrank.cluster.ownership import OwnsByLeases
from zoomrank.cluster.peer_server import ForwardedRequest, ForwardedResponse, UnansweredError
from zoomrank.cluster.replica_sync import ReplicaSync
from zoomrank.cluster.shared_database import SharedDatabase
from zoomrank.service.engine import Engine
from zoomrank.service.http.access import Access, AllowedOrigins, Keys, LoadMeter
from zoomrank.service.http.app import LARGEST_BODY, make_routes
from zoomrank.service.storage.ownership import PARTITIONS
from zoomrank.service.storage.store import Store

DOOR = 8001  # where the replicas would take requests, if there were a network


@dataclass
class Member:
    """A replica."""

    name: str
    engine: Engine
    ownership: OwnsByLeases
    membership: Membership
    client: httpx.AsyncClient
    forwarding: Forwarding

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

    async def ask(self, replica: ClusterMember, request: ForwardedRequest, seconds: float | None) -> ForwardedResponse:
        if replica.name in self.lost:
            await asyncio.Event().wait()
        member = self.members.get(replica.name)
        if member is None:
            raise UnansweredError
        self.passed += 1
        try:
            return await asyncio.wait_for(member.forwarding.respond_here(request), seconds)
        except asyncio.TimeoutError as error:
            raise UnansweredError from error

    async def join(self, name: str) -> Member:
        assert self.place.address is not None
        database = await asyncio.to_thread(SharedDatabase, self.place.address)
        ownership = OwnsByLeases(self)
        engine = Engine(Store(database), self.place.folder, steady=time.monotonic, ownership=ownership)
        self.place.folder.mkdir(exist_ok=True, parents=True)
        await engine.start()
        sync, load, keys = ReplicaSync(engine, ownership), LoadMeter(engine), Keys({})
        membership = Membership(database, ownership, sync, name, "", load.says)
        routes = make_routes(engine, keys, ClusterReplicas(ownership, load))
        forwarding = Forwarding(routes, engine, ownership, sync, self, DOOR)
        app: Any = Access(forwarding, keys, load, LARGEST_BODY, AllowedOrigins(()))
        client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost", timeout=60)
        await membership.start()
        self.members[name] = Member(name, engine, ownership, membership, client, forwarding)
        return self.members[name]

    async def settled(self) -> None:
        """Wait until each has its share, and nothing is nobody's."""
        for _ in range(600):
            counts = [len(member.ownership.partitions) for member in self.members.values()]
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
