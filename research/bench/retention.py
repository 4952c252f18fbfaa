"""A year of a service in minutes: the size of its store with the whole event log, and with that of 30 days."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np

from research.bench.measure import Row
from zoomrank.documents import Collection
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.catalogue.settings import Settings
from zoomrank.service.engine import Engine
from zoomrank.service.storage.sqlite_store import NAME, SQLiteDatabase
from zoomrank.service.storage.store import Store
from zoomrank.service.storage.store_snapshot import SQLiteSnapshot
from zoomrank.service.verification import verify

DAYS, A_DAY, AT_ONCE = 365, 300, 25  # visitors
DOCUMENTS, QUERIES = 1_000, 100
KEPT = 30  # days
_START = 1_700_000_000.0


class _Clock:
    """Simulated clock."""

    time = _START

    def __call__(self) -> float:
        return self.time


def retention() -> Iterator[Row]:
    """Measure two years, side by side."""
    for kept in (None, KEPT):
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            sizes, events = asyncio.run(_year(Path(folder), kept))
            took = time.perf_counter() - began
            with closing(SQLiteSnapshot(Path(folder) / NAME)) as view:
                found = len(verify(view).findings)
            words = "all of the log" if kept is None else f"the log of {kept} days"
            quarters = ", ".join(f"{size / 2**20:.1f}" for size in sizes)
            yield Row(f"MB after each quarter of a year with {words} (SQLite, {took:.0f} s)", quarters, "bounded")
            yield Row("its events at the end; what `verify` finds", f"{events:,}; {found}", "0")


async def _year(folder: Path, kept: int | None) -> tuple[list[int], int]:
    """Return the bytes of the store after each quarter, and the number of events at the end."""
    clock, chance = _Clock(), np.random.default_rng(1)
    store = Store(SQLiteDatabase(folder))
    engine = Engine(store, folder, now=clock)
    await engine.start()
    engine._stop_housekeeping()
    paths = {f"d{number}": ("All", f"{number % 10}", f"{number % 100}") for number in range(DOCUMENTS)}
    settings = Settings(keep_events=None if kept is None else kept * 86_400.0)
    shop = await engine.collections.add("shop", lambda: Collection.from_taxonomy(paths), settings)
    sizes = []
    for day in range(1, DAYS + 1):
        for _ in range(A_DAY // AT_ONCE):
            clock.time += 86_400 / (A_DAY // AT_ONCE)
            await asyncio.gather(*(_visit(engine, shop, chance) for _ in range(AT_ONCE)))
            await engine.housekeep()
            store.database.tidy()
        if day % (DAYS // 4) == 0:
            sizes.append(sum(file.stat().st_size for file in folder.glob(f"{NAME}*")))
    events = int(store.database.query("SELECT COUNT(*) FROM events")[0][0])
    with contextlib.suppress(asyncio.CancelledError):
        await engine.stop()
    return sizes, events


async def _visit(engine: Engine, shop: ServedCollection, chance: np.random.Generator) -> None:
    """Simulate a visit: few queries are frequent; half of the visitors click."""
    query = f"query {int(chance.zipf(1.3)) % QUERIES}"
    name, documents = await engine.rank(shop, query)
    if chance.random() < 0.9:
        clicked = documents[int(chance.integers(len(documents)))]["id"] if chance.random() < 0.5 else None
        await engine.feedback(name, clicked)
