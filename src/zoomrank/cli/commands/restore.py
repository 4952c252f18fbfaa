"""`zoomrank restore`: restore a backup into an empty store."""

from __future__ import annotations

import argparse
from pathlib import Path

from zoomrank.cli.arguments import Commands, add_command
from zoomrank.cli.commands.backup import copied_summary
from zoomrank.cli.commands.serve import add_place
from zoomrank.cli.progress_line import ProgressLine

_ABOUT = """Restore a backup into an empty folder or database, all of it or
nothing. A service that is started there continues where the backup was made:
impressions from before are known, and feedback on them is learned."""


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "restore",
        "restore a backup into an empty folder or database",
        _ABOUT,
        "zoomrank restore monday.sqlite --data rankings-again",
        "zoomrank restore monday.sqlite --store postgresql://user@host/empty",
        extras=("service",),
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the backup")
    add_place(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Restore the backup."""
    from zoomrank.service.storage.backups import restore
    from zoomrank.service.storage.opening import open_store

    with ProgressLine("rows") as progress:
        copied = restore(options.file, lambda: open_store(options.data, options.store), progress.tell)
    print(f"Restored {copied_summary(copied)}.")
