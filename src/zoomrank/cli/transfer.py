"""`zoomrank export` and `zoomrank import`: impressions out of a service, and the click log of another ranker into one.

An import goes to a running service over HTTP, or to the data of a stopped one, in this process.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timezone
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

from zoomrank.cli.arguments import Commands, add_command, add_force, add_unknown, check_new
from zoomrank.cli.serve import add_place
from zoomrank.cli.terminal import ProgressLine
from zoomrank.errors import ParameterError, SourceError

_ABOUT = """Write the impressions of a service and their outcomes to a file, one row
each, in the order in which they were shown, while the service runs or not.
Lines of JSON (their form is in docs/export.schema.json) or Parquet: the ending
of the file says which, or --format. With --learned, a file of one that
`read_clicks` reads: impressions that are void, unseen or still wait are not in
it. A time is a date (2026-11-17, or 2026-11-17T15:30, in UTC unless it says
otherwise) or a number of seconds since 1970."""


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "export",
        _ABOUT,
        "zoomrank export impressions.jsonl                   # of ./zoomrank-data",
        "zoomrank export november.parquet --since 2026-11-01 --until 2026-12-01",
        "zoomrank export clicks.jsonl --collection shop --learned",
        extras=("service",),
    )
    parser.add_argument("output", type=Path, metavar="FILE", help="the file")
    add_place(parser)
    parser.add_argument("--collection", metavar="NAME", help="only this collection (default: all)")
    parser.add_argument("--since", type=_time, metavar="TIME", help="shown from this time on")
    parser.add_argument("--until", type=_time, metavar="TIME", help="shown before this time")
    parser.add_argument("--format", choices=("jsonl", "parquet"), help="format of the file (default: by its ending)")
    parser.add_argument("--learned", action="store_true", help="only impressions that were learned from")
    add_force(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Write the file."""
    from zoomrank.files import atomic_file
    from zoomrank.service.export import WRITERS
    from zoomrank.service.storage.store_snapshot import open_snapshot

    kind = options.format or ("parquet" if options.output.suffix == ".parquet" else "jsonl")
    check_new(options.output, options.force)
    with closing(open_snapshot(options.data, options.store)) as view, ProgressLine("events") as progress:
        rows = _pages(view.read, options, progress)
        first = next(rows, [])  # errors come before the file is created
        with atomic_file(options.output, private=True) as file:
            count = WRITERS[kind](file, chain([first], rows))
        told = _retired(view.read, options)
    size = options.output.stat().st_size / 2**20
    print(f"{options.output} has impressions: {count:,}: {size:,.1f} MB.", *told, sep="\n")


def _retired(reader: Any, options: argparse.Namespace) -> list[str]:
    """Return notes on collections whose log no longer covers the time asked for."""
    wanted = [one for one in reader.collections() if options.collection in (None, one.name)]
    whole = {one.name: reader.whole_since(one.id) for one in wanted}
    times = {name: datetime.fromtimestamp(since, timezone.utc) for name, since in whole.items()}
    return [
        f"Of “{name}” the log has everything since {times[name]:%Y-%m-%d %H:%M} UTC; older events were deleted by "
        "retention."
        for name, since in whole.items()
        if since > (options.since or 0.0)
    ]


def _pages(reader: Any, options: argparse.Namespace, progress: ProgressLine) -> Iterator[list[dict[str, Any]]]:
    from zoomrank.service.export import ExportFilter, exported, pages
    from zoomrank.service.storage.events import ImpressionSigner

    wish, signer = ExportFilter(options.since, options.until, options.learned), ImpressionSigner(reader.about("secret"))
    wanted = [one for one in reader.collections() if options.collection in (None, one.name)]
    if options.collection is not None and not wanted:
        known = ", ".join(one.name for one in reader.collections()) or "none"
        raise ParameterError(f"There is no collection {options.collection!r}; there are: {known}.")
    with TemporaryDirectory(prefix="zoomrank-export-") as folder:
        for stored in wanted:
            yield from pages(reader, signer, exported(reader, stored, Path(folder)), wish, progress.tell)


def _time(text: str) -> float:
    """Parse a time, in seconds since 1970.

    >>> _time("86400"), _time("1970-01-02"), _time("1970-01-02T01:00+01:00")
    (86400.0, 86400.0, 86400.0)
    """
    try:
        return float(text)
    except ValueError:
        pass
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a date nor seconds since 1970") from None
    return (found if found.tzinfo else found.replace(tzinfo=timezone.utc)).timestamp()


_ABOUT_IMPORT = """Let a service learn from the log of another ranker, and report what that is
worth: the last tenth of the log is predicted before it is learned.

log:         JSONL or Parquet, with a row for each impression: query, shown (a
             list of ids from the top), clicked (an id or null); or a row for
             each document: query, impression, position, document, clicked
to:          a service that runs (--url; its key, if it has keys, is in the
             environment variable ZOOMRANK_KEY), or the data of one that does
             not run now (--data or --store)

The same log is learned only once, so an interrupted import can be repeated."""


def add_import(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "import",
        _ABOUT_IMPORT,
        "zoomrank import clicks.jsonl --collection shop --url http://127.0.0.1:8000",
        "zoomrank import clicks.parquet --collection shop --unknown skip --url …",
        "zoomrank import clicks.jsonl --collection shop --data rankings",
        extras=("service",),
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the click log")
    parser.add_argument("--collection", required=True, metavar="NAME", help="collection whose learners learn")
    parser.add_argument("--url", metavar="URL", help="address of the service, if it runs")
    add_unknown(parser, "documents that the collection lacks")
    parser.add_argument(
        "--key", metavar="KEY", help="Idempotency-Key of this log (default: a fingerprint of its content)"
    )
    add_place(parser)
    parser.set_defaults(run=run_import)


def run_import(options: argparse.Namespace) -> None:
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
    from zoomrank.service.click_import import ImportedLog
    from zoomrank.service.engine import Engine
    from zoomrank.service.storage.store_snapshot import open_store

    with _opened(options.file) as file, ProgressLine("impressions") as progress:
        engine = Engine(open_store(options.data, options.store), options.data)
        await engine.start()
        try:
            served = engine.collections.find(options.collection)
            log = ImportedLog(served, file, options.file.suffix, options.unknown)
            learning = asyncio.create_task(engine.importer.learn(log, options.key))
            while not (await asyncio.wait({learning}, timeout=1.0))[0]:
                if served.id in engine.importer.progress:
                    progress.tell(*engine.importer.progress[served.id])
            return await learning
        finally:
            await engine.stop()


def _opened(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error}.") from error
