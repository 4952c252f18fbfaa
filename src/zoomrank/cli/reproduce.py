"""`zoomrank reproduce`: rerun the paper's evaluation, and more; `zoomrank report` writes its report, or that of an
evaluation, again.
"""

import argparse
import time
from contextlib import closing
from pathlib import Path

from zoomrank.cli import arguments
from zoomrank.cli.evaluate import print_evaluation
from zoomrank.errors import ResultsError
from zoomrank.lab import evaluation, paper
from zoomrank.lab.paper import KIND
from zoomrank.lab.paper.figures import FIGURES, INSTANCES, figures_named, settings_for, settings_of
from zoomrank.lab.recipes import SEED, Setting

_ABOUT = "\n".join(
    [
        "Run the experiments behind the named figures, and write a report: figures,",
        "numbers, and which of the paper's claims hold.",
        "\nfigures:",
        *(f"  {figure.name:<9} {figure.title}" for figure in FIGURES.values()),
        "  paper     the five of the paper, which is what you get unless you name some",
        " beyond    those on questions that the paper does not ask",
        "  all       every one",
        "  undecided more --instances of what the rows so far cannot decide",
    ]
)


def add(commands: arguments.Commands) -> None:
    """Add the command to the parser."""
    parser = arguments.add_command(
        commands,
        "reproduce",
        _ABOUT,
        "zoomrank reproduce                                  # all of the paper",
        "zoomrank reproduce 1 --instances 3 --visits 50000   # a quick look at Figure 1",
        "zoomrank reproduce all --out results --resume       # resume, or add figures",
        "zoomrank reproduce undecided --instances 200 --out results --resume",
        "zoomrank reproduce readings --out results --resume  # other readings, too",
        "zoomrank reproduce --engine ray --address auto      # on a Ray cluster",
        "zoomrank reproduce --engine ray                     # on Ray, started here",
        extras=("lab",),
    )
    parser.add_argument("figures", nargs="*", metavar="FIGURE", default=[], help="which figures (default: paper)")
    arguments.add_visits(parser, None)
    arguments.add_instances(parser, INSTANCES, "each experiment")
    arguments.add_out(parser, "the report", Path("reproduction"))
    arguments.add_sweep(parser)
    arguments.add_cluster(parser)
    arguments.add_seed(parser, SEED)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Carry out what is missing, then write the report."""
    from zoomrank.cli.terminal import SweepProgress, duration
    from zoomrank.lab.paper.report import write_paper_report
    from zoomrank.lab.results_folder import sweep_request
    from zoomrank.lab.sweep import make_runner, run_sweep

    start = time.monotonic()
    if options.figures == ["undecided"]:
        names, settings = [], _undecided(options)
    else:
        figures = figures_named(options.figures or ["paper"])
        settings = settings_for(figures, options.instances, options.visits, options.seed)
        names = [figure.name for figure in figures]
    runner = make_runner(options.engine, options.workers, options.address)  # before anything is written
    about = sweep_request(KIND, options.instances, options.visits, options.seed, figures=names)
    with closing(runner), SweepProgress() as progress:
        folder = run_sweep(settings, options.out, about, runner, resume=options.resume, watcher=progress)
    report = write_paper_report(folder)
    print(f"{len(settings)} runs in {duration(time.monotonic() - start)}. {report.summary}\nReport: {report.page}")


def _undecided(options: argparse.Namespace) -> list[Setting]:
    """Return more instances of what the rows so far cannot decide."""
    from zoomrank.lab.curves import Results
    from zoomrank.lab.paper.claims import undecided
    from zoomrank.lab.results_folder import ResultsFolder

    wanted = undecided(Results(ResultsFolder(options.out).rows()))
    return settings_of(wanted, options.instances, options.visits, options.seed)


def add_report(commands: arguments.Commands) -> None:
    """Add the command to the parser."""
    parser = arguments.add_command(
        commands,
        "report",
        "Draw the figures and write the report from the rows that a folder of results has\n"
        "so far; the command that fills it may still be at work.",
        "zoomrank report reproduction",
        "zoomrank report evaluation",
        extras=("lab",),
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder given to --out of the other command")
    parser.set_defaults(run=run_report)


def run_report(options: argparse.Namespace) -> None:
    """Write the report of the command that created the folder."""
    from zoomrank.lab.evaluation_report import write_evaluation_report
    from zoomrank.lab.paper.report import write_paper_report
    from zoomrank.lab.results_folder import ResultsFolder

    folder = ResultsFolder(options.folder)
    kind = folder.manifest["kind"]
    if kind == evaluation.KIND:
        print_evaluation(write_evaluation_report(folder))
    elif kind == paper.KIND:
        report = write_paper_report(folder)
        print(f"{report.summary}\nReport: {report.page}")
    else:
        raise ResultsError(f"{folder.path} has rows of the kind {kind}, for which this command has no report.")
