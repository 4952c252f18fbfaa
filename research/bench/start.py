"""The first minute of a new user: import, first ranking, help, tutorial, service, each with an empty kernel cache.

Seconds are of CPU, of all processes that take part, unless a row says otherwise. "Compiled at once" is what every call
would take without plain Python before machine code (`ZOOMRANK_COMPILE=at-once`).
"""

from __future__ import annotations

import http.client
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from research.bench.measure import Row
from research.bench.service import Server

FIRST = """
import zoomrank as zr
paths = {f"{n}.html": f"shelf {n % 10} > board {n % 100}" for n in range(1000)}
ranker = zr.ZoomRank(zr.DocumentTree.from_paths(paths), slots=5, seed=1)
ranker.learn(ranker.rank(), click=0)
"""
HELP = "import sys; from zoomrank.cli import main; main(['--help'])"
TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"
VISITED = 90.0  # seconds in which a service is asked while its kernels are compiled


def start() -> Iterator[Row]:
    """Measure what a new user waits for."""
    tutorial = "\n".join(re.findall(r'^```python title="learn.py"\n(.*?)^```', TUTORIAL.read_text(), re.M | re.S))
    for what, script, aim in (
        ("import, first ranking, first feedback; 1,000 documents", FIRST, "0.6 s"),
        ("the program of the tutorial, 301 visits", tutorial, "a tenth"),
    ):
        with tempfile.TemporaryDirectory() as folder:
            fast = min(cpu_seconds(script, Path(folder)) for _ in range(3))
        with tempfile.TemporaryDirectory() as folder:
            slow = cpu_seconds(script, Path(folder), "at-once")
            again = cpu_seconds(script, Path(folder), "at-once")
        yield Row(what, f"{fast:.2f} s; compiled at once {slow:.1f} s, {slow / fast:.0f} ×", aim)
        yield Row("the same compiled, from the cache", f"{again:.2f} s")
    with tempfile.TemporaryDirectory() as folder:
        yield Row("`zoomrank --help`", f"{min(cpu_seconds(HELP, Path(folder)) for _ in range(3)):.2f} s", "0.25 s")
        command = "import sys; from zoomrank.cli import main\nif __name__ == '__main__':\n    main(['compile'])"
        yield Row("`zoomrank compile`: every learner and the service", f"{cpu_seconds(command, Path(folder)):.0f} s")
    yield from service()


def cpu_seconds(script: str, folder: Path, compiling: str = "") -> float:
    """Return the CPU seconds of a Python program that keeps kernels in this folder."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "kernels"), "ZOOMRANK_COMPILE": compiling}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", script]
    subprocess.run(command, env=environment, cwd=folder, capture_output=True, check=True)  # noqa: S603
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def service() -> Iterator[Row]:
    """Measure a service that starts with an empty cache, on the clock."""
    with tempfile.TemporaryDirectory() as folder:
        kept = {name: os.environ.get(name) for name in ("NUMBA_CACHE_DIR", "ZOOMRANK_COMPILE")}
        os.environ.update(NUMBA_CACHE_DIR=f"{folder}/kernels", ZOOMRANK_COMPILE="")
        began = time.perf_counter()
        server = Server(Path(folder) / "data")
        opened = time.perf_counter() - began
        for name, value in kept.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        try:
            while ask(connection, "GET", "/v1/ready")[0] != 200:
                time.sleep(0.01)
            yield Row(
                "`zoomrank serve`, until it is ready, on the clock", f"{time.perf_counter() - began:.1f} s", "2 s"
            )
            documents = [{"id": n, "path": [f"{n % 10}", f"{n % 100}"]} for n in range(1000)]
            ask(connection, "POST", "/v1/collections", {"name": "shop", "documents": documents})
            times, tiers = list(visits(connection)), kernels(connection)
        finally:
            connection.close()
            server.stop()
    yield Row("its first ranking, on the clock", f"{1000 * times[0]:.0f} ms; port open after {opened:.1f} s", "20 ms")
    times.sort()
    yield Row(
        f"requests of the first {VISITED:.0f} s, one after the other, on the clock",
        f"{len(times):,}: median {1000 * times[len(times) // 2]:.1f} ms, slowest {1000 * times[-1]:.0f} ms; "
        f"at the end {tiers} kernels were compiled",
        "250 ms",
    )


def visits(connection: http.client.HTTPConnection) -> Iterator[float]:
    """Rank and give feedback for a while; yield the seconds of each request."""
    end, number = time.perf_counter() + VISITED, 0
    while time.perf_counter() < end:
        begin = time.perf_counter()
        shown = ask(connection, "POST", "/v1/collections/shop/rank", {"query": f"{number % 20}"})[1]
        ranked = time.perf_counter()
        clicked = shown["documents"][0]["id"] if number % 3 else None
        ask(connection, "POST", "/v1/feedback", {"impression": shown["impression"], "clicked": clicked})
        yield ranked - begin
        yield time.perf_counter() - ranked
        number += 1


def kernels(connection: http.client.HTTPConnection) -> int:
    """Return how many kernels of the service are compiled."""
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    found = re.search(r'zoomrank_kernels\{tier="compiled"\} ([0-9.]+)', text)
    return int(float(found[1])) if found else 0


def ask(connection: http.client.HTTPConnection, method: str, path: str, body: object = None) -> tuple[int, dict]:  # type: ignore[type-arg]
    """Send a request; return the status and the answer."""
    text = None if body is None else json.dumps(body)
    connection.request(method, path, text, {} if text is None else {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response.status, json.loads(response.read())
