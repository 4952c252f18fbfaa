"""`python -m research bench` (`make bench`): every number in docs/benchmarks.md, measured in one run, as Markdown.

Machines differ and are noisy, so speeds that matter are ratios within the run.
"""

import argparse
import importlib
import os
import platform
import sys
from datetime import datetime, timezone

import numba
import numpy as np

import zoomrank
from research.bench.measure import Row
from zoomrank.cli.arguments import Commands, add_command, listed
from zoomrank.lab.report_pages import machine

SECTIONS = {  # by name, the module that measures each; the function is named like the section
    "spaces": "ground",
    "floor": "ground",
    "exact": "ground",
    "learners": "learners",
    "growth": "learners",
    "footprint": "learners",
    "eligible": "learners",
    "documents": "ground",
    "queries": "queries",
    "answers": "feedback",
    "start": "start",
    "others": "others",
    "service": "service",
}
ON_REQUEST = {  # part of another section, or too long to be run with the rest
    "batches": "service",
    "experiment": "service",
    "steady": "service",
    "catalogue": "catalogue",
    "cluster": "cluster",
    "retention": "retention",
    "ring": "cluster",
    "experiments": "experiments",
    "propensities": "propensities",
}


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    about = "\n".join(
        [
            "Measure speeds and sizes and print them as Markdown.\n",
            listed("sections:", SECTIONS),
            listed("on request:", ON_REQUEST),
        ]
    )
    parser = add_command(
        commands,
        "bench",
        about,
        "python -m research bench",
        "python -m research bench learners service",
        extras=("lab", "service"),
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help="any of the above (default: the first list)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Measure the sections and print their rows as they come."""
    known = {**SECTIONS, **ON_REQUEST}
    unknown = set(options.sections) - set(known)
    if unknown:
        options.refuse(f"unknown section {unknown.pop()!r}; choose from {', '.join(known)}")
    today = datetime.now(timezone.utc).date()
    print(f"zoomrank {zoomrank.__version__}, {today}, Python {platform.python_version()}, Numba {numba.__version__}, "
          f"NumPy {np.__version__}, {machine()['processor']}, load {os.getloadavg()[0]:.1f}\n")  # fmt: skip
    for section in options.sections or SECTIONS:
        print(f"### {section}\n\n| what | measured | aim |\n|---|---|---|")
        measured = importlib.import_module(f"research.bench.{known[section]}")
        for row in getattr(measured, section)():
            _print(row)
        print()


def _print(row: Row) -> None:
    print(f"| {row.what} | {row.measured} | {row.aim} |")
    sys.stdout.flush()
