"""`zoomrank backup`, `zoomrank restore` and `zoomrank verify`: all data of a service, whether it runs or not.

`backup` copies it into one file, `restore` puts that into an empty store, and `verify` checks a store or a backup
against its own event log.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from zoomrank.cli.arguments import Commands, add_command, add_force, check_new
from zoomrank.cli.serve import add_place
from zoomrank.cli.terminal import ProgressLine

_ABOUT = """Copy all data of a service at one moment into one file, whether the service
runs or not: collections, the event log, learners, the secret that signs
impressions. Keep the file secret. `zoomrank restore` puts it back,
into SQLite or PostgreSQL, wherever it came from."""


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "backup",
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
    from zoomrank.service.storage.store_snapshot import open_snapshot

    check_new(options.file, options.force)
    with closing(open_snapshot(options.data, options.store)) as view, ProgressLine("rows") as progress:
        copied = back_up(view, options.file, progress.tell)
    print(f"{options.file} has {copied_summary(copied)}: {options.file.stat().st_size / 2**20:,.1f} MB.")


def copied_summary(copied: Mapping[str, int]) -> str:
    """Summarise what was copied.

    >>> copied_summary({"about": 2, "collections": 1, "learners": 1200, "events": 1})
    'collections: 1, queries: 1,200, events: 1'
    """
    return f"collections: {copied['collections']:,}, queries: {copied['learners']:,}, events: {copied['events']:,}"


_ABOUT_RESTORE = """Restore a backup into an empty folder or database, all of it or
nothing. A service that is started there continues where the backup was made:
impressions from before are known, and feedback on them is learned."""


def add_restore(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "restore",
        _ABOUT_RESTORE,
        "zoomrank restore monday.sqlite --data rankings-again",
        "zoomrank restore monday.sqlite --store postgresql://user@host/empty",
        extras=("service",),
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the backup")
    add_place(parser)
    parser.set_defaults(run=run_restore)


def run_restore(options: argparse.Namespace) -> None:
    """Restore the backup."""
    from zoomrank.service.storage.backups import restore
    from zoomrank.service.storage.store_snapshot import open_store

    with ProgressLine("rows") as progress:
        copied = restore(options.file, lambda: open_store(options.data, options.store), progress.tell)
    print(f"Restored {copied_summary(copied)}.")


_ABOUT_VERIFY = """Check the data of a service, whether it runs or not: that files are sound, that
the event log is complete, and that learners and counts are what the log
implies. Nothing is changed. The exit status is 1 if anything is wrong."""


def add_verify(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "verify",
        _ABOUT_VERIFY,
        "zoomrank verify                                 # of ./zoomrank-data",
        "zoomrank verify --store postgresql://user@host/base",
        "zoomrank verify --backup monday.sqlite",
        extras=("service",),
    )
    add_place(parser)
    parser.add_argument("--backup", type=Path, metavar="FILE", help="check a backup instead")
    parser.set_defaults(run=run_verify)


def run_verify(options: argparse.Namespace) -> int:
    """Print what was checked and found; return the exit status."""
    from zoomrank.service.storage.store_snapshot import SQLiteSnapshot, open_snapshot
    from zoomrank.service.verification import verify

    opened = SQLiteSnapshot(options.backup) if options.backup else open_snapshot(options.data, options.store)
    with closing(opened) as view, ProgressLine("events") as progress:
        verdict = verify(view, progress.tell)
    print("Checked " + ", ".join(f"{what}: {count:,}" for what, count in verdict.checked.items()) + ".")
    for finding in verdict.findings:
        print(f"- {finding}")
    print(f"Findings: {len(verdict.findings):,}." if verdict.findings else "Everything agrees.")
    return 1 if verdict.findings else 0
