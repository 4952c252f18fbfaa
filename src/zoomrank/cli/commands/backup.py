"""`zoomrank backup`: copy all data of a service into one file."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from zoomrank.cli.arguments import Commands, add_command, add_force, check_new
from zoomrank.cli.commands.serve import add_place
from zoomrank.cli.progress_line import ProgressLine

_ABOUT = """Copy all data of a service at one moment into one file, whether the service
runs or not: collections, the event log, learners, the secret that signs
impressions. Keep the file secret. `zoomrank restore` puts it back,
into SQLite or PostgreSQL, wherever it came from."""


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "backup",
        "copy all data of a service into one file",
        _ABOUT,
        "zoomrank backup monday.sqlite                   # of ./zoomrank-data",
        "zoomrank backup monday.sqlite --data rankings --force",
        "zoomrank backup monday.sqlite --store postgresql://user@host/base",
        extras=("service",),
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the backup")
    add_place(parser)
    add_force(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Write the backup."""
    from zoomrank.service.storage.backups import back_up
    from zoomrank.service.storage.opening import open_snapshot

    check_new(options.file, options.force)
    with closing(open_snapshot(options.data, options.store)) as view, ProgressLine("rows") as progress:
        copied = back_up(view, options.file, progress.tell)
    print(f"{options.file} has {copied_summary(copied)}: {options.file.stat().st_size / 2**20:,.1f} MB.")


def copied_summary(copied: Mapping[str, int]) -> str:
    """Summarise what was copied.

    >>> told({"about": 2, "collections": 1, "learners": 1200, "events": 1})
    'collections: 1, queries: 1,200, events: 1'
    """
    return f"collections: {copied['collections']:,}, queries: {copied['learners']:,}, events: {copied['events']:,}"
