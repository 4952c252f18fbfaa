"""`zoomrank report`: write the report of a folder of results again."""

import argparse
from pathlib import Path

from zoomrank.cli.arguments import Commands, add_command
from zoomrank.lab.studies.study import STUDIES


def add(commands: Commands) -> None:
    """Describe the command."""
    parser = add_command(
        commands,
        "report",
        "write the report of finished runs again",
        "Draw the figures and write the report from whatever a folder of results has so\n"
        "far; the command that fills it may still be at work.",
        "zoomrank report reproduction",
        "zoomrank report evaluation",
        extras=("lab",),
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder that --out of the other command named")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Write it, as the command would that began the folder."""
    from zoomrank.lab.evaluation.evaluation_report import write_evaluation_report
    from zoomrank.lab.paper.paper_report import write_report
    from zoomrank.lab.results_folder import Store
    from zoomrank.lab.studies.study_report import write_study_report

    store = Store(options.folder)
    asked = store.manifest["figures"]
    if asked == ["evaluation"]:
        page = write_evaluation_report(store)
    elif asked[0] in STUDIES:
        page = write_study_report(store)
    else:
        report = write_report(store)
        page = report.page
        counts = ", ".join(f"{count} {verdict}" for verdict, count in report.verdicts.items())
        print(f"Claims of the paper: {counts}.")
    print(f"Report: {page}")
