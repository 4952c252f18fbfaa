"""`zoomrank report`: rewrite the report of a folder of results."""

import argparse
from pathlib import Path

from zoomrank.cli.arguments import Commands, add_command
from zoomrank.errors import ResultsError
from zoomrank.lab import evaluation, paper, studies


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "report",
        "write the report of finished runs again",
        "Draw the figures and write the report from the rows that a folder of results has so\n"
        "far; the command that fills it may still be at work.",
        "zoomrank report reproduction",
        "zoomrank report evaluation",
        extras=("lab",),
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder given to --out of the other command")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Write the report of the command that created the folder."""
    from zoomrank.lab.evaluation.evaluation_report import write_evaluation_report
    from zoomrank.lab.paper.paper_report import write_paper_report
    from zoomrank.lab.results_folder import ResultsFolder
    from zoomrank.lab.studies.study_report import write_study_report

    folder = ResultsFolder(options.folder)
    kind = folder.manifest["kind"]
    if kind == evaluation.KIND:
        page = write_evaluation_report(folder)
    elif kind == studies.KIND:
        page = write_study_report(folder)
    elif kind == paper.KIND:
        report = write_paper_report(folder)
        page = report.page
        counts = ", ".join(f"{count} {verdict}" for verdict, count in report.verdicts.items())
        print(f"Claims of the paper: {counts}.")
    else:
        raise ResultsError(f"{folder.path} has rows of the kind {kind}, for which there is no report.")
    print(f"Report: {page}")
