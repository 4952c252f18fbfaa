"""`Membership`: this service among others that work in one store: it says that it is there, and takes its share.

A thread of its own says so every second, so that neither a long computation nor a slow write is taken for its end. Each
service takes partitions that nobody has until it has its share, and lets go of what it has beyond it: so they move only
when services come or go. If the server has not heard of this one for too long, its partitions are somebody else's: it
forgets all that it knows of them and joins anew, as if it had just been started.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from zoomrank.service.engine import Engine
from zoomrank.service.refusals import StorageError
from zoomrank.service.storage.leases import LAPSES_AFTER, EndedError, Replica, Roster
from zoomrank.service.storage.partitions import CHAIR, PARTITIONS, partition_in
from zoomrank.service.storage.shared_store import SharedStore

RENEW_EVERY = 1.0  # seconds
_AT_ONCE = 64  # partitions that are let go of
_LISTEN_EVERY = 15.0  # seconds between two looks at what similar queries of others have told
_TRY_AGAIN = 0.2  # seconds, when PostgreSQL cannot be reached
_LONGEST = 15.0  # seconds that are waited until others know
_MARGIN = 0.5  # seconds before others may take it for gone, from when on this service believes so itself

_log = logging.getLogger(__name__)

Say = Callable[[], Mapping[str, Any]]  # what a service says of itself
Tell = Callable[[Replica], Awaitable[bool]]  # has another catch up; says whether it has


class Membership:
    """A thread that renews, and what follows from what it sees."""

    def __init__(self, engine: Engine, store: SharedStore, name: str, token: str, say: Say = dict) -> None:
        self.engine = engine
        self._name, self._token = name, token  # where others reach this service, and how it knows them
        self.tell: Tell | None = None
        self.roster = Roster([], {}, PARTITIONS)
        self._store = store
        self._say = say
        self._renewed = 0.0  # by the steady clock
        self._loop = asyncio.get_running_loop()
        self._settling = asyncio.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="zoomrank-membership", daemon=True)
        self._listened = time.monotonic()
        self._looked, self._took = 0.0, 0.0  # when others' counts were last looked at, and how long that took
        engine.held.is_valid = self.is_valid
        engine.ledger.others_know = self.others_know

    async def start(self) -> None:
        """Join; partitions come when the thread finds some."""
        await asyncio.to_thread(self._store.join, self._name, self._token)
        self._renewed = time.monotonic()
        self._thread.start()

    async def stop(self) -> None:
        """Write everything down and leave; the engine goes on for those who wait."""
        self._stopped.set()
        await asyncio.to_thread(self._thread.join)
        with contextlib.suppress(StorageError):
            async with self._settling:
                await self.engine.give_up(self.engine.held.partitions)
        await asyncio.to_thread(self._store.leases.leave)

    @property
    def number(self) -> int:
        """Of this service, among those that are there."""
        return self._store.number

    def is_valid(self) -> bool:
        """Whether nobody else can have taken this service for gone."""
        return self.silent < LAPSES_AFTER - _MARGIN

    @property
    def silent(self) -> float:
        """Seconds since PostgreSQL last heard of this service."""
        return time.monotonic() - self._renewed

    @property
    def share(self) -> int:
        """How many partitions this service should have."""
        return -(-PARTITIONS // max(1, len(self.roster.replicas)))

    # In the thread.

    def _go_on(self) -> None:
        while not self._stopped.is_set():
            began = time.monotonic()
            try:
                self.roster = self._store.leases.renew(self._say())
                self._renewed = began
                self._in_the_loop(self._settle)
                self._store.leases.wait(RENEW_EVERY)
            except EndedError:
                _log.warning("Another replica has taken this one for gone: it joins anew.")
                with contextlib.suppress(StorageError):
                    self._in_the_loop(self._join_anew, wait=True)
            except StorageError:
                self._stopped.wait(_TRY_AGAIN)
            except Exception:  # noqa: BLE001  (whatever it is, this service would be taken for gone)
                _log.exception("A renewal was broken off.")
                self._stopped.wait(_TRY_AGAIN)

    def _in_the_loop(self, work: Callable[[], Awaitable[None]], wait: bool = False) -> None:
        async def do() -> None:
            try:
                await work()
            except StorageError as error:
                _log.warning("%s", error)
            except Exception:  # noqa: BLE001  (whatever it is, there will be another turn)
                _log.exception("A turn of the membership was broken off.")

        try:
            done = asyncio.run_coroutine_threadsafe(do(), self._loop)
        except RuntimeError:  # the loop is closed
            self._stopped.set()
            return
        if wait:
            done.result()

    # In the loop.

    async def _join_anew(self) -> None:
        async with self._settling:
            await self.engine.give_up(range(PARTITIONS), write=False)  # also what is here by mistake
            await asyncio.to_thread(self._store.join, self._name, self._token)
            self._renewed = time.monotonic()

    async def _settle(self) -> None:
        """Have what there is, and as many partitions as are this service's share."""
        if self._settling.locked() or self._stopped.is_set():
            return
        async with self._settling:
            self.engine.journal.go_on_after(self.roster.last)  # so that places of all go with time, nearly
            await self.engine.catching_up()
            await self._let_stray_go()
            mine = len(self.engine.held)
            if mine > self.share:
                await self._let_go(mine - self.share)
            elif self.roster.free and mine < self.share:
                await self._take(self.share - mine)
            await self._listen()

    async def _let_go(self, count: int) -> None:
        """Let go of some; never of the chair, which may be in the middle of something."""
        some = sorted(self.engine.held.partitions - {CHAIR}, reverse=True)[: min(count, _AT_ONCE)]
        await self.engine.give_up(some)
        await asyncio.to_thread(self._store.let_go, some)

    async def _let_stray_go(self) -> None:
        """Let go of what is this service's by the store alone, which was away when it let go of that."""
        owned = {partition for partition, owner in self.roster.owners.items() if owner == self._store.number}
        stray = owned - self.engine.held.partitions
        if stray:
            await self.engine.give_up(stray)
            await asyncio.to_thread(self._store.let_go, stray)

    async def _take(self, count: int) -> None:
        taken = await asyncio.to_thread(self._store.leases.take, count)
        if not taken:
            return
        self._store.epochs.update(taken)
        try:
            await self.engine.take(taken.keys())
        except BaseException:  # somebody else may be luckier
            await asyncio.to_thread(self._store.let_go, list(taken))
            raise
        _log.info("This replica has %d more partitions.", len(taken))

    async def _listen(self) -> None:
        """Hear what similar queries have told that others look after."""
        if time.monotonic() - self._listened < _LISTEN_EVERY:
            return
        for served in list(self.engine.collections.by_id.values()):
            if served.neighbours is not None:
                known = served.neighbours.told
                learners, reports = await asyncio.to_thread(self._store.news, served.id, known)
                others = (one for one in reports if partition_in(one.learner) not in self.engine.held)
                served.neighbours.hear(learners, others)
        self._listened = time.monotonic()

    async def look_again(self) -> None:
        """Have the sums of all that is counted, everywhere; not oftener than that is cheap."""
        began = time.monotonic()
        if began - self._looked < max(0.2, 20 * self._took):
            return
        self._looked = began
        await self.engine.ledger.look_again()
        self._took = time.monotonic() - began

    async def others_know(self) -> None:
        """Wait until all others have caught up with what this one has done, or are there no more."""
        waiting = {replica.number for replica in self.roster.replicas if replica.number != self._store.number}
        until = time.monotonic() + _LONGEST  # one that cannot catch up holds nobody up for ever
        while waiting and self.tell is not None and time.monotonic() < until:
            there = [replica for replica in self.roster.replicas if replica.number in waiting]
            told = await asyncio.gather(*(self.tell(replica) for replica in there), return_exceptions=True)
            done = {replica.number for replica, known in zip(there, told, strict=True) if known is True}
            waiting = {replica.number for replica in there} - done
            if waiting:
                await asyncio.sleep(_TRY_AGAIN)
