"""The service under load, on loopback: one server process, one process of visitors."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import uvloop
from scipy import stats

from research.bench.measure import Row
from zoomrank.documents import Collection
from zoomrank.wire import MOST_RANKINGS

CONNECTIONS = 64
QUERIES = 200
SECONDS = 3.0
ROUNDS = 7
TURNS, TURN = 50, 0.8  # of an experiment; seconds: the shorter, the more similar is the noise of two neighbours
RATE = 200  # pairs a second, while a large collection is built
LARGE = 400_000  # documents


class Connection:
    """One kept-alive connection: just enough of HTTP to send one request after another."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> Connection:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, method: str, path: str, body: bytes = b"") -> bytes:
        kind = "Content-Type: application/json\r\n"
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{kind}Content-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        response = await self._reader.readuntil(b"\r\n\r\n")
        length = int(response.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        content = await self._reader.readexactly(length)
        if response[9:10] != b"2":
            raise RuntimeError(f"{method} {path}: {response[:12]!r} {content!r}")
        return content

    def close(self) -> None:
        self._writer.close()


Times = tuple[float, float]  # the median and the 99th percentile, in ms
Visit = Callable[[Connection, int, list[float] | None], Awaitable[None]]


class Server:
    """A service in a process of its own, on a folder that is deleted with it."""

    def __init__(self, folder: Path, *options: str) -> None:
        start = "import sys; from zoomrank.cli import main; sys.exit(main())"
        command = [sys.executable, "-c", start, "serve", "--port", "0", "--data", str(folder), *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().partition("127.0.0.1:")[2].split()[0])

    @property
    def memory(self) -> float:
        """Resident memory, in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    @property
    def worked(self) -> float:
        """Processor time of all threads, in seconds."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)


@contextlib.contextmanager
def served(documents: int | Collection) -> Iterator[Server]:
    """Start a service with one collection: the given one, or this many documents with vectors."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "data")
        try:
            path = Path(folder) / "collection"
            (_by_vectors(documents) if isinstance(documents, int) else documents).save(path)

            async def upload() -> None:
                connection = await Connection.open(server.port)
                await connection.ask("PUT", "/v1/collections/bench", path.read_bytes())
                connection.close()

            asyncio.run(upload())
            yield server
        finally:
            server.stop()


def _by_vectors(documents: int) -> Collection:
    rng = np.random.default_rng(1)
    middles = rng.normal(size=(documents // 50 + 1, 16))
    vectors = middles[rng.integers(len(middles), size=documents)] + 0.2 * rng.normal(size=(documents, 16))
    return Collection.from_vectors(vectors.astype(np.float32))


async def pair(
    connection: Connection,
    number: int,
    times: list[float] | None = None,
    queries: int = QUERIES,
    collection: str = "bench",
    visitor: str | None = None,
) -> None:
    """Simulate one visitor, who asks, looks, and clicks or leaves."""
    began = time.perf_counter()
    named = {} if visitor is None else {"visitor": visitor}
    asked = json.dumps({"query": f"query {number % queries}"} | named).encode()
    shown = json.loads(await connection.ask("POST", f"/v1/collections/{collection}/rank", asked))
    between = time.perf_counter()
    documents = shown["documents"]
    clicked = documents[number % 7]["id"] if number % 7 < len(documents) else None
    report = json.dumps({"impression": shown["impression"], "clicked": clicked}).encode()
    await connection.ask("POST", "/v1/feedback", report)
    if times is not None:
        times += [between - began, time.perf_counter() - between]


async def constant(connection: Connection, number: int, times: list[float] | None = None) -> None:  # noqa: ARG001
    """Send the cheapest request of the server."""
    began = time.perf_counter()
    await connection.ask("GET", "/v1/health")
    if times is not None:
        times.append(time.perf_counter() - began)


async def two_constants(connection: Connection, number: int, times: list[float] | None = None) -> None:
    """Send as many cheap requests as a pair has."""
    await constant(connection, number, times)
    await constant(connection, number, times)


@contextlib.asynccontextmanager
async def connected(port: int, count: int = CONNECTIONS) -> AsyncIterator[list[Connection]]:
    connections = [await Connection.open(port) for _ in range(count)]
    try:
        yield connections
    finally:
        for connection in connections:
            connection.close()


async def full_speed(connections: list[Connection], work: Visit, seconds: float) -> float:
    """Return the throughput when every connection asks again as soon as it has a response."""
    done = 0
    end = time.perf_counter() + seconds

    async def visitors(connection: Connection) -> None:
        nonlocal done
        while time.perf_counter() < end:
            done += 1
            await work(connection, done, None)

    began = time.perf_counter()
    await asyncio.gather(*(visitors(connection) for connection in connections))
    return done / (time.perf_counter() - began)


async def paced(connections: list[Connection], work: Visit, rate: float, seconds: float) -> list[float]:
    """Return the times of all requests when visits begin at an even rate, whether or not earlier ones are done."""
    times: list[float] = []
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for connection in connections:
        free.put_nowait(connection)
    began = time.perf_counter()
    tasks = []

    async def visitor(connection: Connection, number: int) -> None:
        await work(connection, number, times)
        free.put_nowait(connection)

    number = 0
    while time.perf_counter() < began + seconds:
        await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
        number += 1
        tasks.append(asyncio.create_task(visitor(await free.get(), number)))
    await asyncio.gather(*tasks)
    return times


@dataclass
class Load:
    """Measurements, round by round: pairs and the constant in turns, so that both meet the same noise."""

    constants: list[float] = field(default_factory=list)  # per second
    pairs: list[float] = field(default_factory=list)
    constant_times: list[Times] = field(default_factory=list)  # at half the load
    pair_times: list[Times] = field(default_factory=list)

    @classmethod
    async def measured(cls, port: int) -> Load:
        found = cls()
        async with connected(port) as connections:
            await full_speed(connections, pair, 2.0)
            for _ in range(ROUNDS):
                found.constants.append(await full_speed(connections, constant, SECONDS))
                found.pairs.append(await full_speed(connections, pair, SECONDS))
            half = float(np.median(found.pairs)) / 2
            for _ in range(ROUNDS):
                for work, into in ((two_constants, found.constant_times), (pair, found.pair_times)):
                    middle, slow = np.percentile(await paced(connections, work, half, SECONDS), [50, 99]) * 1e3
                    into.append((float(middle), float(slow)))
        return found


def load() -> Iterator[Row]:
    """Measure pairs of a ranking and its feedback, durable, against an endpoint that returns a constant."""
    with served(10_000) as server:
        found = uvloop.run(Load.measured(server.port))
    rate, ratios = np.median(found.pairs), np.array(found.pairs) / found.constants
    yield Row("pairs of ranking and feedback, durable", f"{rate:,.0f} a second")
    yield Row(
        "against requests for a constant",
        f"{np.median(ratios):.0%} ({ratios.min():.0%} to {ratios.max():.0%} in {ROUNDS} rounds)",
        "40 %",
    )
    for what, times, aim in (
        ("a request at half that load", found.pair_times, "25 ms"),
        ("a constant in its place", found.constant_times, ""),
    ):
        middle, slow = np.median(times, axis=0)
        slows = [row[1] for row in times]
        tail = f"99 of 100 within {slow:.1f} ms ({min(slows):.1f} to {max(slows):.1f})"
        yield Row(what, f"median {middle:.1f} ms, {tail}", aim)


async def visited(port: int, count: int, queries: int) -> None:
    """Simulate this many visitors, as fast as they are served."""
    async with connected(port) as connections:
        numbers = iter(range(count))

        async def visitors(connection: Connection) -> None:
            for number in numbers:
                await pair(connection, number, None, queries)

        await asyncio.gather(*(visitors(connection) for connection in connections))


def steady(pairs: int = 1_000_000) -> Iterator[Row]:
    """Measure memory over many pairs."""

    async def learned(port: int) -> float:
        async with connected(port, 1) as (connection,):
            lines = (await connection.ask("GET", "/metrics")).decode().splitlines()
            return float(next(line for line in lines if line.startswith("zoomrank_learner_bytes ")).split()[1]) / 2**20

    with served(10_000) as server:
        done = 0
        for until in (pairs // 10, pairs // 2, pairs):
            uvloop.run(visited(server.port, until - done, QUERIES))
            done = until
            of_learners = uvloop.run(learned(server.port))
            yield Row(f"memory after {done:,} pairs", f"{server.memory:.0f} MB, of which learners {of_learners:.0f}")


def learners() -> Iterator[Row]:
    """Measure the memory of many queries."""
    with served(100_000) as server:
        before = server.memory
        uvloop.run(visited(server.port, 30_000, 10_000))
        what = "memory with 10,000 queries (3 visitors each) over 100,000 documents"
        yield Row(what, f"{server.memory:,.0f} MB ({before:,.0f} before)", "2 GB")


async def ranked_meanwhile(port: int, body: bytes) -> tuple[list[float], list[float], float]:
    """Measure rankings at a steady rate before and while a large collection is built; return also the build time."""
    async with connected(port) as connections, connected(port, 1) as (admin,):
        await full_speed(connections, pair, 2.0)
        before = await paced(connections, pair, RATE, 2 * SECONDS)
        began = time.perf_counter()
        making = asyncio.create_task(admin.ask("POST", "/v1/collections", body))
        meanwhile: list[float] = []
        while not making.done():
            meanwhile += await paced(connections, pair, RATE, 0.5)
        await making
        return before[::2], meanwhile[::2], time.perf_counter() - began


def making() -> Iterator[Row]:
    """Measure whether rankings get slower while a large collection is built."""
    documents = [
        {"id": f"d{number}", "title": f"Document {number}", "path": [f"B{number % 40}", f"T{number % 4000}"]}
        for number in range(LARGE)
    ]
    body = json.dumps({"name": "large", "documents": documents}).encode()
    del documents
    with served(10_000) as server:
        before, meanwhile, seconds = uvloop.run(ranked_meanwhile(server.port, body))
    for when, times in (
        (f"a ranking, {RATE} pairs a second", before),
        (f"while a collection of {LARGE:,} is made, which takes {seconds:.0f} s", meanwhile),
    ):
        middle, slow = np.percentile(times, [50, 99]) * 1e3
        yield Row(when, f"median {middle:.1f} ms, 99 of 100 within {slow:.1f} ms, all within {1e3 * max(times):.0f}")


async def _in_turns(server: Server, file: bytes) -> tuple[list[float], list[float]]:
    """Return the cost of a pair with an experiment relative to one without: in time, and in processor time of the
    server.

    Both run in turns, on two similar collections.
    """
    serial = iter(range(10**9))
    async with connected(server.port) as connections:
        await connections[0].ask("PUT", "/v1/collections/tried", file)
        arms = [{"name": "now", "share": 0.5}, {"name": "other", "share": 0.5, "settings": {"seed": 1}}]
        body = json.dumps({"name": "first", "arms": arms}).encode()
        await connections[0].ask("POST", "/v1/collections/tried/experiments", body)

        async def cost(collection: str, queries: int) -> tuple[float, float]:
            async def work(connection: Connection, number: int, times: list[float] | None) -> None:
                await pair(connection, number, times, queries, collection, f"visitor {next(serial) % 1_000_000}")

            began, before = time.perf_counter(), server.worked
            speed = await full_speed(connections, work, TURN)
            return 1 / speed, (server.worked - before) / (speed * (time.perf_counter() - began))

        times, works = [], []
        for turn in range(TURNS + 4):
            both = [("bench", QUERIES), ("tried", QUERIES // 2)]  # two arms: as many learners as without an experiment
            found = {name: await cost(name, queries) for name, queries in both[:: 1 if turn % 2 else -1]}
            if turn >= 4:  # the first turns create learners
                times.append(found["tried"][0] / found["bench"][0])
                works.append(found["tried"][1] / found["bench"][1])
        return times, works


def experiment() -> Iterator[Row]:
    """Measure what an experiment costs: each visitor is new, has a name, and is remembered."""
    with tempfile.TemporaryDirectory() as folder, served(10_000) as server:
        path = Path(folder) / "collection"
        _by_vectors(10_000).save(path)
        times, works = uvloop.run(_in_turns(server, path.read_bytes()))
    yield Row("a pair with an experiment, of what it takes without", _median(times), "1.1")
    yield Row("the same in processor time of the server", _median(works), "1.1")


async def _batches_in_turns(server: Server) -> tuple[list[float], list[float]]:
    """Return the cost of a ranking in a batch relative to one that is requested alone: in time, and in processor time
    of the server.
    """
    asked = [{"query": f"query {number}"} for number in range(MOST_RANKINGS)]
    body, alone = json.dumps({"requests": asked}).encode(), [json.dumps(one).encode() for one in asked]

    async def batch(connection: Connection, number: int, times: list[float] | None) -> None:  # noqa: ARG001
        await connection.ask("POST", "/v1/collections/bench/rank/batch", body)

    async def single(connection: Connection, number: int, times: list[float] | None) -> None:  # noqa: ARG001
        await connection.ask("POST", "/v1/collections/bench/rank", alone[number % MOST_RANKINGS])

    async with connected(server.port) as connections:

        async def cost(work: Visit, rankings: int) -> tuple[float, float]:
            began, before = time.perf_counter(), server.worked
            speed = rankings * await full_speed(connections[:1] if rankings > 1 else connections, work, TURN)
            return 1 / speed, (server.worked - before) / (speed * (time.perf_counter() - began))

        times, works = [], []
        for turn in range(TURNS // 2 + 4):
            both: list[tuple[Visit, int]] = [(batch, MOST_RANKINGS), (single, 1)]
            found = {rankings: await cost(work, rankings) for work, rankings in both[:: 1 if turn % 2 else -1]}
            if turn >= 4:  # the first turns create learners
                times.append(found[MOST_RANKINGS][0] / found[1][0])
                works.append(found[MOST_RANKINGS][1] / found[1][1])
        return times, works


def batches() -> Iterator[Row]:
    """Measure batches of 100 rankings, one after the other, against single requests on all connections."""
    with served(10_000) as server:
        times, works = uvloop.run(_batches_in_turns(server))
    yield Row("a batch of 100 rankings, of what 100 requests take", _median(times))
    yield Row("the same in processor time of the server", _median(works))


def _median(turns: list[float]) -> str:
    """Format the median of many turns, with its 95 % interval."""
    outside = int(stats.binom.ppf(0.025, len(turns), 0.5))
    inside = sorted(turns)[outside - 1 : len(turns) - outside + 1]
    return f"{np.median(turns):.3f} (95 %: {inside[0]:.3f} to {inside[-1]:.3f}, {len(turns)} turns)"


def service() -> Iterator[Row]:
    """Measure everything but the million pairs, which take a quarter of an hour: `python -m bench steady`."""
    yield from load()
    yield from making()
    yield from learners()
    yield from experiment()
    yield from batches()
