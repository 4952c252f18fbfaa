"""`zoomrank simulate`: one ranker, one kind of visitors."""

import argparse
from pathlib import Path

from zoomrank.cli.arguments import Commands, add_command, add_seed, parameter
from zoomrank.lab.catalogue import GREEDY, RANKERS, USERS
from zoomrank.lab.recipes import SEED, Curve, Experiment, recipe


def add(commands: Commands) -> None:
    """Describe the command."""
    parser = add_command(
        commands,
        "simulate",
        "let simulated visitors teach one ranker",
        f"Rankers: {', '.join(RANKERS)}, {GREEDY}, or module:Name of your own.\n"
        f"Visitors: {', '.join(USERS)}, or module:Name of your own.",
        "zoomrank simulate RankCorrZoom two-peaks",
        "zoomrank simulate RankContextZoom two-peaks --set scale=0.2 --depth 7 --slots 2",
        "zoomrank simulate RankUCB1 chinese-restaurant --set-users reading=mixture --out rows",
        "zoomrank simulate mine:MyRanker mine:MyUsers --rounds 20000      from a file mine.py in this folder",
    )
    parser.add_argument("ranker", metavar="RANKER")
    parser.add_argument("users", metavar="USERS")
    parser.add_argument("--depth", type=int, default=15, help="levels of the binary tree; 15 is 32,768 documents")
    parser.add_argument("--slots", type=int, default=5, help="documents in a ranking (5)")
    parser.add_argument("--rounds", type=int, default=300_000, metavar="N", help="visits (300,000)")
    parser.add_argument("--delay", type=int, default=0, metavar="N", help="answers come so many visits late (0)")
    parser.add_argument("--instances", type=int, default=1, metavar="N", help="of the visitors (1)")
    parser.add_argument(
        "--set", type=parameter, action="append", default=[], metavar="NAME=VALUE", help="of the ranker"
    )
    parser.add_argument(
        "--set-users", type=parameter, action="append", default=[], metavar="NAME=VALUE", help="of the visitors"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep the rows, as Parquet files, in this folder")
    add_seed(parser, SEED)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Simulate, draw and count."""
    from zoomrank.cli.chart import chart
    from zoomrank.lab.results import Results, estimate
    from zoomrank.lab.runners import Local

    wanted = experiment(options)
    folder = None
    if options.out is not None:  # before anything is done: it may not be empty
        from zoomrank.lab.results_folder import ResultsFolder, about_sweep

        about = about_sweep("simulation", options.instances, options.rounds, options.seed)
        folder = ResultsFolder.create(options.out, about)
    finished = list(Local(workers=1).finish(wanted.settings(instances=options.instances, seed=options.seed)))
    results = Results(one.rows for one in finished)
    mine, greedy = (results.curve(wanted.name, curve) for curve in (wanted.curves[0].name, GREEDY))
    windows = mine.windows().mean
    pictured = windows[1::2] if len(windows) % 2 == 0 else windows
    print(chart({options.ranker: pictured}, mine.length, top=float(greedy.expected[:, -1].mean())))
    print(f"\n  visitors satisfied, all in all   {estimate(mine.rate())}")
    print(f"  in the last tenth                {estimate(mine.rate(0.9))}")
    print(f"  the last ranking shown           {estimate(mine.expected[:, -1])}")
    print(f"  the greedy optimum               {estimate(greedy.expected[:, -1])}")
    print(f"  clicks by slot                   {' '.join(f'{rate:.3f}' for rate in mine.slot_rates().mean(axis=0))}")
    if folder is not None:
        for one in finished:
            folder.add(one.rows, one.seconds)
        print(f"\nRows: {options.out / 'rows'}")


def experiment(options: argparse.Namespace) -> Experiment:
    """What was asked for, beside the greedy optimum."""
    curves = [Curve(GREEDY, recipe(GREEDY))]
    if options.ranker != GREEDY:
        name = options.ranker.replace(":", ".")  # it names a folder, too
        curves.insert(0, Curve(name, recipe(options.ranker, **dict(options.set)), delay=options.delay))
    small = options.users == "three-documents"
    return Experiment(
        name="simulate",
        title=f"{options.ranker} and {options.users}",
        tree=recipe("three-documents") if small else recipe("exponential", depth=options.depth),
        users=recipe(options.users, **dict(options.set_users)),
        slots=options.slots,
        visits=options.rounds,
        curves=tuple(curves),
    )
