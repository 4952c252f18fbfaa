"""`zoomrank demo-experiment`: a simulated A/B experiment of a shop, up to its decision.

A week passes in a minute: the service gets a simulated clock. Everything else is as in production, and the shop knows
of the arms only what the service reports.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from zoomrank.cli import sample_library as sample
from zoomrank.cli.arguments import Commands, add_command, add_number, add_seed, add_visits
from zoomrank.errors import ParameterError

if TYPE_CHECKING:
    from zoomrank.client import Client
    from zoomrank.users import UserDistribution
    from zoomrank.wire import ExperimentInfo

COLLECTION, EXPERIMENT, OURS, LEARNED = "library", "learned-or-ours", "ours", "learned"
_VISITS = 6_000
_LOOK = 500  # visits between two checks of the experiment
_WEEK = 7 * 86_400.0  # seconds
_NEW = 0.6  # the probability that a visitor is new
_ORDER = 20  # books in the order of the shop's own search

_ABOUT = f"""Start a service on this machine with a small sample library, and send it
simulated visitors who have names, some of which come again. A search engine of
the library's own begins with two books for different visitors, and goes on with
what most of them like. Half of the visitors are shown its order as it is, half
what is learned from it. After every {_LOOK} visits the experiment is looked at: as
soon as it says that one of them satisfies more visitors, that is promoted."""


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "demo-experiment",
        _ABOUT,
        "zoomrank demo-experiment",
        "zoomrank demo-experiment --keep            # and look at it in a browser",
        "zoomrank demo-experiment --seed 3 --visits 20000",
        extras=("service",),
    )
    add_visits(parser, _VISITS)
    add_seed(parser, 7)
    add_number(parser, "--port", 0, "port to listen on (default: any that is free)")
    parser.add_argument("--keep", action="store_true", help="go on serving, with the page, until Ctrl-C")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve, simulate visitors, and decide."""
    from zoomrank.service.server import make_server

    if options.visits < _LOOK:
        raise ParameterError(f"{options.visits} visits are too few; the first check comes after {_LOOK}.")
    with tempfile.TemporaryDirectory(prefix="zoomrank-") as folder:
        clock = WeekClock(options.visits)
        failed: list[str] = []

        def decide(address: str) -> None:
            failed.extend(_decided(address, options, clock, lambda: server.should_exit))
            server.should_exit |= bool(failed) or not options.keep

        def begin(address: str) -> None:
            threading.Thread(target=decide, args=[address], name="zoomrank-visitors", daemon=True).start()

        server = make_server(Path(folder), port=options.port, now=clock, announce=begin)
        server.run()
    sys.stderr.writelines(f"zoomrank: {words}\n" for words in failed)
    return 2 if failed else 0


class WeekClock:
    """Clock of a week that ends now: each visit takes its part of it. Afterwards it is the real time."""

    def __init__(self, visits: int) -> None:
        self._step = _WEEK / visits
        self._time = time.time() - _WEEK

    def __call__(self) -> float:
        """Return the time."""
        return min(self._time, time.time())

    def tick(self) -> None:
        """Advance by one visit."""
        self._time += self._step

    def end(self) -> None:
        """End the week."""
        self._time = float("inf")


def _decided(address: str, options: argparse.Namespace, clock: WeekClock, stopped: Callable[[], bool]) -> list[str]:
    """Carry out the experiment; return what went wrong."""
    from zoomrank.client import Client, ClientError

    try:
        with Client(address, trust_env=False) as client:
            DemoShop(client, clock, options.seed).experiment(options.visits, stopped)
            clock.end()
        if options.keep and not stopped():
            page = f"{address}/#/c/{COLLECTION}/experiments/{EXPERIMENT}"
            print(f"\nOpen {page} in a browser.\nStop it with Ctrl-C.", flush=True)
    except ClientError as error:
        return [] if stopped() else [f"the experiment ended early: {error}"]
    return []


class DemoShop:
    """Visitors, the shop's previous order, and the decision."""

    def __init__(self, client: Client, clock: WeekClock, seed: int) -> None:
        self._client = client
        self._clock = clock
        self._rng = np.random.default_rng(seed)
        self._visitors = 0
        library = sample.library()
        self._users = sample.visitors(library)
        self._orders = {query: _previous_order(users) for query, users in self._users.items()}
        client.create_collection(COLLECTION, library)

    def experiment(self, visits: int, stopped: Callable[[], bool]) -> None:
        """Start an experiment, check it now and then, and end it."""
        arms = [{"name": OURS, "share": 0.5, "settings": {"shows": "order"}}, {"name": LEARNED, "share": 0.5}]
        self._client.create_experiment(COLLECTION, EXPERIMENT, arms)
        print(f"“{OURS}” shows the order that there was before, “{LEARNED}” learns from it.\n", flush=True)
        for visit in range(1, visits + 1):
            if stopped():
                return
            self._visit()
            if visit % _LOOK == 0 or visit == visits:
                told = self._client.experiment(COLLECTION, EXPERIMENT)
                counted = sum(arm["counted"] for arm in told["arms"])
                print(f"{visit:>6,} visits, {counted:>5,} visitors: {told['says'][0]}", flush=True)
                if _better(told) is not None:
                    break
        self._decide(_better(told))

    def _visit(self) -> None:
        """Simulate a visit with a click or without."""
        if self._rng.random() < _NEW or not self._visitors:
            name, self._visitors = self._visitors, self._visitors + 1
        else:
            name = int(self._rng.integers(self._visitors))
        self._clock.tick()
        query = list(self._users)[int(self._rng.integers(len(self._users)))]
        shown = self._client.rank(COLLECTION, query, order=self._orders[query], visitor=f"visitor {name}")
        slot = self._users[query].click(shown.ids, self._rng)
        self._client.feedback(shown, None if slot is None else shown.ids[slot])

    def _decide(self, better: str | None) -> None:
        if better is None:
            told = self._client.stop_experiment(COLLECTION, EXPERIMENT)
            words = f"nothing was promoted, so {LEARNED} goes on as it is"
        else:
            told = self._client.promote_arm(COLLECTION, EXPERIMENT, better)
            words = f"{better} was promoted"
        shares = (f"{arm['name']} {100 * arm['satisfied'] / arm['counted']:.1f} %" for arm in told["arms"])
        print(f"\nThe decision: {words}. Satisfied so far: {', '.join(shares)}.", flush=True)


def _previous_order(users: UserDistribution) -> list[str]:
    """Return a plausible previous order: two books for different visitors, then the most popular."""
    first = users.greedy(2).documents
    popular = users.documents.at(np.argsort(-users.mean(), kind="stable")[:_ORDER])
    return [str(book) for book in [*first, *(book for book in popular if book not in first)]]


def _better(told: ExperimentInfo) -> str | None:
    """Return the arm that satisfies more visitors, if that is known."""
    difference = told["arms"][1]["difference"]
    if difference is None or difference["low"] <= 0 <= difference["high"]:
        return None
    return LEARNED if difference["low"] > 0 else OURS
