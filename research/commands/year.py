"""`python -m research year`: simulate a year of a shop in minutes, and compare its learners with undisturbed ones."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from pathlib import Path

from zoomrank.cli.arguments import Commands, add_command, add_out, add_seed, add_slots
from zoomrank.cli.terminal import ProgressLine
from zoomrank.errors import ParameterError

_ABOUT = """Simulate a year of a shop that uses the service, in minutes: every
day 2 % of its products go, come or change, seasons empty shelves and fill
them, searches bring candidates that are no longer known, the process is
killed, pages report nonsense that is voided later, a category moves, and
in the middle everything is restored from a backup on another store.

At the end the satisfaction of visitors is computed exactly and compared with
that of a service that met none of this: the last day's catalogue from the
beginning, and as many visits of each query. The store is verified.

what --without can leave out:
  changes      products come, go and change
  moves        some of those are put on another shelf
  seasons      shelves and wishes of a season
  candidates   searches that pass a list of candidates
  silence      clicks that are reported late, or never
  outages      the process is killed, and starts again hours later
  deploys      pages that report nonsense, until it is voided
  categories   one is moved, one is renamed
  restore      a backup, restored on another store"""


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "year",
        _ABOUT,
        "python -m research year",
        "python -m research year --days 30 --products 1200 --queries 8   # a short one",
        "python -m research year --without seasons,deploys --out calm",
        "python -m research year --store postgresql://user@host/empty   # for the second half",
        extras=("service", "lab"),
    )
    parser.add_argument("--days", type=int, default=365, metavar="N", help="days of the year (default: 365)")
    parser.add_argument("--visits", type=int, default=300, metavar="N", help="visits a day (default: 300)")
    parser.add_argument("--products", type=int, default=12_000, metavar="N", help="in the shop (default: 12,000)")
    parser.add_argument("--queries", type=int, default=20, metavar="N", help="that are asked (default: 20)")
    add_slots(parser)
    add_seed(parser, 1)
    add_out(parser, "the stores and a picture", Path("year"))
    parser.add_argument(
        "--store",
        metavar="ADDRESS",
        help="postgresql://…, an empty database for the second half of the year (default: a server of "
        "this command's own if its wheel is installed, or else SQLite in another folder)",
    )
    parser.add_argument("--without", default="", metavar="WHAT", help="events to leave out, to measure what each costs")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Simulate the year, and print the result; the exit status is 1 if the store is not sound."""
    from research.year.report import draw, report
    from research.year.shop import Plan
    from research.year.simulation import YearSimulation
    from research.year.whole_year import whole_year

    for name, least in (("visits", 1), ("products", 100), ("queries", 1)):
        if getattr(options, name) < least:
            raise ParameterError(f"--{name} is {getattr(options, name)}; it must be at least {least}.")
    plan = Plan.of(options.days, [name for name in options.without.split(",") if name])
    year = YearSimulation(plan, options.products, options.queries, options.visits, options.slots, options.seed)
    with contextlib.ExitStack() as stack:
        outcome = asyncio.run(
            whole_year(year, options.out, options.store, lambda what: stack.enter_context(ProgressLine(what)).tell)
        )
    print(report(outcome, plan))
    sys.stderr.write(f"zoomrank: a picture is in {draw(outcome, plan, options.out)}\n")
    return 1 if outcome.verdict.findings else 0
