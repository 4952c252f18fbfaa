"""A catalogue that changes under load: a million documents are added, changed and removed while rankings are served.

The changes come from a separate process: in the same one, visitors would wait for that client, not for the service.
ZOOMRANK_CATALOGUE sets another number of documents.
"""

from __future__ import annotations

import argparse
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

import zoomrank as zr
from research.bench.measure import Row
from research.bench.service import RATE, Connection, Server, connected, full_speed, paced, pair, served
from zoomrank.client import Client
from zoomrank.documents import Collection, CollectionVersion
from zoomrank.types import Array

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


# Cost in clicks of rebuilding a tree: `python -m research.bench.catalogue`.
#
# Half of the documents of a collection of vectors were added after its tree was built. A learner has had 20,000
# visitors. Then it continues for 2,000 more: in the old tree, remapped to the rebuilt one, and as a new learner there.
# Visitors are the same for all three: each has a taste, and likes documents that are near it.

REBUILT_DOCUMENTS, DIMENSIONS, TOPICS, VISITORS = 600, 16, 30, 400


def world(seed: int) -> tuple[CollectionVersion, Array]:
    """Return a version whose second half was added to the tree of the first, and the tastes of visitors, by number."""
    rng = np.random.default_rng(seed)
    topics = rng.normal(size=(TOPICS, DIMENSIONS))
    vectors = topics[rng.integers(TOPICS, size=REBUILT_DOCUMENTS)] + 0.5 * rng.normal(
        size=(REBUILT_DOCUMENTS, DIMENSIONS)
    )
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    half = REBUILT_DOCUMENTS // 2
    first = CollectionVersion.first(Collection.from_vectors(vectors[:half], ids=np.arange(half)))
    added = [{"add": number, "vector": vectors[number].tolist()} for number in range(half, REBUILT_DOCUMENTS)]
    popular = rng.choice(TOPICS, size=VISITORS, p=np.arange(TOPICS, 0, -1) / (TOPICS * (TOPICS + 1) / 2))
    taste = topics[popular] + 0.4 * rng.normal(size=(VISITORS, DIMENSIONS))
    likeness = (taste / np.linalg.norm(taste, axis=1, keepdims=True)) @ vectors.T
    return first.changed(first.placed(added)), rng.random(likeness.shape) < 1 / (1 + np.exp(-20 * (likeness - 0.8)))


def users(version: CollectionVersion, liked: Array) -> zr.users.RelevanceTable:
    """Return the same visitors, for the tree of this version."""
    return zr.users.RelevanceTable(version.collection.tree, [np.flatnonzero(row).tolist() for row in liked])


def clicks(ranker: zr.Ranked, visitors: zr.users.RelevanceTable, visits: int, seed: int) -> int:
    """Return the number of clicks of the next visitors."""
    return int(zr.simulate(ranker, visitors, visits, seed=seed, windows=1).satisfied.sum())


def main() -> None:
    """Print the clicks of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=30)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first instance")
    parser.add_argument("--before", type=int, default=20_000)
    parser.add_argument("--after", type=int, default=2_000)
    asked = parser.parse_args()
    rows = []
    for seed in range(asked.first, asked.first + asked.instances):
        version, liked = world(seed)
        remade = version.remade(seed=seed)
        old, new = users(version, liked), users(remade, liked)
        ranker = zr.ZoomRank(version.collection.tree, slots=5, seed=seed)
        clicks(ranker, old, asked.before, seed)
        stayed = ranker.copied()
        ranker.move(remade.collection.tree, version.remap_to(remade))
        fresh = zr.ZoomRank(remade.collection.tree, slots=5, seed=seed)
        pairs = ((stayed, old), (ranker, new), (fresh, new))
        rows.append([clicks(each, meets, asked.after, seed + 1000) for each, meets in pairs])
    found = np.array(rows, float)
    for name, column in zip(
        ("not remapped", "remapped to the rebuilt tree", "new learner there"), found.T, strict=True
    ):
        error = column.std(ddof=1) / np.sqrt(len(column))
        print(f"{name:28} {column.mean():7.1f} clicks of {asked.after} visits, ± {error:.1f}")
    ratio = found[:, 1] / found[:, 0] - 1
    print(f"remapped against not remapped: {ratio.mean():+.2%} ± {ratio.std(ddof=1) / np.sqrt(len(ratio)):.2%}")


if __name__ == "__main__":
    main()
