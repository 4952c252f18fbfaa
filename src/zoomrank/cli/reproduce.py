"""`zoomrank reproduce`: the paper's evaluation, and more, in one command."""

import argparse
import time
from pathlib import Path

from zoomrank.cli.arguments import Commands, add_command, add_seed
from zoomrank.lab.experiments import FIGURES, INSTANCES, figures_named, settings_for
from zoomrank.lab.settings import SEED


def add(commands: Commands) -> None:
    """Describe the command."""
    figures = "\n".join(f"  {figure.name:<9} {figure.title}" for figure in FIGURES.values())
    parser = add_command(
        commands,
        "reproduce",
        "rerun the paper's evaluation and report on it",
        "Run the experiments behind the named figures and write figures, claims and numbers to a folder.\n\n"
        f"figures:\n{figures}\n  paper     the five of the paper, which is what you get unless you name some\n"
        "  beyond    the others\n  all       every one",
        "zoomrank reproduce                                      all of the paper, 10 instances",
        "zoomrank reproduce 1 --instances 3 --rounds 50000       a quick look at Figure 1",
        "zoomrank reproduce all --out results --resume           go on after an interruption, or add figures",
        "zoomrank reproduce --engine ray --address auto          on a Ray cluster",
    )
    parser.add_argument("figures", nargs="*", metavar="FIGURE", default=[], help="which figures (default: paper)")
    parser.add_argument("--instances", type=int, default=INSTANCES, metavar="N", help=f"of each world ({INSTANCES})")
    parser.add_argument("--rounds", type=int, metavar="N", help="visits a run, instead of each experiment's own")
    parser.add_argument("--out", type=Path, default=Path("reproduction"), metavar="DIR", help="folder (reproduction)")
    parser.add_argument("--resume", action="store_true", help="go on in a folder that has results already")
    parser.add_argument("--engine", default="local", metavar="ENGINE", help="local (default) or ray")
    parser.add_argument("--address", metavar="ADDRESS", help="of the Ray cluster, or auto")
    parser.add_argument("--workers", type=int, metavar="N", help="processes of the local engine (default: one a core)")
    add_seed(parser, SEED)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Carry out what is missing, then report."""
    from zoomrank.cli.progress import SweepProgress, duration
    from zoomrank.lab.engines import engine
    from zoomrank.lab.report import write_report
    from zoomrank.lab.store import Store, about_sweep
    from zoomrank.lab.sweep import sweep

    start = time.monotonic()
    figures = figures_named(options.figures or ["paper"])
    settings = settings_for(figures, options.instances, options.rounds, options.seed)
    place = engine(options.engine, options.workers, options.address)  # before anything is written
    about = about_sweep([figure.name for figure in figures], options.instances, options.rounds, options.seed)
    store = (Store.resume if options.resume else Store.create)(options.out, about)
    with SweepProgress() as progress:
        sweep(settings, store, place, progress)
    report = write_report(store)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in report.verdicts.items())
    print(f"{len(settings)} runs in {duration(time.monotonic() - start)}. Claims of the paper: {counts}.")
    print(f"Report: {report.page}")
