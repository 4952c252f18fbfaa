"""`zoomrank demo-service`: a service with a small library, and simulated visitors who ask and click."""

from __future__ import annotations

import argparse
import contextlib
import heapq
import secrets
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from zoomrank.cli import sample_library as sample
from zoomrank.cli.arguments import Commands, add_command, add_seed
from zoomrank.cli.serve import add_service, in_bytes
from zoomrank.errors import ParameterError
from zoomrank.users import UserDistribution

if TYPE_CHECKING:
    from zoomrank.client import Client

_NAME = "library"
_LOOKING = 1.5  # mean seconds that a visitor looks at a ranking
_BEHIND = 1.0  # seconds of late visitors that are still simulated when the machine was busy


_ABOUT = """Start a service on this machine with a small sample library, and send it
simulated visitors who ask for words that mean several things. Open the page
that it names to watch rankings learn."""


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "demo-service",
        _ABOUT,
        "zoomrank demo-service",
        "zoomrank demo-service --port 0 --visitors-per-second 100",
        "zoomrank demo-service --data library-data   # and continue there next time",
        extras=("service",),
    )
    add_service(parser)
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="folder for the data (default: none; it is deleted at the end)"
    )
    parser.add_argument(
        "--visitors-per-second",
        type=float,
        default=30.0,
        metavar="X",
        help="mean number of visitors per second; 0 for none (default: 30)",
    )
    add_seed(parser, 7)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Serve, and simulate visitors, until stopped."""
    if not 0 <= options.visitors_per_second <= 10_000:
        raise ParameterError(f"--visitors-per-second is {options.visitors_per_second:g}; it must be 0 or more.")
    with contextlib.ExitStack() as stack:
        folder = options.data or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zoomrank-")))
        _serve(folder, options)
    kept = f"; everything is kept in {options.data}" if options.data else ""
    sys.stderr.write(f"zoomrank: stopped{kept}\n")


def _serve(folder: Path, options: argparse.Namespace) -> None:
    from zoomrank.client import Client
    from zoomrank.service.http.access import Keys
    from zoomrank.service.logs import log_to_stderr
    from zoomrank.service.server import make_server

    log_to_stderr(options.log)
    own_key = secrets.token_urlsafe(24)
    keys = Keys.read(options.keys).also(own_key, "admin") if options.keys else None
    memory = in_bytes("--memory", options.memory, 2**30)
    threads = []

    def begin(address: str) -> None:
        _announce(address, options.visitors_per_second)
        own = address.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
        client = Client(own, own_key, trust_env=False)  # a proxy may not reach this machine
        visits = VisitSimulator(client, options.visitors_per_second, options.seed, lambda: server.should_exit)
        thread = threading.Thread(target=visits.go_on, name="zoomrank-visitors", daemon=True)
        thread.start()
        threads.append(thread)

    server = make_server(folder, options.host, options.port, keys=keys, memory=memory, announce=begin)
    server.run()
    for thread in threads:
        thread.join()


def _announce(address: str, per_second: float) -> None:
    print(
        f"zoomrank serves a small library on {address}\n"
        f"Open {address} in a browser: {per_second:g} visitors a second are coming.\n"
        "Stop it with Ctrl-C.",
        flush=True,
    )


class VisitSimulator:
    """Visitors who come at random times, look at a ranking for a while, and click or leave."""

    def __init__(self, client: Client, per_second: float, seed: int, stopped: Callable[[], bool]) -> None:
        self._client = client
        self._per_second = per_second
        self._stopped = stopped
        self._rng = np.random.default_rng(seed)
        self._looking: list[tuple[float, str, str | None]] = []  # time, impression and click of pending feedback

    def go_on(self) -> None:
        """Simulate visits until stopped."""
        from zoomrank.client import ClientError

        with self._client as client:
            try:
                collection = sample.library()
                if all(known["name"] != _NAME for known in client.collections()):
                    client.create_collection(_NAME, collection)
                if self._per_second > 0:
                    self._come_and_go(sample.visitors(collection))
            except ClientError as error:
                if not self._stopped():  # errors are expected while the service stops
                    sys.stderr.write(f"zoomrank: the simulated visitors stopped: {error}\n")

    def _come_and_go(self, users: dict[str, UserDistribution]) -> None:
        names = list(users)
        popularity = 1 / np.arange(2, len(names) + 2)
        popularity /= popularity.sum()
        next_one = time.monotonic()
        while not self._stopped():
            now = time.monotonic()
            if now >= next_one:
                query = names[self._rng.choice(len(names), p=popularity)]
                answer = self._client.rank(_NAME, query)
                slot = users[query].click(answer.ids, self._rng)
                clicked = None if slot is None else str(answer.ids[slot])
                heapq.heappush(self._looking, (now + self._rng.exponential(_LOOKING), answer.impression, clicked))
                next_one = max(next_one + self._rng.exponential(1 / self._per_second), now - _BEHIND)
            self._answer(now)
            time.sleep(min(0.1, max(0.0, next_one - time.monotonic())))

    def _answer(self, now: float) -> None:
        ready = []
        while self._looking and self._looking[0][0] <= now:
            _, impression, clicked = heapq.heappop(self._looking)
            ready.append((impression, clicked))
        if ready:
            self._client.feedback_batch(ready)
