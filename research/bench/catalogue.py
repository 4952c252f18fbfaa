"""A catalogue that changes under load: a million documents are added, changed and removed while rankings are served.

The changes come from a separate process: in the same one, visitors would wait for that client, not for the service.
ZOOMRANK_CATALOGUE sets another number of documents.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import uvloop

from research.bench.measure import Row
from research.bench.service import RATE, Connection, Server, connected, full_speed, paced, pair, served
from zoomrank.client import Client
from zoomrank.documents import Collection

DOCUMENTS = int(os.environ.get("ZOOMRANK_CATALOGUE", 1_000_000))
SOME = DOCUMENTS // 10
ONE_BY_ONE = 50


def _document(number: int) -> dict[str, Any]:
    shelf = number % 20_000
    path = ["All", f"Department {shelf % 40}", f"Aisle {shelf % 800}", f"Shelf {shelf}"]
    return {"id": 10_000_000 + number, "title": f"Product {number}", "path": path}


class _Visitors(threading.Thread):
    """Request rankings at a steady rate until stopped, and record latencies and memory."""

    def __init__(self, server: Server) -> None:
        super().__init__(daemon=True)
        self._server = server
        self.times: list[float] = []
        self.memory = 0.0
        self.stopping = False

    def run(self) -> None:
        uvloop.run(self._go_on())

    async def _go_on(self) -> None:
        async with connected(self._server.port) as connections:
            while not self.stopping:
                self.times += (await paced(connections, pair, RATE, 0.5))[::2]
                self.memory = max(self.memory, self._server.memory)


@contextlib.contextmanager
def _visited(server: Server) -> Iterator[_Visitors]:
    visitors = _Visitors(server)
    visitors.start()
    try:
        yield visitors
    finally:
        visitors.stopping = True
        visitors.join()


def _said(visitors: _Visitors, seconds: float) -> str:
    middle, slow = np.percentile(visitors.times, [50, 99]) * 1e3
    return (
        f"{seconds:.0f} s; a ranking meanwhile: median {middle:.1f} ms, 99 of 100 within {slow:.1f} ms, "
        f"all within {1e3 * max(visitors.times):,.0f}; memory up to {visitors.memory:,.0f} MB"
    )


def catalogue() -> Iterator[Row]:
    """Stream documents in, change and remove them; request rankings of the same collection meanwhile."""

    async def warm(port: int) -> None:
        connections = [await Connection.open(port) for _ in range(8)]
        await full_speed(connections, pair, 2.0)

    first = [_document(-1 - number) for number in range(10_000)]
    shop = Collection.from_taxonomy({one["id"]: one["path"] for one in first})
    with served(shop) as server, ProcessPoolExecutor(1, get_context("spawn")) as owner:
        uvloop.run(warm(server.port))
        owner.submit(_document, 0).result()  # so that the collection exists
        with _visited(server) as visitors:
            time.sleep(6)
        yield Row(f"10,000 documents, {RATE} pairs a second", _said(visitors, 6))
        steps: list[tuple[str, Callable[[int], None]]] = [
            (f"{ONE_BY_ONE} documents added, one by one", _add_some),
            (f"{DOCUMENTS:,} documents streamed in", _stream_in),
            (f"{SOME:,} of them changed", _change),
            (f"{SOME:,} of them removed", _remove),
            (f"{ONE_BY_ONE // 5} more removed, one by one", _remove_some),
        ]
        for what, work in steps:
            began = time.perf_counter()
            with _visited(server) as visitors:
                owner.submit(work, server.port).result()
            yield Row(what, _said(visitors, time.perf_counter() - began))


def _client(port: int) -> Client:
    return Client(f"http://127.0.0.1:{port}", timeout=600)


def _add_some(port: int) -> None:
    with _client(port) as client:
        for number in range(ONE_BY_ONE):
            client.add_documents("bench", [_document(DOCUMENTS + number)])


def _stream_in(port: int) -> None:
    with _client(port) as client:
        client.add_documents("bench", (_document(number) for number in range(DOCUMENTS)))


def _change(port: int) -> None:
    with _client(port) as client:
        changed = ({"change": _document(10 * number)["id"], "title": "Another"} for number in range(SOME))
        client.change_documents("bench", changed)


def _remove(port: int) -> None:
    with _client(port) as client:
        client.change_documents("bench", ({"remove": _document(10 * number)["id"]} for number in range(SOME)))


def _remove_some(port: int) -> None:
    with _client(port) as client:
        for number in range(ONE_BY_ONE // 5):
            client.remove_document("bench", _document(10 * number + 1)["id"])
