"""`zoomrank import`: let a service learn from the click log of another ranker."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import threading
from pathlib import Path
from typing import IO, Any

from zoomrank.cli.arguments import Commands, add_command
from zoomrank.cli.commands.serve import add_place
from zoomrank.cli.progress_line import ProgressLine
from zoomrank.errors import SourceError

_ABOUT = """Let a service learn from the log of another ranker, and report what that is
worth: the last tenth of the log is predicted before it is learned.

log:         JSONL or Parquet, with a row for each impression: query, shown (a
             list of ids from the top), clicked (an id or null); or a row for
             each document: query, impression, position, document, clicked
to:          a service that runs (--url; its key, if it has keys, is in the
             environment variable ZOOMRANK_KEY), or the data of one that does
             not run now (--data or --store)

The same log is learned only once, so an interrupted import can be repeated."""


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "import",
        "let a service learn from the click log of another ranker",
        _ABOUT,
        "zoomrank import clicks.jsonl --collection shop --url http://127.0.0.1:8000",
        "zoomrank import clicks.parquet --collection shop --unknown skip --url …",
        "zoomrank import clicks.jsonl --collection shop --data rankings",
        extras=("service",),
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the click log")
    parser.add_argument("--collection", required=True, metavar="NAME", help="collection whose learners learn")
    parser.add_argument("--url", metavar="URL", help="address of the service, if it runs")
    parser.add_argument(
        "--unknown",
        choices=["refuse", "skip"],
        default="refuse",
        help="what to do with documents that the collection lacks (default: refuse)",
    )
    parser.add_argument(
        "--key", metavar="KEY", help="Idempotency-Key of this log (default: a fingerprint of its content)"
    )
    add_place(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Send the log to the service, or learn it in this process."""
    told = _through_http(options) if options.url else asyncio.run(_here(options))
    if told["status"] == "repeated":
        print("This log was learned before; nothing was learned now. The earlier result:")
    print(told["words"])


def _through_http(options: argparse.Namespace) -> Any:
    from zoomrank.client import Client, ClientError

    done = threading.Event()
    client = Client(options.url, os.environ.get("ZOOMRANK_KEY"), timeout=60.0)
    with client, ProgressLine("impressions") as progress:

        def watch() -> None:
            while not done.wait(1.0):
                with contextlib.suppress(ClientError):  # the request itself will report the error
                    at = client.import_progress(options.collection)
                    progress.tell(at["learned"], at["of"])

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            return client.import_clicks(options.collection, options.file, options.unknown, once=options.key)
        finally:
            done.set()
            watcher.join()


async def _here(options: argparse.Namespace) -> Any:
    from zoomrank.service.engine import Engine
    from zoomrank.service.imported_log import ImportedLog
    from zoomrank.service.storage.opening import open_store

    with _opened(options.file) as file, ProgressLine("impressions") as progress:
        engine = Engine(open_store(options.data, options.store), options.data)
        await engine.start()
        try:
            served = engine.collections.find(options.collection)
            log = ImportedLog(served, file, options.file.suffix, options.unknown)
            learning = asyncio.create_task(engine.importing.learn(log, options.key))
            while not (await asyncio.wait({learning}, timeout=1.0))[0]:
                if served.id in engine.importing.progress:
                    progress.tell(*engine.importing.progress[served.id])
            return await learning
        finally:
            await engine.stop()


def _opened(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error}.") from error
