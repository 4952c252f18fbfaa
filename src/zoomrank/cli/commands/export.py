"""`zoomrank export`: impressions with their feedback, as a file for other programs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from zoomrank.cli.arguments import Commands, add_command, add_force, check_new
from zoomrank.cli.commands.serve import add_place
from zoomrank.cli.progress_line import ProgressLine
from zoomrank.errors import ParameterError

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
        "write impressions and their feedback to a file",
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
    from zoomrank.service.exporting import WRITERS
    from zoomrank.service.storage.opening import open_snapshot

    kind = options.format or ("parquet" if options.output.suffix == ".parquet" else "jsonl")
    check_new(options.output, options.force)
    with closing(open_snapshot(options.data, options.store)) as view, ProgressLine("events") as progress:
        rows = _pages(view.read, options, progress)
        first = next(rows, [])  # errors come before the file is created

        def all_of_them() -> Iterator[list[dict[str, Any]]]:
            yield first
            yield from rows

        with atomic_file(options.output, private=True) as file:
            count = WRITERS[kind](file, all_of_them())
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
    from zoomrank.service.exporting import ExportFilter, exported, pages
    from zoomrank.service.impression_names import ImpressionSigner

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
