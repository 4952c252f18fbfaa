"""`Membership`: this replica among others of one store: it renews its lease, and takes its share of partitions.

A thread of its own renews every second, so that neither a long computation nor a slow write lets the lease expire. Each
replica takes free partitions until it has its share, and gives up those beyond it: so they move only when replicas come
or go. A replica whose lease has expired forgets all that it knows of its partitions and joins again, as if it had just
been started.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from zoomrank.cluster.leases import EndedError
from zoomrank.cluster.ownership import OwnsByLeases
from zoomrank.cluster.replica_sync import ReplicaSync
from zoomrank.cluster.shared_database import SharedDatabase
from zoomrank.service.errors import StorageError
from zoomrank.service.http.access import LoadMeter
from zoomrank.service.http.metrics import ReplicaStatus
from zoomrank.service.storage.ownership import COORDINATOR, PARTITIONS

RENEW_EVERY = 1.0  # seconds
_AT_ONCE = 64  # partitions that are given up
_TRY_AGAIN = 0.2  # seconds, when PostgreSQL cannot be reached

_log = logging.getLogger(__name__)

ReportLoad = Callable[[], Mapping[str, Any]]


class Membership:
    """A thread that renews the lease, and the turns of the event loop that follow from what it finds."""

    def __init__(
        self,
        database: SharedDatabase,
        ownership: OwnsByLeases,
        sync: ReplicaSync,
        name: str,
        token: str,
        load: ReportLoad = dict,
    ) -> None:
        self.database = database
        self._ownership = ownership
        self._sync = sync
        self._name, self._token = name, token  # the address for other replicas, and the secret of their requests
        self._load = load
        self._loop = asyncio.get_running_loop()
        self._settling = asyncio.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._renew_on, name="zoomrank-membership", daemon=True)

    async def start(self) -> None:
        """Join; the thread takes partitions when it finds some."""
        await self._join()
        self._thread.start()

    async def stop(self) -> None:
        """Write everything down and leave; the engine goes on for requests that wait."""
        self._stopped.set()
        await asyncio.to_thread(self._thread.join)
        with contextlib.suppress(StorageError):
            async with self._settling:
                await self._sync.release_partitions(self._ownership.partitions)
        await asyncio.to_thread(self.database.leases.leave)

    async def _join(self) -> None:
        self._ownership.join(await asyncio.to_thread(self.database.join, self._name, self._token))

    # In the thread.

    def _renew_on(self) -> None:
        while not self._stopped.is_set():
            began = time.monotonic()
            try:
                self._ownership.renew(self.database.leases.renew(self._load()), began)
                self._in_the_loop(self._settle)
                self.database.leases.wait(RENEW_EVERY)
            except EndedError:
                _log.warning("The lease of this replica has expired: it joins again.")
                with contextlib.suppress(StorageError):
                    self._in_the_loop(self._join_again, wait=True)
            except StorageError:
                self._stopped.wait(_TRY_AGAIN)
            except Exception:  # noqa: BLE001  (whatever it is, the lease would expire)
                _log.exception("A renewal of the lease failed.")
                self._stopped.wait(_TRY_AGAIN)

    def _in_the_loop(self, work: Callable[[], Awaitable[None]], wait: bool = False) -> None:
        async def do() -> None:
            try:
                await work()
            except StorageError as error:
                _log.warning("%s", error)
            except Exception:  # noqa: BLE001  (whatever it is, there will be another turn)
                _log.exception("A turn of the membership failed.")

        try:
            done = asyncio.run_coroutine_threadsafe(do(), self._loop)
        except RuntimeError:  # the loop is closed
            self._stopped.set()
            return
        if wait:
            done.result()

    # In the loop.

    async def _join_again(self) -> None:
        async with self._settling:
            # Also learners of partitions that it does not own.
            await self._sync.release_partitions(range(PARTITIONS), write=False)
            await self._join()

    async def _settle(self) -> None:
        """Catch up with other replicas, and own this replica's share of partitions."""
        if self._settling.locked() or self._stopped.is_set():
            return
        async with self._settling:
            self._sync.follow_log(self._ownership.members.last)
            await self._sync.catch_up()
            await self._give_up_stray()
            owned, share = len(self._ownership.partitions), self._ownership.share
            if owned > share:
                await self._give_up(owned - share)
            elif self._ownership.members.free and owned < share:
                await self._take(share - owned)
            await self._sync.read_reports()

    async def _give_up(self, count: int) -> None:
        """Give up some partitions; never the coordinator's, which may be in the middle of a change."""
        await self._release(sorted(self._ownership.partitions - {COORDINATOR}, reverse=True)[: min(count, _AT_ONCE)])

    async def _give_up_stray(self) -> None:
        """Give up leases that only the store knows of: it could not be reached when this replica gave them up."""
        owners, number = self._ownership.members.owners, self._ownership.number
        stray = {partition for partition, owner in owners.items() if owner == number} - self._ownership.partitions
        if stray:
            await self._release(stray)

    async def _release(self, partitions: Collection[int]) -> None:
        await self._sync.release_partitions(partitions)
        await asyncio.to_thread(self.database.release_partitions, partitions)

    async def _take(self, count: int) -> None:
        taken = await asyncio.to_thread(self.database.leases.take, count)
        if not taken:
            return
        self.database.epochs.update(taken)
        try:
            await self._sync.take(taken.keys())
        except BaseException:  # another replica may succeed
            await asyncio.to_thread(self.database.release_partitions, list(taken))
            raise
        _log.info("This replica owns %d more partitions.", len(taken))


class ClusterReplicas:
    """The replicas of a cluster, for `GET /v1/replicas` and metrics."""

    are_several = True

    def __init__(self, ownership: OwnsByLeases, load: LoadMeter) -> None:
        self._ownership = ownership
        self._load = load

    def status(self) -> list[ReplicaStatus]:
        """Return the status of each replica; that of this one is current even if it cannot write."""
        members = self._ownership.members
        counts, coordinator = Counter(members.owners.values()), members.owners.get(COORDINATOR)
        since = time.monotonic() - members.looked
        return [
            ReplicaStatus(
                replica.number,
                replica.name,
                replica.joined,
                replica.silent + since,
                self._load.says() if replica.number == self._ownership.number else replica.said,
                counts[replica.number],
                replica.number == coordinator,
            )
            for replica in members.replicas
        ]

    def free(self) -> int:
        """Return how many partitions have no owner."""
        return self._ownership.members.free
