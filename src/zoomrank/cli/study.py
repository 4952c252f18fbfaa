"""`zoomrank study`: how many impressions learners need."""

import argparse
import time

from zoomrank.cli.arguments import Commands, add_command, add_sweep
from zoomrank.lab.study import FAMILIES, INSTANCES, settings


def add(commands: Commands) -> None:
    """Describe the command."""
    families = "\n".join(f"  {family.name:<19} {family.title}" for family in FAMILIES)
    parser = add_command(
        commands,
        "study",
        "compare ZoomRank with its competitors",
        "Run ZoomRank, its competitors and its ablations on many families of worlds, and report.\n\n"
        f"families:\n{families}",
        "zoomrank study efficiency",
        "zoomrank study efficiency --instances 4 --rounds 5000 --out look     a quick look",
    )
    parser.add_argument("study", choices=["efficiency"], metavar="STUDY", help="efficiency, so far the only one")
    add_sweep(parser, INSTANCES, "efficiency")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Carry out what is missing, then report."""
    from zoomrank.cli.progress import duration, swept
    from zoomrank.lab.study_report import write_study_report

    start = time.monotonic()
    runs = settings(options.instances, options.rounds, options.seed)
    page = write_study_report(swept(runs, [options.study], options))
    print(f"{len(runs)} runs in {duration(time.monotonic() - start)}.\nReport: {page}")
