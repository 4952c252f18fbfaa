"""`zoomrank reproduce`: rerun the paper's evaluation, and more."""

import argparse
import time
from contextlib import closing
from pathlib import Path

from zoomrank.cli.arguments import (
    Commands,
    add_cluster,
    add_command,
    add_instances,
    add_out,
    add_seed,
    add_sweep,
    add_visits,
)
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


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "reproduce",
        "rerun the paper's evaluation and report on it",
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
    add_visits(parser, None)
    add_instances(parser, INSTANCES, "each experiment")
    add_out(parser, "the report", Path("reproduction"))
    add_sweep(parser)
    add_cluster(parser)
    add_seed(parser, SEED)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Carry out what is missing, then write the report."""
    from zoomrank.cli.progress import SweepProgress, duration
    from zoomrank.lab.paper.paper_report import write_paper_report
    from zoomrank.lab.results_folder import sweep_request
    from zoomrank.lab.runners import make_runner
    from zoomrank.lab.sweep import run_sweep

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
    counts = ", ".join(f"{count} {verdict}" for verdict, count in report.verdicts.items())
    print(f"{len(settings)} runs in {duration(time.monotonic() - start)}. Claims of the paper: {counts}.")
    print(f"Report: {report.page}")


def _undecided(options: argparse.Namespace) -> list[Setting]:
    """Return more instances of what the rows so far cannot decide."""
    from zoomrank.lab.curves import Results
    from zoomrank.lab.paper.verdicts import undecided
    from zoomrank.lab.results_folder import ResultsFolder

    wanted = undecided(Results(ResultsFolder(options.out).rows()))
    return settings_of(wanted, options.instances, options.visits, options.seed)
