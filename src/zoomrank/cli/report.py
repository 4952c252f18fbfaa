"""`zoomrank report`: write the report of a folder of results again."""

import argparse
from pathlib import Path

from zoomrank.cli.arguments import Commands, add_command


def add(commands: Commands) -> None:
    """Describe the command."""
    parser = add_command(
        commands,
        "report",
        "write the report of finished runs",
        "Draw the figures and judge the claims from whatever rows a folder has; a sweep may still be filling it.",
        "zoomrank report reproduction",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="what `zoomrank reproduce --out` named")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Write it."""
    from zoomrank.lab.report import write_report
    from zoomrank.lab.store import Store

    report = write_report(Store(options.folder))
    counts = ", ".join(f"{count} {verdict}" for verdict, count in report.verdicts.items())
    print(f"Claims of the paper: {counts}.\nReport: {report.page}")
