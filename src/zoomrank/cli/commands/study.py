"""`zoomrank study`: how many impressions learners need."""

import argparse
import time
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
from zoomrank.errors import ParameterError
from zoomrank.lab.studies import KIND
from zoomrank.lab.studies.families import FAMILIES, taxonomy_family
from zoomrank.lab.studies.questions import STUDIES

_STUDY = "  {:<19} {}\n" + " " * 22 + "({} instances, seed {})"
_ABOUT = "\n".join(
    [
        "Run ZoomRank and its competitors on many families of worlds, and report.",
        "\nstudies:",
        *(_STUDY.format(name, one.title, one.instances, one.seed) for name, one in STUDIES.items()),
        "\nfamilies:",
        *(f"  {family.name:<19} {family.title}" for family in FAMILIES),
    ]
)


def add(commands: Commands) -> None:
    """Describe the command."""
    parser = add_command(
        commands,
        "study",
        "compare ZoomRank with its competitors",
        _ABOUT,
        "zoomrank study efficiency",
        "zoomrank study efficiency --instances 4 --visits 5000   # a quick look",
        "zoomrank study efficiency --taxonomy categories.txt   # on yours, too",
        extras=("lab",),
    )
    parser.add_argument("study", choices=list(STUDIES), metavar="STUDY", help="efficiency, tuning or convergence")
    parser.add_argument(
        "--taxonomy", metavar="FILE", help='one more family: a file with a path such as "Animals > Birds" in each line'
    )
    add_visits(parser, None)
    add_instances(parser, None, "each family")
    add_out(parser, "the report", "named like the study")
    add_sweep(parser)
    add_cluster(parser)
    add_seed(parser, None)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Carry out what is missing, then report."""
    from zoomrank.cli.progress import SweepProgress, duration
    from zoomrank.lab.results_folder import about_sweep
    from zoomrank.lab.runners import runner_named
    from zoomrank.lab.studies.study_report import write_study_report
    from zoomrank.lab.sweep import swept

    start = time.monotonic()
    study = STUDIES[options.study]
    options.instances = study.instances if options.instances is None else options.instances
    options.seed = study.seed if options.seed is None else options.seed
    options.out = options.out or Path(options.study)
    families = list(FAMILIES)
    if options.taxonomy is not None:
        if options.study != "efficiency":
            raise ParameterError("A taxonomy is one more family of the study called efficiency, and of no other.")
        families.append(taxonomy_family(options.taxonomy))
    runs = study.settings(options.instances, options.visits, options.seed, families)
    runner = runner_named(options.engine, options.workers, options.address)  # before anything is written
    about = about_sweep(KIND, options.instances, options.visits, options.seed, study=options.study)
    with SweepProgress() as progress:
        folder = swept(runs, options.out, about, runner, resume=options.resume, watcher=progress)
    page = write_study_report(folder, families)
    print(f"{len(runs)} runs in {duration(time.monotonic() - start)}.\nReport: {page}")
