"""`zoomrank verify`: check that all data of a service agrees with its event log."""

from __future__ import annotations

import argparse
from contextlib import closing
from pathlib import Path

from zoomrank.cli.arguments import Commands, add_command
from zoomrank.cli.commands.serve import add_place
from zoomrank.cli.progress_line import ProgressLine

_ABOUT = """Check the data of a service, whether it runs or not: that files are sound, that
the event log is complete, and that learners and counts are what the log
implies. Nothing is changed. The exit status is 1 if anything is wrong."""


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "verify",
        "check all data of a service against its event log",
        _ABOUT,
        "zoomrank verify                                 # of ./zoomrank-data",
        "zoomrank verify --store postgresql://user@host/base",
        "zoomrank verify --backup monday.sqlite",
        extras=("service",),
    )
    add_place(parser)
    parser.add_argument("--backup", type=Path, metavar="FILE", help="check a backup instead")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print what was checked and found; return the exit status."""
    from zoomrank.service.storage.opening import open_snapshot
    from zoomrank.service.storage.store_snapshot import SQLiteSnapshot
    from zoomrank.service.verifying import verify

    opened = SQLiteSnapshot(options.backup) if options.backup else open_snapshot(options.data, options.store)
    with closing(opened) as view, ProgressLine("events") as progress:
        verdict = verify(view, progress.tell)
    print("Checked " + ", ".join(f"{what}: {count:,}" for what, count in verdict.checked.items()) + ".")
    for finding in verdict.findings:
        print(f"- {finding}")
    print(f"Findings: {len(verdict.findings):,}." if verdict.findings else "Everything agrees.")
    return 1 if verdict.findings else 0
