"""`zoomrank compile`: compile kernels beforehand, so that nothing has to be interpreted at first."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from typing import Any

from zoomrank.cli.arguments import MODULES, Commands, add_command, add_number, listed
from zoomrank.cli.terminal import ProgressLine, duration
from zoomrank.rankers.registry import RANKERS

_SERVICE = "service"
_ABOUT = f"""Compile the learners for this machine. Without this, a learner begins as plain
Python, and is compiled beside the program once that pays. What is compiled is
kept in your cache folder (NUMBA_CACHE_DIR names another one) and used by all
programs with this version of zoomrank.

{listed("what:", [_SERVICE, *RANKERS])}
             {_SERVICE} is what `zoomrank serve` needs; a ranker, what it needs in
             a program and in simulations (default: all)"""
_LONGEST = (_SERVICE, "ZoomRank", "RankContextZoom", "RankThompson", "RankZoom")  # to compile, so they begin


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "compile",
        _ABOUT,
        "zoomrank compile                      # everything; some minutes, once",
        "zoomrank compile service",
        "zoomrank compile ZoomRank RankUCB1",
    )
    parser.add_argument("what", nargs="*", metavar="WHAT", help="any of the above")
    add_number(parser, "--workers", None, "processes that share the work (default: one for each core)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Compile, and say what took how long."""
    for name in options.what:
        if name not in {_SERVICE, *RANKERS}:
            options.refuse(f"{name} cannot be compiled: name any of {', '.join([_SERVICE, *RANKERS])}")
    compile_kernels(options.what or [_SERVICE, *RANKERS], options.workers)


def compile_kernels(names: list[str], workers: int | None = None) -> None:
    """Compile what the service or rankers need, several processes at a time."""
    start = time.monotonic()
    tasks = sorted(names, key=lambda name: _LONGEST.index(name) if name in _LONGEST else len(_LONGEST))
    os.environ["ZOOMRANK_COMPILE"] = "at-once"  # of the processes that do it
    workers = max(1, min(workers or os.cpu_count() or 1, len(tasks)))
    with ProgressLine("compiling") as progress, multiprocessing.get_context("spawn").Pool(workers) as pool:
        for done, (name, seconds) in enumerate(pool.imap_unordered(_compile_for, tasks)):
            print(f"{name:<20} {'not installed' if seconds is None else f'{seconds:.1f} s'}", flush=True)
            progress.tell(done + 1, len(tasks))
    print(f"{'all':<20} {duration(time.monotonic() - start)}")


def _compile_for(name: str) -> tuple[str, float | None]:
    """Let a ranker or a service do once what they do; return the seconds that it took."""
    start = time.monotonic()
    if name != _SERVICE:
        _simulate(RANKERS[name])
    elif all(map(_is_installed, MODULES["service"])):
        _serve()
    else:
        return name, None
    return name, time.monotonic() - start


def _is_installed(module: str) -> bool:
    from importlib.util import find_spec

    return find_spec(module) is not None


def _simulate(kind: Any) -> None:
    """Let a ranker rank, learn, and be simulated with visitors of either kind."""
    import zoomrank as zr

    tree = zr.DocumentTree.exponential(depth=5, branching=2)
    horizon = {"horizon": 100} if kind.bandit_kind.needs_horizon else {}
    for reading in ("mixture", "mutations"):
        users: Any = zr.users.two_peaks(tree, seed=1, reading=reading)
        ranker = kind(tree, slots=3, seed=1, **horizon)
        zr.simulate(ranker, users, 10, seed=1)
        users.greedy(3)
        users.clicks([0, 9, 17], 10, seed=1)
        users.conditional_mean([4, 5])
    ranking = ranker.rank()
    ranker.learn(ranking, 1)
    ranker.propensities(ranking.arrays.shown)


# What a service is asked: rankings of collections by paths and by texts, for all documents and for some.
_PATHS = [{"id": number, "path": ["all", f"{number % 5}", f"{number % 15}"]} for number in range(60)]
_TEXTS = [{"id": f"t{number}", "text": f"text {number} of {number % 7}"} for number in range(60)]


def _serve() -> None:
    """Let a service rank and learn."""
    from zoomrank.client import Client

    command = [sys.executable, "-c", "import sys; from zoomrank.cli import main; sys.exit(main())"]
    with tempfile.TemporaryDirectory() as folder:
        service = subprocess.Popen(  # noqa: S603
            [*command, "serve", "--port", "0", "--data", folder],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        with service:
            assert service.stdout is not None  # noqa: S101
            address = re.search(r"http://\S+", service.stdout.readline())
            if address is not None:
                with Client(address[0], trust_env=False, timeout=600.0) as client:
                    for name, documents, similar in (("paths", _PATHS, "off"), ("texts", _TEXTS, "words")):
                        client.create_collection(name, documents, {"similar": similar})
                        _visit(client, name, [one["id"] for one in documents])
            service.terminate()
        if service.returncode != 0:
            raise RuntimeError(
                "The service that was to be compiled for did not start, or did not stop: try `zoomrank serve`."
            )


def _visit(client: Any, collection: str, ids: list[Any]) -> None:
    """Rank and learn, for all and for some; look at what was learned; take something back; change a document."""
    for query in ("one", "one more", "another one"):
        for number in range(12):
            shown = client.rank(collection, query, eligible=ids[10:40] if number % 4 == 3 else None)
            client.feedback(shown, shown.ids[number % 5] if number % 3 else None)
        client.query(collection, query)
        client.tree(collection, query)
    client.void(collection, query="one", since=0)
    client.change_documents(collection, [{"change": ids[0], "title": "Another"}])
